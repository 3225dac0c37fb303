/** Three-valued answers: what cannot be told of a condition decides a question only where nothing else does. */
import { describe, expect, test } from 'vitest'
import { createPdp } from '../../../../pdp/engine/decision-point/create-pdp.ts'
import { memoryStore } from '../../../../pdp/engine/store/memory/memory.ts'
import type { Decision, Pdp } from '../../../../pdp/shared/domain/decision.ts'
import { ENVIRONMENT } from '../../../../pdp/shared/domain/journal.ts'
import { user } from '../../../../pdp/shared/domain/subjects.ts'
import { remoteMemoryStore } from '../../../support/stores.ts'
import { given, organization, put, putIf } from '../../../support/tuples.ts'

const MODEL = `model
  schema 1.1
type user
type robot
type team
  relations
    define member: [user, team#member with inside, user with inside]
type folder
  relations
    define parent: [folder with inside]
    define viewer: [user] or viewer from parent
type doc
  relations
    define parent: [folder with inside, team with inside]
    define group: [group#member with inside]
    define blocked: [team#member with inside]
    define staff: [team#member with inside, team#member with late]
    define robots: [robot:* with inside, user]
    define named: [user]
    define viewer: viewer from parent
    define spared: [user] but not blocked
    define both: staff and named
    define either: staff or named
    define twice: [user] but not spared

condition inside(ip: ipaddress) {
  ip.in_cidr("10.0.0.0/8")
}
condition late(hour: int) {
  hour > 20
}
`
const TUPLES = [
  // Nobody is behind these.
  putIf('doc:1#parent@folder:empty', 'inside'),
  putIf('doc:1#parent@team:a', 'inside'),
  putIf('doc:1#staff@team:empty#member', 'inside'),
  putIf('doc:1#group@group:empty#member', 'inside'),
  putIf('doc:1#robots@robot:*', 'inside'),
  // These lead back to themselves.
  putIf('folder:x#parent@folder:y', 'inside'),
  putIf('folder:y#parent@folder:x', 'inside'),
  putIf('doc:loop#parent@folder:x', 'inside'),
  putIf('team:p#member@team:q#member', 'inside'),
  putIf('team:q#member@team:p#member', 'inside'),
  putIf('doc:loop#staff@team:p#member', 'inside'),
  // Ann is behind these.
  put('folder:full#viewer@user:ann'),
  putIf('folder:mid#parent@folder:full', 'inside'),
  putIf('doc:2#parent@folder:full', 'inside'),
  putIf('doc:deep#parent@folder:mid', 'inside'),
  put('team:a#member@user:ann'),
  putIf('doc:2#staff@team:a#member', 'inside'),
  put('group:g#member@user:ann'),
  putIf('doc:2#group@group:g#member', 'inside'),
  // Subtracted, with and without somebody behind.
  put('doc:1#spared@user:ann'),
  putIf('doc:1#blocked@team:empty#member', 'inside'),
  put('doc:2#spared@user:ann'),
  putIf('doc:2#blocked@team:a#member', 'inside'),
  put('doc:1#twice@user:ann'),
  // One part is certain.
  putIf('doc:3#staff@team:a#member', 'inside'),
  put('doc:3#named@user:ann'),
  putIf('doc:4#staff@team:a#member', 'inside'),
  // Two conditions, of which one does not matter.
  putIf('doc:5#staff@team:a#member', 'late'),
  putIf('doc:5#staff@team:empty#member', 'inside'),
]
const manifest = { app: 'docs', audiences: [], permissions: {}, roles: {}, model: MODEL }

async function open(cached: boolean): Promise<Pdp> {
  const store = cached ? remoteMemoryStore() : memoryStore()
  await given(store, ENVIRONMENT, organization('acme'), { kind: 'manifest', manifest })
  await given(store, 'acme', ...TUPLES)
  return createPdp({ store })
}

/** `ip` and `hour` that are missing, or whether it is allowed. */
async function asked(pdp: Pdp, text: string, context = {}, explain = false): Promise<unknown> {
  const [relation = '', resource = ''] = text.split(' ')
  const question = { organization: 'acme', subject: user('ann'), permissions: [{ relation, resource }], explain }
  const [result] = (await pdp.decide({ ...question, context })).permissions satisfies Decision['permissions']
  if (result?.error === undefined) return result?.allowed
  expect([result.error, result.allowed]).toEqual(['condition_failed', false])
  return result.missingContext
}

