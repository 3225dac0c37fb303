/** Whether a relation holds on any resource of a type: as some single check says, for the same reason, and never more. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { compileModel } from '../../../../pdp/engine/decide/language/model-language.ts'
import { createPdp } from '../../../../pdp/engine/decision-point/create-pdp.ts'
import type { Store } from '../../../../pdp/engine/store/contract.ts'
import { memoryStore } from '../../../../pdp/engine/store/memory/memory.ts'
import { readSubject } from '../../../../pdp/server/console/question.ts'
import type { DecideRequest, Pdp, PermissionCheck } from '../../../../pdp/shared/domain/decision.ts'
import { PdpError } from '../../../../pdp/shared/domain/errors.ts'
import { ENVIRONMENT } from '../../../../pdp/shared/domain/journal.ts'
import { service, user } from '../../../../pdp/shared/domain/subjects.ts'
import { randomWorld } from '../../../differential/worlds.ts'
import { effort } from '../../../support/effort.ts'
import { CHECKS, NOW, SUBJECTS, worlds, writeWorld, written } from '../../../support/property-worlds.ts'
import { remoteMemoryStore, STORES } from '../../../support/stores.ts'
import { drop, given, grant, member, put, putIf } from '../../../support/tuples.ts'

const typeOf = (resource: string): string => resource.slice(0, resource.indexOf(':'))
const subjectOf = (text: string) => readSubject(text) ?? user(text)

/** What some single check says of each, in requests of as many checks as one may have. */
async function bySingleChecks(
  pdp: Pdp,
  request: DecideRequest,
  asked: readonly PermissionCheck[],
  all: readonly string[],
) {
  const said: { allowed: boolean; undecided: boolean }[] = []
  for (const { relation, resource: type } of asked) {
    const permissions = all.filter((resource) => typeOf(resource) === type).map((resource) => ({ relation, resource }))
    const found = (await pdp.decide({ ...request, permissions })).permissions
    const allowed = found.some((one) => one.allowed)
    said.push({ allowed, undecided: !allowed && found.some(({ error }) => error !== undefined) })
  }
  return said
}

describe('in random worlds, any resource of a type', () => {
  const RESOURCES = [...new Set([...CHECKS.map(({ resource }) => resource), 'organization:other'])]
  const ASKED = [...new Set(CHECKS.map(({ relation, resource }) => `${relation} ${typeOf(resource)}`))].map((text) => {
    const [relation = '', resource = ''] = text.split(' ')
    return { relation, resource, any: true }
  })
  const actors = fc.constantFrom(null, null, 'service:a', 'service:b')
  const groups = fc.constantFrom([], [], ['0'], ['1', '2'])

  test('is what some single check allows, for people, agents and groups of a token, on both kinds of store', async () => {
    const count = { allowed: 0, denied: 0 }
    await fc.assert(
      fc.asyncProperty(worlds, actors, groups, fc.boolean(), async (world, actor, joined, cached) => {
        const store = (cached ? remoteMemoryStore : memoryStore)({ clock: () => NOW })
        await writeWorld(store, world)
        await given(store, 'child', ...(world.content.child?.tuples ?? []).map(written))
        const pdp = createPdp({ store, app: 'app' })
        for (const subject of SUBJECTS) {
          if (actor !== null) await given(store, 'child', put(`${actor}#acts_for@${subject}`))
          const acting = actor === null ? {} : { actor: service(actor.slice('service:'.length)) }
          const memberships = joined.length === 0 ? {} : { memberships: { groups: joined, organizations: ['child'] } }
          const request = { organization: 'child', subject: subjectOf(subject), ...acting, ...memberships }
          const single = await bySingleChecks(pdp, request, ASKED, RESOURCES)
          const { permissions } = await pdp.decide({ ...request, permissions: ASKED })
          const answers = permissions.map(({ allowed, error }) => ({ allowed, undecided: error !== undefined }))
          expect(answers).toEqual(single)
          for (const { allowed } of answers) count[allowed ? 'allowed' : 'denied'] += 1
        }
      }),
      { numRuns: effort({ short: 60, long: 600 }) },
    )
    expect(Math.min(count.allowed, count.denied)).toBeGreaterThan(50)
  })

  test('is the same with conditions, contextual tuples and usersets as subjects', async () => {
    const count = { allowed: 0, denied: 0, undecided: 0 }
    for (let seed = 1; seed <= effort({ short: 40, long: 400 }); seed++) {
      const world = randomWorld(seed)
      const store = seed % 2 === 0 ? memoryStore() : remoteMemoryStore()
      const manifest = { app: 'a', audiences: [], permissions: {}, roles: {}, model: world.model }
      const pdp = createPdp({ store })
      if (!isModel(world.model)) continue
      await given(store, ENVIRONMENT, { kind: 'manifest', manifest })
      await given(store, 'o', ...world.tuples.map(written))
      const resources = ['team', 'folder', 'doc'].flatMap((type) => ['0', '1', '2'].map((id) => `${type}:${id}`))
      for (const { subject, relation, type, context, contextual } of world.objectLists) {
        const request = { organization: 'o', subject: subjectOf(subject), context, contextualTuples: contextual }
        const asked = [{ relation, resource: type, any: true }]
        const single = await bySingleChecks(pdp, request, asked, resources).catch(String)
        const answer = await pdp
          .decide({ ...request, permissions: asked })
          .then(
            ({ permissions }) =>
              permissions.map((one) => ({ allowed: one.allowed, undecided: one.error !== undefined })),
            String,
          )
        expect([seed, subject, relation, type, answer]).toEqual([seed, subject, relation, type, single])
        const [one] = typeof answer === 'string' ? [] : answer
        if (one !== undefined) count[one.undecided ? 'undecided' : one.allowed ? 'allowed' : 'denied'] += 1
      }
    }
    expect(Math.min(count.allowed, count.denied)).toBeGreaterThan(40)
  })
})

