/** Relations with very many parents or usersets: those that hold the subject are looked for from its side. */
import { describe, expect, test } from 'vitest'
import { type Answer, answerCheck, isUndecided } from '../../../../../pdp/engine/decide/check.ts'
import { ConditionRun } from '../../../../../pdp/engine/decide/conditions/run.ts'
import { compileModel } from '../../../../../pdp/engine/decide/language/model-language.ts'
import type { Model } from '../../../../../pdp/engine/decide/model.ts'
import type { View } from '../../../../../pdp/engine/decide/view.ts'
import { relationViewOf } from '../../../../../pdp/engine/decide/views/contextual-tuples.ts'
import { createPdp } from '../../../../../pdp/engine/decision-point/create-pdp.ts'
import type { Store } from '../../../../../pdp/engine/store/contract.ts'
import { memoryStore } from '../../../../../pdp/engine/store/memory/memory.ts'
import type { Change } from '../../../../../pdp/shared/domain/change.ts'
import { PdpError } from '../../../../../pdp/shared/domain/errors.ts'
import { ENVIRONMENT } from '../../../../../pdp/shared/domain/journal.ts'
import { user } from '../../../../../pdp/shared/domain/subjects.ts'
import { createJudge } from '../../../../differential/judge.ts'
import { randomWorld } from '../../../../differential/worlds.ts'
import { effort } from '../../../../support/effort.ts'
import { remoteMemoryStore } from '../../../../support/stores.ts'
import { given, member, put, tuple } from '../../../../support/tuples.ts'

/** As if one parent or userset were as many as can be gone through. */
function narrow(view: View): View {
  const one = <T>(found: readonly T[] | null | undefined): readonly T[] | null | undefined =>
    found != null && found.length > 1 ? null : found
  const handler: ProxyHandler<View> = {
    get(target, name) {
      const method = (target[name as keyof View] as (...of: unknown[]) => unknown).bind(target)
      if (name !== 'objects' && name !== 'usersets') return method
      return (...of: unknown[]) => one(method(...of) as readonly unknown[] | null | undefined)
    },
  }
  return new Proxy(view, handler)
}

test('in random models every answer from the subject’s side is the reference’s, for users, usersets and everybody', async () => {
  const seen = { true: 0, false: 0, null: 0 }
  for (let seed = 1; seed <= effort({ short: 30, long: 300 }); seed++) {
    const world = randomWorld(seed)
    const model = compiled(world.model)
    if (model === null) continue
    const store = memoryStore()
    await given(store, 'o', ...world.tuples.map((tuple) => ({ kind: 'tuple', op: 'write', tuple }) as const))
    const [judge, view] = [createJudge(world), narrow(store.currentView())]
    const whichever = [createJudge(world, false), createJudge(world, true)]
    for (const question of world.checks) {
      const { subject, relation, object: resource, context, contextual } = question
      const right = judge.check(question)
      seen[`${right}`]++
      for (const explain of [false, true]) {
        const relationView = relationViewOf(view, model, 'o', contextual)
        const asked = {
          ...{ organization: 'o', subject, app: null, explain, relationView },
          conditions: new ConditionRun(view, context),
        }
        const found = answered(() => answerCheck(view, model, asked, { relation, resource }))
        const allowed = found?.allowed ?? null
        // A condition of which nothing can be told need not matter: the answer then is the same whatever it comes to.
        const rights = right === null && allowed !== null ? whichever.map((one) => one.check(question)) : [right]
        for (const expected of rights)
          expect([seed, subject, relation, resource, allowed]).toEqual([seed, subject, relation, resource, expected])
        if (explain && right === true && !subject.includes('#')) expect(found?.reason?.path.length).toBeGreaterThan(0)
      }
    }
  }
  expect(seen.true).toBeGreaterThan(100)
  expect(seen.false).toBeGreaterThan(100)
})

const MODEL = `model
  schema 1.1
type user
type team
  relations
    define lead: [user]
    define member: [user, user:*, team#member] or lead
type folder
  relations
    define parent: [folder]
    define org: [organization]
    define banned: [user]
    define viewer: [user, team#member, group#member, organization#member] or viewer from parent
    define reader: viewer but not banned
    define staff: [user] or member from org or active_member from org
type doc
  relations
    define parent: [folder]
    define folder: [folder with at_work]
    define shared: [user with at_work, team#member with at_work]
    define viewer: viewer from parent
    define reader: reader from parent
    define staff: staff from parent
    define worker: viewer from folder
    define editor: [user, user:*, team#member, group#member, team#lead, organization#member]
    define both: editor and viewer
condition at_work(hour: int) {
  hour > 8
}
`
const WIDE = 1_001

