/** The Store on PostgreSQL: what the engine reads and writes. */
import type { Change } from '../../../shared/domain/change.ts'
import type { Enforcement, Entitlement } from '../../../shared/domain/entitlement.ts'
import type { JournalId, JournalPosition } from '../../../shared/domain/journal.ts'
import type { JsonObject } from '../../../shared/domain/json.ts'
import type { Manifest } from '../../../shared/domain/manifest.ts'
import type { MembershipStatus, Tier } from '../../../shared/domain/membership.ts'
import { withModels } from '../../worker/worker.ts'
import { assertChanges, leaversIn, requireNothingWithheld, type Withheld } from '../changes.ts'
import type { AppliedWrite, EntitlementReading, JournalEntry, Snapshot, Store } from '../contract.ts'
import { tokenKeys } from '../token-origin.ts'
import type { Connection, Database } from './connection/database.ts'
import type { ServerEvent } from './connection/fence.ts'
import type { JournalTurns } from './connection/journal-turns.ts'
import type { SharedHolder } from './connection/shared-holder.ts'
import type { SoleHolder } from './connection/sole-holder.ts'
import { createJoinedWrite } from './joined-write.ts'
import { entriesInsert, raiseRevision } from './journal.ts'
import { appendEvents, claimsEvents, delegationEvents, entitlementEvents } from './outbox.ts'
import { reportingQueries } from './reporting-queries.ts'
import { readRows } from './rows.ts'
import { readOrganizations } from './tree/tree.ts'
import { readNames, readTuples } from './tuples.ts'
import { given, KnownPositions, readVector } from './vector.ts'
import { applyChanges, assertPreconditions } from './write.ts'

const ENTRIES = `
  select q.o, c.revision, c.write_id::text, c.change, c.actor, c.request_id, (extract(epoch from c.written_at) * 1000)::float8
  from unnest(${given(1, 'text[]')}, ${given(2, 'bigint[]')}, ${given(3, 'bigint[]')}) q(o, low, high), lateral (
    select * from change_log where organization_id = q.o and revision >= q.low and revision <= q.high and (revision > q.low or seq = 1) order by revision, seq offset 0) c
  limit ${given(4, 'bigint')}`
const ENTITLEMENTS = `
  select r.entitlement_version as version, r.entitlement_write_id::text as write_id, e.key, e.value, e.enforcement from revision r
  left join entitlement e on e.organization_id = r.organization_id and ($2::text[] is null or e.key = any($2))
  where r.organization_id = $1`

/** Returns no row when there is no membership, or an active one. */
const WITHHELD = `
  select exists (select 1 from stored_relationship where organization_id = $1 and subject = 'user:' || $2
      and (expires_at is null or expires_at > clock_timestamp())) as relationships,
    exists (select 1 from role_grant where organization_id = $1 and subject = 'user:' || $2) as roles
  from membership where organization_id = $1 and user_id = $2 and status <> 'active'`

/** Thrown to roll a write back that changes nothing, so that the journal keeps its position. */
class NothingChanged extends Error {
  readonly position: JournalPosition
  constructor(position: JournalPosition) {
    super('nothing changed')
    this.position = position
  }
}

type StoreOptions = {
  readonly close: () => Promise<void>
  readonly report: (event: ServerEvent) => void
  readonly schema?: string
  readonly holder?: SoleHolder | SharedHolder | null
}

/**
 * `turns`: the queue of this process's writers for each journal. `schema`: the quoted schema of the tables, for `writeWithin`, which
 * is absent without it.
 */
export function storeOver(database: Database, turns: JournalTurns, options: StoreOptions): Store {
  const { close, report, schema, holder = null } = options
  const positions = new KnownPositions((log, revision, known) => report({ kind: 'history', log, revision, known }))
  const snapshotOver = (connection: Connection): Snapshot => ({
    rows: (logs, keys) => readRows(connection, positions, { logs, keys }),
    names: (log, source, page) => readNames(connection, { log, source, ...page }),
  })
  return {
    ...reportingQueries(database),
    ...(schema === undefined ? {} : joinedWrites(database, schema, holder)),
    ...(holder === null ? {} : { leased: (logs, questions) => holder.vector(logs, questions) }),
    async vector(logs) {
      const reading = holder?.reading() ?? null
      const vector = await readVector(database, positions, logs)
      holder?.read(reading, vector.logs)
      return vector
    },
    entries: (ranges, entriesMax) => readEntries(database, ranges, entriesMax),
    rows: (logs, keys) => readRows(database, positions, { logs, keys }),
    snapshot: (use) =>
      database.within('begin isolation level repeatable read read only', (connection) => use(snapshotOver(connection))),
    write: (log, changes, options) =>
      turns.take([log], (sinceMs) => withModels(() => write(database, { log, changes, sinceMs, ...options }))),
    tuples: (organization, filter, page) => readTuples(database, { organization, filter, page }),
    tokenKeys: (token) => tokenKeys(database, token),
    entitlements: (organization, keys) => readEntitlements(database, organization, keys),
    async manifest(app) {
      const [row] = await database.query<{ document: Manifest; version: number }>(
        'select document, version from manifest where app = $1 and current',
        [app],
      )
      return row === undefined ? null : { ...row.document, version: row.version }
    },
    organizations: (filter, page) => readOrganizations(database, filter, page),
    async members(organization, { after, countMax }) {
      return database.query<{ user: string; role: Tier; status: MembershipStatus }>(
        'select user_id as "user", role, status from membership where organization_id = $1 and user_id > $2 order by user_id limit $3',
        [organization, after ?? '', countMax],
      )
    },
    close,
  }
}