function isModel(text: string): boolean {
  try {
    return compileModel(text).size > 0
  } catch (err) {
    if (err instanceof PdpError) return false
    throw err
  }
}

const MODEL = `model
  schema 1.1
type user
type service
type team
  relations
    define member: [user]
type account
  relations
    define owner: [user, service, user:*, team#member]
    define closed: [user:*]
    define timely: [user with early]
    define approver: owner but not closed
condition early(hour: int) {
  hour < 8
}
`
const SOME = { relation: 'approver', resource: 'account', any: true }

describe.each(
  Object.entries({ ...STORES, cache: async () => ({ store: remoteMemoryStore(), close: async () => {} }) }),
)('any resource of a type, on %s,', (_, open) => {
  const opened = async (...texts: readonly string[]) => {
    const { store, close } = await open()
    const pdp = createPdp({ store })
    await pdp.putManifest('a', {
      model: MODEL,
      roles: { r: { name: 'R', permissions: ['pay:all'] } },
      permissions: { 'pay:all': 'Pay' },
    })
    await given(store, 'acme', ...texts.map((text) => put(text)))
    const ask = async (more: Partial<DecideRequest> = {}, at = 0) => {
      const request = { organization: 'acme', subject: user('ann'), permissions: [SOME], ...more }
      return (await pdp.decide(request)).permissions[at]
    }
    return { store, pdp, ask, close }
  }

  test.each<[string, readonly string[], boolean]>([
    ['nothing', [], false],
    ['one', ['account:z#owner@user:ann'], true],
    ['one of another', ['account:z#owner@user:bob'], false],
    ['one by a team', ['account:z#owner@team:t#member', 'team:t#member@user:ann'], true],
    ['one of everybody', ['account:z#owner@user:*'], true],
    ['one that a rule takes away', ['account:z#owner@user:ann', 'account:z#closed@user:*'], false],
    [
      'one of two that a rule takes away',
      ['account:y#owner@user:ann', 'account:y#closed@user:*', 'account:z#owner@user:ann'],
      true,
    ],
  ])('with %s', async (_what, texts, allowed) => {
    const { ask, close } = await opened(...texts)
    expect(await ask()).toMatchObject({ relation: 'approver', resource: 'account', allowed })
    await close()
  })

  test('is denied from the very question after the last one went', async () => {
    const { store, ask, close } = await opened('account:y#owner@user:ann', 'account:z#owner@user:ann')
    expect((await ask())?.allowed).toBe(true)
    await given(store, 'acme', drop('account:y#owner@user:ann'))
    expect((await ask())?.allowed).toBe(true)
    await given(store, 'acme', drop('account:z#owner@user:ann'))
    expect(await ask()).toMatchObject({ allowed: false, reasonCode: 'none' })
    await close()
  })

  test('takes one and the same resource of the subject and of who acts for it', async () => {
    const link = 'service:bot#acts_for@user:ann'
    const { store, ask, close } = await opened(link, 'account:y#owner@user:ann', 'account:z#owner@service:bot')
    const acting = { actor: service('bot') }
    expect(await ask(acting)).toMatchObject({ allowed: false, reasonCode: 'actor_denied' })
    await given(store, 'acme', put('account:y#owner@service:bot'))
    const tuples = ['account:y#owner@user:ann', link, 'account:y#owner@service:bot']
    const { path = [] } = (await ask({ ...acting, explain: true }))?.reason ?? {}
    expect(path.flatMap((step) => ('tuple' in step ? [step.tuple] : []))).toEqual(tuples)
    await given(store, 'acme', drop(link))
    expect(await ask(acting)).toMatchObject({ allowed: false, reasonCode: 'delegation_missing' })
    await given(store, 'acme', drop('account:y#owner@user:ann'))
    expect(await ask(acting)).toMatchObject({ allowed: false, reasonCode: 'delegation_missing' })
    await close()
  })
})

