-- The transmitter of Shared Signals (SSF 1.0): streams are cursors over the outbox.

-- One name for all events of a transaction, which no other cause has. It is null for events of before.
alter table outbox add column txn text;
alter table outbox alter column txn
  set default pg_current_xact_id()::text || '-' || to_hex((extract(epoch from now()) * 1000000)::bigint);

create table signal_stream (
  stream_id text collate "C" primary key,
  client_id text collate "C" not null references client on delete cascade,
  -- Of the token that created it. The stream carries events of this organization and those below; null: of all.
  organization_id text collate "C",
  -- Null: the receiver polls.
  endpoint_url text,
  authorization_sealed text,
  -- Null: the receiver did not say.
  events_requested text[],
  subject_format text not null check (subject_format in ('complex', 'iss_sub')),
  description text,
  status text not null check (status in ('enabled', 'paused', 'disabled')),
  status_reason text,
  created_at timestamptz not null default now(),
  -- Every event up to this number was delivered, is in signal_pending, or is none of the receiver's.
  cursor_seq bigint not null,
  -- Of the rows in signal_pending. While the stream is paused, those up to announced_number are still delivered.
  last_number bigint not null default 0,
  announced_number bigint,
  verified_at timestamptz,
  -- One process delivers at a time: who holds the lease, and until when.
  lease_id text collate "C",
  lease_until timestamptz,
  -- Since the last success.
  attempts_count integer not null default 0,
  failing_since timestamptz,
  next_attempt_at timestamptz,
  last_error text,
  last_error_at timestamptz,
  last_delivered_at timestamptz,
  dead_count bigint not null default 0,
  gap_count bigint not null default 0
);
create index signal_stream_client on signal_stream (client_id, stream_id);

-- Security event tokens that were tried or handed out, and are not acknowledged yet. A retry sends the same bytes.
create table signal_pending (
  stream_id text collate "C" not null references signal_stream on delete cascade,
  number bigint not null,
  -- Of the event in the outbox; null for an event about the stream.
  seq bigint,
  jti text collate "C" not null,
  kid text collate "C" not null,
  claims jsonb not null,
  token text not null,
  happened_at timestamptz not null,
  primary key (stream_id, number),
  unique (stream_id, jti)
);

-- Subjects about which a receiver wants no events.
create table signal_removed_subject (
  stream_id text collate "C" not null references signal_stream on delete cascade,
  subject_key text collate "C" not null,
  subject jsonb not null,
  primary key (stream_id, subject_key)
);
