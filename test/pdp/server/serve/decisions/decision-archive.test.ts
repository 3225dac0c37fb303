/** Decisions of several PDPs, kept in one PostgreSQL: denials whole, the rest as counts; bounded, and gone after their time. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { openPostgres } from '../../../../../pdp/engine/store/postgres/postgres.ts'
import {
  createDecisionArchive,
  type DecisionArchive,
} from '../../../../../pdp/server/serve/decisions/decision-archive.ts'
import type { Observed } from '../../../../../pdp/server/serve/decisions/observed-answers.ts'
import { createLog } from '../../../../../pdp/shared/process/log.ts'
import { openTestDatabase } from '../../../../support/database.ts'

let opened: Awaited<ReturnType<typeof openPostgres>>
let database: Awaited<ReturnType<typeof openTestDatabase>>
let logged: string[]
let archives: DecisionArchive[]
const log = createLog({ service: 'test', level: 'info', destination: { write: (line) => void logged.push(line) } })
beforeAll(async () => {
  database = await openTestDatabase()
  opened = await openPostgres({ connectionString: database.connectionString })
})
afterAll(async () => {
  await opened?.close()
  await database?.drop()
})
beforeEach(async () => {
  logged = []
  archives = []
  await opened.sql.query('truncate denied_decision, decision_count')
})

const archive = (sql: Parameters<typeof createDecisionArchive>[0]['sql'] = opened.sql): DecisionArchive => {
  const made = createDecisionArchive({ sql, log })
  archives.push(made)
  return made
}
/** Everything that waits is written. */
const settled = async (): Promise<void> => void (await Promise.all(archives.map((one) => one.flush())))

const decision = (
  of: {
    readonly allowed: boolean
    readonly organization?: string | null
    readonly resource?: string
    readonly atMs?: number
  },
  question: { readonly route?: string; readonly requestId?: string } = {},
): Observed => {
  const { allowed, organization = 'acme', resource = 'doc:1', atMs = Date.now() } = of
  const permission = { relation: 'viewer', resource, allowed, reasonCode: allowed ? 'tuple' : 'none' }
  const subject = { type: 'user', id: 'bob' }
  const answer = { decisionId: 'd-1', organization, subject, permissions: [permission], active: true }
  return {
    token: { active: false },
    question: { subject: null, route: 'GET /docs/{id}', requestId: 'r-1', ...question },
    answer,
    startedMs: atMs,
    durationMs: 1,
  } as never
}
const newest = { before: null, countMax: 10 }

test('a denial of one PDP is found by another one, with its route and its request', async () => {
  const [one, other] = [archive(), archive()]
  one.observer.answered(decision({ allowed: false }))
  await settled()
  expect(await other.denied('acme', { request: 'r-1' }, newest)).toMatchObject([
    { subject: 'user:bob', relation: 'viewer', resource: 'doc:1', reason: 'none', route: 'GET /docs/{id}' },
  ])
})

test('counts of several PDPs in the same minute are one sum, by route and reason', async () => {
  for (const one of [archive(), archive()]) {
    for (const allowed of [true, false, false]) one.observer.answered(decision({ allowed }))
    one.observer.answered(decision({ allowed: false }, { route: 'GET /other' }))
  }
  await settled()
  const reader = archive()
  expect(await reader.ranked('acme')).toEqual([
    { route: 'GET /docs/{id}', reason: 'none', hour: 4, day: 4 },
    { route: 'GET /other', reason: 'none', hour: 2, day: 2 },
  ])
  const minutes = await reader.perMinute('acme')
  const sum = (kind: 'allowed' | 'denied'): number => minutes.reduce((all, minute) => all + minute[kind], 0)
  expect([sum('allowed'), sum('denied')]).toEqual([2, 6])
})

test('nothing is kept of an allow but its count, of another organization, or of a token without one', async () => {
  const one = archive()
  one.observer.answered(decision({ allowed: true }))
  one.observer.answered(decision({ allowed: false, organization: 'globex' }))
  one.observer.answered(decision({ allowed: false, organization: null }))
  await settled()
  expect(await one.denied('acme', {}, newest)).toEqual([])
  expect(await one.ranked('acme')).toEqual([])
})

test.each([
  [{ subject: 'user:eve' }, 0],
  [{ resource: 'doc:2' }, 1],
  [{ route: 'GET /docs/{id}' }, 3],
  [{ reason: 'other' }, 0],
  [{ toMs: Date.now() - 3_600_000 }, 1],
  [{ fromMs: Date.now() - 3_600_000 }, 2],
])('the filter %j finds %i', async (filter, count) => {
  const one = archive()
  for (const resource of ['doc:1', 'doc:2']) one.observer.answered(decision({ allowed: false, resource }))
  one.observer.answered(decision({ allowed: false, atMs: Date.now() - 7_200_000 }))
  await settled()
  expect(await one.denied('acme', filter, newest)).toHaveLength(count)
})

test('pages go on where the last one ended, the newest first', async () => {
  const one = archive()
  const resources = Array.from({ length: 120 }, (_, i) => `doc:${i}`)
  for (const resource of resources) one.observer.answered(decision({ allowed: false, resource }))
  await settled()
  const first = await one.denied('acme', {}, { before: null, countMax: 70 })
  const second = await one.denied('acme', {}, { before: first.at(-1)?.id ?? null, countMax: 70 })
  expect([...first, ...second].map(({ resource }) => resource)).toEqual(resources.toReversed())
})

test('more than waits for a batch is left out and said, and texts from outside are cut', async () => {
  const one = archive()
  for (let i = 0; i < 5_002; i++)
    one.observer.answered(decision({ allowed: false }, { requestId: `\0${'x'.repeat(2_000)}` }))
  await settled()
  expect(logged.join('')).toContain('"decisions_count":2')
  const [found] = await one.denied('acme', {}, newest)
  expect(found?.requestId).toBe('x'.repeat(511))
})

test('a database that refuses costs a line of the log, and no answer', async () => {
  const refusing = {
    query: () => Promise.reject(new Error('refused')),
    transaction: () => Promise.reject(new Error('refused')),
  }
  const one = archive(refusing)
  expect(() => one.observer.answered(decision({ allowed: false }))).not.toThrow()
  await settled()
  expect(logged.join('')).toContain('decisions_not_kept')
})

test('what is older than its time goes, and the rest stays', async () => {
  const one = archive()
  const day = 86_400_000
  for (const days of [0, 6, 8]) one.observer.answered(decision({ allowed: false, atMs: Date.now() - days * day }))
  await settled()
  await one.trim(7)
  expect(await one.denied('acme', {}, newest)).toHaveLength(2)
  const [row] = await opened.sql.query<{ left: number }>('select count(*)::int as left from decision_count')
  expect(row?.left).toBe(2)
})
