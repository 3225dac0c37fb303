-- Who holds a role, and what a subject holds anywhere: asked when a role, a manifest or a grant changes.
create index role_grant_role on role_grant (app, role, organization_id, grant_id);
-- The organization comes second: group ids such as group:admins recur in every one of them.
create index role_grant_subject on role_grant (subject, organization_id, app, role);
