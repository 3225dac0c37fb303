-- master key: dXV1dXV1dXV1dXV1dXV1dXV1dXV1dXV1dXV1dXV1dXU=
-- said: {"/v1/organizations/acme":{"id":"acme","name":"Acme","parent":null},"/v1/organizations/acme~europe":{"id":"acme~europe","name":"Acme Europe","parent":"acme"},"/v1/organizations/acme/members":{"items":[{"user":"ann","role":"member","status":"active"},{"user":"ben","role":"member","status":"suspended"},{"user":"cleo","role":"member","status":"invited"}],"next_page_token":null,"revision":9,"revision_unchanged":true},"/v1/organizations/acme/relationships":{"items":[{"object":"document:1","relation":"viewer","subject":"user:ann","expires_at":null},{"object":"document:2","relation":"viewer","subject":"group:staff#member","expires_at":null},{"object":"document:3","relation":"blocked","subject":"user:dan","expires_at":null},{"object":"document:3","relation":"folder","subject":"folder:legal","expires_at":null},{"object":"document:4","relation":"viewer","subject":"user:ann","expires_at":"2020-01-01T00:00:00.000Z"},{"object":"document:4","relation":"viewer","subject":"user:ben","expires_at":"2100-01-01T00:00:00.000Z"},{"object":"folder:legal","relation":"viewer","subject":"group:staff#member","expires_at":null},{"object":"group:staff","relation":"member","subject":"user:ann","expires_at":null},{"object":"group:staff","relation":"member","subject":"user:dan","expires_at":null}],"next_page_token":null,"revision":9,"revision_unchanged":true},"/v1/organizations/acme/entitlements":{"items":[{"key":"feature.export","value":{"enabled":true},"enforcement":"DecisionApi","version":3},{"key":"feature.import","value":{"enabled":false},"enforcement":"DecisionApi","version":3},{"key":"seats","value":{"limit":25},"enforcement":"DecisionApi","version":3}],"next_page_token":null,"revision":9,"revision_unchanged":true},"/v1/organizations/acme/role-grants":{"items":[{"id":"yKDI2lgx_aq-LRHLrr4o7J","app":"documents","role":"archivist","subject":"user:ann"}],"next_page_token":null,"revision":9,"revision_unchanged":true},"/v1/organizations/acme/changes":[{"revision":1,"change":{"kind":"membership","user":"ann","membership":{"role":"member","status":"active"}},"actor":"service:admin","request_id":"a0ecec50-2437-41ed-922e-817c417f5922","at":"2026-11-22T20:34:12.074Z"},{"revision":2,"change":{"kind":"membership","user":"ben","membership":{"role":"member","status":"suspended"}},"actor":"service:admin","request_id":"c414584e-2c5a-4b00-aca4-267591a2b2b3","at":"2026-11-22T20:34:15.961Z"},{"revision":3,"change":{"kind":"membership","user":"cleo","membership":{"role":"member","status":"invited"}},"actor":"service:admin","request_id":"1d270206-aa5f-4a69-99a2-a2088798de58","at":"2026-11-22T20:34:19.080Z"},{"revision":4,"change":{"op":"write","kind":"role_grant","grant":{"id":"yKDI2lgx_aq-LRHLrr4o7J","app":"documents","role":"archivist","subject":"user:ann"}},"actor":"service:admin","request_id":"fc9ee4db-df1e-4744-816a-c8854dc1ea69","at":"2026-11-22T20:34:19.328Z"},{"revision":5,"change":{"op":"write","kind":"tuple","tuple":{"object":"document:1","subject":"user:ann","relation":"viewer"}},"actor":"service:admin","request_id":"82912125-acf4-45d4-9e41-2b71f68da981","at":"2026-11-22T20:34:20.047Z"},{"revision":5,"change":{"op":"write","kind":"tuple","tuple":{"object":"document:1","subject":"user:ben","relation":"viewer"}},"actor":"service:admin","request_id":"82912125-acf4-45d4-9e41-2b71f68da981","at":"2026-11-22T20:34:20.047Z"},{"revision":5,"change":{"op":"write","kind":"tuple","tuple":{"object":"document:2","subject":"group:staff#member","relation":"viewer"}},"actor":"service:admin","request_id":"82912125-acf4-45d4-9e41-2b71f68da981","at":"2026-11-22T20:34:20.047Z"},{"revision":5,"change":{"op":"write","kind":"tuple","tuple":{"object":"document:3","subject":"folder:legal","relation":"folder"}},"actor":"service:admin","request_id":"82912125-acf4-45d4-9e41-2b71f68da981","at":"2026-11-22T20:34:20.048Z"},{"revision":5,"change":{"op":"write","kind":"tuple","tuple":{"object":"folder:legal","subject":"group:staff#member","relation":"viewer"}},"actor":"service:admin","request_id":"82912125-acf4-45d4-9e41-2b71f68da981","at":"2026-11-22T20:34:20.048Z"},{"revision":5,"change":{"op":"write","kind":"tuple","tuple":{"object":"document:3","subject":"user:dan","relation":"blocked"}},"actor":"service:admin","request_id":"82912125-acf4-45d4-9e41-2b71f68da981","at":"2026-11-22T20:34:20.048Z"},{"revision":5,"change":{"op":"write","kind":"tuple","tuple":{"object":"group:staff","subject":"user:ann","relation":"member"}},"actor":"service:admin","request_id":"82912125-acf4-45d4-9e41-2b71f68da981","at":"2026-11-22T20:34:20.048Z"},{"revision":5,"change":{"op":"write","kind":"tuple","tuple":{"object":"group:staff","subject":"user:dan","relation":"member"}},"actor":"service:admin","request_id":"82912125-acf4-45d4-9e41-2b71f68da981","at":"2026-11-22T20:34:20.048Z"},{"revision":5,"change":{"op":"write","kind":"tuple","tuple":{"object":"document:4","subject":"user:ann","relation":"viewer","expires_at":"2020-01-01T00:00:00.000Z"}},"actor":"service:admin","request_id":"82912125-acf4-45d4-9e41-2b71f68da981","at":"2026-11-22T20:34:20.048Z"},{"revision":5,"change":{"op":"write","kind":"tuple","tuple":{"object":"document:4","subject":"user:ben","relation":"viewer","expires_at":"2100-01-01T00:00:00.000Z"}},"actor":"service:admin","request_id":"82912125-acf4-45d4-9e41-2b71f68da981","at":"2026-11-22T20:34:20.048Z"},{"revision":6,"change":{"op":"delete","kind":"tuple","tuple":{"object":"document:1","subject":"user:ben","relation":"viewer"}},"actor":"service:admin","request_id":"c53abb4d-9d19-4509-8d71-90738cfe84dd","at":"2026-11-22T20:34:20.400Z"},{"revision":7,"change":{"key":"feature.export","kind":"entitlement","entitlement":{"value":{"enabled":true},"enforcement":"DecisionApi"}},"actor":"service:admin","request_id":"452fca26-7888-41a1-b67d-9cf696fc8302","at":"2026-11-22T20:34:20.468Z"},{"revision":8,"change":{"key":"feature.import","kind":"entitlement","entitlement":{"value":{"enabled":false},"enforcement":"DecisionApi"}},"actor":"service:admin","request_id":"a0b3b48a-e4d8-461b-9f94-e2baebd56ba9","at":"2026-11-22T20:34:20.525Z"},{"revision":9,"change":{"key":"seats","kind":"entitlement","entitlement":{"value":{"limit":25},"enforcement":"DecisionApi"}},"actor":"service:admin","request_id":"e5928358-a5d8-496a-8124-ea589b6ebb2c","at":"2026-11-22T20:34:20.677Z"}],"/v1/changes":[{"revision":1,"change":{"id":"acme","kind":"organization","organization":{"id":"acme","name":"Acme","parent":null}},"actor":"service:admin","request_id":"a8ec15ef-cda7-41a5-b696-d27afb465239","at":"2026-11-22T20:34:03.178Z"},{"revision":2,"change":{"id":"acme~europe","kind":"organization","organization":{"id":"acme~europe","name":"Acme Europe","parent":"acme"}},"actor":"service:admin","request_id":"87d7f65f-d89d-4fe1-87d0-8b7e1d7e9af5","at":"2026-11-22T20:34:03.636Z"},{"revision":3,"change":{"kind":"manifest","manifest":{"app":"documents","model":"model\n  schema 1.1\ntype user\ntype group\n  relations\n    define member: [user]\ntype folder\n  relations\n    define viewer: [user, group#member]\ntype document\n  relations\n    define folder: [folder]\n    define blocked: [user]\n    define editor: [service]\n    define viewer: ([user, service, group#member] or viewer from folder) but not blocked\n","roles":{"archivist":{"name":"Archivist","permissions":["documents:archive"]}},"audiences":[],"permissions":{"documents:archive":"Archive documents"}}},"actor":"service:admin","request_id":"c2770bd9-1523-4d64-bc93-449e25090aa0","at":"2026-11-22T20:34:04.982Z"}],"/v1/events":{"items":[{"id":"e864d630-d2fa-4c1c-bd79-94daf8fe4ee1","type":"entitlement.updated","organization":"acme","data":{"keys":["feature.export"],"version":1,"organization":"acme"},"at":"2026-11-22T20:34:20.462Z"},{"id":"fefd0a6f-d791-40d3-8aa8-429e69e1f1dd","type":"entitlement.updated","organization":"acme","data":{"keys":["feature.import"],"version":2,"organization":"acme"},"at":"2026-11-22T20:34:20.518Z"},{"id":"d6881dcb-9993-4269-b011-787f63763009","type":"entitlement.updated","organization":"acme","data":{"keys":["seats"],"version":3,"organization":"acme"},"at":"2026-11-22T20:34:20.646Z"}],"next":"3"},"/v1/users/ann":{"id":"ann","email":"ann@acme.example","email_verified":true,"name":"ann"},"/v1/users/ben":{"id":"ben","email":"ben@acme.example","email_verified":true,"name":"ben"},"/v1/clients/loader":{"client_id":"loader","app":"documents","organization":"acme","grant_types":["client_credentials"]},"/v1/clients/documents-app":{"client_id":"documents-app","app":"documents","organization":null,"scope":"openid offline_access","grant_types":["authorization_code","refresh_token"],"redirect_uris":["https://app.upgrade.example/callback"],"token_endpoint_auth_method":"none"},"/v1/apps/documents/manifest":{"app":"documents","model":"model\n  schema 1.1\ntype user\ntype group\n  relations\n    define member: [user]\ntype folder\n  relations\n    define viewer: [user, group#member]\ntype document\n  relations\n    define folder: [folder]\n    define blocked: [user]\n    define editor: [service]\n    define viewer: ([user, service, group#member] or viewer from folder) but not blocked\n","roles":{"archivist":{"name":"Archivist","permissions":["documents:archive"]}},"audiences":[],"permissions":{"documents:archive":"Archive documents"},"version":1},"decisions of ann":{"subject":{"type":"user","id":"ann"},"organization":"acme","permissions":[{"relation":"viewer","resource":"document:1","allowed":true},{"relation":"viewer","resource":"document:2","allowed":true},{"relation":"viewer","resource":"document:3","allowed":true},{"relation":"viewer","resource":"document:4","allowed":false},{"relation":"documents:archive","resource":"app:documents","allowed":true},{"relation":"member","resource":"organization:acme","allowed":true}],"entitlements":{"feature.export":{"value":{"enabled":true},"version":3},"feature.import":{"value":{"enabled":false},"version":3},"seats":{"value":{"limit":25},"version":3}}},"decisions of ben":{"subject":{"type":"user","id":"ben"},"organization":"acme","permissions":[{"relation":"viewer","resource":"document:1","allowed":false},{"relation":"viewer","resource":"document:2","allowed":false},{"relation":"viewer","resource":"document:3","allowed":false},{"relation":"viewer","resource":"document:4","allowed":false},{"relation":"documents:archive","resource":"app:documents","allowed":false},{"relation":"member","resource":"organization:acme","allowed":false}],"entitlements":{"feature.export":{"value":{"enabled":true},"version":3},"feature.import":{"value":{"enabled":false},"version":3},"seats":{"value":{"limit":25},"version":3}}},"decisions of cleo":{"subject":{"type":"user","id":"cleo"},"organization":"acme","permissions":[{"relation":"viewer","resource":"document:1","allowed":false},{"relation":"viewer","resource":"document:2","allowed":false},{"relation":"viewer","resource":"document:3","allowed":false},{"relation":"viewer","resource":"document:4","allowed":false},{"relation":"documents:archive","resource":"app:documents","allowed":false},{"relation":"member","resource":"organization:acme","allowed":false}],"entitlements":{"feature.export":{"value":{"enabled":true},"version":3},"feature.import":{"value":{"enabled":false},"version":3},"seats":{"value":{"limit":25},"version":3}}},"decisions of dan":{"subject":{"type":"user","id":"dan"},"organization":"acme","permissions":[{"relation":"viewer","resource":"document:1","allowed":false},{"relation":"viewer","resource":"document:2","allowed":false},{"relation":"viewer","resource":"document:3","allowed":false},{"relation":"viewer","resource":"document:4","allowed":false},{"relation":"documents:archive","resource":"app:documents","allowed":false},{"relation":"member","resource":"organization:acme","allowed":false}],"entitlements":{"feature.export":{"value":{"enabled":true},"version":3},"feature.import":{"value":{"enabled":false},"version":3},"seats":{"value":{"limit":25},"version":3}}}}
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

