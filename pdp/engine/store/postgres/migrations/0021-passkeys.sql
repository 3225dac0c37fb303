-- Passkeys (WebAuthn): as a second factor after the password, or instead of it.
create table passkey (
  credential_id text collate "C" primary key,
  user_id text collate "C" not null references user_account on delete cascade,
  name text not null,
  -- A COSE key, in base64url.
  public_key text not null,
  -- Of the authenticator; 0 where it does not count. Never goes back.
  counter bigint not null,
  -- Kept by a service that copies it to other devices.
  synced boolean not null,
  transports text[] not null,
  created_at timestamptz not null default now(),
  last_used_at timestamptz
);
create index passkey_user on passkey (user_id);

-- The random name under which authenticators keep a person's passkeys. It stays when they are removed.
create table passkey_owner (
  user_id text collate "C" primary key references user_account on delete cascade,
  handle text collate "C" not null unique
);

-- What a passkey has to sign next, as digests. A row is deleted by its use.
create table passkey_challenge (
  digest text collate "C" primary key,
  -- Browser, page and purpose.
  bound_to text collate "C" not null,
  expires_at timestamptz not null
);
create index passkey_challenge_expiry on passkey_challenge (expires_at);

-- In place of whatever second factor the person has.
alter table recovery_code drop constraint recovery_code_user_id_fkey;
alter table recovery_code add foreign key (user_id) references user_account on delete cascade;
