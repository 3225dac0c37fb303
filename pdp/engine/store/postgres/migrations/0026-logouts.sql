-- Clients that are still to hear that a session of theirs ended (OpenID Connect Back-Channel Logout 1.0). Rows come in the
-- transaction that ends the session, and go when the client has answered.
create table logout_pending (
  logout_id bigint generated always as identity primary key,
  client_id text collate "C" not null references client on delete cascade,
  user_id text collate "C" not null,
  -- Of the session at this client, as its ID tokens name it.
  sid text collate "C" not null,
  ended_at timestamptz not null default now(),
  attempts_count integer not null default 0,
  -- While a process sends it, the end of its turn.
  next_attempt_at timestamptz not null default now(),
  unique (client_id, sid)
);
create index logout_pending_due on logout_pending (client_id, next_attempt_at);
