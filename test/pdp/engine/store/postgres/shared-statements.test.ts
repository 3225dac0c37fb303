/** Statements that many questions share: one that cannot be served fails alone, whichever statement it is. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { heldPermissions } from '../../../../../pdp/engine/decide/roles.ts'
import { createPdp } from '../../../../../pdp/engine/decision-point/create-pdp.ts'
import { Freshness } from '../../../../../pdp/engine/store/cache/freshness.ts'
import type { Question } from '../../../../../pdp/engine/store/cache/question.ts'
import type { Store } from '../../../../../pdp/engine/store/contract.ts'
import type { Directory } from '../../../../../pdp/engine/store/directory.ts'
import { postgresDirectory } from '../../../../../pdp/engine/store/postgres/directory.ts'
import { openPostgres } from '../../../../../pdp/engine/store/postgres/postgres.ts'
import { PdpError } from '../../../../../pdp/shared/domain/errors.ts'
import { ENVIRONMENT } from '../../../../../pdp/shared/domain/journal.ts'
import { openTestDatabase } from '../../../../support/database.ts'
import { context, given, member, organization, put } from '../../../../support/tuples.ts'

const GOOD = Array.from({ length: 12 }, (_, i) => `good${i}`)
const BAD_NAMES = ['\0', 'a\0b', '', ' ', 'a b', 'b 1 2 3 4', '#environment#', '*', 'ü', 'x'.repeat(257), '\ud800']
let store: Store
let directory: Directory
let close: () => Promise<void>

beforeAll(async () => {
  const database = await openTestDatabase()
  const opened = await openPostgres({ connectionString: database.connectionString })
  store = opened.store
  directory = postgresDirectory(opened.sql)
  close = async () => {
    await opened.close()
    await database.drop()
  }
  await store.write(
    ENVIRONMENT,
    [...GOOD, 'poison'].map((id) => organization(id)),
    { context },
  )
  for (const id of [...GOOD, 'poison']) await given(store, id, member('alice', 'member'))
})
afterAll(() => close())

const held = (log: string): Question<readonly string[]> => ({
  organization: log,
  evaluate: (view) =>
    heldPermissions(view, { organization: log, subject: 'user:alice', app: null })?.permissions.map((p) => p.key),
})

/** All in one tick, so that they share every statement that can be shared. */
async function askTogether(freshness: Freshness, logs: readonly string[]): Promise<ReadonlyMap<string, unknown>> {
  const settled = await Promise.allSettled(logs.map((log) => freshness.ask(held(log))))
  return new Map(
    settled.map((result, i) => [logs[i] ?? '', result.status === 'fulfilled' ? 'answered' : result.reason]),
  )
}

/** A store whose statement of one kind cannot be executed with a certain log in it. */
function poisoned(kind: 'vector' | 'entries' | 'rows', error: Error): { store: Store; refusedCount: () => number } {
  let refused = 0
  const judge = (logs: readonly string[]): void => {
    if (!logs.includes('poison')) return
    refused += 1
    throw error
  }
  const overridden: Store = {
    ...store,
    async vector(logs) {
      if (kind === 'vector') judge(logs)
      return store.vector(logs)
    },
    async entries(ranges, entriesMax) {
      if (kind === 'entries') judge(ranges.map(({ log }) => log))
      return store.entries(ranges, entriesMax)
    },
    async rows(logs, keys) {
      if (kind === 'rows') judge([...logs, ...keys.map((key) => key.log)])
      return store.rows(logs, keys)
    },
  }
  return { store: overridden, refusedCount: () => refused }
}

describe('a shared statement that fails', () => {
  test.each(['vector', 'rows'] as const)('for one question is answered to all others: %s', async (kind) => {
    const error = new Error('cannot be executed')
    const { store: bad, refusedCount } = poisoned(kind, error)
    const answers = await askTogether(new Freshness({ store: bad }), [...GOOD, 'poison'])
    expect(answers.get('poison')).toBe(error)
    expect(GOOD.map((log) => answers.get(log))).toEqual(GOOD.map(() => 'answered'))
    expect(refusedCount()).toBeGreaterThan(1)
  })

  test('for one log is read to all others: entries', async () => {
    const error = new Error('cannot be executed')
    const { store: bad, refusedCount } = poisoned('entries', error)
    const freshness = new Freshness({ store: bad })
    await askTogether(freshness, [...GOOD, 'poison'])
    for (const log of [...GOOD, 'poison']) await store.write(log, [put(`doc:${Math.random()}#v@user:a`)], { context })
    const answers = await askTogether(freshness, [...GOOD, 'poison'])
    expect(answers.get('poison')).toBe(error)
    expect(GOOD.map((log) => answers.get(log))).toEqual(GOOD.map(() => 'answered'))
    expect(refusedCount()).toBeGreaterThan(1)
  })

  test.each(['vector', 'rows'] as const)('for want of a store fails them all at once: %s', async (kind) => {
    const error = new PdpError('store_unavailable', 'gone')
    const { store: bad, refusedCount } = poisoned(kind, error)
    const answers = await askTogether(new Freshness({ store: bad }), [...GOOD, 'poison'])
    expect([...answers.values()]).toEqual([...GOOD, 'poison'].map(() => error))
    expect(refusedCount()).toBe(1)
  })
})

describe('a name that is none', () => {
  test.each(BAD_NAMES.map((name) => [name]))('fails no other in any shared statement: %j', async (name) => {
    const answers = await askTogether(new Freshness({ store }), [...GOOD, name])
    expect(GOOD.map((log) => answers.get(log))).toEqual(GOOD.map(() => 'answered'))
  })

  test.each(BAD_NAMES.map((name) => [name]))('is nobody, and fails no other who is asked for: %j', async (id) => {
    const asked = [...GOOD, id].flatMap((name) => [
      directory.exists({ type: 'user', id: name }, 'acme'),
      directory.exists({ type: 'service', id: name }, 'acme'),
    ])
    expect(await Promise.all(asked)).toEqual(asked.map(() => false))
  })

  test.each(BAD_NAMES.map((name) => [name]))('is refused by every question in process: %j', async (name) => {
    const pdp = createPdp({ store })
    const subject = { type: 'user', id: 'alice' } as const
    const check = { relation: 'viewer', resource: 'doc:1' }
    const questions: (() => Promise<unknown>)[] = [
      () => pdp.can(name, subject, check.relation, check.resource),
      () => pdp.decide({ organization: name, subject, permissions: [check] }),
      () => pdp.entitlement(name, 'feature.a'),
      () => pdp.held({ organization: name, subject, app: null }),
      () => pdp.claimsEntitlements(name),
      () => pdp.ancestors(name),
      () => pdp.listResources({ organization: name, subject, relation: 'viewer', type: 'doc' }),
      () => pdp.listSubjects({ organization: name, resource: 'doc:1', relation: 'viewer', type: 'user' }),
    ]
    for (const question of questions) await expect(question()).rejects.toMatchObject({ code: 'request_invalid' })
  })
})
