/** The statements that find names probe their index once per name, however many rows each has. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openPostgres } from '../../../../../pdp/engine/store/postgres/postgres.ts'
import { NAMES } from '../../../../../pdp/engine/store/postgres/tuples.ts'
import { openTestDatabase } from '../../../../support/database.ts'
import { organization } from '../../../../support/tuples.ts'

type Plan = {
  'Node Type': string
  'Index Name'?: string
  'Actual Rows': number
  'Actual Loops': number
  'Rows Removed by Filter'?: number
  Plans?: readonly Plan[]
}
const nodes = (plan: Plan): readonly Plan[] => [plan, ...(plan.Plans ?? []).flatMap(nodes)]

describe('the statement for names', () => {
  let opened: Awaited<ReturnType<typeof openPostgres>>
  let drop: () => Promise<void>
  beforeAll(async () => {
    const database = await openTestDatabase()
    drop = database.drop
    opened = await openPostgres({ connectionString: database.connectionString, poolCountMax: 2 })
    const context = { actor: 'client:test', requestId: 'r' }
    await opened.store.write('#environment', [organization('acme'), organization('other')], { context })
    // 20 documents with 1,000 viewers each, in two organizations.
    await opened.sql.query(`insert into relationship (organization_id, object, relation, subject)
      select o, 'doc:' || d, 'viewer', 'user:' || u from unnest(array['acme', 'other']) o, generate_series(1, 20) d, generate_series(1, 1000) u`)
    await opened.sql.query(
      `insert into membership select 'acme', 'u' || u, 'member', 'active' from generate_series(1, 5000) u`,
    )
    await opened.sql.query(
      `insert into role_grant select 'acme', 'g' || u || r, null, 'r' || r, 'user:' || u from generate_series(1, 500) u, generate_series(1, 10) r`,
    )
    await opened.sql.query('analyze')
  })
  afterAll(() => opened.close().then(drop))

  test.each([
    ['objects', NAMES.objects, ['acme', 'doc:', 'doc;', 20], 'relationship_pkey', 20],
    ['subjects', NAMES.subjects, ['acme', 'user:', 'user;', 50], 'relationship_subject', 50],
    ['grantees', NAMES.grantees, ['acme', 'user:', 'user;', 50], 'role_grant', 50],
    ['members', NAMES.members, ['acme', '', 50], 'membership_pkey', 50],
  ] as const)('of %s reads one index entry per name', async (_, text, values, index, count) => {
    const [row] = await opened.sql.query<{ 'QUERY PLAN': readonly [{ Plan: Plan }] }>(
      `explain (analyze, timing off, format json) ${text}`,
      values,
    )
    const plan = row?.['QUERY PLAN'][0].Plan
    const all = plan === undefined ? [] : nodes(plan)
    const scans = all.filter((node) => node['Index Name'] !== undefined)
    expect(scans.length).toBeGreaterThan(0)
    expect(all.filter((node) => node['Node Type'] === 'Seq Scan' || node['Node Type'] === 'Sort')).toEqual([])
    for (const scan of scans) {
      expect(scan['Index Name']).toContain(index)
      expect(scan['Rows Removed by Filter'] ?? 0).toBe(0)
    }
    const read = scans.reduce((sum, scan) => sum + scan['Actual Rows'] * scan['Actual Loops'], 0)
    expect(read).toBeLessThanOrEqual(count)
  })
})
