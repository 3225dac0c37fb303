/** Every reading statement probes the index that it was written for, whatever the tables' size and the planner's statistics. */
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { RowKey, Store } from '../../../../../pdp/engine/store/contract.ts'
import type { Sql } from '../../../../../pdp/engine/store/directory.ts'
import type { Connection, Database } from '../../../../../pdp/engine/store/postgres/connection/database.ts'
import { NO_JOURNAL_TURNS } from '../../../../../pdp/engine/store/postgres/connection/journal-turns.ts'
import { openPostgres } from '../../../../../pdp/engine/store/postgres/postgres.ts'
import { storeOver } from '../../../../../pdp/engine/store/postgres/store.ts'
import { ENVIRONMENT } from '../../../../../pdp/shared/domain/journal.ts'
import { openTestDatabase } from '../../../../support/database.ts'

type Statement = { readonly text: string; readonly values: readonly unknown[] }
/** One scan of a plan: `relation` by `index`, with what the index looks for. Without an index: the way of scanning. */
type Scan = { readonly relation: string; readonly index: string; readonly condition: string }
/** Every index that is probed, and the columns that it is probed with. `A or B`: either will do, as both hold all columns. */
type Expected = readonly (readonly [index: string, ...columns: string[]])[]

const SIZES = [1_000, 100_000]
const o = 'o1'
const SET: RowKey = { log: o, kind: 'set', object: 'doc:1', relation: 'viewer' }
const TUPLE: RowKey = { log: o, kind: 'tuple', object: 'doc:1', relation: 'viewer', subject: 'user:u1' }
const RELATIONSHIPS = ['relationship_pkey', 'organization_id', 'object', 'relation'] as const
const GRANTS = [
  'role_grant_organization_id_subject_app_role_key or role_grant_subject',
  'organization_id',
  'subject',
] as const
const BY_SUBJECT = ['relationship_subject', 'organization_id', 'subject', 'relation', 'object'] as const
const REVISION = ['revision_pkey', 'organization_id'] as const
// A set that turns out to be too wide is read again through an index of its usersets alone.
const USERSETS = ['relationship_userset', 'organization_id', 'object', 'relation'] as const
// Tuples with a condition are in a table of their own.
const CONDITIONAL = [
  ['conditional_relationship_pkey', 'organization_id', 'object', 'relation'],
  ['conditional_relationship_userset', 'organization_id', 'object', 'relation'],
] as const

const KEY = ['organization_id', 'object', 'relation', 'subject'] as const
const ONE_TUPLE = ['relationship_pkey or relationship_subject', ...KEY] as const
const ONE_CONDITIONAL_TUPLE = ['conditional_relationship_pkey or conditional_relationship_subject', ...KEY] as const

const READS: readonly (readonly [name: string, read: (store: Store) => Promise<unknown>, expected: Expected])[] = [
  ['standings', (store) => store.vector([o, ENVIRONMENT]), [REVISION]],
  [
    'log entries',
    (store) => store.entries([{ log: o, from: 1, to: 9 }], 1_000),
    [['change_log_pkey', 'organization_id', 'revision']],
  ],
  ['the subjects of a set', (store) => store.rows([o], [SET]), [REVISION, RELATIONSHIPS, USERSETS, ...CONDITIONAL]],
  [
    'the sets of a chain',
    (store) => store.rows([o], [{ ...SET, chain: true }]),
    [REVISION, RELATIONSHIPS, USERSETS, ...CONDITIONAL],
  ],
  ['one tuple', (store) => store.rows([o], [TUPLE]), [REVISION, ONE_TUPLE, ONE_CONDITIONAL_TUPLE]],
  [
    'the groups above a subject',
    (store) => store.rows([o], [{ log: o, kind: 'groups', subject: 'user:u1' }]),
    [REVISION, BY_SUBJECT],
  ],
  [
    'the role grants of a subject',
    (store) => store.rows([o], [{ log: o, kind: 'grants', subject: 'user:u1' }]),
    [REVISION, BY_SUBJECT, GRANTS],
  ],
  [
    'a membership',
    (store) => store.rows([o], [{ log: o, kind: 'membership', user: 'u1' }]),
    [REVISION, ['membership_pkey or membership_user', 'organization_id', 'user_id']],
  ],
  [
    'an organization and its ancestors',
    (store) => store.rows([o], [{ log: ENVIRONMENT, kind: 'organization', id: o }]),
    [REVISION, ['organization_pkey', 'organization_id']],
  ],
  [
    'entitlements',
    (store) => store.entitlements(o, ['feature.a']),
    [REVISION, ['entitlement_pkey', 'organization_id']],
  ],
  [
    'stored tuples in pages',
    (store) => store.tuples(o, {}, { after: null, countMax: 10 }),
    [
      ['relationship_pkey', 'organization_id'],
      ['conditional_relationship_pkey', 'organization_id'],
    ],
  ],
]

