-- master key: dXV1dXV1dXV1dXV1dXV1dXV1dXV1dXV1dXV1dXV1dXU=
-- said: {"/v1/organizations/acme":{"id":"acme","name":"Acme","parent":null},"/v1/organizations/acme~europe":{"id":"acme~europe","name":"Acme Europe","parent":"acme"},"/v1/organizations/acme/members":{"items":[{"user":"ann","role":"member","status":"active"},{"user":"ben","role":"member","status":"suspended"},{"user":"cleo","role":"member","status":"invited"}],"next_page_token":null,"revision":9,"revision_unchanged":true},"/v1/organizations/acme/relationships":{"items":[{"object":"document:1","relation":"viewer","subject":"user:ann","expires_at":null},{"object":"document:2","relation":"viewer","subject":"group:staff#member","expires_at":null},{"object":"document:3","relation":"blocked","subject":"user:dan","expires_at":null},{"object":"document:3","relation":"folder","subject":"folder:legal","expires_at":null},{"object":"document:4","relation":"viewer","subject":"user:ann","expires_at":"2020-01-01T00:00:00.000Z"},{"object":"document:4","relation":"viewer","subject":"user:ben","expires_at":"2100-01-01T00:00:00.000Z"},{"object":"folder:legal","relation":"viewer","subject":"group:staff#member","expires_at":null},{"object":"group:staff","relation":"member","subject":"user:ann","expires_at":null},{"object":"group:staff","relation":"member","subject":"user:dan","expires_at":null}],"next_page_token":null,"revision":9,"revision_unchanged":true},"/v1/organizations/acme/entitlements":{"items":[{"key":"feature.export","value":{"enabled":true},"enforcement":"DecisionApi","version":3},{"key":"feature.import","value":{"enabled":false},"enforcement":"DecisionApi","version":3},{"key":"seats","value":{"limit":25},"enforcement":"DecisionApi","version":3}],"next_page_token":null,"revision":9,"revision_unchanged":true},"/v1/organizations/acme/role-grants":{"items":[{"id":"yKDI2lgx_aq-LRHLrr4o7J","app":"documents","role":"archivist","subject":"user:ann"}],"next_page_token":null,"revision":9,"revision_unchanged":true},"/v1/organizations/acme/changes":[{"revision":1,"change":{"kind":"membership","user":"ann","membership":{"role":"member","status":"active"}},"actor":"service:admin","request_id":"0ea3f805-2a4b-4cfe-95f9-704c767af923","at":"2026-11-22T20:33:13.866Z"},{"revision":2,"change":{"kind":"membership","user":"ben","membership":{"role":"member","status":"suspended"}},"actor":"service:admin","request_id":"cd1e6c95-f681-44a3-a4ce-5bfbf68beb52","at":"2026-11-22T20:33:14.160Z"},{"revision":3,"change":{"kind":"membership","user":"cleo","membership":{"role":"member","status":"invited"}},"actor":"service:admin","request_id":"46d6e783-04f4-4844-9e3a-e3cfcf07a4c0","at":"2026-11-22T20:33:14.446Z"},{"revision":4,"change":{"op":"write","kind":"role_grant","grant":{"id":"yKDI2lgx_aq-LRHLrr4o7J","app":"documents","role":"archivist","subject":"user:ann"}},"actor":"service:admin","request_id":"c4214ed9-e48b-4358-9b7b-bd096572b532","at":"2026-11-22T20:33:14.467Z"},{"revision":5,"change":{"op":"write","kind":"tuple","tuple":{"object":"document:1","subject":"user:ann","relation":"viewer"}},"actor":"service:admin","request_id":"4cb28532-57fc-4fa5-aa90-a9f3f6a39d4b","at":"2026-11-22T20:33:14.487Z"},{"revision":5,"change":{"op":"write","kind":"tuple","tuple":{"object":"document:1","subject":"user:ben","relation":"viewer"}},"actor":"service:admin","request_id":"4cb28532-57fc-4fa5-aa90-a9f3f6a39d4b","at":"2026-11-22T20:33:14.487Z"},{"revision":5,"change":{"op":"write","kind":"tuple","tuple":{"object":"document:2","subject":"group:staff#member","relation":"viewer"}},"actor":"service:admin","request_id":"4cb28532-57fc-4fa5-aa90-a9f3f6a39d4b","at":"2026-11-22T20:33:14.487Z"},{"revision":5,"change":{"op":"write","kind":"tuple","tuple":{"object":"document:3","subject":"folder:legal","relation":"folder"}},"actor":"service:admin","request_id":"4cb28532-57fc-4fa5-aa90-a9f3f6a39d4b","at":"2026-11-22T20:33:14.487Z"},{"revision":5,"change":{"op":"write","kind":"tuple","tuple":{"object":"folder:legal","subject":"group:staff#member","relation":"viewer"}},"actor":"service:admin","request_id":"4cb28532-57fc-4fa5-aa90-a9f3f6a39d4b","at":"2026-11-22T20:33:14.487Z"},{"revision":5,"change":{"op":"write","kind":"tuple","tuple":{"object":"document:3","subject":"user:dan","relation":"blocked"}},"actor":"service:admin","request_id":"4cb28532-57fc-4fa5-aa90-a9f3f6a39d4b","at":"2026-11-22T20:33:14.487Z"},{"revision":5,"change":{"op":"write","kind":"tuple","tuple":{"object":"group:staff","subject":"user:ann","relation":"member"}},"actor":"service:admin","request_id":"4cb28532-57fc-4fa5-aa90-a9f3f6a39d4b","at":"2026-11-22T20:33:14.487Z"},{"revision":5,"change":{"op":"write","kind":"tuple","tuple":{"object":"group:staff","subject":"user:dan","relation":"member"}},"actor":"service:admin","request_id":"4cb28532-57fc-4fa5-aa90-a9f3f6a39d4b","at":"2026-11-22T20:33:14.487Z"},{"revision":5,"change":{"op":"write","kind":"tuple","tuple":{"object":"document:4","subject":"user:ann","relation":"viewer","expires_at":"2020-01-01T00:00:00.000Z"}},"actor":"service:admin","request_id":"4cb28532-57fc-4fa5-aa90-a9f3f6a39d4b","at":"2026-11-22T20:33:14.487Z"},{"revision":5,"change":{"op":"write","kind":"tuple","tuple":{"object":"document:4","subject":"user:ben","relation":"viewer","expires_at":"2100-01-01T00:00:00.000Z"}},"actor":"service:admin","request_id":"4cb28532-57fc-4fa5-aa90-a9f3f6a39d4b","at":"2026-11-22T20:33:14.487Z"},{"revision":6,"change":{"op":"delete","kind":"tuple","tuple":{"object":"document:1","subject":"user:ben","relation":"viewer"}},"actor":"service:admin","request_id":"73725911-2bdb-4a81-bdb5-64def9e52ae1","at":"2026-11-22T20:33:14.497Z"},{"revision":7,"change":{"key":"feature.export","kind":"entitlement","entitlement":{"value":{"enabled":true},"enforcement":"DecisionApi"}},"actor":"service:admin","request_id":"448eaf68-19f4-42e3-85a6-5846598d1595","at":"2026-11-22T20:33:14.512Z"},{"revision":8,"change":{"key":"feature.import","kind":"entitlement","entitlement":{"value":{"enabled":false},"enforcement":"DecisionApi"}},"actor":"service:admin","request_id":"056b58fc-8a41-4743-8a6f-f7c7d1ed6466","at":"2026-11-22T20:33:14.526Z"},{"revision":9,"change":{"key":"seats","kind":"entitlement","entitlement":{"value":{"limit":25},"enforcement":"DecisionApi"}},"actor":"service:admin","request_id":"27ac1441-4c6a-47a0-9367-215775053dfe","at":"2026-11-22T20:33:14.549Z"}],"/v1/changes":[{"revision":2,"change":{"id":"acme","kind":"organization","organization":{"id":"acme","name":"Acme","parent":null}},"actor":"service:admin","request_id":"949f7484-6cc5-4427-a974-c5d97d59e74c","at":"2026-11-22T20:33:12.979Z"},{"revision":3,"change":{"id":"acme~europe","kind":"organization","organization":{"id":"acme~europe","name":"Acme Europe","parent":"acme"}},"actor":"service:admin","request_id":"ef9247d2-95ec-4ab3-90af-5734375629f1","at":"2026-11-22T20:33:13.007Z"},{"revision":4,"change":{"kind":"manifest","manifest":{"app":"documents","model":"model\n  schema 1.1\ntype user\ntype group\n  relations\n    define member: [user]\ntype folder\n  relations\n    define viewer: [user, group#member]\ntype document\n  relations\n    define folder: [folder]\n    define blocked: [user]\n    define editor: [service]\n    define viewer: ([user, service, group#member] or viewer from folder) but not blocked\n","roles":{"archivist":{"name":"Archivist","permissions":["documents:archive"]}},"audiences":[],"permissions":{"documents:archive":"Archive documents"}}},"actor":"service:admin","request_id":"f2c37d32-7b3c-43f0-9c89-a708895d1ae3","at":"2026-11-22T20:33:13.117Z"}],"/v1/events":{"items":[{"id":"32aa5c6f-86e0-4a73-8569-c90ad726a3f1","type":"entitlement.updated","organization":"acme","data":{"keys":["feature.export"],"version":1,"organization":"acme"},"at":"2026-11-22T20:33:14.505Z"},{"id":"5b0e9982-96fa-4077-ad62-62fe9a2cca77","type":"entitlement.updated","organization":"acme","data":{"keys":["feature.import"],"version":2,"organization":"acme"},"at":"2026-11-22T20:33:14.520Z"},{"id":"88eb71d8-8c4d-4627-9226-28c4a89baa10","type":"entitlement.updated","organization":"acme","data":{"keys":["seats"],"version":3,"organization":"acme"},"at":"2026-11-22T20:33:14.537Z"}],"next":"3"},"/v1/users/ann":{"id":"ann","email":"ann@acme.example","email_verified":true,"name":"ann"},"/v1/users/ben":{"id":"ben","email":"ben@acme.example","email_verified":true,"name":"ben"},"/v1/clients/loader":{"client_id":"loader","app":"documents","organization":"acme","grant_types":["client_credentials"]},"/v1/clients/documents-app":{"client_id":"documents-app","app":"documents","organization":null,"scope":"openid offline_access","grant_types":["authorization_code","refresh_token"],"redirect_uris":["https://app.upgrade.example/callback"],"token_endpoint_auth_method":"none"},"/v1/apps/documents/manifest":{"app":"documents","model":"model\n  schema 1.1\ntype user\ntype group\n  relations\n    define member: [user]\ntype folder\n  relations\n    define viewer: [user, group#member]\ntype document\n  relations\n    define folder: [folder]\n    define blocked: [user]\n    define editor: [service]\n    define viewer: ([user, service, group#member] or viewer from folder) but not blocked\n","roles":{"archivist":{"name":"Archivist","permissions":["documents:archive"]}},"audiences":[],"permissions":{"documents:archive":"Archive documents"},"version":1},"decisions of ann":{"subject":{"type":"user","id":"ann"},"organization":"acme","permissions":[{"relation":"viewer","resource":"document:1","allowed":true},{"relation":"viewer","resource":"document:2","allowed":true},{"relation":"viewer","resource":"document:3","allowed":true},{"relation":"viewer","resource":"document:4","allowed":false},{"relation":"documents:archive","resource":"app:documents","allowed":true},{"relation":"member","resource":"organization:acme","allowed":true}],"entitlements":{"feature.export":{"value":{"enabled":true},"version":3},"feature.import":{"value":{"enabled":false},"version":3},"seats":{"value":{"limit":25},"version":3}}},"decisions of ben":{"subject":{"type":"user","id":"ben"},"organization":"acme","permissions":[{"relation":"viewer","resource":"document:1","allowed":false},{"relation":"viewer","resource":"document:2","allowed":false},{"relation":"viewer","resource":"document:3","allowed":false},{"relation":"viewer","resource":"document:4","allowed":false},{"relation":"documents:archive","resource":"app:documents","allowed":false},{"relation":"member","resource":"organization:acme","allowed":false}],"entitlements":{"feature.export":{"value":{"enabled":true},"version":3},"feature.import":{"value":{"enabled":false},"version":3},"seats":{"value":{"limit":25},"version":3}}},"decisions of cleo":{"subject":{"type":"user","id":"cleo"},"organization":"acme","permissions":[{"relation":"viewer","resource":"document:1","allowed":false},{"relation":"viewer","resource":"document:2","allowed":false},{"relation":"viewer","resource":"document:3","allowed":false},{"relation":"viewer","resource":"document:4","allowed":false},{"relation":"documents:archive","resource":"app:documents","allowed":false},{"relation":"member","resource":"organization:acme","allowed":false}],"entitlements":{"feature.export":{"value":{"enabled":true},"version":3},"feature.import":{"value":{"enabled":false},"version":3},"seats":{"value":{"limit":25},"version":3}}},"decisions of dan":{"subject":{"type":"user","id":"dan"},"organization":"acme","permissions":[{"relation":"viewer","resource":"document:1","allowed":false},{"relation":"viewer","resource":"document:2","allowed":false},{"relation":"viewer","resource":"document:3","allowed":false},{"relation":"viewer","resource":"document:4","allowed":false},{"relation":"documents:archive","resource":"app:documents","allowed":false},{"relation":"member","resource":"organization:acme","allowed":false}],"entitlements":{"feature.export":{"value":{"enabled":true},"version":3},"feature.import":{"value":{"enabled":false},"version":3},"seats":{"value":{"limit":25},"version":3}}}}
create table schema_migration (name text primary key, digest text not null, applied_at timestamptz not null default now());
-- Everything that decisions, tokens and management stand on. Keys compare by bytes ("C"), whatever the database's locale.