set session_replication_role = replica;
delete from "authenticator";
delete from "change_log";
insert into "change_log" select * from jsonb_populate_record(null::"change_log", '{"seq": 1, "actor": "system", "change": {"id": "admin", "op": "write", "kind": "client"}, "revision": 1, "write_id": 8964419342988323875, "request_id": "start", "written_at": "2026-11-22T20:33:53.287475+00:00", "organization_id": "#directory"}');
insert into "change_log" select * from jsonb_populate_record(null::"change_log", '{"seq": 1, "actor": "service:admin", "change": {"id": "documents-app", "op": "write", "kind": "client"}, "revision": 2, "write_id": 6315784455485012283, "request_id": "46324897-3ce0-4dfc-83ce-651bce111390", "written_at": "2026-11-22T20:34:05.226665+00:00", "organization_id": "#directory"}');
insert into "change_log" select * from jsonb_populate_record(null::"change_log", '{"seq": 1, "actor": "service:admin", "change": {"id": "loader", "op": "write", "kind": "client"}, "revision": 3, "write_id": -5601965566243188472, "request_id": "8b0d0f56-ecb3-4e73-a3cf-f4976237ae1f", "written_at": "2026-11-22T20:34:08.343449+00:00", "organization_id": "#directory"}');
insert into "change_log" select * from jsonb_populate_record(null::"change_log", '{"seq": 1, "actor": "service:admin", "change": {"id": "ann", "op": "write", "kind": "user"}, "revision": 4, "write_id": -5941866769598414062, "request_id": "b816fd88-9fcc-4b40-b37d-852484eb3659", "written_at": "2026-11-22T20:34:11.760502+00:00", "organization_id": "#directory"}');
insert into "change_log" select * from jsonb_populate_record(null::"change_log", '{"seq": 1, "actor": "service:admin", "change": {"id": "ben", "op": "write", "kind": "user"}, "revision": 5, "write_id": 5715381654995313420, "request_id": "b20db5ca-25c6-4146-86f8-58d7bdbff450", "written_at": "2026-11-22T20:34:15.577406+00:00", "organization_id": "#directory"}');
insert into "change_log" select * from jsonb_populate_record(null::"change_log", '{"seq": 1, "actor": "service:admin", "change": {"id": "cleo", "op": "write", "kind": "user"}, "revision": 6, "write_id": -4844116763198203768, "request_id": "5c5e04df-87bd-42a2-aa05-1971c822fd53", "written_at": "2026-11-22T20:34:18.969321+00:00", "organization_id": "#directory"}');
insert into "change_log" select * from jsonb_populate_record(null::"change_log", '{"seq": 1, "actor": "service:admin", "change": {"id": "acme", "kind": "organization", "organization": {"id": "acme", "name": "Acme", "parent": null}}, "revision": 1, "write_id": -4224151911352431771, "request_id": "a8ec15ef-cda7-41a5-b696-d27afb465239", "written_at": "2026-11-22T20:34:03.178024+00:00", "organization_id": "#environment"}');
insert into "change_log" select * from jsonb_populate_record(null::"change_log", '{"seq": 1, "actor": "service:admin", "change": {"id": "acme~europe", "kind": "organization", "organization": {"id": "acme~europe", "name": "Acme Europe", "parent": "acme"}}, "revision": 2, "write_id": 1886492744909277919, "request_id": "87d7f65f-d89d-4fe1-87d0-8b7e1d7e9af5", "written_at": "2026-11-22T20:34:03.63695+00:00", "organization_id": "#environment"}');
insert into "change_log" select * from jsonb_populate_record(null::"change_log", E'{"seq": 1, "actor": "service:admin", "change": {"kind": "manifest", "manifest": {"app": "documents", "model": "model\\n  schema 1.1\\ntype user\\ntype group\\n  relations\\n    define member: [user]\\ntype folder\\n  relations\\n    define viewer: [user, group#member]\\ntype document\\n  relations\\n    define folder: [folder]\\n    define blocked: [user]\\n    define editor: [service]\\n    define viewer: ([user, service, group#member] or viewer from folder) but not blocked\\n", "roles": {"archivist": {"name": "Archivist", "permissions": ["documents:archive"]}}, "audiences": [], "permissions": {"documents:archive": "Archive documents"}}}, "revision": 3, "write_id": 7066074498173433179, "request_id": "c2770bd9-1523-4d64-bc93-449e25090aa0", "written_at": "2026-11-22T20:34:04.982445+00:00", "organization_id": "#environment"}');
insert into "change_log" select * from jsonb_populate_record(null::"change_log", '{"seq": 1, "actor": "identity", "change": {"by": "grant", "id": "eHeGLejrW_Q-0IyIskuEclFkEJYmfWWUygy5ZYIQLI9", "kind": "token"}, "revision": 1, "write_id": 4583015227380111332, "request_id": "", "written_at": "2026-11-22T20:34:30.677055+00:00", "organization_id": "#tokens"}');
insert into "change_log" select * from jsonb_populate_record(null::"change_log", '{"seq": 1, "actor": "identity", "change": {"by": "jti", "id": "XUcPpDPE4yvnrI56BXXldgnV8iPal9jw0SC_5KsvQLM", "kind": "token"}, "revision": 2, "write_id": 1816890994937123869, "request_id": "", "written_at": "2026-11-22T20:34:38.343049+00:00", "organization_id": "#tokens"}');
insert into "change_log" select * from jsonb_populate_record(null::"change_log", '{"seq": 1, "actor": "service:admin", "change": {"kind": "membership", "user": "ann", "membership": {"role": "member", "status": "active"}}, "revision": 1, "write_id": 7592446622066112485, "request_id": "a0ecec50-2437-41ed-922e-817c417f5922", "written_at": "2026-11-22T20:34:12.074769+00:00", "organization_id": "acme"}');
insert into "change_log" select * from jsonb_populate_record(null::"change_log", '{"seq": 1, "actor": "service:admin", "change": {"kind": "membership", "user": "ben", "membership": {"role": "member", "status": "suspended"}}, "revision": 2, "write_id": -7844118012054636184, "request_id": "c414584e-2c5a-4b00-aca4-267591a2b2b3", "written_at": "2026-11-22T20:34:15.961524+00:00", "organization_id": "acme"}');
insert into "change_log" select * from jsonb_populate_record(null::"change_log", '{"seq": 1, "actor": "service:admin", "change": {"kind": "membership", "user": "cleo", "membership": {"role": "member", "status": "invited"}}, "revision": 3, "write_id": 6283941027148838802, "request_id": "1d270206-aa5f-4a69-99a2-a2088798de58", "written_at": "2026-11-22T20:34:19.080185+00:00", "organization_id": "acme"}');
insert into "change_log" select * from jsonb_populate_record(null::"change_log", '{"seq": 1, "actor": "service:admin", "change": {"op": "write", "kind": "role_grant", "grant": {"id": "yKDI2lgx_aq-LRHLrr4o7J", "app": "documents", "role": "archivist", "subject": "user:ann"}}, "revision": 4, "write_id": 4149763706714791509, "request_id": "fc9ee4db-df1e-4744-816a-c8854dc1ea69", "written_at": "2026-11-22T20:34:19.328305+00:00", "organization_id": "acme"}');
insert into "change_log" select * from jsonb_populate_record(null::"change_log", '{"seq": 1, "actor": "service:admin", "change": {"op": "write", "kind": "tuple", "tuple": {"object": "document:1", "subject": "user:ann", "relation": "viewer", "expiresAtMs": null}}, "revision": 5, "write_id": -6467999270725222298, "request_id": "82912125-acf4-45d4-9e41-2b71f68da981", "written_at": "2026-11-22T20:34:20.047932+00:00", "organization_id": "acme"}');
insert into "change_log" select * from jsonb_populate_record(null::"change_log", '{"seq": 10, "actor": "service:admin", "change": {"op": "write", "kind": "tuple", "tuple": {"object": "document:4", "subject": "user:ben", "relation": "viewer", "expiresAtMs": 4102444800000}}, "revision": 5, "write_id": -6467999270725222298, "request_id": "82912125-acf4-45d4-9e41-2b71f68da981", "written_at": "2026-11-22T20:34:20.048015+00:00", "organization_id": "acme"}');
insert into "change_log" select * from jsonb_populate_record(null::"change_log", '{"seq": 2, "actor": "service:admin", "change": {"op": "write", "kind": "tuple", "tuple": {"object": "document:1", "subject": "user:ben", "relation": "viewer", "expiresAtMs": null}}, "revision": 5, "write_id": -6467999270725222298, "request_id": "82912125-acf4-45d4-9e41-2b71f68da981", "written_at": "2026-11-22T20:34:20.047994+00:00", "organization_id": "acme"}');
insert into "change_log" select * from jsonb_populate_record(null::"change_log", '{"seq": 3, "actor": "service:admin", "change": {"op": "write", "kind": "tuple", "tuple": {"object": "document:2", "subject": "group:staff#member", "relation": "viewer", "expiresAtMs": null}}, "revision": 5, "write_id": -6467999270725222298, "request_id": "82912125-acf4-45d4-9e41-2b71f68da981", "written_at": "2026-11-22T20:34:20.047998+00:00", "organization_id": "acme"}');
insert into "change_log" select * from jsonb_populate_record(null::"change_log", '{"seq": 4, "actor": "service:admin", "change": {"op": "write", "kind": "tuple", "tuple": {"object": "document:3", "subject": "folder:legal", "relation": "folder", "expiresAtMs": null}}, "revision": 5, "write_id": -6467999270725222298, "request_id": "82912125-acf4-45d4-9e41-2b71f68da981", "written_at": "2026-11-22T20:34:20.048001+00:00", "organization_id": "acme"}');
insert into "change_log" select * from jsonb_populate_record(null::"change_log", '{"seq": 5, "actor": "service:admin", "change": {"op": "write", "kind": "tuple", "tuple": {"object": "folder:legal", "subject": "group:staff#member", "relation": "viewer", "expiresAtMs": null}}, "revision": 5, "write_id": -6467999270725222298, "request_id": "82912125-acf4-45d4-9e41-2b71f68da981", "written_at": "2026-11-22T20:34:20.048003+00:00", "organization_id": "acme"}');
insert into "change_log" select * from jsonb_populate_record(null::"change_log", '{"seq": 6, "actor": "service:admin", "change": {"op": "write", "kind": "tuple", "tuple": {"object": "document:3", "subject": "user:dan", "relation": "blocked", "expiresAtMs": null}}, "revision": 5, "write_id": -6467999270725222298, "request_id": "82912125-acf4-45d4-9e41-2b71f68da981", "written_at": "2026-11-22T20:34:20.048005+00:00", "organization_id": "acme"}');
insert into "change_log" select * from jsonb_populate_record(null::"change_log", '{"seq": 7, "actor": "service:admin", "change": {"op": "write", "kind": "tuple", "tuple": {"object": "group:staff", "subject": "user:ann", "relation": "member", "expiresAtMs": null}}, "revision": 5, "write_id": -6467999270725222298, "request_id": "82912125-acf4-45d4-9e41-2b71f68da981", "written_at": "2026-11-22T20:34:20.048008+00:00", "organization_id": "acme"}');
insert into "change_log" select * from jsonb_populate_record(null::"change_log", '{"seq": 8, "actor": "service:admin", "change": {"op": "write", "kind": "tuple", "tuple": {"object": "group:staff", "subject": "user:dan", "relation": "member", "expiresAtMs": null}}, "revision": 5, "write_id": -6467999270725222298, "request_id": "82912125-acf4-45d4-9e41-2b71f68da981", "written_at": "2026-11-22T20:34:20.04801+00:00", "organization_id": "acme"}');
insert into "change_log" select * from jsonb_populate_record(null::"change_log", '{"seq": 9, "actor": "service:admin", "change": {"op": "write", "kind": "tuple", "tuple": {"object": "document:4", "subject": "user:ann", "relation": "viewer", "expiresAtMs": 1577836800000}}, "revision": 5, "write_id": -6467999270725222298, "request_id": "82912125-acf4-45d4-9e41-2b71f68da981", "written_at": "2026-11-22T20:34:20.048013+00:00", "organization_id": "acme"}');
insert into "change_log" select * from jsonb_populate_record(null::"change_log", '{"seq": 1, "actor": "service:admin", "change": {"op": "delete", "kind": "tuple", "tuple": {"object": "document:1", "subject": "user:ben", "relation": "viewer", "expiresAtMs": null}}, "revision": 6, "write_id": 6480674379478206792, "request_id": "c53abb4d-9d19-4509-8d71-90738cfe84dd", "written_at": "2026-11-22T20:34:20.400132+00:00", "organization_id": "acme"}');
insert into "change_log" select * from jsonb_populate_record(null::"change_log", '{"seq": 1, "actor": "service:admin", "change": {"key": "feature.export", "kind": "entitlement", "entitlement": {"value": {"enabled": true}, "enforcement": "DecisionApi"}}, "revision": 7, "write_id": -5791492811715084876, "request_id": "452fca26-7888-41a1-b67d-9cf696fc8302", "written_at": "2026-11-22T20:34:20.46842+00:00", "organization_id": "acme"}');
insert into "change_log" select * from jsonb_populate_record(null::"change_log", '{"seq": 1, "actor": "service:admin", "change": {"key": "feature.import", "kind": "entitlement", "entitlement": {"value": {"enabled": false}, "enforcement": "DecisionApi"}}, "revision": 8, "write_id": 883673433651153764, "request_id": "a0b3b48a-e4d8-461b-9f94-e2baebd56ba9", "written_at": "2026-11-22T20:34:20.525761+00:00", "organization_id": "acme"}');
insert into "change_log" select * from jsonb_populate_record(null::"change_log", '{"seq": 1, "actor": "service:admin", "change": {"key": "seats", "kind": "entitlement", "entitlement": {"value": {"limit": 25}, "enforcement": "DecisionApi"}}, "revision": 9, "write_id": 4594600864099651703, "request_id": "e5928358-a5d8-496a-8124-ea589b6ebb2c", "written_at": "2026-11-22T20:34:20.67788+00:00", "organization_id": "acme"}');
delete from "client";
insert into "client" select * from jsonb_populate_record(null::"client", '{"app": null, "metadata": {"scope": "decisions:read decisions:ask directory:write manifest:write roles:write relationships:read relationships:write entitlements:write clients:write hooks:write sessions:revoke audit:read events:read", "client_name": "Administration", "grant_types": ["client_credentials"], "response_types": [], "token_endpoint_auth_method": "client_secret_basic"}, "client_id": "admin", "secret_hash": "$scrypt$ln=15,r=8,p=3$E4R6xe+BwKOa7Cgs666jyQ$ms5qEtwdGG58JhgaKOUO4IRjWHYojwuJRNjZGvmM8Jg", "organization_id": null}');
insert into "client" select * from jsonb_populate_record(null::"client", '{"app": "documents", "metadata": {"scope": "openid offline_access", "grant_types": ["authorization_code", "refresh_token"], "redirect_uris": ["https://app.upgrade.example/callback"], "token_endpoint_auth_method": "none"}, "client_id": "documents-app", "secret_hash": null, "organization_id": null}');
insert into "client" select * from jsonb_populate_record(null::"client", '{"app": "documents", "metadata": {"grant_types": ["client_credentials"]}, "client_id": "loader", "secret_hash": "$scrypt$ln=15,r=8,p=3$OxN4AviJLUGi0bsYzWURIw$r9pxtJamwCahTLgB0mxg9jQ7S84O/k2z82vzj0fQBzM", "organization_id": "acme"}');
delete from "entitlement";
insert into "entitlement" select * from jsonb_populate_record(null::"entitlement", '{"key": "feature.export", "value": {"enabled": true}, "enforcement": "DecisionApi", "organization_id": "acme"}');
insert into "entitlement" select * from jsonb_populate_record(null::"entitlement", '{"key": "feature.import", "value": {"enabled": false}, "enforcement": "DecisionApi", "organization_id": "acme"}');
insert into "entitlement" select * from jsonb_populate_record(null::"entitlement", '{"key": "seats", "value": {"limit": 25}, "enforcement": "DecisionApi", "organization_id": "acme"}');
delete from "grant_binding";
insert into "grant_binding" select * from jsonb_populate_record(null::"grant_binding", '{"offline": true, "user_id": "ann", "grant_id": "eHeGLejrW_Q-0IyIskuEclFkEJYmfWWUygy5ZYIQLI9", "client_id": "documents-app", "created_at": "2026-11-22T20:34:29.92066+00:00", "session_uid": "L5GYXnShxq2PisX7dd3l3KEje4JyUO667NUfKQDj0ej", "organization_id": "acme", "parent_grant_id": null, "sender_constrained": false}');
insert into "grant_binding" select * from jsonb_populate_record(null::"grant_binding", '{"offline": true, "user_id": "ann", "grant_id": "fMzU4iwpmRRvSQgWMaoGo8OTkXxGEDB0sLsCgBj70Yk", "client_id": "documents-app", "created_at": "2026-11-22T20:34:24.687478+00:00", "session_uid": "F2HAeV-yld6autsUf7zBsdH4XMqiJ48rakA6SfaxjjT", "organization_id": "acme", "parent_grant_id": null, "sender_constrained": false}');
delete from "manifest";
insert into "manifest" select * from jsonb_populate_record(null::"manifest", E'{"app": "documents", "current": true, "version": 1, "document": {"app": "documents", "model": "model\\n  schema 1.1\\ntype user\\ntype group\\n  relations\\n    define member: [user]\\ntype folder\\n  relations\\n    define viewer: [user, group#member]\\ntype document\\n  relations\\n    define folder: [folder]\\n    define blocked: [user]\\n    define editor: [service]\\n    define viewer: ([user, service, group#member] or viewer from folder) but not blocked\\n", "roles": {"archivist": {"name": "Archivist", "permissions": ["documents:archive"]}}, "audiences": [], "permissions": {"documents:archive": "Archive documents"}}}');
delete from "manifest_claim";
insert into "manifest_claim" select * from jsonb_populate_record(null::"manifest_claim", '{"app": "documents", "kind": "type", "name": "document"}');
insert into "manifest_claim" select * from jsonb_populate_record(null::"manifest_claim", '{"app": "documents", "kind": "type", "name": "folder"}');
insert into "manifest_claim" select * from jsonb_populate_record(null::"manifest_claim", '{"app": "documents", "kind": "type", "name": "group"}');
delete from "membership";
insert into "membership" select * from jsonb_populate_record(null::"membership", '{"role": "member", "status": "active", "user_id": "ann", "organization_id": "acme"}');
insert into "membership" select * from jsonb_populate_record(null::"membership", '{"role": "member", "status": "suspended", "user_id": "ben", "organization_id": "acme"}');
insert into "membership" select * from jsonb_populate_record(null::"membership", '{"role": "member", "status": "invited", "user_id": "cleo", "organization_id": "acme"}');
delete from "oidc_record";
insert into "oidc_record" select * from jsonb_populate_record(null::"oidc_record", '{"id": "0_sxulo4AvdCvJgCrd5A9yyQpwAXHjHM90bWbx70fSu", "uid": null, "kind": "AccessToken", "payload": {"acr": "pwd", "aud": "http://127.0.0.1:28479", "exp": 1795380565, "gty": "authorization_code", "iat": 1795379665, "jti": "0_sxulo4AvdCvJgCrd5A9yyQpwAXHjHM90bWbx70fSu", "kind": "AccessToken", "scope": "openid", "grantId": "fMzU4iwpmRRvSQgWMaoGo8OTkXxGEDB0sLsCgBj70Yk", "authTime": 1795379661, "clientId": "documents-app", "accountId": "ann", "sessionUid": "F2HAeV-yld6autsUf7zBsdH4XMqiJ48rakA6SfaxjjT"}, "grant_id": "fMzU4iwpmRRvSQgWMaoGo8OTkXxGEDB0sLsCgBj70Yk", "user_code": null, "expires_at": "2026-11-22T20:49:25.382848+00:00", "consumed_at": null}');
insert into "oidc_record" select * from jsonb_populate_record(null::"oidc_record", '{"id": "x6bDXt4SnwYZYECTu1XD0YrK-kW3PLgWZdp3LdY9k7M", "uid": null, "kind": "AuthorizationCode", "payload": {"acr": "pwd", "amr": ["pwd"], "exp": 1795379724, "iat": 1795379664, "kind": "AuthorizationCode", "nonce": "DpxjpANdQJje-HULXfC_UNprFgJg2yxBvZKxDSq0ssI", "scope": "openid offline_access", "grantId": "fMzU4iwpmRRvSQgWMaoGo8OTkXxGEDB0sLsCgBj70Yk", "authTime": 1795379661, "clientId": "documents-app", "resource": "http://127.0.0.1:28479", "accountId": "ann", "sessionUid": "F2HAeV-yld6autsUf7zBsdH4XMqiJ48rakA6SfaxjjT", "redirectUri": "https://app.upgrade.example/callback", "codeChallenge": "wZZgseCLnAXsMnzyxBMloniSV6GM_pVXFzHNxfLnf38", "codeChallengeMethod": "S256"}, "grant_id": "fMzU4iwpmRRvSQgWMaoGo8OTkXxGEDB0sLsCgBj70Yk", "user_code": null, "expires_at": "2026-11-22T20:35:24.912322+00:00", "consumed_at": "2026-11-22T20:34:25.16028+00:00"}');
insert into "oidc_record" select * from jsonb_populate_record(null::"oidc_record", '{"id": "FuLvwsUOvbTYHTx9-UjUfse1mUQYoCKjr5WUrxV3Nor", "uid": null, "kind": "ClientCredentials", "payload": {"aud": "http://127.0.0.1:28479", "exp": 1795380542, "iat": 1795379642, "jti": "FuLvwsUOvbTYHTx9-UjUfse1mUQYoCKjr5WUrxV3Nor", "kind": "ClientCredentials", "scope": "audit:read clients:write decisions:read directory:write entitlements:write events:read manifest:write relationships:read relationships:write roles:write", "clientId": "admin"}, "grant_id": null, "user_code": null, "expires_at": "2026-11-22T20:49:02.358552+00:00", "consumed_at": null}');
insert into "oidc_record" select * from jsonb_populate_record(null::"oidc_record", '{"id": "RPH9JCIh42L_DjMjwXP0KTECoB8dv6qUNQzHyoxQBNj", "uid": null, "kind": "ClientCredentials", "payload": {"aud": "http://127.0.0.1:28479", "exp": 1795380572, "iat": 1795379672, "jti": "RPH9JCIh42L_DjMjwXP0KTECoB8dv6qUNQzHyoxQBNj", "kind": "ClientCredentials", "clientId": "loader"}, "grant_id": null, "user_code": null, "expires_at": "2026-11-22T20:49:32.430286+00:00", "consumed_at": null}');
insert into "oidc_record" select * from jsonb_populate_record(null::"oidc_record", '{"id": "bLjKUXD7x0iYJdLCQcMKgb7A3NCaT7l8etuD0GjEPu3", "uid": null, "kind": "ClientCredentials", "payload": {"aud": "http://127.0.0.1:28479", "exp": 1795380584, "iat": 1795379684, "jti": "bLjKUXD7x0iYJdLCQcMKgb7A3NCaT7l8etuD0GjEPu3", "kind": "ClientCredentials", "scope": "audit:read clients:write decisions:read directory:write entitlements:write events:read manifest:write relationships:read relationships:write roles:write", "clientId": "admin"}, "grant_id": null, "user_code": null, "expires_at": "2026-11-22T20:49:44.76938+00:00", "consumed_at": null}');
insert into "oidc_record" select * from jsonb_populate_record(null::"oidc_record", '{"id": "fq6NVN4qoa_grPOvqG4iWEiX6iOcw7Yglywk4MvENGo", "uid": null, "kind": "ClientCredentials", "payload": {"aud": "http://127.0.0.1:28479", "exp": 1795380582, "iat": 1795379682, "jti": "fq6NVN4qoa_grPOvqG4iWEiX6iOcw7Yglywk4MvENGo", "kind": "ClientCredentials", "scope": "audit:read clients:write decisions:read directory:write entitlements:write events:read manifest:write relationships:read relationships:write roles:write", "clientId": "admin"}, "grant_id": null, "user_code": null, "expires_at": "2026-11-22T20:49:42.106287+00:00", "consumed_at": null}');
insert into "oidc_record" select * from jsonb_populate_record(null::"oidc_record", '{"id": "fMzU4iwpmRRvSQgWMaoGo8OTkXxGEDB0sLsCgBj70Yk", "uid": null, "kind": "Grant", "payload": {"exp": 1826915664, "iat": 1795379664, "jti": "fMzU4iwpmRRvSQgWMaoGo8OTkXxGEDB0sLsCgBj70Yk", "kind": "Grant", "openid": {"scope": "openid offline_access"}, "clientId": "documents-app", "accountId": "ann", "resources": {"http://127.0.0.1:28479": "openid"}}, "grant_id": null, "user_code": null, "expires_at": "2027-11-22T20:34:24.64617+00:00", "consumed_at": null}');
insert into "oidc_record" select * from jsonb_populate_record(null::"oidc_record", '{"id": "VB-N_ZuQo1c_H8cdsGT78Rjr5PfnK5MdiuSXG1ZSDEM", "uid": null, "kind": "RefreshToken", "payload": {"acr": "pwd", "amr": ["pwd"], "exp": 1797971665, "gty": "authorization_code", "iat": 1795379665, "iiat": 1795379665, "kind": "RefreshToken", "nonce": "DpxjpANdQJje-HULXfC_UNprFgJg2yxBvZKxDSq0ssI", "scope": "openid offline_access", "grantId": "fMzU4iwpmRRvSQgWMaoGo8OTkXxGEDB0sLsCgBj70Yk", "authTime": 1795379661, "clientId": "documents-app", "resource": "http://127.0.0.1:28479", "accountId": "ann", "rotations": 0, "sessionUid": "F2HAeV-yld6autsUf7zBsdH4XMqiJ48rakA6SfaxjjT"}, "grant_id": "fMzU4iwpmRRvSQgWMaoGo8OTkXxGEDB0sLsCgBj70Yk", "user_code": null, "expires_at": "2026-12-22T20:34:25.45609+00:00", "consumed_at": null}');
insert into "oidc_record" select * from jsonb_populate_record(null::"oidc_record", '{"id": "LursCaMA5tNrX_KXxCAuy__SCD0CB1_QVyAnWppwYnp", "uid": "L5GYXnShxq2PisX7dd3l3KEje4JyUO667NUfKQDj0ej", "kind": "Session", "payload": {"acr": "pwd", "amr": ["pwd"], "exp": 1795422870, "iat": 1795379669, "jti": "LursCaMA5tNrX_KXxCAuy__SCD0CB1_QVyAnWppwYnp", "uid": "L5GYXnShxq2PisX7dd3l3KEje4JyUO667NUfKQDj0ej", "kind": "Session", "loginTs": 1795379665, "accountId": "ann", "authorizations": {"documents-app": {"sid": "_mI004BvEssSOeXojHz6pvISi3dRJBAVzgEHY28iWAI", "grantId": "eHeGLejrW_Q-0IyIskuEclFkEJYmfWWUygy5ZYIQLI9", "persistsLogout": true}}}, "grant_id": null, "user_code": null, "expires_at": "2026-11-23T08:34:30.263975+00:00", "consumed_at": null}');
insert into "oidc_record" select * from jsonb_populate_record(null::"oidc_record", '{"id": "Uy-o1jDs-C4YYnO5F129SQQVoZDNwG_uPQgVWiZaJNI", "uid": null, "kind": "Session", "payload": {}, "grant_id": null, "user_code": null, "expires_at": "2026-11-23T08:34:24.386194+00:00", "consumed_at": "2026-11-22T20:34:24.921584+00:00"}');
insert into "oidc_record" select * from jsonb_populate_record(null::"oidc_record", '{"id": "gIQTnWEHPc0soHwjKGX7YXghB01LIwLapBAnK_dyRTC", "uid": "F2HAeV-yld6autsUf7zBsdH4XMqiJ48rakA6SfaxjjT", "kind": "Session", "payload": {"acr": "pwd", "amr": ["pwd"], "exp": 1795422864, "iat": 1795379664, "jti": "gIQTnWEHPc0soHwjKGX7YXghB01LIwLapBAnK_dyRTC", "uid": "F2HAeV-yld6autsUf7zBsdH4XMqiJ48rakA6SfaxjjT", "kind": "Session", "loginTs": 1795379661, "accountId": "ann", "authorizations": {"documents-app": {"sid": "8EzABARbPul_VL0Pf5A14w3yLCjc9-cKFse30njn12T", "grantId": "fMzU4iwpmRRvSQgWMaoGo8OTkXxGEDB0sLsCgBj70Yk", "persistsLogout": true}}}, "grant_id": null, "user_code": null, "expires_at": "2026-11-23T08:34:24.995992+00:00", "consumed_at": null}');
insert into "oidc_record" select * from jsonb_populate_record(null::"oidc_record", '{"id": "qR3JSeMq0PqwkO_oSafd0h6monEc_Co3ms2zHTaVovj", "uid": null, "kind": "Session", "payload": {}, "grant_id": null, "user_code": null, "expires_at": "2026-11-23T08:34:29.801034+00:00", "consumed_at": "2026-11-22T20:34:30.192102+00:00"}');
delete from "organization";
insert into "organization" select * from jsonb_populate_record(null::"organization", '{"name": "Acme", "parent_id": null, "created_at": "2026-11-22T20:34:02.99998+00:00", "organization_id": "acme"}');
insert into "organization" select * from jsonb_populate_record(null::"organization", '{"name": "Acme Europe", "parent_id": "acme", "created_at": "2026-11-22T20:34:03.558475+00:00", "organization_id": "acme~europe"}');
delete from "organization_role";
delete from "outbox";
insert into "outbox" select * from jsonb_populate_record(null::"outbox", '{"seq": 1, "type": "entitlement.updated", "payload": {"keys": ["feature.export"], "version": 1, "organization": "acme"}, "event_id": "e864d630-d2fa-4c1c-bd79-94daf8fe4ee1", "created_at": "2026-11-22T20:34:20.462632+00:00", "organization_id": "acme"}');
insert into "outbox" select * from jsonb_populate_record(null::"outbox", '{"seq": 2, "type": "entitlement.updated", "payload": {"keys": ["feature.import"], "version": 2, "organization": "acme"}, "event_id": "fefd0a6f-d791-40d3-8aa8-429e69e1f1dd", "created_at": "2026-11-22T20:34:20.518298+00:00", "organization_id": "acme"}');
insert into "outbox" select * from jsonb_populate_record(null::"outbox", '{"seq": 3, "type": "entitlement.updated", "payload": {"keys": ["seats"], "version": 3, "organization": "acme"}, "event_id": "d6881dcb-9993-4269-b011-787f63763009", "created_at": "2026-11-22T20:34:20.646725+00:00", "organization_id": "acme"}');
delete from "principal";
insert into "principal" select * from jsonb_populate_record(null::"principal", '{"id": "admin", "kind": "client", "deleted_at": null}');
insert into "principal" select * from jsonb_populate_record(null::"principal", '{"id": "ann", "kind": "user", "deleted_at": null}');
insert into "principal" select * from jsonb_populate_record(null::"principal", '{"id": "ben", "kind": "user", "deleted_at": null}');
insert into "principal" select * from jsonb_populate_record(null::"principal", '{"id": "cleo", "kind": "user", "deleted_at": null}');
insert into "principal" select * from jsonb_populate_record(null::"principal", '{"id": "documents-app", "kind": "client", "deleted_at": null}');
insert into "principal" select * from jsonb_populate_record(null::"principal", '{"id": "loader", "kind": "client", "deleted_at": null}');
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
insert into "revision" select * from jsonb_populate_record(null::"revision", '{"closed": false, "revision": 6, "write_id": -4844116763198203768, "organization_id": "#directory", "entitlement_version": 0, "entitlement_write_id": 0}');
insert into "revision" select * from jsonb_populate_record(null::"revision", '{"closed": false, "revision": 3, "write_id": 7066074498173433179, "organization_id": "#environment", "entitlement_version": 0, "entitlement_write_id": 0}');
insert into "revision" select * from jsonb_populate_record(null::"revision", '{"closed": false, "revision": 3, "write_id": 0, "organization_id": "#events", "entitlement_version": 0, "entitlement_write_id": 0}');
insert into "revision" select * from jsonb_populate_record(null::"revision", '{"closed": false, "revision": 2, "write_id": 1816890994937123869, "organization_id": "#tokens", "entitlement_version": 0, "entitlement_write_id": 0}');
insert into "revision" select * from jsonb_populate_record(null::"revision", '{"closed": false, "revision": 9, "write_id": 4594600864099651703, "organization_id": "acme", "entitlement_version": 3, "entitlement_write_id": 4594600864099651703}');
insert into "revision" select * from jsonb_populate_record(null::"revision", '{"closed": false, "revision": 0, "write_id": 0, "organization_id": "acme~europe", "entitlement_version": 0, "entitlement_write_id": 0}');
delete from "role_grant";
insert into "role_grant" select * from jsonb_populate_record(null::"role_grant", '{"app": "documents", "role": "archivist", "subject": "user:ann", "grant_id": "yKDI2lgx_aq-LRHLrr4o7J", "organization_id": "acme"}');
insert into "schema_migration" select * from jsonb_populate_record(null::"schema_migration", '{"name": "0001-initial.sql", "digest": "4ac227f2d8edfec49891450f448aab8cf80868d338a4a6215940f850343d646f", "applied_at": "2026-11-22T20:33:44.681378+00:00"}');
insert into "schema_migration" select * from jsonb_populate_record(null::"schema_migration", '{"name": "0002-identity.sql", "digest": "931225a565bf04232d74ef38f46fc23d31258a531d1ed01e832a1eac5805ec8c", "applied_at": "2026-11-22T20:33:44.828321+00:00"}');
insert into "schema_migration" select * from jsonb_populate_record(null::"schema_migration", '{"name": "0003-role-grant-lookup.sql", "digest": "7acb082c20102659e1a772e63ff68b1cf9a1e473ec190860546f10ed180530a9", "applied_at": "2026-11-22T20:33:44.851289+00:00"}');
insert into "schema_migration" select * from jsonb_populate_record(null::"schema_migration", '{"name": "0004-token-log.sql", "digest": "f60bbe2caa9bd2f9758b72ced154944627c33877f31e37ad87861c48505d1e8e", "applied_at": "2026-11-22T20:33:44.86166+00:00"}');
insert into "schema_migration" select * from jsonb_populate_record(null::"schema_migration", '{"name": "0005-second-factor.sql", "digest": "5a53dd7711366bcdf17c29bed4be56d38cc98f2ce852f6a1c17400b6f3bf00c4", "applied_at": "2026-11-22T20:33:44.876007+00:00"}');
delete from "signing_key";
insert into "signing_key" select * from jsonb_populate_record(null::"signing_key", '{"kid": "83vp1P-a_JzByvOSfQCPPnQyXlaRGiTMj4PnHRiEB0Q", "state": "active", "created_at": "2026-11-22T20:33:46.672946+00:00", "public_jwk": {"e": "AQAB", "n": "kWKxWa3nbA8kArO3TjDgz_iIg8jXulmAKVYGmioE5KWJ1LdkSMaGl6A8ZGUCUa07EG6pVWC7LqK50St6-EzTv13SjFeP5fRqd3c_PUu9taAkWjSsQPBS3bTxGOztI_brijgpAtwbqLc1N0sty0Ub82REvKVQSOsCJl2TtA82YhUTxmI0L0V_Td-tepYsy04IW8oefis4c343-jt4fM3r1Id-K7VLBp6PvyJoOUeQM8SQdGyT4KVtsDNf8gCAgKJpD4Sjshc15FWhO8-w8Gui1Paan-ON92_IsyathJmm_4eULyLIV3LFfa1z1qU6IaREvWK94RARKTdfFKXU4IlOYw", "alg": "RS256", "kid": "83vp1P-a_JzByvOSfQCPPnQyXlaRGiTMj4PnHRiEB0Q", "kty": "RSA", "use": "sig"}, "retire_after": null, "private_jwk_sealed": "v1.ZNWB20rDAdd0oK_p0ujFVFuRvaSqe6wBnf87aevdX2avLULsL75vaMrylI25RukZfFMLSn73V2W83C09xQb1-okGE9jcn6NpBIPnIRzr-wO8UhxlTINhwJJ2jx4Q_rWMYGS5mWeHDcNnNnZL5XGz31fnvhl08BWYUg3xWYNKG9L43deHimr2eU5vH5I57jJ0rVZzsI_5fk-y7D9_WICPrQMdyD_s_u-_T2Qi8n9yQsURmcx83creU3AzKC3AniyqLwtGaQycuSG9uanTiaSdG3IW8HGjTQKq0oT8wmrWzgtRtGZ_EOzo5_3CrKzjY5cOplrrXwwJv4jKnZtktqLeVIrD_Y_kTGNt1eFx2oLDmA3vE-2C-tB10CzJiYzQ6RizpYNFue_3jAp0_4_cdep2gcV57vN2WU1K4PMAagbmpHMmA8td1Nc1YBdFIeDzMLlPzRy7pFpmpIr_pMDTo0_f_PdLXXIShYo4Se2-tKsYIA9sFIEoBmod1obpKe7md3GEf_3hi3-GoFDso6BwaiT25CHkkZigoHv9VzYPVAdxgRtXoWwBwECYvQUbT1IDlcod7sNg2IhXqy7oFG-YvhJ9Z9KOpp0oMA_60bMP3RemYxg5Rqu4RDBIgYwKukQ1gf0YsQq_2Eulu7N7AEzqd6XHkg-UMPuCXW6R807M0Sutxbj3oSB2GqOqCXPuNkBkf9lCxr6e2PggEHiMMdzHXlHzJ5Raj4iOuxTbOjN3hbX1B7dxl-0RtgPJnPVBflioP8a2ZsoZ0ukWUuN3Z7PY7SobxKRH_zc3kpzCmA-XuR8tBZ2JG3jBqFW4BmbVfTJqR_QncEUsRCQZMTmOryqAQdwV5TZ_P-awGCEiZsuL3XW4TMB0SKw09B_D1PwhyszbKaepjK3u-yC-Awdfhi-pigEy7J22krSOXa6uE4K6BC-TmOm1cafJLZub0r4cxq8zIoaEtTFLqEnhuKEhoa1FpEGtS6F73_QAPc3vZJuYpCM7Qde1d4qnB2bRr-f_uDNWF6gCazZJem0CVc3bc7VYP8C5Y8-3eWmMry1euXEnXX6dpksfloeGIeHQaVQd4aijQyLiupC82bSMKnsPgUinu_AS22iJbS6JXLJ4NL5WcDrAhlPjrCNWqBt1xud_vUuw410SD-qsD9CfBR9XCnuI_2i8Rk9nH9jlbcfbih2pJETR9ODxMXea6hX4hUb_JQDluJBBFzz7mYN6cXVw0BWiE9UqJUIKPhRsDRvXI8qv8AeQ_3ves3ZgCLSXGu1kVlDHJeVzxsNO5gjeQEWONpsdUCBd2wCnpM5yy-e4a-C-C2Q8z5avvXzcOn95Q-nriK33B51KzL72WtvG5T0vEVErk7hWKAEZcsHurtfGQshsvycZ91IMqV1-pwJ69gjVwfQMESrhXzTuQLx8kyHD1ugrva8AP_fb9iFNvvMtcPrzXnkJ1rBuB1YV6nnZOUUt9tDMdHp2J4ja2i8Dy7pop-eHvOf2YNRQHR4gcLf7zPc3oxmKVPsDLhNXGEMv93Mbr8snxHZtjHmISRo_SwzMb3gxDhK1PAKdqi0-x_fET-GhmAs9dudKDYOESJ7H1Uag8k1_PIsrh-R1rtRXgrZlb27_CuYxnE63I2KGXzuYxIPvqHlO3Tu3GFZSy3itSRnquDiZGfIDwb6idvQgHGC-72OeCS6DVJGQ6p6kfuh63-ZVLoo0WGnqOs1ixowKpEON7lwVzpMjvIxQ--4PTEMmBp1Wc8yWJhrICzv79513D_Bwa73Iao4ErDjZBpAHLtpXRIT6IWmmvfASMWe00GXtR-CW3qWPp4p0gjmAlpRY2Gy9Uk4oy8wTqg4vmGcPvUKwcbftVjqOJgJGGRH6LgdUDihGQKkLIUiT7tdwNp9uXX2AcVh7UvIkH63r5_uAslM7RC-KqArH4bJ1jEarEuPgepk2zIbUKO9G-AIrD4jSPSeN4IxNABFoGF7g_yF-zIvN4MvTefcdO_bOs4LyTeLF7-IW-oQ3DEuvDbqiQMdffq-vmnmx06ZO9qs2_tio-imA0IeBo4oPB2iej_T0mcGdpqHgdTHp615RYjAYm9N3SSkdLFgZoxnKOkjETlp3ImCEvUFvGaIT95VznPlJtASCTTQJP0El2sfahCYrUtnf9zyeOld9usNW1PuUMu5FNWv6gzCRBEpDUfRBXS9DhxJc35IznKzHeOboED1_rdxToIU0ZRfT4QPnBxugUJmUE0aJ-xIrkrhFkYd0Z9khEMM5ySRjvRw6OAh5VXZlAg8SydvMVf-FILKJsoM97ASvBBU"}');
insert into "signing_key" select * from jsonb_populate_record(null::"signing_key", '{"kid": "le0U9XdVpX5CPw8mwuSzpkmS055MUq-zWhsbXSQ-zl4", "state": "next", "created_at": "2026-11-22T20:33:46.672946+00:00", "public_jwk": {"e": "AQAB", "n": "pRYDGu-7oYTciv2gGfnY1NusIsi94lumZYyEj2pWkEW-sHhDUsBr6R1Nk8lVXc13qHnQ5PxPOdGZV-UNqzYLT7IwT05RxwKtS1c6gr1GwRKHwEZF-WfvVI_MhrDCZvLNMrwM8pMsHJX5ev-u-ad0tLMRpRJzBzmPqnZB9WKKC8MYKlTJyRD-8elGSfSzQ0IU3vZPp4_UnY952703WCdNl2D-rFHIE_MCghWsyh72Wyc789Khm3RfP3Fl3rOs32LVRhqQicMuBGqaCjQPtVikksUdLl5QpU_s3AzD0X37xFj0xNBN906WOYI93PWT4-5-MwLA0aDScON4zgP09QFGQw", "alg": "RS256", "kid": "le0U9XdVpX5CPw8mwuSzpkmS055MUq-zWhsbXSQ-zl4", "kty": "RSA", "use": "sig"}, "retire_after": null, "private_jwk_sealed": "v1.NNQAwDUxi53y0D0Ru627TWQxky0aumA1JzIlnbtSKIA_-yz0nCLbZ9K3qcYa2hJszTdM70srt2BSb4JZgxAuBL4Tfb28XaQS1gT7R8Tl9GvBnYBg69TiaJqjCCNwp7M_xre_rG8CnxYdvRMiQc936XC0dY-i8CyG6AjWi1ubF5PqjPc2AE96zZs7vW-TRqx_gsy_xoN9Cp5j9Cvn3tBuxj103whei9kMkQbYPiOpCJSU0yWWP8-7hFG7hvD_n9rXTXQud5Ga1tUQtUPnlF7G2Z2d_no8LAPzE8S6NabLftfpQS0FSJbz7ud18k8CEseQywqTgD5ab04WpHxwX-yEII6VuavrKz1Q1uYW_bEBnJ6erNlu80Q2MUvXoFzPnC-7k8KDl3PLtb4vpa5LgxeAFFEQrXe-bFwZdZAIGXwmizpV8lFsWK-wS4ZzhITMwYiSCUjgC-kfnH5ztH1xlGtcG32zKpBKeAlf_Y1txn0K6jOw-k9NkQSiIonR5snnMphyOuBhuKi6Ca_mGOTqzvGhXYrCjRFpZo9iYAEcPzCuvcmIlcDWf4RDGnIP4xevOxE8qV26svjq3WJkd0QlwWQkKGlnIWAqZnuQRK6OiqzLfz31yN-T5cImishGb7G7T1DZvlqgALKp5e-ASdYH6sum1HyN27FnXyi0nKd3A56_LJPkv-xH5M3WHCty_JUK1r30v9RbXs32luGXTbGCzKQG8JsAWYJ8AekdRjRnLM4Y2-n4BWJ2culNCHDO_caIUlQN_RtVO0VwloIkW6tCmmmFohsJp_6CCdcbr5_EgmG3qfFJEMr_FcdbIUFpwVNP6X2zDsULmuAgCf5mybw3Q2_WATFqB1LNm8K67fK4xJJf9sbQIsEjBpEQViQiQt2oQU8PLB2qwhC6sdl0VaFJxTFu3mQ1aU_dA9DBHBzyEdMBc34FHHdcNbYUu_iHWysbGoE2L3vCXlYHgoP0SQ7-7OeIuA78vVzZNYJxn_4Wbi7NaID9Gkt4_TQJCKZ7eaGhAvX5z5bN71cwStF3Vb3I1cjwN5jsbcQIILC1HQ9djq3CgD0NKWLFLsyGyRoZOZvBqtYUzxg2pdgoM4McxYLLtjF9BUxhEiWQkWWJ2XpGMQCFJakntiJnuLWJt-BtqsLr--4LZVLNFIzSWhvBwq3wzq95Q3GAFN6lBuMWaxV490Za8t1DtftOa1SYrYkW2SuShRw5dLZUdmGaNiY-FX6ZT-sRJiD6qK9XUiE8_wPTJG5jOWCJpE5wKPb2lUWPXAZo3obtGpG3sJ-FzAE9ueJMMxsF3eKruYp99JapAIgbQDLp_XWkYnWD_eu4_e5d3noEBEERK8njnFd5zJHPIsKPmlNDXCMz1Ee6OhD8MpRv62BMR5qfMoWoneH0wH5AcVFA2ESgqPAZukC5ZBN1GX0Q-SwjP7iDBCLlhOkpvNsgbz1bHIZHT8C_h8UFdYgmeiNqVqENUsZT0QL8OienuWgEnULRHiRR7I43U9bbgO23_CljY6CkXd-9Wz-BhvqyNjpb7orfdmhZUQzK_vv23GTtfbQ7WkaXI-4JtO8bc54zdujJc3GL5OYS4cRnviNHZKUN24jYw5v_eVbnz1ps0CbJbKEd9Nt0SdcgtAra24XwLUVZcaHhZx86b_hYxOJMa50KdDonfXkK6HX9FdthyiAaXl3XWkclB0A4a9q5WZYKgezJfFrjsFbHwttZ42BDdw3hvO9fZ7cwwca69InsFTNoTv2smn4XlaU63m-FbJsRDmn3qSQTyDBc-joy9a6CMieWES7BGjwxr_OydAeAwXrFj4LvoFXKXafLN62y-Oy-sYCYvRRQ7wGMqYxAwh0I-MygyD8EvFAgq3Hy5CUwwQXHLCkUQPOqIDa0kXyFWUji0aDq_AvT7mfM27_ELV5Y0iLrLymFdj8lOo_-ayATFGsB6124tqQxSEHfLDC0bBsVaFd5XebkP2qRGCNPwKg4ftRwRUpE9NMryOBLhCpohgvDute2E6kbJgBmnVwOZQTQGgr4YDNSrSQcAEqnK1Dq8ZcE1si3J09tQPhHZ6ucoPfAE2YkEc44CQczzylIch58oGoLJwgtGaDWMkqfFyyVFL3oItFyLa1s5-DGQGLn-SqXcDuHfJUFeF4zVwkZSbKooMIEjvEgxW0hnPJJjDqnF86crbZuNtF7HP_bzsCWv7y-qZufsuRC6xEiE_7JDYOTSSeL1S0IlJqv37OWXPDEf9z1MRyrOPgzVCROjUfg3TEjfyTIvYlMXbKgHEMm8NplaSZLxeVkg_Cv1TVbjIE"}');
delete from "token_hook";
delete from "trusted_issuer";
delete from "user_account";
insert into "user_account" select * from jsonb_populate_record(null::"user_account", '{"name": "ann", "email": "ann@acme.example", "user_id": "ann", "password_hash": "$scrypt$ln=15,r=8,p=3$JT/uniEM/qNmvgWcdmHZ4w$IF+YsRyM1PclNip2HYf3RM9N2h/10h30V29LLRBw/Vs", "signed_out_at": "2026-11-22T20:34:11.859+00:00", "email_verified": true}');
insert into "user_account" select * from jsonb_populate_record(null::"user_account", '{"name": "ben", "email": "ben@acme.example", "user_id": "ben", "password_hash": "$scrypt$ln=15,r=8,p=3$vaOnHzR6YN69M0Pi0GY6BA$Dmf4mPR+ZAcmPjoexCM2RfR/UDO1nnnXtcyA2mkFwbg", "signed_out_at": "2026-11-22T20:34:15.629+00:00", "email_verified": true}');
insert into "user_account" select * from jsonb_populate_record(null::"user_account", '{"name": "cleo", "email": "cleo@acme.example", "user_id": "cleo", "password_hash": "$scrypt$ln=15,r=8,p=3$PTzNTbfpgV2wtemmVxJfXw$xS7Ni0h4LGKQG5HJM8ML0WIWXD+d9eU2U2E9h7UBDSM", "signed_out_at": "2026-11-22T20:34:18.974+00:00", "email_verified": true}');