/** The store's own sessions: what they are set to decides about plans. */
let sql: Sql
/** Fills tables for as long as a busy machine needs, which the store's sessions would not wait for. */
let filler: pg.Client
let close: () => Promise<void>
const PATIENT = { decisionMs: 60_000, statementMs: 60_000, transactionMs: 60_000, lengthyMs: 60_000 }

beforeAll(async () => {
  const database = await openTestDatabase()
  const opened = await openPostgres({ connectionString: database.connectionString, timeLimits: PATIENT })
  sql = opened.sql
  filler = new pg.Client({ connectionString: database.connectionString })
  await filler.connect()
  close = async () => {
    await filler.end()
    await opened.close()
    await database.drop()
  }
  // The statistics are those that a test asks for, and never the background's.
  for (const table of TABLES) await filler.query(`alter table ${table} set (autovacuum_enabled = off)`)
})
afterAll(() => close())

const TABLES = [
  'revision',
  'organization',
  'change_log',
  'relationship',
  'conditional_relationship',
  'membership',
  'role_grant',
  'entitlement',
]

/** A tenth of the rows are organizations of one row of each kind, the rest belongs to `o1`. */
async function fill(rows: number): Promise<void> {
  await filler.query(`truncate ${TABLES.join(', ')} cascade`)
  await filler.query(`analyze ${TABLES.join(', ')}`)
  const others = `select 'o' || n as o, n from generate_series(1, ${rows / 10}) n`
  const own = `select 'o1' as o, n from generate_series(${rows / 10 + 1}, ${rows}) n`
  const all = `(${others} union all ${own}) q`
  const inserts = [
    `revision (organization_id, revision, write_id) select o, 9, 1 from (${others}) q`,
    `organization (organization_id, name) select o, o from (${others}) q`,
    `change_log (organization_id, revision, seq, write_id, change, actor, request_id) select o, n, 1, 1, '{}', '', '' from ${all}`,
    `relationship (organization_id, object, relation, subject)
      select o, case n % 3 when 0 then 'group:g' || n else 'doc:' || n end, case n % 3 when 0 then 'member' else 'viewer' end, 'user:u' || n % 50 from ${all}`,
    `conditional_relationship (organization_id, object, relation, subject, condition, context)
      select o, 'memo:' || n, 'viewer', 'user:u' || n % 50, 'c', '{}' from ${all}`,
    `membership (organization_id, user_id, role, status) select o, 'u' || n, 'member', 'active' from ${all}`,
    `role_grant (organization_id, grant_id, role, subject) select o, 'g' || n, 'r', 'user:u' || n from ${all}`,
    `entitlement (organization_id, key, value, enforcement) select o, 'feature.' || n, '{}', 'DecisionApi' from ${all}`,
  ]
  for (const insert of inserts) await filler.query(`insert into ${insert}`)
}

