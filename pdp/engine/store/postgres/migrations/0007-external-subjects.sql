-- Subjects of other issuers are called ~<prefix><name> now. What is said of them follows; what names a user of ours stays.
create temporary table renamed on commit drop as
  select r.organization_id, r.object, r.relation, r.subject from relationship r
  where exists (select 1 from trusted_issuer t where starts_with(r.subject, 'user:' || (t.document ->> 'subject_prefix')))
    and not exists (select 1 from user_account u where r.subject = 'user:' || u.user_id);

insert into relationship (organization_id, object, relation, subject, expires_at)
  select organization_id, object, relation, 'user:~' || substr(subject, 6), expires_at
  from relationship join renamed using (organization_id, object, relation, subject) on conflict do nothing;
delete from relationship r using renamed n
  where (r.organization_id, r.object, r.relation, r.subject) = (n.organization_id, n.object, n.relation, n.subject);

-- Whatever is cached of these organizations is void.
with raised as (
  update revision set revision = revision + 1, write_id = ('x' || md5(random()::text))::bit(64)::bigint
  where organization_id in (select organization_id from renamed) returning organization_id, revision, write_id)
insert into change_log (organization_id, revision, seq, write_id, change, actor, request_id)
  select organization_id, revision, 1, write_id, '{"kind": "clear"}', 'system', 'migration' from raised;
