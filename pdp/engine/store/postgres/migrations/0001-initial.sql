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