/** The very statements that a read sends, without an answer. */
async function statementsOf(read: (store: Store) => Promise<unknown>): Promise<readonly Statement[]> {
  const sent: Statement[] = []
  const note = async (text: string, values: readonly unknown[] = []): Promise<readonly never[]> => {
    sent.push({ text, values })
    return []
  }
  const connection: Connection = {
    query: note,
    prepared: async (_, text, values, read) => read(await note(text, values), () => undefined),
  }
  const transaction = { ...connection, arrived: () => undefined }
  const recording: Database = {
    ...connection,
    within: (_, work) => work(transaction),
    lengthy: (_, work) => work(transaction),
    transaction: (work) => work(transaction),
  }
  await read(storeOver(recording, NO_JOURNAL_TURNS, { close: async () => {}, report: () => {} })).catch(() => undefined) // no answer is no good answer
  expect(sent).not.toEqual([])
  return sent
}

const literal = (value: unknown): string => {
  if (value === null) return 'null'
  // As text, which takes any type: an array of nothing but nulls has none.
  if (Array.isArray(value)) return `'{${value.map((item) => (item === null ? 'null' : `"${item}"`))}}'`
  return typeof value === 'number' ? `${value}` : `'${String(value)}'`
}

type PlanNode = {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Index Name'?: string
  readonly 'Index Cond'?: string
  readonly Plans?: readonly PlanNode[]
}

/** In the store's own session, as a plan for these values or as the one for all values that the server settles on. */
async function scansOf({ text, values }: Statement, mode: 'custom' | 'generic'): Promise<readonly Scan[]> {
  return sql.transaction(async (session) => {
    await session.query(`set local plan_cache_mode = force_${mode}_plan`)
    await session.query(`prepare explained as ${text}`)
    const words = values.length === 0 ? '' : `(${values.map(literal)})`
    const [row] = await session.query<{ 'QUERY PLAN': [{ Plan: PlanNode }] }>(
      `explain (format json) execute explained${words}`,
    )
    await session.query('deallocate explained')
    return row === undefined ? [] : scansIn(row['QUERY PLAN'][0].Plan)
  })
}

function scansIn(node: PlanNode): readonly Scan[] {
  const below = node.Plans ?? []
  const relation = node['Relation Name']
  if (relation === undefined) return below.flatMap(scansIn)
  // A bitmap names its index one node further down.
  const probe = node['Node Type'] === 'Bitmap Heap Scan' ? below[0] : node
  const index = probe?.['Index Name'] ?? node['Node Type']
  const others = probe === node ? below.flatMap(scansIn) : []
  return [...others, { relation, index, condition: probe?.['Index Cond'] ?? '' }]
}

async function expectPlans(read: (store: Store) => Promise<unknown>, expected: Expected): Promise<void> {
  for (const statement of await statementsOf(read)) {
    for (const mode of ['custom', 'generic'] as const) {
      const probed = new Set<string>()
      for (const { index, condition } of await scansOf(statement, mode)) {
        const [name = `none of ours (${mode})`, ...columns] =
          expected.find(([n]) => n.split(' or ').includes(index)) ?? []
        expect(name.split(' or ')).toContain(index)
        for (const column of columns) expect(condition, index).toContain(column)
        probed.add(name)
      }
      expect(probed).toEqual(new Set(expected.map(([name]) => name)))
    }
  }
}

describe('with tables that were always empty', () => {
  // The plan that is settled on now is kept while they fill.
  test.each(READS)('%s: through the index made for them', (_, read, expected) => expectPlans(read, expected))
})

describe.each(SIZES)('with %i rows', (rows) => {
  beforeAll(() => fill(rows), 300_000)
  const analyze = () => filler.query(`analyze ${TABLES.join(', ')}`)

  describe('and statistics from when the tables were empty', () => {
    test.each(READS)('%s: through the index made for them', (_, read, expected) => expectPlans(read, expected))
  })
  describe('and statistics of now', () => {
    beforeAll(async () => void (await analyze()), 300_000)
    test.each(READS)('%s: through the index made for them', (_, read, expected) => expectPlans(read, expected))
  })
})
