-- Security events of other issuers (SSF 1.0): the streams that they send us, and what they have sent.

create table received_stream (
  issuer text collate "C" primary key references trusted_issuer on delete cascade,
  -- The end of the URL to which the transmitter pushes.
  receiver_id text collate "C" not null unique,
  -- The Authorization field that it must push with.
  authorization_sealed text not null,
  -- A digest of the settings that the stream was made by.
  settings text collate "C",
  -- What the transmitter answered: stream_id, iss, aud and the URLs in use; null: there is no stream yet.
  stream jsonb,
  status text not null default 'enabled' check (status in ('enabled', 'paused', 'disabled')),
  made_at timestamptz not null default now(),
  -- When the latest SET came, and when the latest one that shows that the stream works.
  received_at timestamptz,
  heard_at timestamptz,
  -- Seconds without a sign of life after which the transmitter counts as silent.
  silent_after_s float8 not null default 180,
  error text,
  failed_at timestamptz,
  -- One PDP at a time makes the stream, polls it and asks for signs of life.
  lease_holder text,
  leased_until timestamptz
);

-- SETs that were taken in, so that one that is sent again has no effect again. `jti` is a digest.
create table received_set (
  issuer text collate "C" not null,
  jti text collate "C" not null,
  received_at timestamptz not null default now(),
  primary key (issuer, jti)
);
create index received_set_age on received_set (received_at);

-- What other issuers ended is kept longer than what ends our own tokens.
create index change_log_foreign_tokens on change_log (written_at)
  where organization_id = '#tokens' and starts_with(change ->> 'by', 'foreign_');
