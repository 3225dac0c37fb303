/** Tuples with a condition in the engine: what counts, what cannot be told, and what is told about it. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createPdp } from '../../../../pdp/engine/decision-point/create-pdp.ts'
import type { Store } from '../../../../pdp/engine/store/contract.ts'
import type { Pdp } from '../../../../pdp/shared/domain/decision.ts'
import { ENVIRONMENT } from '../../../../pdp/shared/domain/journal.ts'
import { user } from '../../../../pdp/shared/domain/subjects.ts'
import { remoteMemoryStore, STORES } from '../../../support/stores.ts'
import { drop, given, grant, put, putIf } from '../../../support/tuples.ts'

const MODEL = `model
  schema 1.1
type team
  relations
    define member: [user, user with low]
type folder
  relations
    define viewer: [user, user with low]
type doc
  relations
    define parent: [folder, folder with low]
    define blocked: [user, user with low, user:* with low]
    define staff: [user, user with low]
    define named: [user with low, user with high]
    define anybody: [user:* with low]
    define through_team: [team#member with low, team#member]
    define through_folder: viewer from parent
    define viewer: named or anybody or through_team or through_folder
    define both: named and staff
    define spared: named but not blocked
    define until: [user with current]
    define stolen: [user]

condition low(level: int) {
  level < 5
}
condition high(level: int, floor: int) {
  level >= floor
}
condition current(now: timestamp, end: timestamp) {
  now < end
}
`
const manifest = {
  app: 'docs',
  audiences: [],
  permissions: { read: 'Read' },
  roles: { r: { name: 'R', permissions: ['read'] } },
  model: MODEL,
}
const TUPLES = [
  putIf('doc:named#named@user:ann', 'low'),
  putIf('doc:stored#named@user:ann', 'low', { level: 1 }),
  putIf('doc:storedhigh#named@user:ann', 'low', { level: 9 }),
  putIf('doc:high#named@user:ann', 'high', { floor: 3 }),
  putIf('doc:anybody#anybody@user:*', 'low'),
  putIf('doc:team#through_team@team:a#member', 'low'),
  put('team:a#member@user:ann'),
  put('doc:inner#through_team@team:b#member'),
  putIf('team:b#member@user:ann', 'low'),
  putIf('doc:folder#parent@folder:f', 'low'),
  put('folder:f#viewer@user:ann'),
  put('doc:folderinner#parent@folder:g'),
  putIf('folder:g#viewer@user:ann', 'low'),
  // What the model does not allow where it stands does not count.
  putIf('doc:strange#named@user:ann', 'unheard_of', { level: 1 }),
  putIf('doc:strange#anybody@user:ann', 'low', { level: 1 }),
  putIf('doc:strange#stolen@user:ann', 'low', { level: 1 }),
  putIf('memo:1#viewer@user:ann', 'low', { level: 1 }),
  put('doc:bare#named@user:ann'),
  // One operand of several.
  putIf('doc:either#named@user:ann', 'low'),
  putIf('doc:either#through_team@team:a#member', 'low', { level: 1 }),
  putIf('doc:bothopen#named@user:ann', 'low'),
  put('doc:bothopen#staff@user:ann'),
  putIf('doc:bothshut#named@user:ann', 'low'),
  putIf('doc:sparedopen#named@user:ann', 'low', { level: 1 }),
  putIf('doc:sparedopen#blocked@user:ann', 'low'),
  putIf('doc:sparedshut#named@user:ann', 'low'),
  put('doc:sparedshut#blocked@user:ann'),
  putIf('doc:sparedgone#blocked@user:ann', 'low'),
  putIf('doc:sparedall#named@user:ann', 'low', { level: 1 }),
  putIf('doc:sparedall#blocked@user:*', 'low', { level: 1 }),
  putIf('doc:later#until@user:ann', 'current', { end: '2099-01-01T00:00:00Z' }),
  putIf('doc:past#until@user:ann', 'current', { end: '2001-01-01T00:00:00Z' }),
]

const OPENERS = { ...STORES, 'a cache': async () => ({ store: remoteMemoryStore(), close: async () => undefined }) }

describe.each(Object.entries(OPENERS))('on %s', (_, open) => {
  let store: Store
  let pdp: Pdp
  let close: () => Promise<unknown>
  beforeAll(async () => {
    ;({ store, close } = await open())
    await given(store, ENVIRONMENT, { kind: 'manifest', manifest })
    await given(store, 'acme', ...TUPLES)
    pdp = createPdp({ store, app: 'docs' })
  })
  afterAll(() => close())

  const decide = async (relation: string, id: string, context?: { [name: string]: number | string }) => {
    const { permissions, validUntilMs } = await pdp.decide({
      organization: 'acme',
      subject: user('ann'),
      permissions: [{ relation, resource: `doc:${id}` }],
      ...(context === undefined ? {} : { context }),
    })
    const [result] = permissions
    return { answer: result?.error ?? result?.allowed, missing: result?.missingContext, validUntilMs }
  }

  test.each([
    ['viewer', 'named'],
    ['viewer', 'anybody'],
    ['viewer', 'team'],
    ['viewer', 'inner'],
    ['viewer', 'folder'],
    ['viewer', 'folderinner'],
  ])('%s of doc:%s holds with a low level, not with a high one, and cannot be told without', async (relation, id) => {
    expect(await decide(relation, id, { level: 1 })).toMatchObject({ answer: true })
    expect(await decide(relation, id, { level: 9 })).toMatchObject({ answer: false })
    expect(await decide(relation, id, {})).toMatchObject({ answer: 'condition_failed', missing: ['level'] })
    expect(await decide(relation, id)).toMatchObject({ answer: 'condition_failed', missing: ['level'] })
    expect(await decide(relation, id, { level: 'x' })).toMatchObject({ answer: 'condition_failed', missing: [] })
    const subject = user('ann')
    const resource = `doc:${id}`
    expect(await pdp.can('acme', subject, relation, resource, { context: { level: 1 } })).toBe(true)
    expect(await pdp.can('acme', subject, relation, resource, { context: { level: 9 } })).toBe(false)
    await expect(pdp.can('acme', subject, relation, resource)).rejects.toMatchObject({
      code: 'condition_failed',
      missingContext: ['level'],
      message: expect.stringContaining('needs "level" in the context of the question'),
    })
  })

  test('lets what a tuple stores win over what the question brings', async () => {
    expect(await decide('viewer', 'stored', { level: 9 })).toMatchObject({ answer: true })
    expect(await decide('viewer', 'storedhigh', { level: 1 })).toMatchObject({ answer: false })
    expect(await decide('viewer', 'high', { level: 3, floor: 9 })).toMatchObject({ answer: true })
    expect(await decide('viewer', 'high', { level: 2, floor: 0 })).toMatchObject({ answer: false })
    expect(await decide('viewer', 'high', { floor: 0 })).toMatchObject({
      answer: 'condition_failed',
      missing: ['level'],
    })
  })

  test.each([
    ['named', 'strange'],
    ['anybody', 'strange'],
    ['stolen', 'strange'],
    ['named', 'bare'],
    ['until', 'past'],
  ])('%s of doc:%s is denied: no restriction of the model allows the tuple as it is', async (relation, id) => {
    expect(await decide(relation, id, { level: 1 })).toMatchObject({ answer: false })
  })

  test('denies a tuple with a condition on a type without a model', async () => {
    const check = { relation: 'viewer', resource: 'memo:1' }
    const asked = { organization: 'acme', subject: user('ann'), permissions: [check], context: { level: 1 } }
    expect((await pdp.decide(asked)).permissions).toMatchObject([{ allowed: false }])
  })

  test.each([
    ['viewer', 'either', true],
    ['both', 'bothopen', 'condition_failed'],
    ['both', 'bothshut', false],
    ['spared', 'sparedopen', 'condition_failed'],
    ['spared', 'sparedshut', false],
    ['spared', 'sparedgone', false],
    ['spared', 'sparedall', false],
  ])('%s of doc:%s, of which one operand cannot be told, is %s', async (relation, id, answer) => {
    expect(await decide(relation, id)).toMatchObject({ answer })
  })

  test('answers the other questions of a request when one cannot be told', async () => {
    const permissions = ['named', 'stored', 'storedhigh'].map((id) => ({ relation: 'viewer', resource: `doc:${id}` }))
    const decision = await pdp.decide({ organization: 'acme', subject: user('ann'), permissions })
    expect(decision.permissions).toEqual([
      {
        ...permissions[0],
        allowed: false,
        reasonCode: 'condition_failed',
        error: 'condition_failed',
        missingContext: ['level'],
      },
      { ...permissions[1], allowed: true, reasonCode: 'model' },
      { ...permissions[2], allowed: false, reasonCode: 'none' },
    ])
  })

  test('knows until when a condition on the clock holds, and no longer', async () => {
    const end = Date.parse('2099-01-01T00:00:00Z')
    expect(await decide('until', 'later')).toEqual({ answer: true, missing: undefined, validUntilMs: end })
    expect(await decide('until', 'past')).toMatchObject({ answer: false, validUntilMs: null })
  })

  test('refuses a context that is not an object, or larger than 32 KiB', async () => {
    const wrong = [null, [], 'x', { x: 'x'.repeat(33_000) }]
    for (const context of wrong as never[])
      await expect(decide('viewer', 'named', context)).rejects.toMatchObject({ code: 'request_invalid' })
    const asked = pdp.can('acme', user('ann'), 'viewer', 'doc:named', { context: wrong[0] as never })
    await expect(asked).rejects.toMatchObject({ code: 'request_invalid' })
  })

  test('lists what a check allows, and names what it cannot tell with what is missing', async () => {
    const list = (context?: { level: number }) =>
      pdp.listResources({
        organization: 'acme',
        subject: user('ann'),
        relation: 'viewer',
        type: 'doc',
        ...(context === undefined ? {} : { context }),
      })
    const low = await list({ level: 1 })
    expect([low.complete, low.undecided]).toEqual([true, []])
    const open = await list()
    expect([open.complete, open.items]).toEqual([
      false,
      ['doc:either', 'doc:sparedall', 'doc:sparedopen', 'doc:stored'],
    ])
    expect(low.items).toEqual(expect.arrayContaining([...open.items]))
    expect(open.undecided).toContainEqual({ item: 'doc:named', missingContext: ['level'] })
    const undecided = open.undecided.map(({ item }) => item)
    expect(low.items.filter((item) => !undecided.includes(item))).toEqual(open.items)
    const subjects = await pdp.listSubjects({
      organization: 'acme',
      resource: 'doc:anybody',
      relation: 'viewer',
      type: 'user',
      context: { level: 1 },
    })
    expect(subjects.items).toEqual(['user:*', 'user:ann'])
  })

  test('gives nobody a role through a group that holds him under a condition only', async () => {
    await given(
      store,
      'acme',
      putIf('group:g#member@user:joe', 'low', { level: 1 }),
      grant('g1', 'r', 'group:g', 'docs'),
    )
    const asked = { organization: 'acme', subject: user('joe'), app: 'docs' }
    expect((await pdp.held(asked)).permissions).toEqual([])
    await given(store, 'acme', put('group:g#member@user:joe'))
    expect((await pdp.held(asked)).permissions).toEqual(['read'])
    await given(store, 'acme', putIf('group:g#member@user:joe', 'low', { level: 1 }))
    expect((await pdp.held(asked)).permissions).toEqual([])
  })

  test('sees at once that a tuple gets a condition, loses it, gets another context and goes', async () => {
    const resource = 'doc:moving'
    const ask = () => pdp.can('acme', user('ann'), 'blocked', resource, { context: { level: 9 } })
    const steps = [
      [put(`${resource}#blocked@user:ann`), true],
      [putIf(`${resource}#blocked@user:ann`, 'low'), false],
      [putIf(`${resource}#blocked@user:ann`, 'low', { level: 1 }), true],
      [putIf(`${resource}#blocked@user:ann`, 'high', { floor: 1 }), false],
      [put(`${resource}#blocked@user:ann`), true],
      [drop(`${resource}#blocked@user:ann`), false],
    ] as const
    for (const [change, expected] of steps) {
      await given(store, 'acme', change)
      expect(await ask()).toBe(expected)
    }
  })

  test('finds a tuple with a condition in a set that is too wide to hold', async () => {
    const others = Array.from({ length: 1_005 }, (_, i) => putIf(`doc:wide#named@user:u${i}`, 'low'))
    await given(store, 'acme', ...others)
    await given(store, 'acme', putIf('doc:wide#named@user:ann', 'low'))
    expect(await decide('named', 'wide', { level: 1 })).toMatchObject({ answer: true })
    expect(await decide('named', 'wide', { level: 9 })).toMatchObject({ answer: false })
    await given(store, 'acme', drop('doc:wide#named@user:ann'))
    expect(await decide('named', 'wide', { level: 1 })).toMatchObject({ answer: false })
  })
})
