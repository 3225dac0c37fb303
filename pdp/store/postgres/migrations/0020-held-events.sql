-- How many events a stream holds that its receiver does not take: held_count of those after held_from, up to held_seq. The count
-- is of no use once the cursor is not at held_from any more.
alter table signal_stream
  -- When it was enabled again.
  add column enabled_at timestamptz,
  add column held_from bigint,
  add column held_seq bigint not null default 0,
  add column held_count integer not null default 0;