const CASES: readonly (readonly [string, unknown])[] = [
  ['viewer doc:1', false],
  ['staff doc:1', false],
  ['group doc:1', false],
  ['robots doc:1', false],
  ['viewer doc:loop', false],
  ['staff doc:loop', false],
  ['viewer doc:2', ['ip']],
  ['viewer doc:deep', ['ip']],
  ['staff doc:2', ['ip']],
  ['group doc:2', ['ip']],
  ['spared doc:1', true],
  ['spared doc:2', ['ip']],
  ['twice doc:1', false],
  ['both doc:1', false],
  ['both doc:3', ['ip']],
  ['both doc:4', false],
  ['either doc:1', false],
  ['either doc:3', true],
  ['either doc:4', ['ip']],
  ['staff doc:5', ['hour']],
]

describe.each([false, true])('with a cache: %s', (cached) => {
  test.each(CASES)('%s is %j without a context, explained or not', async (text, answer) => {
    const pdp = await open(cached)
    expect(await asked(pdp, text)).toEqual(answer)
    expect(await asked(pdp, text, {}, true)).toEqual(answer)
  })

  test('a list names what is undecided for the subject, and nothing that it can never have', async () => {
    const pdp = await open(cached)
    const list = { organization: 'acme', relation: 'viewer', type: 'doc' }
    expect(await pdp.listResources({ ...list, subject: user('bob') })).toMatchObject({ undecided: [], complete: true })
    const found = await pdp.listResources({ ...list, subject: user('ann') })
    expect(found.undecided).toEqual([
      { item: 'doc:2', missingContext: ['ip'] },
      { item: 'doc:deep', missingContext: ['ip'] },
    ])
    const who = { organization: 'acme', resource: 'doc:2', relation: 'viewer', type: 'user' }
    expect((await pdp.listSubjects(who)).undecided).toEqual([{ item: 'user:ann', missingContext: ['ip'] }])
  })

  test('a denial proposes no tuple that would lead only to what cannot be told', async () => {
    const pdp = await open(cached)
    const permissions = [{ relation: 'viewer', resource: 'doc:1' }]
    const question = { organization: 'acme', subject: user('bob'), permissions, explain: true }
    expect((await pdp.decide(question)).permissions[0]?.reason?.missing).toEqual([])
  })
})

test.each([false, true])('a wide relation is as certain as a narrow one (cached: %s)', async (cached) => {
  const store = cached ? remoteMemoryStore() : memoryStore()
  await given(store, ENVIRONMENT, organization('acme'), { kind: 'manifest', manifest })
  const many = Array.from({ length: 1_100 }, (_, i) => i)
  for (let at = 0; at < many.length; at += 100)
    await given(
      store,
      'acme',
      ...many.slice(at, at + 100).map((i) => putIf(`doc:wide#staff@team:${i}#member`, 'inside')),
      ...many.slice(at, at + 100).map((i) => putIf(`doc:wide#parent@folder:${i}`, 'inside')),
    )
  await given(store, 'acme', put('team:77#member@user:in'), put('folder:77#viewer@user:in'))
  const pdp = createPdp({ store })
  for (const relation of ['staff', 'viewer']) {
    const ask = async (id: string, context = {}) => {
      const permissions = [{ relation, resource: 'doc:wide' }]
      const decision = await pdp.decide({ organization: 'acme', subject: user(id), permissions, context })
      return decision.permissions[0]
    }
    expect(await ask('out')).toMatchObject({ allowed: false, reasonCode: 'none' })
    expect(await ask('in')).toMatchObject({ allowed: false, error: 'condition_failed', missingContext: ['ip'] })
    expect(await ask('in', { ip: '10.1.1.1' })).toMatchObject({ allowed: true })
    expect(await ask('in', { ip: '11.1.1.1' })).toMatchObject({ allowed: false, reasonCode: 'none' })
  }
})

test('a userset holds itself behind a parent whose type has no such relation, explained or not', async () => {
  const store = memoryStore()
  await given(store, ENVIRONMENT, organization('acme'), { kind: 'manifest', manifest })
  await given(store, 'acme', putIf('doc:1#parent@team:x', 'inside'))
  const pdp = createPdp({ store })
  const subject = { type: 'team', id: 'x', relation: 'viewer' }
  const ask = async (context = {}) => {
    const permissions = [{ relation: 'viewer', resource: 'doc:1' }]
    const decision = await pdp.decide({ organization: 'acme', subject, permissions, context, explain: true })
    return decision.permissions[0]
  }
  expect(await ask()).toMatchObject({ error: 'condition_failed', missingContext: ['ip'] })
  expect((await ask({ ip: '10.1.1.1' }))?.reason?.path).toContainEqual({ tuple: 'doc:1#parent@team:x' })
})