-- Where each log stands; never deleted, so that a revision can never be given out twice. HOT updates need the free space.
create table revision (
  organization_id text collate "C" primary key,
  revision bigint not null,
  write_id bigint not null,
  entitlement_version bigint not null default 0,
  entitlement_write_id bigint not null default 0,
  -- The organization was deleted. It stands here, since only the locked row is read anew after waiting for its lock.
  closed boolean not null default false
) with (fillfactor = 50);

-- Every revision has at least one entry. The audit trail reads it, and every PDP's cache moves forward by it.
create table change_log (
  organization_id text collate "C" not null,
  revision bigint not null,
  seq integer not null,
  write_id bigint not null,
  change jsonb not null,
  actor text not null,
  request_id text not null,
  written_at timestamptz not null default clock_timestamp(),
  primary key (organization_id, revision, seq)
);

create table organization (
  organization_id text collate "C" primary key,
  name text not null,
  parent_id text collate "C" references organization,
  created_at timestamptz not null default now()
);
create index organization_parent on organization (parent_id) where parent_id is not null;

create table relationship (
  organization_id text collate "C" not null,
  object text collate "C" not null,
  relation text collate "C" not null,
  subject text collate "C" not null,
  expires_at timestamptz,
  primary key (organization_id, object, relation, subject) include (expires_at)
);
create index relationship_subject on relationship (organization_id, subject, relation, object) include (expires_at);
-- Usersets and wildcards of a set that is too wide to read whole.
create index relationship_userset on relationship (organization_id, object, relation, subject) include (expires_at)
  where strpos(subject, '#') > 0 or right(subject, 2) = ':*';

create table membership (
  organization_id text collate "C" not null references organization,
  user_id text collate "C" not null,
  role text not null check (role in ('owner', 'admin', 'developer', 'member', 'viewer')),
  status text not null check (status in ('active', 'invited', 'suspended')),
  primary key (organization_id, user_id)
);
create index membership_user on membership (user_id, organization_id);

-- organization_id '#environment': environment-wide.
create table role_grant (
  organization_id text collate "C" not null,
  grant_id text collate "C" not null,
  app text collate "C",
  role text collate "C" not null,
  subject text collate "C" not null,
  primary key (organization_id, grant_id),
  unique nulls not distinct (organization_id, subject, app, role)
);

create table entitlement (
  organization_id text collate "C" not null references organization,
  key text collate "C" not null,
  value jsonb not null,
  enforcement text not null check (enforcement in ('DecisionApi', 'Claims')),
  primary key (organization_id, key)
);

create table manifest (
  app text collate "C" not null,
  version integer not null,
  document jsonb not null,
  current boolean not null,
  primary key (app, version)
);
create unique index manifest_current on manifest (app) where current;
-- An audience or a resource type belongs to the app that first declared it.
create table manifest_claim (
  kind text not null check (kind in ('audience', 'type')),
  name text collate "C" not null,
  app text collate "C" not null,
  primary key (kind, name)
);
create table organization_role (
  key text collate "C" primary key,
  name text not null,
  permissions text[] not null
);

-- People and clients share one namespace; a row stays when its owner is deleted, so that no id is given out twice.
create table principal (
  id text collate "C" primary key,
  kind text not null check (kind in ('user', 'client')),
  deleted_at timestamptz
);
create table user_account (
  user_id text collate "C" primary key references principal,
  email text,
  email_verified boolean not null default false,
  name text,
  password_hash text
);
create unique index user_account_email on user_account (lower(email));
create table client (
  client_id text collate "C" primary key references principal,
  app text collate "C",
  organization_id text collate "C" references organization,
  metadata jsonb not null,
  secret_hash text
);

-- oidc-provider's records. Bearer values of codes and refresh tokens are stored as digests.
create table oidc_record (
  kind text collate "C" not null,
  id text collate "C" not null,
  payload jsonb not null,
  grant_id text collate "C",
  uid text collate "C",
  user_code text collate "C",
  expires_at timestamptz,
  consumed_at timestamptz,
  primary key (kind, id)
);
create index oidc_record_grant on oidc_record (grant_id) where grant_id is not null;
create unique index oidc_record_uid on oidc_record (uid) where uid is not null;
create unique index oidc_record_user_code on oidc_record (user_code) where user_code is not null;
create index oidc_record_expiry on oidc_record (expires_at) where expires_at is not null;
create table grant_binding (
  grant_id text collate "C" primary key,
  organization_id text collate "C",
  user_id text collate "C" not null,
  client_id text collate "C" not null,
  session_uid text collate "C",
  parent_grant_id text collate "C",
  offline boolean not null default false,
  created_at timestamptz not null default now()
);
create index grant_binding_session on grant_binding (session_uid) where session_uid is not null;
create index grant_binding_parent on grant_binding (parent_grant_id) where parent_grant_id is not null;
create index grant_binding_user on grant_binding (user_id);

-- Private keys are encrypted with a key derived from the master key.
create table signing_key (
  kid text collate "C" primary key,
  public_jwk jsonb not null,
  private_jwk_sealed text not null,
  state text not null check (state in ('next', 'active', 'retired')),
  created_at timestamptz not null default now(),
  retire_after timestamptz
);
create unique index signing_key_active on signing_key (state) where state = 'active';

-- Events, numbered in order of commit by the lock on their own log.
create table outbox (
  seq bigint primary key,
  event_id text collate "C" not null unique,
  organization_id text collate "C",
  type text not null,
  payload jsonb not null,
  created_at timestamptz not null default now()
);

insert into revision (organization_id, revision, write_id) values
  ('#environment', 0, 0), ('#tokens', 0, 0), ('#directory', 0, 0), ('#events', 0, 0);

-- The whole identity service: sender-constrained grants, the token hook, trusted issuers, and the looks-up they need.

-- The first token of the grant was bound to a DPoP key: a refresh without a proof would be a downgrade.
alter table grant_binding add column sender_constrained boolean not null default false;

create table token_hook (
  singleton boolean primary key default true check (singleton),
  url text not null,
  secret_sealed text not null
);

-- Issuers besides our own whose access tokens the decision endpoints accept.
create table trusted_issuer (
  issuer text collate "C" primary key,
  document jsonb not null
);

-- Sessions and backchannel requests of a person.
create index oidc_record_account on oidc_record ((payload ->> 'accountId'), kind)
  where kind in ('Session', 'BackchannelAuthenticationRequest');

-- Who holds a role, and what a subject holds anywhere: asked when a role, a manifest or a grant changes.
create index role_grant_role on role_grant (app, role, organization_id, grant_id);
-- The organization comes second: group ids such as group:admins recur in every one of them.
create index role_grant_subject on role_grant (subject, organization_id, app, role);

-- The token log is read whole as far back as a token can live.
create index change_log_tokens on change_log (written_at) where organization_id = '#tokens';

-- A second factor for people, and sign-ins that are over.

-- The authenticator app of a person (RFC 6238). No code of this time step or an earlier one is accepted again.
create table authenticator (
  user_id text collate "C" primary key references user_account on delete cascade,
  secret_sealed text not null,
  used_step bigint not null default 0
);

-- What a person signed in to before this moment is over, also where the sign-in was not yet finished.
alter table user_account add column signed_out_at timestamptz;

-- Who may act as a client: the client that set its secret or keys; null for what was set before anybody wrote it down.
alter table client add column secret_set_by text collate "C";
create index client_organization on client (organization_id) where organization_id is not null;
create index grant_binding_client on grant_binding (client_id);

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

-- Tries of passwords and codes, counted by all nodes together. `key` says whose and from where, as a digest.
create table attempt (
  key text collate "C" primary key,
  tries integer not null,
  ends_at timestamptz not null
);
create index attempt_end on attempt (ends_at);

-- Sessions, device codes and CIBA requests are stored without what redeems them. Those of the former form cannot be
-- converted without the master key: they end. People sign in again; grants and tokens live on.
delete from oidc_record where kind in ('Session', 'DeviceCode', 'BackchannelAuthenticationRequest', 'Interaction');

-- Tuples with a condition, apart from the others: what does not ask for conditions cannot take them for grants.
create table conditional_relationship (
  organization_id text collate "C" not null,
  object text collate "C" not null,
  relation text collate "C" not null,
  subject text collate "C" not null,
  expires_at timestamptz,
  condition text collate "C" not null,
  context jsonb not null,
  primary key (organization_id, object, relation, subject)
);
create index conditional_relationship_subject on conditional_relationship (organization_id, subject, relation, object);
create index conditional_relationship_userset on conditional_relationship (organization_id, object, relation, subject)
  where strpos(subject, '#') > 0 or right(subject, 2) = ':*';

-- One object, relation and subject are in one of the two tables only.
create view stored_relationship as
  select organization_id, object, relation, subject, expires_at, null::text collate "C" as condition, null::jsonb as context
  from relationship
  union all
  select organization_id, object, relation, subject, expires_at, condition, context from conditional_relationship;

