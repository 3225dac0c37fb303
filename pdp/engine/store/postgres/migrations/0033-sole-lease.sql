-- A process that writes alone may answer from memory while the row has its id. Whoever else raises a journal waits at its commit
-- until such answers are over, whatever version or program it is. The trigger is off until a process that has the setting turns
-- it on. It is deferred: a transaction that is rolled back waits for nothing, and one that waits has all its other locks.
create table sole_lease (
  singleton boolean primary key default true check (singleton),
  id text collate "C",
  renewed_at timestamptz not null default now()
) with (fillfactor = 50);
insert into sole_lease default values;

create function hold_back() returns trigger language plpgsql security definer as $$
begin
  -- No question depends on the numbers of events.
  if tg_op <> 'DELETE' and new.organization_id = '#events' then
    return null;
  end if;
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'a transaction that writes to Portcullis must be READ COMMITTED where a PDP answers from memory'
      using errcode = 'feature_not_supported';
  end if;
  -- What a lease covers must not be lost in a crash.
  if current_setting('synchronous_commit') in ('off', 'local') then
    perform set_config('synchronous_commit', 'on', true);
  end if;
  -- A lease begins only while no transaction has this lock, so that the next statement sees each that has begun.
  perform pg_advisory_xact_lock_shared(1887334514, 'sole_lease'::regclass::oid::int);
  update sole_lease set id = null where id <> coalesce(current_setting('portcullis.under', true), '');
  if found then
    -- 2.5 s in pieces: a clock that is set forward shortens one of them.
    perform pg_sleep(0.05) from generate_series(1, 50);
  end if;
  return null;
end
$$;
do $$
begin
  execute format('alter function hold_back set search_path = %I, pg_temp', current_schema());
end
$$;
create constraint trigger hold_back after insert or update or delete on revision
  deferrable initially deferred for each row execute function hold_back();
alter table revision disable trigger hold_back;
