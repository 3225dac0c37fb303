-- Entries of #tokens and #directory arrive without a revision, so that no writer holds the log while it works and commits. Then
-- one transaction gives revisions to all that are committed, and only then are their writers answered.
create table log_arrival (
  position bigint generated always as identity primary key,
  organization_id text collate "C" not null check (organization_id in ('#tokens', '#directory')),
  change jsonb not null,
  actor text not null,
  request_id text not null
);
create index log_arrival_log on log_arrival (organization_id, position);

-- Under the lock of the row, whoever raises it: a PDP of the version before, too, gives revisions to what arrived before its own
-- entry. A revision has at most 500 entries, so that every cache can read it.
create function number_arrivals() returns trigger language plpgsql as $$
declare
  newest record;
begin
  with taken as (
    delete from log_arrival where position in (
      select position from log_arrival where organization_id = new.organization_id order by position limit 5000)
    returning *),
  placed as (select *, row_number() over (order by position) - 1 as place from taken),
  pieces as (
    select p.place / 500 as piece, ('x' || md5(gen_random_uuid()::text))::bit(64)::bigint as write_id
    from placed p where p.place % 500 = 0),
  numbered as (
    insert into change_log (organization_id, revision, seq, write_id, change, actor, request_id)
    select p.organization_id, old.revision + 1 + n.piece, p.place % 500 + 1, n.write_id, p.change, p.actor, p.request_id
    from placed p join pieces n on n.piece = p.place / 500
    returning revision, write_id)
  select n.revision, n.write_id into newest from numbered n order by n.revision desc limit 1;
  if new.revision <> old.revision then
    -- The entry of whoever raises the row comes after them.
    new.revision := new.revision + coalesce(newest.revision - old.revision, 0);
    return new;
  end if;
  if newest.revision is null then
    return null;
  end if;
  new.revision := newest.revision;
  new.write_id := newest.write_id;
  return new;
end
$$;
do $$
begin
  execute format('alter function number_arrivals set search_path = %I, pg_temp', current_schema());
end
$$;
create trigger number_arrivals before update on revision
  for each row when (new.organization_id in ('#tokens', '#directory')) execute function number_arrivals();