describe('any resource of a type', () => {
  const opened = async (store: Store = remoteMemoryStore()) => {
    const pdp = createPdp({ store })
    const roles = { r: { name: 'R', permissions: ['pay:all'] } }
    await pdp.putManifest('a', { model: MODEL, roles, permissions: { 'pay:all': 'Pay' } })
    await given(store, 'acme')
    const ask = async (more: Partial<DecideRequest> = {}) =>
      (await pdp.decide({ organization: 'acme', subject: user('ann'), permissions: [SOME], ...more })).permissions
    return { store, pdp, ask }
  }

  test('is answered among plain checks in their order, at one moment', async () => {
    const { store, ask } = await opened()
    await given(store, 'acme', put('account:1#owner@user:ann'))
    const plain = (id: string) => ({ relation: 'approver', resource: `account:${id}` })
    const permissions = [plain('2'), SOME, plain('1'), { ...SOME, relation: 'closed' }]
    const found = await ask({ permissions })
    expect(found.map(({ resource }) => resource)).toEqual(['account:2', 'account', 'account:1', 'account'])
    expect(found.map(({ allowed }) => allowed)).toEqual([false, true, true, false])
  })

  test('of a condition without its context is undecided, unless another resource is allowed', async () => {
    const { store, ask } = await opened()
    const permissions = [{ ...SOME, relation: 'timely' }]
    await given(store, 'acme', putIf('account:1#timely@user:ann', 'early'))
    expect(await ask({ permissions })).toMatchObject([
      { allowed: false, error: 'condition_failed', missingContext: ['hour'] },
    ])
    expect(await ask({ permissions, context: { hour: 7 } })).toMatchObject([{ allowed: true }])
    expect(await ask({ permissions, context: { hour: 9 } })).toMatchObject([{ allowed: false, reasonCode: 'none' }])
    await given(store, 'acme', putIf('account:2#timely@user:ann', 'early', { hour: 1 }))
    expect(await ask({ permissions })).toMatchObject([{ allowed: true }])
  })

  test('ends with the tuple that it stands on, and the answer is valid until then', async () => {
    let nowMs = NOW
    const { store, pdp, ask } = await opened(remoteMemoryStore({ clock: () => nowMs }))
    await given(store, 'acme', put('account:1#owner@user:ann', NOW + 1_000))
    const request = { organization: 'acme', subject: user('ann'), permissions: [SOME] }
    expect(await pdp.decide(request)).toMatchObject({ permissions: [{ allowed: true }], validUntilMs: NOW + 1_000 })
    nowMs += 1_000
    expect(await ask()).toMatchObject([{ allowed: false }])
  })

  test('is held by roles, memberships and tuples of types without a model, as single checks say', async () => {
    const { store, ask } = await opened()
    await given(store, 'acme', grant('g', 'r', 'user:ann', 'a'), member('ann', 'admin'), put('thing:1#seen@user:ann'))
    const permissions = [
      ['pay:all', 'app'],
      ['pay:all', 'organization'],
      ['admin', 'organization'],
      ['seen', 'thing'],
      ['owner', 'organization'],
      ['gone', 'thing'],
      ['pay:none', 'app'],
      ['approver', 'nothing'],
    ].map(([relation = '', resource = '']) => ({ relation, resource, any: true }))
    const found = await ask({ permissions, app: 'a' })
    expect(found.map(({ allowed }) => allowed)).toEqual([true, true, true, true, false, false, false, false])
    await given(store, 'acme', member('ann', 'admin', 'suspended'))
    const suspended = await ask({ permissions, app: 'a' })
    expect(suspended.map(({ allowed }) => allowed)).toEqual(permissions.map(() => false))
    expect(suspended.at(-1)).toMatchObject({ reasonCode: 'membership_suspended' })
  })

  test('is found among more than one evaluation checks, and undecided where none of the first is allowed', async () => {
    const { store, ask } = await opened()
    const many = Array.from({ length: 2_100 }, (_, i) => [
      put(`account:${i}#owner@user:ann`),
      put(`account:${i}#closed@user:*`),
    ])
    await given(store, 'acme', ...many.flat())
    expect(await ask()).toMatchObject([{ allowed: false, reasonCode: 'evaluation_limit', error: 'evaluation_limit' }])
    await given(store, 'acme', drop('account:7#closed@user:*'))
    expect(await ask()).toMatchObject([{ allowed: true }])
  })

  test('of many questions shares one bound, and the plain checks beside them are answered', async () => {
    const { store, ask } = await opened()
    const many = Array.from({ length: 1_900 }, (_, i) => [
      put(`account:${i}#owner@user:ann`),
      put(`account:${i}#closed@user:*`),
    ])
    await given(store, 'acme', ...many.flat())
    const plain = { relation: 'owner', resource: 'account:1' }
    const found = await ask({ permissions: [...Array.from({ length: 8 }, () => SOME), plain] })
    expect(found.map(({ error }) => error ?? 'none')).toEqual([
      ...Array.from({ length: 5 }, () => 'none'),
      ...Array.from({ length: 3 }, () => 'evaluation_limit'),
      'none',
    ])
    expect(found.map(({ allowed }) => allowed)).toEqual([...Array.from({ length: 8 }, () => false), true])
  })

  test.each<[string, object]>([
    ['a resource', { relation: 'approver', resource: 'account:1', any: true }],
    ['everything of a type', { relation: 'approver', resource: 'account:*', any: true }],
    ['a type with a colon', { relation: 'approver', resource: 'account:', any: true }],
    ['every type', { relation: 'approver', resource: '*', any: true }],
    ['no type', { relation: 'approver', resource: '', any: true }],
    ['a userset', { relation: 'approver', resource: 'account#owner', any: true }],
    ['a type with a space', { relation: 'approver', resource: 'account 1', any: true }],
    ['a relation with a space', { relation: 'app rover', resource: 'account', any: true }],
    ['no relation', { relation: '', resource: 'account', any: true }],
    ['a type that is not said to be one', { relation: 'approver', resource: 'account' }],
    ['a type that is said to be none', { relation: 'approver', resource: 'account', any: false }],
    ['a text for true', { relation: 'approver', resource: 'account', any: 'true' }],
    ['a number for true', { relation: 'approver', resource: 'account', any: 1 }],
    ['null for true', { relation: 'approver', resource: 'account', any: null }],
    ['a resource with a text for true', { relation: 'approver', resource: 'account:1', any: 'yes' }],
  ])('is refused as %s', async (_what, check) => {
    const { store, ask } = await opened()
    await given(store, 'acme', put('account:1#owner@user:ann'))
    await expect(ask({ permissions: [check as PermissionCheck] })).rejects.toMatchObject({ code: 'request_invalid' })
  })

  test('is no question of a check by itself', async () => {
    const { store, pdp } = await opened()
    await given(store, 'acme', put('account:1#owner@user:ann'))
    const options = { any: true } as object
    await expect(pdp.can('acme', user('ann'), 'approver', 'account', options)).rejects.toMatchObject({
      code: 'request_invalid',
    })
  })
})