-- A write of relationships inside a transaction of the application's own. It is one statement, so that nothing of the
-- application can come between its parts, neither another statement nor the end of the transaction.
create function write_relationships(
  own_xid text, log text, conditions jsonb, changes jsonb, new_write_id bigint, new_actor text, new_request text
) returns table (outcome text, detail text, revision bigint, write_id text, entitlement_version bigint, entitlement_write_id text)
language plpgsql
-- As for the PDP's own writes (postgres.ts); in effect during this statement alone.
set lock_timeout = '4s'
as $$
#variable_conflict use_column
declare
  at record;
  failing record;
  effective jsonb;
begin
  if pg_current_xact_id()::text <> own_xid then
    raise exception 'the client is not in a transaction' using errcode = 'no_active_sql_transaction';
  end if;
  -- Until the transaction ends: other writes of the log wait for it, and what it commits must last.
  if current_setting('idle_in_transaction_session_timeout')::interval not between interval '1 ms' and interval '10 s' then
    perform set_config('idle_in_transaction_session_timeout', '10s', true);
  end if;
  if current_setting('synchronous_commit') in ('off', 'local') then
    perform set_config('synchronous_commit', 'on', true);
  end if;

  -- A writer that waited here sees what the writer before committed: each later statement has a younger snapshot.
  select r.* into at from revision r where r.organization_id = log and not r.closed for update;
  if not found then
    return query select 'organization_unknown', 'there is no organization ' || log, 0::bigint, '', 0::bigint, '';
    return;
  end if;
  select c.condition ->> 'name' as name, (c.condition ->> 'exists')::boolean as expected into failing
    from jsonb_array_elements(conditions) with ordinality c(condition, place)
    where (c.condition ->> 'exists')::boolean <> exists (
      select from stored_relationship r where r.organization_id = log and r.object = c.condition ->> 'object'
        and r.relation = c.condition ->> 'relation' and r.subject = c.condition ->> 'subject'
        and (r.expires_at is null or r.expires_at > clock_timestamp()))
    order by c.place limit 1;
  if found then
    return query select 'precondition_failed',
      failing.name || case when failing.expected then ' does not exist' else ' exists' end, 0::bigint, '', 0::bigint, '';
    return;
  end if;

  with asked as (
    select c.change, c.place, c.change ->> 'op' as op, c.change #>> '{tuple,object}' as object,
      c.change #>> '{tuple,relation}' as relation, c.change #>> '{tuple,subject}' as subject,
      to_timestamp((c.change #>> '{tuple,expiresAtMs}')::float8 / 1000.0) as expires_at,
      c.change #>> '{tuple,condition,name}' as condition, c.change #> '{tuple,condition,context}' as context
    from jsonb_array_elements(changes) with ordinality c(change, place)),
  -- A tuple is in one of the two tables only: what is written into one leaves the other.
  deleted as (
    delete from relationship r using asked a where (a.op = 'delete' or a.condition is not null) and r.organization_id = log
      and r.object = a.object and r.relation = a.relation and r.subject = a.subject
    returning r.object, r.relation, r.subject),
  released as (
    delete from conditional_relationship r using asked a where (a.op = 'delete' or a.condition is null)
      and r.organization_id = log and r.object = a.object and r.relation = a.relation and r.subject = a.subject
    returning r.object, r.relation, r.subject),
  written as (
    insert into relationship as r (organization_id, object, relation, subject, expires_at)
    select log, a.object, a.relation, a.subject, a.expires_at from asked a where a.op = 'write' and a.condition is null
    on conflict (organization_id, object, relation, subject) do update set expires_at = excluded.expires_at
      where r.expires_at is distinct from excluded.expires_at
    returning r.object, r.relation, r.subject),
  conditional as (
    insert into conditional_relationship as r (organization_id, object, relation, subject, expires_at, condition, context)
    select log, a.object, a.relation, a.subject, a.expires_at, a.condition, coalesce(a.context, '{}')
    from asked a where a.op = 'write' and a.condition is not null
    on conflict (organization_id, object, relation, subject) do update
      set expires_at = excluded.expires_at, condition = excluded.condition, context = excluded.context
      where (r.expires_at, r.condition, r.context) is distinct from (excluded.expires_at, excluded.condition, excluded.context)
    returning r.object, r.relation, r.subject)
  select jsonb_agg(a.change order by a.place) into effective
    from asked a join (
      select * from deleted union select * from released union select * from written union select * from conditional
    ) took using (object, relation, subject);
  if effective is null then
    return query select 'unchanged', '', at.revision, at.write_id::text, at.entitlement_version, at.entitlement_write_id::text;
    return;
  end if;
  update revision r set revision = at.revision + 1, write_id = new_write_id where r.organization_id = log;
  insert into change_log (organization_id, revision, seq, write_id, change, actor, request_id)
    select log, at.revision + 1, c.place, new_write_id, c.change, new_actor, new_request
    from jsonb_array_elements(effective) with ordinality c(change, place);
  return query select 'changed', '', at.revision + 1, new_write_id::text, at.entitlement_version, at.entitlement_write_id::text;
end
$$;

-- A session of an application may find other tables under these names, also temporary ones. An application whose role is
-- not the owner's must be given the right to execute this.
do $$
begin
  execute format('alter function write_relationships set search_path = %I, pg_temp', current_schema());
  revoke all on function write_relationships from public;
end
$$;

-- The rotation of the master key. A key is known here by its fingerprint, from which no key can be computed.

create table master_key (
  singleton boolean primary key default true check (singleton),
  -- What is stored from now on is encrypted with this key.
  sealing text collate "C" not null,
  -- While a rotation is not complete: some of what is stored is still encrypted with this key.
  rotating_from text collate "C"
);

-- The running PDPs, so that a rotation begins only when each has both keys. Each repeats its row while it runs.
create table pdp_process (
  id text collate "C" primary key,
  master_keys text[] not null,
  sealing text collate "C" not null,
  seen_at timestamptz not null default now()
);

set session_replication_role = replica;
delete from "attempt";
insert into "attempt" select * from jsonb_populate_record(null::"attempt", '{"key": "HljwYDR0ndlRaPYiWxqZnklNSCAUiWtLfLHu_mXVCy8", "tries": 0, "ends_at": "2026-11-22T20:48:14.58+00:00"}');
insert into "attempt" select * from jsonb_populate_record(null::"attempt", '{"key": "brqFAiajFQPWV2osLhEuOhIrGNVuIRgi0WfLUG6U5eE", "tries": 0, "ends_at": "2026-12-22T20:33:15.178+00:00"}');
delete from "authenticator";
delete from "change_log";
insert into "change_log" select * from jsonb_populate_record(null::"change_log", '{"seq": 1, "actor": "system", "change": {"id": "admin", "op": "write", "kind": "client"}, "revision": 1, "write_id": -1648553723939816674, "request_id": "start", "written_at": "2026-11-22T20:33:12.025513+00:00", "organization_id": "#directory"}');
insert into "change_log" select * from jsonb_populate_record(null::"change_log", '{"seq": 1, "actor": "system", "change": {"id": "portcullis-console", "op": "write", "kind": "client"}, "revision": 2, "write_id": -1579717939468299743, "request_id": "start", "written_at": "2026-11-22T20:33:12.185135+00:00", "organization_id": "#directory"}');
insert into "change_log" select * from jsonb_populate_record(null::"change_log", '{"seq": 1, "actor": "service:admin", "change": {"id": "documents-app", "op": "write", "kind": "client"}, "revision": 3, "write_id": 3373543331693659607, "request_id": "f7e1b4bf-15f6-491f-bccc-81539fb608ff", "written_at": "2026-11-22T20:33:13.143705+00:00", "organization_id": "#directory"}');
insert into "change_log" select * from jsonb_populate_record(null::"change_log", '{"seq": 1, "actor": "service:admin", "change": {"id": "loader", "op": "write", "kind": "client"}, "revision": 4, "write_id": 2339798263017349378, "request_id": "c4b4e4dc-7f08-4f82-b0df-f18988b8a226", "written_at": "2026-11-22T20:33:13.5071+00:00", "organization_id": "#directory"}');
insert into "change_log" select * from jsonb_populate_record(null::"change_log", '{"seq": 1, "actor": "service:admin", "change": {"id": "ann", "op": "write", "kind": "user"}, "revision": 5, "write_id": 3414140829437676464, "request_id": "94378abb-e592-42c5-9af8-619addd6fa20", "written_at": "2026-11-22T20:33:13.841169+00:00", "organization_id": "#directory"}');
insert into "change_log" select * from jsonb_populate_record(null::"change_log", '{"seq": 1, "actor": "service:admin", "change": {"id": "ben", "op": "write", "kind": "user"}, "revision": 6, "write_id": -5621058613286671731, "request_id": "4c0b1c5a-5b1f-4298-adad-29d63688a969", "written_at": "2026-11-22T20:33:14.140053+00:00", "organization_id": "#directory"}');
insert into "change_log" select * from jsonb_populate_record(null::"change_log", '{"seq": 1, "actor": "service:admin", "change": {"id": "cleo", "op": "write", "kind": "user"}, "revision": 7, "write_id": 3704771241018264624, "request_id": "b4a54176-362a-42fe-b901-472e129743d7", "written_at": "2026-11-22T20:33:14.428848+00:00", "organization_id": "#directory"}');
insert into "change_log" select * from jsonb_populate_record(null::"change_log", '{"seq": 1, "actor": "system", "change": {"kind": "manifest", "manifest": {"app": "portcullis", "model": null, "roles": {"editor": {"name": "Reads everything, writes relationships and entitlements", "permissions": ["portcullis:decisions:read", "portcullis:directory:read", "portcullis:manifest:read", "portcullis:roles:read", "portcullis:relationships:read", "portcullis:relationships:write", "portcullis:entitlements:read", "portcullis:entitlements:write", "portcullis:clients:read", "portcullis:hooks:read", "portcullis:issuers:read", "portcullis:audit:read", "portcullis:events:read"]}, "auditor": {"name": "Reads everything", "permissions": ["portcullis:decisions:read", "portcullis:directory:read", "portcullis:manifest:read", "portcullis:roles:read", "portcullis:relationships:read", "portcullis:entitlements:read", "portcullis:clients:read", "portcullis:hooks:read", "portcullis:issuers:read", "portcullis:audit:read", "portcullis:events:read"]}, "administrator": {"name": "Reads and writes everything", "permissions": ["portcullis:decisions:read", "portcullis:decisions:ask", "portcullis:directory:read", "portcullis:directory:write", "portcullis:manifest:read", "portcullis:manifest:write", "portcullis:roles:read", "portcullis:roles:write", "portcullis:relationships:read", "portcullis:relationships:write", "portcullis:entitlements:read", "portcullis:entitlements:write", "portcullis:clients:read", "portcullis:clients:write", "portcullis:hooks:read", "portcullis:hooks:write", "portcullis:issuers:read", "portcullis:issuers:write", "portcullis:sessions:revoke", "portcullis:audit:read", "portcullis:events:read"]}}, "audiences": [], "permissions": {"portcullis:audit:read": "Management scope audit:read", "portcullis:hooks:read": "Management scope hooks:read", "portcullis:roles:read": "Management scope roles:read", "portcullis:events:read": "Management scope events:read", "portcullis:hooks:write": "Management scope hooks:write", "portcullis:roles:write": "Management scope roles:write", "portcullis:clients:read": "Management scope clients:read", "portcullis:issuers:read": "Management scope issuers:read", "portcullis:clients:write": "Management scope clients:write", "portcullis:decisions:ask": "Management scope decisions:ask", "portcullis:issuers:write": "Management scope issuers:write", "portcullis:manifest:read": "Management scope manifest:read", "portcullis:decisions:read": "Management scope decisions:read", "portcullis:directory:read": "Management scope directory:read", "portcullis:manifest:write": "Management scope manifest:write", "portcullis:directory:write": "Management scope directory:write", "portcullis:sessions:revoke": "Management scope sessions:revoke", "portcullis:entitlements:read": "Management scope entitlements:read", "portcullis:entitlements:write": "Management scope entitlements:write", "portcullis:relationships:read": "Management scope relationships:read", "portcullis:relationships:write": "Management scope relationships:write"}}}, "revision": 1, "write_id": -6168380723669204612, "request_id": "start", "written_at": "2026-11-22T20:33:12.182161+00:00", "organization_id": "#environment"}');
insert into "change_log" select * from jsonb_populate_record(null::"change_log", '{"seq": 1, "actor": "service:admin", "change": {"id": "acme", "kind": "organization", "organization": {"id": "acme", "name": "Acme", "parent": null}}, "revision": 2, "write_id": 3299313252024242079, "request_id": "949f7484-6cc5-4427-a974-c5d97d59e74c", "written_at": "2026-11-22T20:33:12.979264+00:00", "organization_id": "#environment"}');
insert into "change_log" select * from jsonb_populate_record(null::"change_log", '{"seq": 1, "actor": "service:admin", "change": {"id": "acme~europe", "kind": "organization", "organization": {"id": "acme~europe", "name": "Acme Europe", "parent": "acme"}}, "revision": 3, "write_id": -140385607075696306, "request_id": "ef9247d2-95ec-4ab3-90af-5734375629f1", "written_at": "2026-11-22T20:33:13.007269+00:00", "organization_id": "#environment"}');
insert into "change_log" select * from jsonb_populate_record(null::"change_log", E'{"seq": 1, "actor": "service:admin", "change": {"kind": "manifest", "manifest": {"app": "documents", "model": "model\\n  schema 1.1\\ntype user\\ntype group\\n  relations\\n    define member: [user]\\ntype folder\\n  relations\\n    define viewer: [user, group#member]\\ntype document\\n  relations\\n    define folder: [folder]\\n    define blocked: [user]\\n    define editor: [service]\\n    define viewer: ([user, service, group#member] or viewer from folder) but not blocked\\n", "roles": {"archivist": {"name": "Archivist", "permissions": ["documents:archive"]}}, "audiences": [], "permissions": {"documents:archive": "Archive documents"}}}, "revision": 4, "write_id": -1510202030966596034, "request_id": "f2c37d32-7b3c-43f0-9c89-a708895d1ae3", "written_at": "2026-11-22T20:33:13.117121+00:00", "organization_id": "#environment"}');
insert into "change_log" select * from jsonb_populate_record(null::"change_log", '{"seq": 1, "actor": "identity", "change": {"by": "grant", "id": "ysh3ZdvUoUqwt9uh8pC56xVgq5-CoDFTzMQf5kuzGA7", "kind": "token"}, "revision": 1, "write_id": 8651086971512957145, "request_id": "", "written_at": "2026-11-22T20:33:15.255061+00:00", "organization_id": "#tokens"}');
insert into "change_log" select * from jsonb_populate_record(null::"change_log", '{"seq": 1, "actor": "identity", "change": {"by": "jti", "id": "oPuJiAj7edozkLCy6bwUA7Jm1HRyqfCB9ZtJm6pnvUS", "kind": "token"}, "revision": 2, "write_id": 1258893181812160269, "request_id": "", "written_at": "2026-11-22T20:33:15.594874+00:00", "organization_id": "#tokens"}');
insert into "change_log" select * from jsonb_populate_record(null::"change_log", '{"seq": 1, "actor": "service:admin", "change": {"kind": "membership", "user": "ann", "membership": {"role": "member", "status": "active"}}, "revision": 1, "write_id": 493508927865460405, "request_id": "0ea3f805-2a4b-4cfe-95f9-704c767af923", "written_at": "2026-11-22T20:33:13.866991+00:00", "organization_id": "acme"}');
insert into "change_log" select * from jsonb_populate_record(null::"change_log", '{"seq": 1, "actor": "service:admin", "change": {"kind": "membership", "user": "ben", "membership": {"role": "member", "status": "suspended"}}, "revision": 2, "write_id": 3822774962414233678, "request_id": "cd1e6c95-f681-44a3-a4ce-5bfbf68beb52", "written_at": "2026-11-22T20:33:14.160545+00:00", "organization_id": "acme"}');
insert into "change_log" select * from jsonb_populate_record(null::"change_log", '{"seq": 1, "actor": "service:admin", "change": {"kind": "membership", "user": "cleo", "membership": {"role": "member", "status": "invited"}}, "revision": 3, "write_id": -3953867217950950323, "request_id": "46d6e783-04f4-4844-9e3a-e3cfcf07a4c0", "written_at": "2026-11-22T20:33:14.446487+00:00", "organization_id": "acme"}');
insert into "change_log" select * from jsonb_populate_record(null::"change_log", '{"seq": 1, "actor": "service:admin", "change": {"op": "write", "kind": "role_grant", "grant": {"id": "yKDI2lgx_aq-LRHLrr4o7J", "app": "documents", "role": "archivist", "subject": "user:ann"}}, "revision": 4, "write_id": 458359529186216169, "request_id": "c4214ed9-e48b-4358-9b7b-bd096572b532", "written_at": "2026-11-22T20:33:14.467297+00:00", "organization_id": "acme"}');
insert into "change_log" select * from jsonb_populate_record(null::"change_log", '{"seq": 1, "actor": "service:admin", "change": {"op": "write", "kind": "tuple", "tuple": {"object": "document:1", "subject": "user:ann", "relation": "viewer", "expiresAtMs": null}}, "revision": 5, "write_id": 8144813788632681472, "request_id": "4cb28532-57fc-4fa5-aa90-a9f3f6a39d4b", "written_at": "2026-11-22T20:33:14.487007+00:00", "organization_id": "acme"}');
insert into "change_log" select * from jsonb_populate_record(null::"change_log", '{"seq": 10, "actor": "service:admin", "change": {"op": "write", "kind": "tuple", "tuple": {"object": "document:4", "subject": "user:ben", "relation": "viewer", "expiresAtMs": 4102444800000}}, "revision": 5, "write_id": 8144813788632681472, "request_id": "4cb28532-57fc-4fa5-aa90-a9f3f6a39d4b", "written_at": "2026-11-22T20:33:14.48707+00:00", "organization_id": "acme"}');
insert into "change_log" select * from jsonb_populate_record(null::"change_log", '{"seq": 2, "actor": "service:admin", "change": {"op": "write", "kind": "tuple", "tuple": {"object": "document:1", "subject": "user:ben", "relation": "viewer", "expiresAtMs": null}}, "revision": 5, "write_id": 8144813788632681472, "request_id": "4cb28532-57fc-4fa5-aa90-a9f3f6a39d4b", "written_at": "2026-11-22T20:33:14.487042+00:00", "organization_id": "acme"}');
insert into "change_log" select * from jsonb_populate_record(null::"change_log", '{"seq": 3, "actor": "service:admin", "change": {"op": "write", "kind": "tuple", "tuple": {"object": "document:2", "subject": "group:staff#member", "relation": "viewer", "expiresAtMs": null}}, "revision": 5, "write_id": 8144813788632681472, "request_id": "4cb28532-57fc-4fa5-aa90-a9f3f6a39d4b", "written_at": "2026-11-22T20:33:14.487046+00:00", "organization_id": "acme"}');
insert into "change_log" select * from jsonb_populate_record(null::"change_log", '{"seq": 4, "actor": "service:admin", "change": {"op": "write", "kind": "tuple", "tuple": {"object": "document:3", "subject": "folder:legal", "relation": "folder", "expiresAtMs": null}}, "revision": 5, "write_id": 8144813788632681472, "request_id": "4cb28532-57fc-4fa5-aa90-a9f3f6a39d4b", "written_at": "2026-11-22T20:33:14.487048+00:00", "organization_id": "acme"}');
insert into "change_log" select * from jsonb_populate_record(null::"change_log", '{"seq": 5, "actor": "service:admin", "change": {"op": "write", "kind": "tuple", "tuple": {"object": "folder:legal", "subject": "group:staff#member", "relation": "viewer", "expiresAtMs": null}}, "revision": 5, "write_id": 8144813788632681472, "request_id": "4cb28532-57fc-4fa5-aa90-a9f3f6a39d4b", "written_at": "2026-11-22T20:33:14.487059+00:00", "organization_id": "acme"}');
insert into "change_log" select * from jsonb_populate_record(null::"change_log", '{"seq": 6, "actor": "service:admin", "change": {"op": "write", "kind": "tuple", "tuple": {"object": "document:3", "subject": "user:dan", "relation": "blocked", "expiresAtMs": null}}, "revision": 5, "write_id": 8144813788632681472, "request_id": "4cb28532-57fc-4fa5-aa90-a9f3f6a39d4b", "written_at": "2026-11-22T20:33:14.487062+00:00", "organization_id": "acme"}');
insert into "change_log" select * from jsonb_populate_record(null::"change_log", '{"seq": 7, "actor": "service:admin", "change": {"op": "write", "kind": "tuple", "tuple": {"object": "group:staff", "subject": "user:ann", "relation": "member", "expiresAtMs": null}}, "revision": 5, "write_id": 8144813788632681472, "request_id": "4cb28532-57fc-4fa5-aa90-a9f3f6a39d4b", "written_at": "2026-11-22T20:33:14.487064+00:00", "organization_id": "acme"}');
insert into "change_log" select * from jsonb_populate_record(null::"change_log", '{"seq": 8, "actor": "service:admin", "change": {"op": "write", "kind": "tuple", "tuple": {"object": "group:staff", "subject": "user:dan", "relation": "member", "expiresAtMs": null}}, "revision": 5, "write_id": 8144813788632681472, "request_id": "4cb28532-57fc-4fa5-aa90-a9f3f6a39d4b", "written_at": "2026-11-22T20:33:14.487066+00:00", "organization_id": "acme"}');
insert into "change_log" select * from jsonb_populate_record(null::"change_log", '{"seq": 9, "actor": "service:admin", "change": {"op": "write", "kind": "tuple", "tuple": {"object": "document:4", "subject": "user:ann", "relation": "viewer", "expiresAtMs": 1577836800000}}, "revision": 5, "write_id": 8144813788632681472, "request_id": "4cb28532-57fc-4fa5-aa90-a9f3f6a39d4b", "written_at": "2026-11-22T20:33:14.487068+00:00", "organization_id": "acme"}');
insert into "change_log" select * from jsonb_populate_record(null::"change_log", '{"seq": 1, "actor": "service:admin", "change": {"op": "delete", "kind": "tuple", "tuple": {"object": "document:1", "subject": "user:ben", "relation": "viewer", "expiresAtMs": null}}, "revision": 6, "write_id": -5579824982708964584, "request_id": "73725911-2bdb-4a81-bdb5-64def9e52ae1", "written_at": "2026-11-22T20:33:14.497924+00:00", "organization_id": "acme"}');
insert into "change_log" select * from jsonb_populate_record(null::"change_log", '{"seq": 1, "actor": "service:admin", "change": {"key": "feature.export", "kind": "entitlement", "entitlement": {"value": {"enabled": true}, "enforcement": "DecisionApi"}}, "revision": 7, "write_id": -9043150524888420288, "request_id": "448eaf68-19f4-42e3-85a6-5846598d1595", "written_at": "2026-11-22T20:33:14.512681+00:00", "organization_id": "acme"}');
insert into "change_log" select * from jsonb_populate_record(null::"change_log", '{"seq": 1, "actor": "service:admin", "change": {"key": "feature.import", "kind": "entitlement", "entitlement": {"value": {"enabled": false}, "enforcement": "DecisionApi"}}, "revision": 8, "write_id": -6321635321214252407, "request_id": "056b58fc-8a41-4743-8a6f-f7c7d1ed6466", "written_at": "2026-11-22T20:33:14.526878+00:00", "organization_id": "acme"}');
insert into "change_log" select * from jsonb_populate_record(null::"change_log", '{"seq": 1, "actor": "service:admin", "change": {"key": "seats", "kind": "entitlement", "entitlement": {"value": {"limit": 25}, "enforcement": "DecisionApi"}}, "revision": 9, "write_id": 7673141252448103523, "request_id": "27ac1441-4c6a-47a0-9367-215775053dfe", "written_at": "2026-11-22T20:33:14.549625+00:00", "organization_id": "acme"}');
delete from "client";
insert into "client" select * from jsonb_populate_record(null::"client", '{"app": null, "metadata": {"scope": "decisions:read decisions:ask directory:read directory:write manifest:read manifest:write roles:read roles:write relationships:read relationships:write entitlements:read entitlements:write clients:read clients:write hooks:read hooks:write issuers:read issuers:write sessions:revoke audit:read events:read", "client_name": "Administration", "grant_types": ["client_credentials"], "response_types": [], "token_endpoint_auth_method": "client_secret_basic"}, "client_id": "admin", "secret_hash": "$scrypt$ln=15,r=8,p=3$hLVujUlDHLDCF+9FvZfJNw$COIZeKvFbdDo8x+/OLtNUGik1uYl06sthmJ0QVtnxZQ", "secret_set_by": "#system", "organization_id": null}');
insert into "client" select * from jsonb_populate_record(null::"client", '{"app": "documents", "metadata": {"scope": "openid offline_access", "grant_types": ["authorization_code", "refresh_token"], "redirect_uris": ["https://app.upgrade.example/callback"], "token_endpoint_auth_method": "none"}, "client_id": "documents-app", "secret_hash": null, "secret_set_by": null, "organization_id": null}');
insert into "client" select * from jsonb_populate_record(null::"client", '{"app": "documents", "metadata": {"grant_types": ["client_credentials"]}, "client_id": "loader", "secret_hash": "$scrypt$ln=15,r=8,p=3$oW7hcNEqd+cSUOxJU7IItg$R7SaCC5lQnhqOCovkWJirpDvi3UiiTyEEdCuiPkndCo", "secret_set_by": "admin", "organization_id": "acme"}');
insert into "client" select * from jsonb_populate_record(null::"client", '{"app": null, "metadata": {"scope": "openid", "client_name": "Portcullis console", "grant_types": ["authorization_code"], "redirect_uris": ["http://127.0.0.1:30087/console/callback"], "response_types": ["code"], "token_endpoint_auth_method": "none"}, "client_id": "portcullis-console", "secret_hash": null, "secret_set_by": null, "organization_id": null}');
delete from "conditional_relationship";
delete from "entitlement";
insert into "entitlement" select * from jsonb_populate_record(null::"entitlement", '{"key": "feature.export", "value": {"enabled": true}, "enforcement": "DecisionApi", "organization_id": "acme"}');
insert into "entitlement" select * from jsonb_populate_record(null::"entitlement", '{"key": "feature.import", "value": {"enabled": false}, "enforcement": "DecisionApi", "organization_id": "acme"}');
insert into "entitlement" select * from jsonb_populate_record(null::"entitlement", '{"key": "seats", "value": {"limit": 25}, "enforcement": "DecisionApi", "organization_id": "acme"}');
delete from "grant_binding";
insert into "grant_binding" select * from jsonb_populate_record(null::"grant_binding", '{"offline": true, "user_id": "ann", "grant_id": "ClXisP6uoN5euxTZjlREquqkggBpj6SncU-G2yNwQvb", "client_id": "documents-app", "created_at": "2026-11-22T20:33:14.861781+00:00", "session_uid": "70ka3XUwcoFJqzwkqjCKbYlYWSVzOSiTe4Vh4CH7niN", "organization_id": "acme", "parent_grant_id": null, "sender_constrained": false}');
insert into "grant_binding" select * from jsonb_populate_record(null::"grant_binding", '{"offline": true, "user_id": "ann", "grant_id": "ysh3ZdvUoUqwt9uh8pC56xVgq5-CoDFTzMQf5kuzGA7", "client_id": "documents-app", "created_at": "2026-11-22T20:33:15.2069+00:00", "session_uid": "tKALFuxDPVvapYvezNgmcXax-gWL-upUKMVlE3TuiWW", "organization_id": "acme", "parent_grant_id": null, "sender_constrained": false}');
delete from "manifest";
insert into "manifest" select * from jsonb_populate_record(null::"manifest", E'{"app": "documents", "current": true, "version": 1, "document": {"app": "documents", "model": "model\\n  schema 1.1\\ntype user\\ntype group\\n  relations\\n    define member: [user]\\ntype folder\\n  relations\\n    define viewer: [user, group#member]\\ntype document\\n  relations\\n    define folder: [folder]\\n    define blocked: [user]\\n    define editor: [service]\\n    define viewer: ([user, service, group#member] or viewer from folder) but not blocked\\n", "roles": {"archivist": {"name": "Archivist", "permissions": ["documents:archive"]}}, "audiences": [], "permissions": {"documents:archive": "Archive documents"}}}');
insert into "manifest" select * from jsonb_populate_record(null::"manifest", '{"app": "portcullis", "current": true, "version": 1, "document": {"app": "portcullis", "model": null, "roles": {"editor": {"name": "Reads everything, writes relationships and entitlements", "permissions": ["portcullis:decisions:read", "portcullis:directory:read", "portcullis:manifest:read", "portcullis:roles:read", "portcullis:relationships:read", "portcullis:relationships:write", "portcullis:entitlements:read", "portcullis:entitlements:write", "portcullis:clients:read", "portcullis:hooks:read", "portcullis:issuers:read", "portcullis:audit:read", "portcullis:events:read"]}, "auditor": {"name": "Reads everything", "permissions": ["portcullis:decisions:read", "portcullis:directory:read", "portcullis:manifest:read", "portcullis:roles:read", "portcullis:relationships:read", "portcullis:entitlements:read", "portcullis:clients:read", "portcullis:hooks:read", "portcullis:issuers:read", "portcullis:audit:read", "portcullis:events:read"]}, "administrator": {"name": "Reads and writes everything", "permissions": ["portcullis:decisions:read", "portcullis:decisions:ask", "portcullis:directory:read", "portcullis:directory:write", "portcullis:manifest:read", "portcullis:manifest:write", "portcullis:roles:read", "portcullis:roles:write", "portcullis:relationships:read", "portcullis:relationships:write", "portcullis:entitlements:read", "portcullis:entitlements:write", "portcullis:clients:read", "portcullis:clients:write", "portcullis:hooks:read", "portcullis:hooks:write", "portcullis:issuers:read", "portcullis:issuers:write", "portcullis:sessions:revoke", "portcullis:audit:read", "portcullis:events:read"]}}, "audiences": [], "permissions": {"portcullis:audit:read": "Management scope audit:read", "portcullis:hooks:read": "Management scope hooks:read", "portcullis:roles:read": "Management scope roles:read", "portcullis:events:read": "Management scope events:read", "portcullis:hooks:write": "Management scope hooks:write", "portcullis:roles:write": "Management scope roles:write", "portcullis:clients:read": "Management scope clients:read", "portcullis:issuers:read": "Management scope issuers:read", "portcullis:clients:write": "Management scope clients:write", "portcullis:decisions:ask": "Management scope decisions:ask", "portcullis:issuers:write": "Management scope issuers:write", "portcullis:manifest:read": "Management scope manifest:read", "portcullis:decisions:read": "Management scope decisions:read", "portcullis:directory:read": "Management scope directory:read", "portcullis:manifest:write": "Management scope manifest:write", "portcullis:directory:write": "Management scope directory:write", "portcullis:sessions:revoke": "Management scope sessions:revoke", "portcullis:entitlements:read": "Management scope entitlements:read", "portcullis:entitlements:write": "Management scope entitlements:write", "portcullis:relationships:read": "Management scope relationships:read", "portcullis:relationships:write": "Management scope relationships:write"}}}');
delete from "manifest_claim";
insert into "manifest_claim" select * from jsonb_populate_record(null::"manifest_claim", '{"app": "documents", "kind": "type", "name": "document"}');
insert into "manifest_claim" select * from jsonb_populate_record(null::"manifest_claim", '{"app": "documents", "kind": "type", "name": "folder"}');
insert into "manifest_claim" select * from jsonb_populate_record(null::"manifest_claim", '{"app": "documents", "kind": "type", "name": "group"}');
delete from "master_key";
insert into "master_key" select * from jsonb_populate_record(null::"master_key", '{"sealing": "1be4078af3f1c3d2", "singleton": true, "rotating_from": null}');
delete from "membership";
insert into "membership" select * from jsonb_populate_record(null::"membership", '{"role": "member", "status": "active", "user_id": "ann", "organization_id": "acme"}');
insert into "membership" select * from jsonb_populate_record(null::"membership", '{"role": "member", "status": "suspended", "user_id": "ben", "organization_id": "acme"}');
insert into "membership" select * from jsonb_populate_record(null::"membership", '{"role": "member", "status": "invited", "user_id": "cleo", "organization_id": "acme"}');
delete from "oidc_record";
insert into "oidc_record" select * from jsonb_populate_record(null::"oidc_record", '{"id": "jRQJSw2X006hrWXvwOh6vDXkKQlED6JZsDRWyQFk8Gz", "uid": null, "kind": "AccessToken", "payload": {"acr": "pwd", "aud": "http://127.0.0.1:30087", "exp": 1795380494, "gty": "authorization_code", "iat": 1795379594, "jti": "jRQJSw2X006hrWXvwOh6vDXkKQlED6JZsDRWyQFk8Gz", "kind": "AccessToken", "scope": "openid", "grantId": "ClXisP6uoN5euxTZjlREquqkggBpj6SncU-G2yNwQvb", "authTime": 1795379594, "clientId": "documents-app", "accountId": "ann", "sessionUid": "70ka3XUwcoFJqzwkqjCKbYlYWSVzOSiTe4Vh4CH7niN"}, "grant_id": "ClXisP6uoN5euxTZjlREquqkggBpj6SncU-G2yNwQvb", "user_code": null, "expires_at": "2026-11-22T20:48:14.89616+00:00", "consumed_at": null}');
insert into "oidc_record" select * from jsonb_populate_record(null::"oidc_record", '{"id": "4NCoIO595OnfzMk5PUTjRi1DkUtfUhitbU3Sh7-yQ8c", "uid": null, "kind": "AuthorizationCode", "payload": {"acr": "pwd", "amr": ["pwd"], "exp": 1795379654, "iat": 1795379594, "kind": "AuthorizationCode", "nonce": "1e_5YmHJeHhxAU850iQmjqFSq6fV1nFu0pjqctq_0as", "scope": "openid offline_access", "grantId": "ClXisP6uoN5euxTZjlREquqkggBpj6SncU-G2yNwQvb", "authTime": 1795379594, "clientId": "documents-app", "resource": "http://127.0.0.1:30087", "accountId": "ann", "sessionUid": "70ka3XUwcoFJqzwkqjCKbYlYWSVzOSiTe4Vh4CH7niN", "redirectUri": "https://app.upgrade.example/callback", "codeChallenge": "iAYw7xrrXKhn9hXeaVBCIxwH3m1yXAF09dogaVEvr8M", "codeChallengeMethod": "S256"}, "grant_id": "ClXisP6uoN5euxTZjlREquqkggBpj6SncU-G2yNwQvb", "user_code": null, "expires_at": "2026-11-22T20:34:14.872566+00:00", "consumed_at": "2026-11-22T20:33:14.881401+00:00"}');
insert into "oidc_record" select * from jsonb_populate_record(null::"oidc_record", '{"id": "L5eAeWVT5K_CIhBjW5fiNfrVdgmuYd4YE97pl-oTpd3", "uid": null, "kind": "ClientCredentials", "payload": {"aud": "http://127.0.0.1:30087", "exp": 1795380492, "iat": 1795379592, "jti": "L5eAeWVT5K_CIhBjW5fiNfrVdgmuYd4YE97pl-oTpd3", "kind": "ClientCredentials", "scope": "audit:read clients:write decisions:read directory:write entitlements:write events:read manifest:write relationships:read relationships:write roles:write", "clientId": "admin"}, "grant_id": null, "user_code": null, "expires_at": "2026-11-22T20:48:12.918604+00:00", "consumed_at": null}');
insert into "oidc_record" select * from jsonb_populate_record(null::"oidc_record", '{"id": "LAN9vzK8Y4TbZwVmxH6w3DnR4TdHzCObiyMAZhcHPQV", "uid": null, "kind": "ClientCredentials", "payload": {"aud": "http://127.0.0.1:30087", "exp": 1795380495, "iat": 1795379595, "jti": "LAN9vzK8Y4TbZwVmxH6w3DnR4TdHzCObiyMAZhcHPQV", "kind": "ClientCredentials", "clientId": "loader"}, "grant_id": null, "user_code": null, "expires_at": "2026-11-22T20:48:15.56336+00:00", "consumed_at": null}');
insert into "oidc_record" select * from jsonb_populate_record(null::"oidc_record", '{"id": "grQeeybC9b2jhRyR5qGjoX61nnJQnZs25ZwdXYK5RYg", "uid": null, "kind": "ClientCredentials", "payload": {"aud": "http://127.0.0.1:30087", "exp": 1795380495, "iat": 1795379595, "jti": "grQeeybC9b2jhRyR5qGjoX61nnJQnZs25ZwdXYK5RYg", "kind": "ClientCredentials", "scope": "audit:read clients:write decisions:read directory:write entitlements:write events:read manifest:write relationships:read relationships:write roles:write", "clientId": "admin"}, "grant_id": null, "user_code": null, "expires_at": "2026-11-22T20:48:15.625233+00:00", "consumed_at": null}');
insert into "oidc_record" select * from jsonb_populate_record(null::"oidc_record", '{"id": "kVJXRTroWP1utsmrV8O7Kxfs0a6Q2Lpg4PNoAfq-9hv", "uid": null, "kind": "ClientCredentials", "payload": {"aud": "http://127.0.0.1:30087", "exp": 1795380495, "iat": 1795379595, "jti": "kVJXRTroWP1utsmrV8O7Kxfs0a6Q2Lpg4PNoAfq-9hv", "kind": "ClientCredentials", "scope": "audit:read clients:write decisions:read directory:write entitlements:write events:read manifest:write relationships:read relationships:write roles:write", "clientId": "admin"}, "grant_id": null, "user_code": null, "expires_at": "2026-11-22T20:48:15.603898+00:00", "consumed_at": null}');
insert into "oidc_record" select * from jsonb_populate_record(null::"oidc_record", '{"id": "ClXisP6uoN5euxTZjlREquqkggBpj6SncU-G2yNwQvb", "uid": null, "kind": "Grant", "payload": {"exp": 1826915594, "iat": 1795379594, "jti": "ClXisP6uoN5euxTZjlREquqkggBpj6SncU-G2yNwQvb", "kind": "Grant", "openid": {"scope": "openid offline_access"}, "clientId": "documents-app", "accountId": "ann", "resources": {"http://127.0.0.1:30087": "openid"}}, "grant_id": null, "user_code": null, "expires_at": "2027-11-22T20:33:14.860815+00:00", "consumed_at": null}');
insert into "oidc_record" select * from jsonb_populate_record(null::"oidc_record", '{"id": "xAzjlizThsMwWVQtSyhQUJ4CJznv1s9yUHoJu5mkMV0", "uid": null, "kind": "RefreshToken", "payload": {"acr": "pwd", "amr": ["pwd"], "exp": 1797971594, "gty": "authorization_code", "iat": 1795379594, "iiat": 1795379594, "kind": "RefreshToken", "nonce": "1e_5YmHJeHhxAU850iQmjqFSq6fV1nFu0pjqctq_0as", "scope": "openid offline_access", "grantId": "ClXisP6uoN5euxTZjlREquqkggBpj6SncU-G2yNwQvb", "authTime": 1795379594, "clientId": "documents-app", "resource": "http://127.0.0.1:30087", "accountId": "ann", "rotations": 0, "sessionUid": "70ka3XUwcoFJqzwkqjCKbYlYWSVzOSiTe4Vh4CH7niN"}, "grant_id": "ClXisP6uoN5euxTZjlREquqkggBpj6SncU-G2yNwQvb", "user_code": null, "expires_at": "2026-12-22T20:33:14.898626+00:00", "consumed_at": null}');
insert into "oidc_record" select * from jsonb_populate_record(null::"oidc_record", '{"id": "28wbVe8ZpnMHfp2NJVLVcjnz10skh4Pz-bPi1fxTfzw", "uid": null, "kind": "Session", "payload": {}, "grant_id": null, "user_code": null, "expires_at": "2026-11-23T08:33:15.192387+00:00", "consumed_at": "2026-11-22T20:33:15.226361+00:00"}');
insert into "oidc_record" select * from jsonb_populate_record(null::"oidc_record", '{"id": "6EzHNyZzbS3Bkm6YP2AmJE-fc543pz2IzdqERV-R6Fs", "uid": "70ka3XUwcoFJqzwkqjCKbYlYWSVzOSiTe4Vh4CH7niN", "kind": "Session", "payload": {"acr": "pwd", "amr": ["pwd"], "exp": 1795422794, "iat": 1795379594, "uid": "70ka3XUwcoFJqzwkqjCKbYlYWSVzOSiTe4Vh4CH7niN", "kind": "Session", "sealed": "v1.4sf5icBVRY0qclCL2oDF6VzDBU6oVA4GhivF9qqpnVpGnu5rx3Q0Prmtz6llMU1pMVIRgaw6CxXBCMk2LZ9dk5lstGpG1AYXoYVu-9sG1A_a", "loginTs": 1795379594, "accountId": "ann", "authorizations": {"documents-app": {"sid": "1iyj2XPSx_020PPKnc6NWzHq8pq2d6QkxCbsle-OmEO", "grantId": "ClXisP6uoN5euxTZjlREquqkggBpj6SncU-G2yNwQvb", "persistsLogout": true}}}, "grant_id": null, "user_code": null, "expires_at": "2026-11-23T08:33:14.876334+00:00", "consumed_at": null}');
insert into "oidc_record" select * from jsonb_populate_record(null::"oidc_record", '{"id": "BT63N8RKa7ty78CcRzj2MfzAd-bob5oYpAgnbQTwiPM", "uid": null, "kind": "Session", "payload": {}, "grant_id": null, "user_code": null, "expires_at": "2026-11-23T08:33:14.85071+00:00", "consumed_at": "2026-11-22T20:33:14.874798+00:00"}');
insert into "oidc_record" select * from jsonb_populate_record(null::"oidc_record", '{"id": "R4GGZturv6Ya-JCMXLUHwfGs7oo-jt-UMPX-HQRXOak", "uid": "tKALFuxDPVvapYvezNgmcXax-gWL-upUKMVlE3TuiWW", "kind": "Session", "payload": {"acr": "pwd", "amr": ["pwd"], "exp": 1795422795, "iat": 1795379595, "uid": "tKALFuxDPVvapYvezNgmcXax-gWL-upUKMVlE3TuiWW", "kind": "Session", "sealed": "v1.pAgOdL8tY3iAEZGj9D8CSvm_UZ2j5FpmTWal_m3ywvl1VAuoiTgiZVF64fDR6h-UgixMNDDZcRifr6vsU5jgOdFbDeAJIfMs4107V5MscroM", "loginTs": 1795379594, "accountId": "ann", "authorizations": {"documents-app": {"sid": "MVLrSZXafZ8-sjnDzNYK_H8ydtQJduUAYFZ0a6HDAST", "grantId": "ysh3ZdvUoUqwt9uh8pC56xVgq5-CoDFTzMQf5kuzGA7", "persistsLogout": true}}}, "grant_id": null, "user_code": null, "expires_at": "2026-11-23T08:33:15.227435+00:00", "consumed_at": null}');
delete from "organization";
insert into "organization" select * from jsonb_populate_record(null::"organization", '{"name": "Acme", "parent_id": null, "created_at": "2026-11-22T20:33:12.966252+00:00", "organization_id": "acme"}');
insert into "organization" select * from jsonb_populate_record(null::"organization", '{"name": "Acme Europe", "parent_id": "acme", "created_at": "2026-11-22T20:33:12.996547+00:00", "organization_id": "acme~europe"}');
delete from "organization_role";
delete from "outbox";
insert into "outbox" select * from jsonb_populate_record(null::"outbox", '{"seq": 1, "type": "entitlement.updated", "payload": {"keys": ["feature.export"], "version": 1, "organization": "acme"}, "event_id": "32aa5c6f-86e0-4a73-8569-c90ad726a3f1", "created_at": "2026-11-22T20:33:14.505736+00:00", "organization_id": "acme"}');
insert into "outbox" select * from jsonb_populate_record(null::"outbox", '{"seq": 2, "type": "entitlement.updated", "payload": {"keys": ["feature.import"], "version": 2, "organization": "acme"}, "event_id": "5b0e9982-96fa-4077-ad62-62fe9a2cca77", "created_at": "2026-11-22T20:33:14.520501+00:00", "organization_id": "acme"}');
insert into "outbox" select * from jsonb_populate_record(null::"outbox", '{"seq": 3, "type": "entitlement.updated", "payload": {"keys": ["seats"], "version": 3, "organization": "acme"}, "event_id": "88eb71d8-8c4d-4627-9226-28c4a89baa10", "created_at": "2026-11-22T20:33:14.537535+00:00", "organization_id": "acme"}');
delete from "pdp_process";
delete from "principal";
insert into "principal" select * from jsonb_populate_record(null::"principal", '{"id": "admin", "kind": "client", "deleted_at": null}');
insert into "principal" select * from jsonb_populate_record(null::"principal", '{"id": "ann", "kind": "user", "deleted_at": null}');
insert into "principal" select * from jsonb_populate_record(null::"principal", '{"id": "ben", "kind": "user", "deleted_at": null}');
insert into "principal" select * from jsonb_populate_record(null::"principal", '{"id": "cleo", "kind": "user", "deleted_at": null}');
insert into "principal" select * from jsonb_populate_record(null::"principal", '{"id": "documents-app", "kind": "client", "deleted_at": null}');
insert into "principal" select * from jsonb_populate_record(null::"principal", '{"id": "loader", "kind": "client", "deleted_at": null}');
insert into "principal" select * from jsonb_populate_record(null::"principal", '{"id": "portcullis-console", "kind": "client", "deleted_at": null}');
delete from "relationship";
insert into "relationship" select * from jsonb_populate_record(null::"relationship", '{"object": "document:1", "subject": "user:ann", "relation": "viewer", "expires_at": null, "organization_id": "acme"}');
insert into "relationship" select * from jsonb_populate_record(null::"relationship", '{"object": "document:2", "subject": "group:staff#member", "relation": "viewer", "expires_at": null, "organization_id": "acme"}');
insert into "relationship" select * from jsonb_populate_record(null::"relationship", '{"object": "document:3", "subject": "user:dan", "relation": "blocked", "expires_at": null, "organization_id": "acme"}');
insert into "relationship" select * from jsonb_populate_record(null::"relationship", '{"object": "document:3", "subject": "folder:legal", "relation": "folder", "expires_at": null, "organization_id": "acme"}');
insert into "relationship" select * from jsonb_populate_record(null::"relationship", '{"object": "document:4", "subject": "user:ann", "relation": "viewer", "expires_at": "2020-01-01T00:00:00+00:00", "organization_id": "acme"}');
insert into "relationship" select * from jsonb_populate_record(null::"relationship", '{"object": "document:4", "subject": "user:ben", "relation": "viewer", "expires_at": "2100-01-01T00:00:00+00:00", "organization_id": "acme"}');
insert into "relationship" select * from jsonb_populate_record(null::"relationship", '{"object": "folder:legal", "subject": "group:staff#member", "relation": "viewer", "expires_at": null, "organization_id": "acme"}');
insert into "relationship" select * from jsonb_populate_record(null::"relationship", '{"object": "group:staff", "subject": "user:ann", "relation": "member", "expires_at": null, "organization_id": "acme"}');
insert into "relationship" select * from jsonb_populate_record(null::"relationship", '{"object": "group:staff", "subject": "user:dan", "relation": "member", "expires_at": null, "organization_id": "acme"}');
delete from "revision";
insert into "revision" select * from jsonb_populate_record(null::"revision", '{"closed": false, "revision": 7, "write_id": 3704771241018264624, "organization_id": "#directory", "entitlement_version": 0, "entitlement_write_id": 0}');
insert into "revision" select * from jsonb_populate_record(null::"revision", '{"closed": false, "revision": 4, "write_id": -1510202030966596034, "organization_id": "#environment", "entitlement_version": 0, "entitlement_write_id": 0}');
insert into "revision" select * from jsonb_populate_record(null::"revision", '{"closed": false, "revision": 3, "write_id": 0, "organization_id": "#events", "entitlement_version": 0, "entitlement_write_id": 0}');
insert into "revision" select * from jsonb_populate_record(null::"revision", '{"closed": false, "revision": 2, "write_id": 1258893181812160269, "organization_id": "#tokens", "entitlement_version": 0, "entitlement_write_id": 0}');
insert into "revision" select * from jsonb_populate_record(null::"revision", '{"closed": false, "revision": 9, "write_id": 7673141252448103523, "organization_id": "acme", "entitlement_version": 3, "entitlement_write_id": 7673141252448103523}');
insert into "revision" select * from jsonb_populate_record(null::"revision", '{"closed": false, "revision": 0, "write_id": 0, "organization_id": "acme~europe", "entitlement_version": 0, "entitlement_write_id": 0}');
delete from "role_grant";
insert into "role_grant" select * from jsonb_populate_record(null::"role_grant", '{"app": "documents", "role": "archivist", "subject": "user:ann", "grant_id": "yKDI2lgx_aq-LRHLrr4o7J", "organization_id": "acme"}');
insert into "schema_migration" select * from jsonb_populate_record(null::"schema_migration", '{"name": "0001-initial.sql", "digest": "4ac227f2d8edfec49891450f448aab8cf80868d338a4a6215940f850343d646f", "applied_at": "2026-11-22T20:33:10.981268+00:00"}');
insert into "schema_migration" select * from jsonb_populate_record(null::"schema_migration", '{"name": "0002-identity.sql", "digest": "931225a565bf04232d74ef38f46fc23d31258a531d1ed01e832a1eac5805ec8c", "applied_at": "2026-11-22T20:33:11.038232+00:00"}');
insert into "schema_migration" select * from jsonb_populate_record(null::"schema_migration", '{"name": "0003-role-grant-lookup.sql", "digest": "7acb082c20102659e1a772e63ff68b1cf9a1e473ec190860546f10ed180530a9", "applied_at": "2026-11-22T20:33:11.049959+00:00"}');
insert into "schema_migration" select * from jsonb_populate_record(null::"schema_migration", '{"name": "0004-token-log.sql", "digest": "f60bbe2caa9bd2f9758b72ced154944627c33877f31e37ad87861c48505d1e8e", "applied_at": "2026-11-22T20:33:11.05162+00:00"}');
insert into "schema_migration" select * from jsonb_populate_record(null::"schema_migration", '{"name": "0005-second-factor.sql", "digest": "5a53dd7711366bcdf17c29bed4be56d38cc98f2ce852f6a1c17400b6f3bf00c4", "applied_at": "2026-11-22T20:33:11.052767+00:00"}');
insert into "schema_migration" select * from jsonb_populate_record(null::"schema_migration", '{"name": "0006-management.sql", "digest": "a8dc149ed0daa39302f1df6617d4ccdf3f4c1d2e0d0c11005222f418a6bd904c", "applied_at": "2026-11-22T20:33:11.060461+00:00"}');
insert into "schema_migration" select * from jsonb_populate_record(null::"schema_migration", '{"name": "0007-external-subjects.sql", "digest": "054aa5e7a752a327a3ef743bb33cd23d78cf573270cb1e7da548cafac152c7f6", "applied_at": "2026-11-22T20:33:11.061953+00:00"}');
insert into "schema_migration" select * from jsonb_populate_record(null::"schema_migration", '{"name": "0008-attempts.sql", "digest": "e1d3cdcefa7ec315758630f66a1279b2115ace8bc06c4d12a8af6598bf776fe7", "applied_at": "2026-11-22T20:33:11.069035+00:00"}');
insert into "schema_migration" select * from jsonb_populate_record(null::"schema_migration", '{"name": "0009-sealed-records.sql", "digest": "fc883a4a6c3edfba5ff60bd6a37d48ee8fb7f0416ebfc21982d4f7564c6cfbee", "applied_at": "2026-11-22T20:33:11.072412+00:00"}');
insert into "schema_migration" select * from jsonb_populate_record(null::"schema_migration", '{"name": "0010-conditions.sql", "digest": "5fee51f1c218c474e339e0393c01ebf84f01a3738796e8f3b0faf88f6d727d63", "applied_at": "2026-11-22T20:33:11.074493+00:00"}');
insert into "schema_migration" select * from jsonb_populate_record(null::"schema_migration", '{"name": "0011-write-in-transaction.sql", "digest": "dda62121b648bd250bfbf1243e4e64ccd9fea81996b0f0dac79428cc695efd20", "applied_at": "2026-11-22T20:33:11.081926+00:00"}');
insert into "schema_migration" select * from jsonb_populate_record(null::"schema_migration", '{"name": "0012-master-key.sql", "digest": "6834c71b86504b8cf48f7ba4c870b052ebc1fd83be203b94a110aa6007de742b", "applied_at": "2026-11-22T20:33:11.088925+00:00"}');
delete from "signing_key";
insert into "signing_key" select * from jsonb_populate_record(null::"signing_key", '{"kid": "JboeSfPudvukmpUjiJxnFqGzygAd5ar8Q-37YAoHdPc", "state": "next", "created_at": "2026-11-22T20:33:11.523465+00:00", "public_jwk": {"e": "AQAB", "n": "ufaa7bNHIr1zIwR10xV-rC91Rk3UMZQVHtn45xXGv-WE7olo__Nxp_bq5wkiO0ShEtXtxuT1q7U2J-INe-LjEy81xW789VFwJuKvfy36icyQUoL6csrDkf6vUhpWjLZEy5BYjQb3P71vVsG0fes6UFs2-LPyt5aafBU275p_-Uje8RLDDJpYMV9wcPZn9FISiwonf5oul2K1jDXE4iotwRrsYJ9UwUAFNJ3vTBAXLaDKnSiMwvyMmirzllPXOp6KtY4hEqTywnYqXq_4qGdQefhkDATv9HJ5BNg-Hp3PngIBY508XveFdczqXfIKSKqPZknqe2a7xxWIk4bL9pRX2w", "alg": "RS256", "kid": "JboeSfPudvukmpUjiJxnFqGzygAd5ar8Q-37YAoHdPc", "kty": "RSA", "use": "sig"}, "retire_after": null, "private_jwk_sealed": "v1.cHQk-ZGz_pY4wvWTiC-EkyZdEf7bTFoHt5I6q-Z_N2A3ztdqAKNWomxXUkF7rwluvA9QluZFGrpdjpfkC-fx17uY5pEcS1Klg4mdjFF5nlLE-BU4vZgEF3RnRchSO5rcc8OZ0iY_yFesKZVmEezXjIF0QRidylLEtLbqMqkKoMFHkJYtrDPGYP-jGybZ6WDAFLL95NHEwiTOJrJopx3JfCOzrQTfa5GxWsUI4n3UIDOqSsVOH31dZ71eFUzyNcTeRYX75QIjmV-y8TcxGfTh_gtDwYJ6bRAAh0M_pK8V5IBmAwKZ4SRk4Uceah8T-de0iRNhH2EiJhAr-Rzfyx8Ye8TB8Bntt-hA7u4NJPsH8nKYp6inNyJLAZvxt-ROvl2A_ApgJhXddq3ujCe_GX8Xt-92ugs9jDmh9u5xsrghDzPi3G9yyz2B1857UYebVyKVFEPCUQ-H1cDEe1-bC3bIsKcGSgTGtYdealWCVMw1RTahnJpTbDkjHv-lTrKZaDlFNteZTn4nTyzJzjZ4V9K6DlRNND6ydPkaoIzeNCtPnFxxVHH9h4GTso925kAXsTU-rfVzk65hSwNuIcn0wr1uP0ATPrkr1R39vYXNnLRmGBX2HNqdxsXleVvSBgmflW6VRHQSzKlHSFNsjlAKvhJYIUtVd0xVjVEcaJvcNd-kAykb8RUGZO8EPAQK6_H0KVUa1_kOVtospGwbmHUOv5WuB1EojjUZTpRYArw9E-JQeBIjc-ZLRUzMrOSa0eNBodSA5mpR5CmxphLTFWf9J97l8zovpgialLLBRSNRZoMI1eryhtLtvSxzow45Fegs8zada901zJCyuWWecYuRO2pOltU4ymYF6NLS21bfyGSpvZwxrB8HJxGPDMbNneAh8BPldC-ZGuHiMsUFxGnl3krhSLfPl33SSMiCKax4tUzInJDYdZKxdioJDKl6FwLWnA-1528tJJpN2xFCwmH8B1yQ7RUm5laNXksAXQk6HBS3VZuXzP_MFKtgGNqUBOdAIgSXn0ZKrS116eF6pzBWo9ex1u_oYMqNQ4kWqax870gMMqaBKGqvpRGB0THsNbqOHnhEMlKnkV_4VTaTu3NrTPADmsMRXkIsutWETkSiN5JSsLbRJ8UEyMV6QV4H4NbiLEdrngxMUYcA_2AuRFm6zTYfwzP2YEGHuykWBPjH8uMEmvtFj6zlsf-NPmQl7kZqWhUXp7gq8hImWFUGVLFN0hO8UP1BxJ8-6EID_kuKEZrnQkAS6_ZqW-ukuJ54oKSDeQycTrc-u1211cumgoGqGJozTnd3XOoQZyo369fNbqgxN_niSr7N8lLdVtZyca5mritG2VIfRj0vMNMh42wYrrQozp2sSVasXXaxF0UGOKQhyDQ6-BDCA6R-I3tnuq2JbBR99OIk1fLqTE02sx-7btUjKuEdLN3pDRskqQ_9QyHDDxQxQqcF5uRqvXWNJ74Z4cxYqUJFkXFWL-XxyxX1Z0TeiTBz_DDZIsc2iSweUwKQQecRhHGzjGeb5JpmS8iBCCYohEY8_OFGDVeKVTGwaW-4mStq32S6ZsmC7LOT1ANST2QTpJoSeAI8d_26Z-jtnSPOgAzddbiOWGkMOSl_t6jLSc3URpb6kiZU0SI7UohI-ipi8yooNV7MPaRKIuA2z6KaOXC3oontq2qg_r2v2lFk4Ib8_DT-BV3BV0mKImo_tedb7ahfGxuWWm461vet0FHeqdnR3ByztwLPH2L95W8DYLHugzstwfPvfkdheo-T6CpmrAjjTqKdrPZYgsXnqYnHJymxQTF1fIfGofCGNVAD2Q4KxJTrpm-G5t443CaGe95k46p5fgjtBrs-pYNCMtblmbzo7i-yzZiP9SW4Ghm251snsGA_GkghMr5Pjx8J4FZ7BlJ7YpIhikpAK3ccYG6C3M3ubLCqaMt16Fkxv3VO8hkxEDByYRiEb_G2GYbIWqFvWL0b7SAIO1iTOmTPVXAjK0DnaK7QRq_LbDVabuHL0ucPagvh3L8Q-903Tpe4rqLDnAz7nTx66NOH0HS29l-8j0HReim9KspmHqO6ok60gzQzrlFJwg1GYLoD5u7ec_xLyKXCU-xz8OcRc-PKNRQlu_ncQzrgGW9ki3rzybnZccjB1N_b5_9jG86WIX9xx6RGfjI2cwg7lX0Lf7eF1WS1EIfSnn5G2tqoPziPdrKdehPndyMl878A5r9rFEji2CdA-tI83NyFlU5e6ZrUVpKHIwfRDT4GvDbhYNiTEfi3kECvOaZXDjL3MGmj7IMdxFBq6484H4LsVI4"}');
insert into "signing_key" select * from jsonb_populate_record(null::"signing_key", '{"kid": "UuLCXne0MB4RnWxdt-8HF-pVqCkP_b81OBgjVmRLcn4", "state": "active", "created_at": "2026-11-22T20:33:11.523465+00:00", "public_jwk": {"e": "AQAB", "n": "995hBUSyPXr-z4EsfPjlyf04k17bGny6gVCjJdlDg81FxJibqolD6BkJsiyTrjC_rYqb3jgrhZw6zLGE1UFhJNS8y6Ox24CmeFYhLbQ-MT7Gmt4u-btcas6R9dMQrGL5j2E8-F-GBhn79sfXtpYNZb1zF3e1nqPBBhfQtlS7bkoIMbJG72IWNWXVRtOp7RyKA9yWD-23K2T3MN1EkK343KiqUPWIMCAAV0PpSQBKL1E0dp43xZuMPNYEUoKu0MFX7YlAnwMilqc_1xfFiqqirdw938Mn2Y74GRdoijBLN-XDx0KnLtK6g6L7umdhATQ0UZo8hEKLZBR530AfPT250Q", "alg": "RS256", "kid": "UuLCXne0MB4RnWxdt-8HF-pVqCkP_b81OBgjVmRLcn4", "kty": "RSA", "use": "sig"}, "retire_after": null, "private_jwk_sealed": "v1.GvBQKNYy1ifLVHhxvQZM8h2rQDgnI0j5OE3jyQMHAkxRXPkVIzNz8E1ipzVIevt1vpaUt81QYf9vKfsOB5yd2L49qWqfSTXaDSqPA_Cr_dHjCWn2gUKZI5kUW4vu26UtjD2GhSywdsqcrZsF7Dr2TJd8ebIz2FsmbbqLPdgWUmTUK9jDDf2mhjEeP8yfxVC0EZt3iOs-IyqLice85DDRHIy-QVdlMOGUwbzF3ua3z2pU02JhY-6I1vCCs-mXcokFQbJselUuR_Wvuj36arxbvFeL53_D_3qkRV_9GDxZQLT4-1RbPJxsd53MQwZf_ffQBQkWpouIA13_eOtE7NSKq447Zfyad3UvhZKj7mezBY0vliZCzZYyVJppc9szHAaPGaJnbIF1jaL_ABppWFYt63NufY-9y3kubhXICt1aEhd-GxZBKBCKXShrjCzpZfpvZ7fwBHakMYJ6PiTDqftgjKYY4yMw7pfRVDperScGynQxxn5RlGNogOItLuWQ_u6rcZROr1aggy2SrAcs_kyUkGZKn4aHQb7JjkEEHomJvK7P0e4gKyIcBM88I23L5-T6vCR6C-aedXIGfpqsJddRInf7raxbfMUB4dMman9G4cVQ8HJHt9o1Jc6Yr402oZf7M5v_Ex3YL8Qllj8m2X-TFU92q5iTmoUnu5BoziGwgEpLfbBAswQNSrUOEo-h85pW5y4Bm3Oegkz1eQrqqkC-iJ0uLUstf85U2AptXt11RRFf6BhV8iOqN-n_OgOQHCxbyH4T0TSh6TszgE5RzjGl23liz2h4xcIi-ou4dMal5AKShAkGqX4VTLsqR3SZqEwB7r453gusVTdWUJAEnv9W7jl2VyrN6dZOAVS8PGlHqlPhD9nitjvDIsFfTFU-2M_n18kxgGieh_JpIIs33IKvBLKjD11ctUFVvHHOQMAGHbT5zEJPOeIol8CeloXWyACRKxmpv6rhXyjSaH_7MBoT6cAEiggH3-jvQP5GzpbZy3kur3BsxtSv2j09SaUxjsFHZ_z3EKYqjl71EFUUiTgHuE_Io7tKrOeDJTXJo0AulFtIlcnnA8l9SorlIyu-vsNsRmzBWLnkmbZ_XnjaOGtxFydeA-1f_qOlmMSV4dU1CpBafeu88OvlCGep9ZutqJRWY0W7Req48ZPX3htpDrTrHMfnzG6_NFvKcce9zkzEy96WD52kVdN_l5Vs2bApYd13SX6OuZ3d9Af0P7spH75Tb9upyvvDY95V1e9pwWIwqkTLl0gDDqX-hkW1Zpyt5yx3NoHcOE1_DrtUgWH0BjqSDk0HZ8YOVS0TCL1EZpkreMT0o2_HVsoQo8KJOy1MnAtYUEz5Khvm767SrVdgA_u_UZzuNwZkBCMIUWWGaNJw5RrnY5tH7Drv3V7uoCEGU6JqCiNo8Sd5eGQRgk9768K9n5zch7bLj6L3ffjtpeXqPtvNoP6zBGqwbVTxOjK2cRYG5za5rJEKPAoFOMEYJlcpvvyVoakJuh4fpLnuFugnvHvZzombV0yE1gR77fdQpo6vBON5BxNG6IK1VsM_54EO1WYkG-ltAL55SXdX6fx4jY1hau92tB1rYlz2g9_JllxvpG3TQqgZsxZe4Fx_73pkd7wJH-ir-XLQuX_wHRAC270B-65Q1J10EmG2ZI8cP8U1PFFylqlM1hYDoW2Pp5BMFVQDpebYJ6QCcCXsfLDR9fIyx_OF8aw6uBFTeCyWazFFcDv2RtzLi48nhJvyXGEsN-P1-nZudz6WxKBv46-1bDBnLiYdAWvk5rEV12DJk4krWydNLgewAQnuU4Y6-id6hstAsvAxZZSZ0l70MsRJnf3s5g80wnavuqqLTleP9SOSidmoNC7e9ngYCZcOpsQaeUYlA-qfAcA4C5W8-6ZjJbHOy1c8aMiJTzqqWS_UALFqfvMq3oQceXu20Rnfzny5ggLZjp-lEjHBNdqbPnTrDr26CqqJlCj7oI-DX5_3mvpQALlUhXSPctqg9sa8O-ADnp0o0pPbMAyOTVZkE4qYY7rHmf1Lad8wrtlDZ-g5k5F-bEyJ55CAj3TsOMwJ3rCbYy_dsEyby0G-p9oBSnLtBIMVBEYlLYQyGOUV7h0OdK1B4WDtN9dhEVVucja9o03jrHIklsuGoYmWKyrW2jZCff-yBAf9QO_UFwy57IK5w0VKqLAu0c89fdzWM3k-P7hKpwPcdh5nEOGEx4fV-_WPPDvDOxlUMOXE3j2VS2vhGozHacsSRRjPABeFssSKT1XI51zD0EdG0qyeBljbwpUv4iSQAjSepN8Qtwg"}');
delete from "token_hook";
delete from "trusted_issuer";
delete from "user_account";
insert into "user_account" select * from jsonb_populate_record(null::"user_account", '{"name": "ann", "email": "ann@acme.example", "user_id": "ann", "password_hash": "$scrypt$ln=15,r=8,p=3$/aK1Q63cutq0qmOzsJdzpg$06H2Pq7SuBnWnbTiCyC/NsjA52AgSTV7NK4KL2NXSNA", "signed_out_at": "2026-11-22T20:33:13.843+00:00", "email_verified": true}');
insert into "user_account" select * from jsonb_populate_record(null::"user_account", '{"name": "ben", "email": "ben@acme.example", "user_id": "ben", "password_hash": "$scrypt$ln=15,r=8,p=3$cs1dTbli4RKWauhCwXGoNw$E3bMk4B1h8br1GtAoD2smhIpvY5wvJelQxXnfzkXVVs", "signed_out_at": "2026-11-22T20:33:14.141+00:00", "email_verified": true}');
insert into "user_account" select * from jsonb_populate_record(null::"user_account", '{"name": "cleo", "email": "cleo@acme.example", "user_id": "cleo", "password_hash": "$scrypt$ln=15,r=8,p=3$ZrPsnuHuc9yqYviixOR6EA$ivRWOfP9leHd10YFL0fIUZfIpcBSahumx+nXXCjSDzo", "signed_out_at": "2026-11-22T20:33:14.43+00:00", "email_verified": true}');
