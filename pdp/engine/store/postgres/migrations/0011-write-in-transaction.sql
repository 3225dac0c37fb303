-- A write of relationships inside a transaction of the application's own. It is one statement, so that nothing of the
-- application can come between its parts, neither another statement nor the end of the transaction.
create function write_relationships(
  own_xid text, log text, conditions jsonb, changes jsonb, new_write_id bigint, new_actor text, new_request text
) returns table (outcome text, detail text, revision bigint, write_id text, entitlement_version bigint, entitlement_write_id text)
language plpgsql
-- As for the PDP's own writes (postgres.ts); in effect during this statement alone.
set lock_timeout = '4s'
as $$
#variable_conflict use_column
declare
  at record;
  failing record;
  effective jsonb;
begin
  if pg_current_xact_id()::text <> own_xid then
    raise exception 'the client is not in a transaction' using errcode = 'no_active_sql_transaction';
  end if;
  -- Until the transaction ends: other writes of the log wait for it, and what it commits must last.
  if current_setting('idle_in_transaction_session_timeout')::interval not between interval '1 ms' and interval '10 s' then
    perform set_config('idle_in_transaction_session_timeout', '10s', true);
  end if;
  if current_setting('synchronous_commit') in ('off', 'local') then
    perform set_config('synchronous_commit', 'on', true);
  end if;

  -- A writer that waited here sees what the writer before committed: each later statement has a younger snapshot.
  select r.* into at from revision r where r.organization_id = log and not r.closed for update;
  if not found then
    return query select 'organization_unknown', 'there is no organization ' || log, 0::bigint, '', 0::bigint, '';
    return;
  end if;
  select c.condition ->> 'name' as name, (c.condition ->> 'exists')::boolean as expected into failing
    from jsonb_array_elements(conditions) with ordinality c(condition, place)
    where (c.condition ->> 'exists')::boolean <> exists (
      select from stored_relationship r where r.organization_id = log and r.object = c.condition ->> 'object'
        and r.relation = c.condition ->> 'relation' and r.subject = c.condition ->> 'subject'
        and (r.expires_at is null or r.expires_at > clock_timestamp()))
    order by c.place limit 1;
  if found then
    return query select 'precondition_failed',
      failing.name || case when failing.expected then ' does not exist' else ' exists' end, 0::bigint, '', 0::bigint, '';
    return;
  end if;

  with asked as (
    select c.change, c.place, c.change ->> 'op' as op, c.change #>> '{tuple,object}' as object,
      c.change #>> '{tuple,relation}' as relation, c.change #>> '{tuple,subject}' as subject,
      to_timestamp((c.change #>> '{tuple,expiresAtMs}')::float8 / 1000.0) as expires_at,
      c.change #>> '{tuple,condition,name}' as condition, c.change #> '{tuple,condition,context}' as context
    from jsonb_array_elements(changes) with ordinality c(change, place)),
  -- A tuple is in one of the two tables only: what is written into one leaves the other.
  deleted as (
    delete from relationship r using asked a where (a.op = 'delete' or a.condition is not null) and r.organization_id = log
      and r.object = a.object and r.relation = a.relation and r.subject = a.subject
    returning r.object, r.relation, r.subject),
  released as (
    delete from conditional_relationship r using asked a where (a.op = 'delete' or a.condition is null)
      and r.organization_id = log and r.object = a.object and r.relation = a.relation and r.subject = a.subject
    returning r.object, r.relation, r.subject),
  written as (
    insert into relationship as r (organization_id, object, relation, subject, expires_at)
    select log, a.object, a.relation, a.subject, a.expires_at from asked a where a.op = 'write' and a.condition is null
    on conflict (organization_id, object, relation, subject) do update set expires_at = excluded.expires_at
      where r.expires_at is distinct from excluded.expires_at
    returning r.object, r.relation, r.subject),
  conditional as (
    insert into conditional_relationship as r (organization_id, object, relation, subject, expires_at, condition, context)
    select log, a.object, a.relation, a.subject, a.expires_at, a.condition, coalesce(a.context, '{}')
    from asked a where a.op = 'write' and a.condition is not null
    on conflict (organization_id, object, relation, subject) do update
      set expires_at = excluded.expires_at, condition = excluded.condition, context = excluded.context
      where (r.expires_at, r.condition, r.context) is distinct from (excluded.expires_at, excluded.condition, excluded.context)
    returning r.object, r.relation, r.subject)
  select jsonb_agg(a.change order by a.place) into effective
    from asked a join (
      select * from deleted union select * from released union select * from written union select * from conditional
    ) took using (object, relation, subject);
  if effective is null then
    return query select 'unchanged', '', at.revision, at.write_id::text, at.entitlement_version, at.entitlement_write_id::text;
    return;
  end if;
  update revision r set revision = at.revision + 1, write_id = new_write_id where r.organization_id = log;
  insert into change_log (organization_id, revision, seq, write_id, change, actor, request_id)
    select log, at.revision + 1, c.place, new_write_id, c.change, new_actor, new_request
    from jsonb_array_elements(effective) with ordinality c(change, place);
  return query select 'changed', '', at.revision + 1, new_write_id::text, at.entitlement_version, at.entitlement_write_id::text;
end
$$;

-- A session of an application may find other tables under these names, also temporary ones. An application whose role is
-- not the owner's must be given the right to execute this.
do $$
begin
  execute format('alter function write_relationships set search_path = %I, pg_temp', current_schema());
  revoke all on function write_relationships from public;
end
$$;
