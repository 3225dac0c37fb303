-- What people do for themselves: by mail, and with codes for who has lost the authenticator.

-- Tokens in mails, as digests. A row is deleted by its use.
create table mailed_token (
  digest text collate "C" primary key,
  kind text not null check (kind in ('reset', 'verification', 'invitation')),
  -- Whose password or address it is; null for an invitation.
  user_id text collate "C" references user_account on delete cascade,
  email text not null,
  -- Digest of a cookie of the browser that asked; null: any browser.
  browser text collate "C",
  -- Of an invitation.
  invitation_id text collate "C" unique,
  organization_id text collate "C" references organization on delete cascade,
  role text,
  invited_by text,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null
);
create index mailed_token_user on mailed_token (user_id) where user_id is not null;
create index mailed_token_organization on mailed_token (organization_id) where organization_id is not null;
create index mailed_token_expiry on mailed_token (expires_at);

-- Each is good for one sign-in in place of a code of the authenticator app.
create table recovery_code (
  user_id text collate "C" not null references authenticator on delete cascade,
  digest text collate "C" not null,
  primary key (user_id, digest)
);
