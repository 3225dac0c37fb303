-- Events arrive without a number, so that no writer waits for another one's commit. Whoever reads the outbox numbers those
-- that are committed. What one transaction saw committed before has a smaller position.
create table outbox_arrival (
  position bigint generated always as identity primary key,
  event_id text collate "C" not null,
  organization_id text collate "C",
  type text not null,
  payload jsonb not null,
  created_at timestamptz not null default now(),
  -- One name for all events of a transaction, which no other cause has.
  txn text not null default pg_current_xact_id()::text || '-' || to_hex((extract(epoch from now()) * 1000000)::bigint)
);

-- Under the lock of the row: one caller at a time numbers, without gaps. A PDP of the version before, which raises the row to
-- store numbered events itself, thereby numbers what arrived before them.
create function number_events() returns trigger language plpgsql as $$
declare
  moved bigint;
begin
  with taken as (
    delete from outbox_arrival where position in (select position from outbox_arrival order by position limit 5000)
    returning *),
  numbered as (
    insert into outbox (seq, event_id, organization_id, type, payload, created_at, txn)
    select old.revision + row_number() over (order by position), event_id, organization_id, type, payload, created_at, txn
    from taken returning 1)
  select count(*) into moved from numbered;
  new.revision := new.revision + moved;
  return new;
end
$$;
do $$
begin
  execute format('alter function number_events set search_path = %I, pg_temp', current_schema());
end
$$;
create trigger number_events before update on revision
  for each row when (new.organization_id = '#events') execute function number_events();
