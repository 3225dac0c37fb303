-- Tries of passwords and codes, counted by all nodes together. `key` says whose and from where, as a digest.
create table attempt (
  key text collate "C" primary key,
  tries integer not null,
  ends_at timestamptz not null
);
create index attempt_end on attempt (ends_at);
