-- What companies' directories bring over SCIM: users, each with an account, and groups, whose members are tuples.
create table provisioned (
  organization_id text collate "C" not null references organization,
  kind text collate "C" not null check (kind in ('User', 'Group')),
  id text collate "C" not null,
  name text not null,
  external_id text,
  document jsonb not null,
  -- Of a user: gone when the account is deleted, by whomever.
  user_id text collate "C" references user_account on delete cascade,
  version bigint not null default 1,
  created_at timestamptz not null default clock_timestamp(),
  changed_at timestamptz not null default clock_timestamp(),
  primary key (organization_id, kind, id)
);
create unique index provisioned_name on provisioned (organization_id, kind, lower(name));
create index provisioned_external on provisioned (organization_id, kind, external_id) where external_id is not null;
create index provisioned_user on provisioned (user_id) where user_id is not null;
