-- What a call asks of one tenant, one person or one role is found without going through those of all others.

-- In which organizations a tuple names a person. The other indexes begin with the organization.
create index relationship_person on relationship (subject, organization_id)
  where subject >= 'user:' and subject < 'user;' and subject <> 'user:*';
create index conditional_relationship_person on conditional_relationship (subject, organization_id)
  where subject >= 'user:' and subject < 'user;' and subject <> 'user:*';

-- The grants of an app's roles, in the order in which they are listed.
create index role_grant_app on role_grant (app, organization_id, grant_id);

-- Sign-ins of a person that a browser has not gone on with, and what clients have asked for and not got yet.
create index oidc_record_login on oidc_record ((payload -> 'result' -> 'login' ->> 'accountId')) where kind = 'Interaction';
create index oidc_record_client on oidc_record ((payload ->> 'clientId'))
  where kind in ('DeviceCode', 'BackchannelAuthenticationRequest', 'PushedAuthorizationRequest');

-- Organizations directly below another, in the order in which they are listed. It takes the place of organization_parent.
create index organization_below on organization (parent_id, organization_id) where parent_id is not null;
drop index organization_parent;

-- Clients of the whole environment, of which one must stay that may register others.
create index client_unbound on client (client_id) where organization_id is null;