describe.each([
  ['memory', (): Store => memoryStore()],
  ['the cache', (): Store => remoteMemoryStore()],
])('with %s', (_, open) => {
  const many = (make: (i: number) => string): Change[] => Array.from({ length: WIDE }, (_, i) => put(make(i)))
  const opened = async (...changes: Change[]) => {
    const store = open()
    const manifest = { app: 'a', audiences: [], permissions: {}, roles: {}, model: MODEL }
    await given(store, ENVIRONMENT, { kind: 'manifest', manifest })
    await given(store, 'acme', ...changes)
    return { store, pdp: createPdp({ store, tuplesPerCheckMax: 900 }) }
  }
  const parents = many((i) => `doc:1#parent@folder:${i}`)

  test.each<[string, string, readonly string[]]>([
    ['the subject itself', 'viewer', ['folder:7#viewer@user:ann']],
    ['a userset', 'viewer', ['folder:7#viewer@team:x#member', 'team:x#member@user:ann']],
    ['a rule of the userset', 'viewer', ['folder:7#viewer@team:x#member', 'team:x#lead@user:ann']],
    [
      'nested usersets',
      'viewer',
      ['folder:7#viewer@team:x#member', 'team:x#member@team:y#member', 'team:y#lead@user:ann'],
    ],
    ['everybody in a userset', 'viewer', ['folder:7#viewer@team:x#member', 'team:x#member@user:*']],
    [
      'groups in groups',
      'viewer',
      ['folder:7#viewer@group:x#member', 'group:x#member@group:y#member', 'group:y#member@user:ann'],
    ],
    [
      'parents of parents',
      'viewer',
      ['folder:7#parent@folder:up', 'folder:up#parent@folder:top', 'folder:top#viewer@user:ann'],
    ],
    ['a membership', 'viewer', ['folder:7#viewer@organization:acme#member']],
    ['what another rule leads to', 'reader', ['folder:7#viewer@user:ann']],
    ['a tier of the parent', 'staff', ['folder:7#org@organization:acme']],
    ['another tier of the parent', 'staff', ['folder:7#org@organization:acme']],
  ])('one of very many parents is found by %s', async (_, relation, texts) => {
    const { pdp, store } = await opened(...parents, member('ann', 'member'))
    expect(await pdp.can('acme', user('ann'), relation, 'doc:1')).toBe(false)
    await given(store, 'acme', ...texts.map((text) => put(text)))
    expect(await pdp.can('acme', user('ann'), relation, 'doc:1')).toBe(true)
    await given(store, 'acme', { kind: 'tuple', op: 'delete', tuple: tuple('doc:1#parent@folder:7') })
    expect(await pdp.can('acme', user('ann'), relation, 'doc:1')).toBe(false)
  })

  test('a parent that takes away what it gives is none that holds the subject', async () => {
    const { pdp } = await opened(...parents, put('folder:7#viewer@user:ann'), put('folder:7#banned@user:ann'))
    expect(await pdp.can('acme', user('ann'), 'reader', 'doc:1')).toBe(false)
  })

  test.each<[string, readonly string[]]>([
    ['named itself', ['doc:1#editor@user:ann']],
    ['everybody', ['doc:1#editor@user:*']],
    ['in one of them', ['team:7#member@user:ann']],
    ['in one of them by a rule', ['team:7#lead@user:ann']],
    ['in a group', ['doc:1#editor@group:x#member', 'group:x#member@user:ann']],
    ['a lead', ['doc:1#editor@team:z#lead', 'team:z#lead@user:ann']],
    ['a member', ['doc:1#editor@organization:acme#member']],
  ])('of very many usersets those are found that hold who is %s', async (_, texts) => {
    const { pdp, store } = await opened(...many((i) => `doc:1#editor@team:${i}#member`), member('ann', 'member'))
    expect(await pdp.can('acme', user('ann'), 'editor', 'doc:1')).toBe(false)
    await given(store, 'acme', ...texts.map((text) => put(text)))
    expect(await pdp.can('acme', user('ann'), 'editor', 'doc:1')).toBe(true)
    const permissions = [{ relation: 'editor', resource: 'doc:1' }]
    const [result] = (await pdp.decide({ organization: 'acme', subject: user('ann'), permissions, explain: true }))
      .permissions
    expect(result?.reason?.path.length).toBeGreaterThan(0)
  })

  test('without a model, usersets of usersets are found too', async () => {
    const store = open()
    await given(store, 'acme', ...many((i) => `thing:1#r@team:${i}#x`), put('team:7#x@squad:1#y'))
    const pdp = createPdp({ store, tuplesPerCheckMax: 100 })
    expect(await pdp.can('acme', user('ann'), 'r', 'thing:1')).toBe(false)
    await given(store, 'acme', put('squad:1#y@user:ann'))
    expect(await pdp.can('acme', user('ann'), 'r', 'thing:1')).toBe(true)
    await given(store, 'acme', { kind: 'tuple', op: 'delete', tuple: tuple('team:7#x@squad:1#y') })
    expect(await pdp.can('acme', user('ann'), 'r', 'thing:1')).toBe(false)
  })

  test('conditions count there as everywhere, on the tuple and in the question', async () => {
    const on = (text: string): Change => ({
      kind: 'tuple',
      op: 'write',
      tuple: { ...tuple(text), condition: { name: 'at_work', context: {} } },
    })
    const { pdp } = await opened(
      ...many((i) => `doc:1#folder@folder:${i}`).map((change) =>
        change.kind === 'tuple' ? on(`${change.tuple.object}#folder@${change.tuple.subject}`) : change,
      ),
      ...many((i) => `doc:1#shared@team:${i}#member`).map((change) =>
        change.kind === 'tuple' ? on(`doc:1#shared@${change.tuple.subject}`) : change,
      ),
      put('folder:7#viewer@user:ann'),
      put('team:7#member@user:ann'),
    )
    for (const relation of ['worker', 'shared']) {
      expect(await pdp.can('acme', user('ann'), relation, 'doc:1', { context: { hour: 9 } })).toBe(true)
      expect(await pdp.can('acme', user('ann'), relation, 'doc:1', { context: { hour: 3 } })).toBe(false)
      expect(await pdp.can('acme', user('bob'), relation, 'doc:1')).toBe(false)
      await expect(pdp.can('acme', user('ann'), relation, 'doc:1')).rejects.toMatchObject({ code: 'condition_failed' })
    }
  })

  test('tuples and groups of the question lead there too', async () => {
    const { pdp } = await opened(
      ...parents,
      put('folder:7#viewer@team:x#member'),
      put('folder:8#viewer@group:g#member'),
    )
    const permissions = [{ relation: 'viewer', resource: 'doc:1' }]
    const ask = async (more: object) =>
      (await pdp.decide({ organization: 'acme', subject: user('ann'), permissions, ...more })).permissions[0]?.allowed
    expect(await ask({})).toBe(false)
    expect(await ask({ contextualTuples: [{ object: 'team:x', relation: 'member', subject: 'user:ann' }] })).toBe(true)
    expect(await ask({ contextualTuples: [{ object: 'group:g', relation: 'member', subject: 'user:ann' }] })).toBe(true)
    expect(await ask({ memberships: { groups: ['g'], organizations: ['acme'] } })).toBe(true)
  })

  test('lists have them, from either side', async () => {
    const { store } = await opened(
      ...parents,
      put('folder:7#viewer@team:x#member'),
      put('team:x#member@user:ann'),
      put('team:x#member@user:bob'),
    )
    const pdp = createPdp({ store })
    const common = { organization: 'acme', relation: 'viewer', pageSize: 100 }
    expect(await pdp.listResources({ ...common, subject: user('ann'), type: 'doc' })).toMatchObject({
      items: ['doc:1'],
      complete: true,
    })
    expect(await pdp.listSubjects({ ...common, resource: 'doc:1', type: 'user' })).toMatchObject({
      items: ['user:ann', 'user:bob'],
      complete: true,
    })
  })

  test('who is in more than may be visited gets no answer, and never a wrong one', async () => {
    const { pdp } = await opened(...parents, ...many((i) => `folder:x${i}#viewer@user:ann`))
    await expect(pdp.can('acme', user('ann'), 'viewer', 'doc:1')).rejects.toMatchObject({ code: 'evaluation_limit' })
  })
})

function compiled(text: string): Model | null {
  try {
    return compileModel(text)
  } catch (err) {
    if (err instanceof PdpError) return null
    throw err
  }
}

/** Null for none. */
function answered(ask: () => Answer | undefined): Answer | null | undefined {
  try {
    return ask()
  } catch (err) {
    if (isUndecided(err)) return null
    throw err
  }
}