function joinedWrites(
  database: Database,
  schema: string,
  holder: SoleHolder | SharedHolder | null,
): Pick<Store, 'writeWithin'> {
  const write = createJoinedWrite(database, schema, holder)
  return { writeWithin: (client, log, changes, options) => write(client, { log, changes, ...options }) }
}

async function write(
  database: Database,
  request: { log: JournalId; changes: readonly Change[]; sinceMs: number } & Parameters<Store['write']>[2],
): Promise<AppliedWrite> {
  const { log, changes, sinceMs, context, preconditions = [], keepsSuspension = false } = request
  assertChanges(log, changes)
  // Deleting an organization deletes all its rows, which may be millions of tuples.
  const deletes = changes.some((change) => change.kind === 'organization' && change.organization === null)
  const within = deletes ? database.lengthy : database.within
  try {
    const transact = async (sql: Connection): Promise<AppliedWrite> => {
      const { before, after: position } = await raiseRevision(sql, log, {
        entitlements: changes.some((c) => c.kind === 'entitlement' || c.kind === 'entitlements'),
      })
      await assertPreconditions(sql, log, preconditions)
      if (keepsSuspension) await assertNoAccessRestored(sql, log, changes)
      const effective = await applyChanges({ sql, log, context }, changes)
      if (effective.length === 0) throw new NothingChanged(before)
      const events = [
        ...entitlementEvents({ log, position, changes: effective }),
        ...delegationEvents({ log, changes: effective, context }),
        ...(await claimsEvents(sql, { log, changes: effective, context })),
      ]
      await appendEvents(sql, events, entriesInsert({ log, position, changes: effective, context }))
      return { position, changed: true, appliedCount: effective.length }
    }
    return await within('begin', transact, sinceMs)
  } catch (err) {
    if (err instanceof NothingChanged) return { position: err.position, changed: false, appliedCount: 0 }
    throw err
  }
}

/**
 * Throws PdpError `conflict` when a membership may not end: one that is not active may end only when no tuple or role of the person
 * would count again. The journal must be locked.
 */
async function assertNoAccessRestored(sql: Connection, log: JournalId, changes: readonly Change[]): Promise<void> {
  for (const user of leaversIn(changes)) {
    const [withheld] = await sql.query<Withheld>(WITHHELD, [log, user])
    if (withheld !== undefined) requireNothingWithheld(user, withheld)
  }
}

async function readEntries(
  database: Database,
  ranges: Parameters<Store['entries']>[0],
  entriesMax: number,
): Promise<readonly JournalEntry[]> {
  const values = [ranges.map((r) => r.log), ranges.map((r) => r.from), ranges.map((r) => r.to), entriesMax + 1]
  const entries = await database.prepared('entries', ENTRIES, values, (rows) =>
    (rows as readonly [string, number, string, Change, string, string, number][]).map(
      ([log, revision, writeId, change, actor, requestId, atMs]) => ({
        log,
        revision,
        writeId,
        change,
        actor,
        requestId,
        atMs,
      }),
    ),
  )
  const last = entries[entriesMax]
  if (last === undefined) return entries
  // The limit may have cut off a part of the last revision; a part of an atomic write must never be seen.
  return entries.filter((e) => e.log !== last.log || e.revision !== last.revision)
}

async function readEntitlements(
  connection: Pick<Connection, 'query'>,
  organization: string,
  keys: readonly string[] | 'all',
): Promise<EntitlementReading> {
  type Row = { version: number; write_id: string; key: string | null; value: JsonObject; enforcement: Enforcement }
  const rows = await connection.query<Row>(ENTITLEMENTS, [organization, keys === 'all' ? null : keys])
  const values = new Map<string, Entitlement>()
  for (const { key, value, enforcement } of rows) if (key !== null) values.set(key, { value, enforcement })
  return { version: rows[0]?.version ?? 0, writeId: rows[0]?.write_id ?? '', values }
}
