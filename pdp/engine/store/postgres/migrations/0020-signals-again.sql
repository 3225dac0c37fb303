-- An event about a person is for the organizations of which the person is an active member. A membership that is committed while
-- the event's transaction is under way is invisible to it, so whoever numbers the event looks once more.
alter table membership add column written_in pg_snapshot default pg_current_snapshot();
alter table outbox_arrival
  -- The person whose organizations are to join the tenants in the payload; null: none.
  add column member text collate "C",
  add column xid xid8 not null default pg_current_xact_id();

-- A membership counts that could not see the event when it was written: the two overlapped. One that was written after the
-- event was committed does not.
create or replace function number_events() returns trigger language plpgsql as $$
declare
  moved bigint;
begin
  with taken as (
    delete from outbox_arrival where position in (select position from outbox_arrival order by position limit 5000)
    returning *),
  numbered as (
    insert into outbox (seq, event_id, organization_id, type, payload, created_at, txn)
    select old.revision + row_number() over (order by position), event_id, organization_id, type,
      case when member is null then payload else jsonb_set(payload, '{tenants}', to_jsonb(array(
        select m.organization_id from membership m
        where m.user_id = taken.member and m.status = 'active' and not pg_visible_in_snapshot(taken.xid, m.written_in)
        union select jsonb_array_elements_text(coalesce(payload -> 'tenants', '[]')) collate "C" order by 1))) end,
      created_at, txn
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

-- How many events a stream holds that its receiver does not take: held_count of those after held_from, up to held_seq. The count
-- is of no use once the cursor is not at held_from any more.
alter table signal_stream
  -- When it was enabled again.
  add column enabled_at timestamptz,
  add column held_from bigint,
  add column held_seq bigint not null default 0,
  add column held_count integer not null default 0;
