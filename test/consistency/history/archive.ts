/**
 * What the database itself remembers of a run, by triggers: every log entry, trimmed or not, and the exact order in which
 * writes became visible. A deferred trigger runs inside the commit and holds a lock until the transaction is visible to
 * others, so its ticket numbers commits in the order of visibility.
 */
import type pg from 'pg'
import type { Change } from '../../../pdp/shared/domain/change.ts'
import type { JournalId } from '../../../pdp/shared/domain/journal.ts'

/** One revision of one log. */
export type Committed = {
  readonly log: JournalId
  readonly revision: number
  readonly writeId: string
  /** Of more than one where entries arrived without a revision. */
  readonly requestIds: readonly string[]
  readonly changes: readonly Change[]
  /** Order of visibility; revisions of one transaction share it. */
  readonly ticket: number
  /** The database's clock just before the commit. */
  readonly committingMs: number
}

/** `pauseMsMax`: a third of the writes waits up to this long, locks held, before it commits. */
export const ARCHIVE = `
  create sequence history_ticket;
  create table history_setting (pause_ms_max float8 not null);
  insert into history_setting values (0);
  create table history_entry (log text, revision bigint, seq int, write_id bigint, change jsonb, request_id text);
  create table history_commit (ticket bigint, log text, revision bigint, at timestamptz);
  create function history_keep() returns trigger language plpgsql as $$ begin
    insert into history_entry values (new.organization_id, new.revision, new.seq, new.write_id, new.change, new.request_id);
    if new.seq = 1 and random() < 0.33 then perform pg_sleep(random() * pause_ms_max / 1000) from history_setting; end if;
    return null;
  end $$;
  create function history_order() returns trigger language plpgsql as $$ begin
    perform pg_advisory_xact_lock(4711);
    insert into history_commit values (nextval('history_ticket'), new.organization_id, new.revision, clock_timestamp());
    return null;
  end $$;
  create trigger history_keep after insert on change_log for each row execute function history_keep();
  create constraint trigger history_order after insert on change_log deferrable initially deferred
    for each row when (new.seq = 1) execute function history_order();`

/** Keeps only the last few revisions of every log, as an operator who trims far too eagerly would. */
export const TRIM = `
  delete from change_log c using revision r where r.organization_id = c.organization_id and c.revision < r.revision - $1
    and c.organization_id <> '#tokens'`

export async function readArchive(database: pg.Pool): Promise<readonly Committed[]> {
  type Row = Omit<Committed, 'changes' | 'requestIds' | 'writeId'> & {
    write_id: string
    request_ids: string[]
    changes: Change[]
    transaction: string
  }
  // Tickets of one transaction follow each other under the lock; they are made one, since they become visible together.
  const { rows } = await database.query<Row>(`
    select c.log, c.revision::float8 as revision, min(c.ticket) over (partition by c.xmin::text)::float8 as ticket,
      (extract(epoch from c.at) * 1000)::float8 as "committingMs", e.write_id, e.request_ids, e.changes
    from history_commit c join (
      select log, revision, min(write_id)::text as write_id, 
        array_agg(distinct request_id) as request_ids, json_agg(change order by seq) as changes
      from history_entry group by log, revision) e using (log, revision)
    order by c.ticket`)
  return rows.map(({ log, revision, write_id, request_ids, changes, ticket, committingMs }) => ({
    log,
    revision,
    writeId: write_id,
    requestIds: request_ids,
    changes,
    ticket,
    committingMs,
  }))
}

/** What the tables hold, by log, as text that can be compared. */
export async function readTables(database: pg.Pool): Promise<ReadonlyMap<JournalId, readonly string[]>> {
  const { rows } = await database.query<{ log: string; item: string }>(`
    select organization_id as log, 'tuple ' || object || '#' || relation || '@' || subject || ' ' ||
      coalesce(round(extract(epoch from expires_at) * 1000)::text, 'never') ||
      coalesce(' ' || condition || ' ' || replace(context::text, ' ', ''), '') as item from stored_relationship
    union all select organization_id, 'membership ' || user_id || ' ' || role || ' ' || status from membership
    union all select organization_id, 'grant ' || grant_id || ' ' || coalesce(app, '') || ' ' || role || ' ' || subject from role_grant
    union all select organization_id, 'gate ' || key || ' ' || (value ->> 'enabled') from entitlement
    union all select '#environment', 'organization ' || organization_id || ' ' || coalesce(parent_id, '') from organization
    union all select '#environment', 'role ' || key || ' ' || array_to_string(permissions, ',') from organization_role
    union all select '#environment', 'manifest ' || app || ' ' || version || ' ' || md5(coalesce(document ->> 'model', '')) || ' ' ||
      coalesce(document -> 'roles' -> 'clerk' -> 'permissions', '[]')::text from manifest where current`)
  const byJournal = Map.groupBy(rows, (row) => row.log)
  return new Map([...byJournal].map(([log, items]) => [log, items.map((i) => i.item).sort()]))
}
