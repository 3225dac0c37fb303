-- Several processes may answer from memory while each has a row here. Whoever raises a journal, whatever version or program it is,
-- notes an intent at once, and waits at its commit until each process that is interested has renewed its row since, which gives up
-- what the intent concerns, or until such answers are over. The triggers are off until a process that has the setting turns them on.
create table lease_holder (
  id text collate "C" primary key,
  stamp bigint not null default 0,
  -- One bit for each bucket of journals.
  interests bytea not null check (length(interests) = 128),
  seen bigint not null,
  renewed_at timestamptz not null default clock_timestamp()
) with (fillfactor = 50);
create sequence lease_turn;
-- The timeline of the primary whose rows are known to be complete.
create table lease_settled (
  singleton boolean primary key default true check (singleton),
  timeline text collate "C"
);
insert into lease_settled default values;

create function lease_timeline() returns text language sql volatile as $$
  select case when current_setting('in_hot_standby') = 'off' then left(pg_walfile_name(pg_current_wal_lsn()), 8) end
$$;
create function lease_bucket(log text) returns int language sql immutable as $$
  select (get_byte(sha256(convert_to(log, 'UTF8')), 0) * 256 + get_byte(sha256(convert_to(log, 'UTF8')), 1)) & 1023
$$;
-- The second number of an intent's lock has the bucket, and the table, since another schema may hold other journals.
create function lease_space() returns bigint language sql stable as $$
  select 'lease_holder'::regclass::oid::bigint & 2097151
$$;

-- Null unless all are on. It is another after they were off for a while.
create function lease_fence() returns text language sql stable as $$
  select case when count(*) = 2 then string_agg(xmin::text, ' ' order by tgname) end from pg_trigger
  where tgrelid = 'revision'::regclass and tgenabled = 'A' and tgname in ('note_intent', 'await_leases')
$$;

create function note_intent() returns trigger language plpgsql security definer as $$
begin
  -- No question depends on the numbers of events.
  if tg_op <> 'DELETE' and new.organization_id = '#events' then
    return new;
  end if;
  perform pg_advisory_xact_lock_shared(1887334516, (lease_space() << 10 | lease_bucket(log))::int)
    from unnest(array[old.organization_id, new.organization_id]) log where log is not null;
  -- A renewal with a later turn has looked at the locks later.
  perform set_config('portcullis.turn', nextval('lease_turn')::text, true);
  perform set_config('portcullis.waited', '0', true);
  return coalesce(new, old);
end
$$;

create function await_leases() returns trigger language plpgsql security definer as $$
declare
  turn bigint := coalesce(nullif(current_setting('portcullis.turn', true), '')::bigint, 9223372036854775807);
  primary_timeline text := lease_timeline();
  former int;
  latter int;
  settled boolean;
  waited int := coalesce(nullif(current_setting('portcullis.waited', true), '')::int, 0);
begin
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
  former := lease_bucket(coalesce(old.organization_id, new.organization_id));
  latter := lease_bucket(coalesce(new.organization_id, old.organization_id));
  settled := (select timeline is not distinct from primary_timeline from lease_settled);
  -- 2.5 s in pieces: a clock that is set forward shortens one of them. A transaction waits no longer, however many it waits for.
  while waited < 111 loop
    exit when settled and not exists (
      select from lease_holder where seen < turn and (get_bit(interests, former) = 1 or get_bit(interests, latter) = 1));
    perform pg_sleep(case when waited < 50 then 0.002 else 0.04 end);
    waited := waited + 1;
  end loop;
  perform set_config('portcullis.waited', waited::text, true);
  if waited < 111 then
    return null;
  end if;
  -- Who did not answer has nothing left to answer from. The next writers need not wait for it.
  delete from lease_holder where id in (
    select id from lease_holder where seen < turn and (get_bit(interests, former) = 1 or get_bit(interests, latter) = 1)
    order by id for update skip locked);
  if not settled then
    update lease_settled set timeline = primary_timeline where timeline is distinct from primary_timeline;
  end if;
  return null;
end
$$;

-- Each statement sees what was committed before it begins, so their order matters: an interest that counts is older than the look
-- at the intents, which is older than the positions. Null: the row is gone, is being struck off, or has a later renewal.
create function renew_lease(me text, my_stamp bigint, my_interests bytea, reads text[], durable boolean, poke boolean)
  returns json language plpgsql volatile as $$
declare
  before bytea;
  turn bigint;
  intents json;
  answer json;
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'a lease is renewed in READ COMMITTED' using errcode = 'feature_not_supported';
  end if;
  if not durable then
    perform set_config('synchronous_commit', 'off', true);
  end if;
  select interests into before from lease_holder where id = me and stamp < my_stamp for update skip locked;
  if not found then
    return null;
  end if;
  turn := nextval('lease_turn');
  intents := (select coalesce(json_agg(distinct objid::bigint & 1023), '[]') from pg_locks
    where locktype = 'advisory' and classid = 1887334516 and objsubid = 2 and objid::bigint >> 10 = lease_space()
      and database = (select oid from pg_database where datname = current_database()));
  answer := (select json_build_object(
    'interests', encode(before, 'hex'),
    'intents', intents,
    'positions', (select coalesce(json_agg(json_build_array(organization_id, revision, write_id::text, entitlement_version,
      entitlement_write_id::text)), '[]') from revision where organization_id = any(reads)),
    'clockMs', extract(epoch from clock_timestamp()) * 1000,
    'timeline', lease_timeline(),
    'fence', lease_fence()));
  update lease_holder set stamp = my_stamp, interests = my_interests, seen = turn, renewed_at = clock_timestamp() where id = me;
  if poke then
    perform pg_notify('portcullis_lease', me);
  end if;
  return answer;
end
$$;
do $$
declare
  name text;
begin
  foreach name in array array['note_intent', 'await_leases'] loop
    execute format('alter function %I set search_path = %I, pg_temp', name, current_schema());
  end loop;
end
$$;
-- Before the change, so that a transaction whose constraints are immediate notes its intent before it waits.
create trigger note_intent before insert or update or delete on revision for each row execute function note_intent();
create constraint trigger await_leases after insert or update or delete on revision
  deferrable initially deferred for each row execute function await_leases();
alter table revision disable trigger note_intent;
alter table revision disable trigger await_leases;
