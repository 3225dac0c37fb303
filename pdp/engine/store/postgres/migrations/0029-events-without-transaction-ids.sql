-- The other side of 0028. After this statement, no event is stored without it.
alter table outbox_arrival
  alter column xid drop not null,
  alter column xid drop default,
  alter column txn set default to_hex((extract(epoch from now()) * 1000000)::bigint) || '-' || pg_backend_pid();

create function know_tenants() returns trigger language plpgsql as $$
begin
  perform from user_account where user_id = new.member for no key update;
  -- A statement of its own, so that it sees what was committed while this waited.
  new.payload := jsonb_set(new.payload, '{tenants}', to_jsonb(array(
    select organization_id from membership where user_id = new.member and status = 'active'
    union select jsonb_array_elements_text(coalesce(new.payload -> 'tenants', '[]')) collate "C" order by 1)));
  return new;
end
$$;
do $$
begin
  execute format('alter function know_tenants set search_path = %I, pg_temp', current_schema());
end
$$;
create trigger know_tenants before insert on outbox_arrival
  for each row when (new.member is not null) execute function know_tenants();

alter table outbox
  alter column txn set default to_hex((extract(epoch from now()) * 1000000)::bigint) || '-' || pg_backend_pid();

-- Those that have no number yet get their tenants by the rule of before, for the last time.
update outbox_arrival a set xid = null, payload = jsonb_set(payload, '{tenants}', to_jsonb(array(
  select m.organization_id from membership m
  where m.user_id = a.member and m.status = 'active' and not pg_visible_in_snapshot(a.xid, m.written_in)
  union select jsonb_array_elements_text(coalesce(payload -> 'tenants', '[]')) collate "C" order by 1)))
where member is not null;

create or replace function number_events() returns trigger language plpgsql as $$
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
