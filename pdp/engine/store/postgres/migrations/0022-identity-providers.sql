-- OpenID providers of others, at which people may sign in.
create table identity_provider (
  provider_id text collate "C" primary key,
  issuer text collate "C" not null unique,
  document jsonb not null,
  secret_sealed text
);

-- Who somebody is at another issuer. Never found by an address.
create table foreign_identity (
  issuer text collate "C" not null,
  subject text collate "C" not null,
  user_id text collate "C" not null references user_account on delete cascade,
  email text,
  linked_at timestamptz not null default now(),
  primary key (issuer, subject)
);
create index foreign_identity_user on foreign_identity (user_id);
