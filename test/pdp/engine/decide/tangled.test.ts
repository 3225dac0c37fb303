/** Relations that lean on each other in circles: every question has its one answer, whatever order things are found in. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { compileModel } from '../../../../pdp/engine/decide/language/model-language.ts'
import { Search } from '../../../../pdp/engine/decide/search/search.ts'
import { Slice } from '../../../../pdp/engine/decide/slices.ts'
import { FALSE, TRUE } from '../../../../pdp/engine/decide/view.ts'
import { createPdp } from '../../../../pdp/engine/decision-point/create-pdp.ts'
import type { Store } from '../../../../pdp/engine/store/contract.ts'
import { memoryStore } from '../../../../pdp/engine/store/memory/memory.ts'
import type { Pdp, PermissionResult } from '../../../../pdp/shared/domain/decision.ts'
import { ENVIRONMENT } from '../../../../pdp/shared/domain/journal.ts'
import { user } from '../../../../pdp/shared/domain/subjects.ts'
import { effort } from '../../../support/effort.ts'
import { type Rules, referenceAnswer, type World } from '../../../support/reference.ts'
import { remoteMemoryStore } from '../../../support/stores.ts'
import { given, put, tuple } from '../../../support/tuples.ts'

const limit = { code: 'evaluation_limit' }
const TEAMS = `model
  schema 1.1
type team
  relations
    define member: [user, team#member]
`
/** A relation is subtracted that leads back to it: whether that is sound is for the tuples to say. */
const GAME = `model
  schema 1.1
type position
  relations
    define move: [position]
    define player: [user]
    define held: [user]
    define beaten: [user] or won from move
    define won: held or (player but not beaten)
`
const GAME_RULES: Rules = {
  position: {
    move: { direct: ['position'] },
    player: { direct: ['user'] },
    held: { direct: ['user'] },
    beaten: { or: [{ direct: ['user'] }, { from: 'move', relation: 'won' }] },
    won: { or: [{ same: 'held' }, { base: { same: 'player' }, butNot: { same: 'beaten' } }] },
  },
}
const MIXED = `model
  schema 1.1
type doc
  relations
    define parent: [doc]
    define banned: [user, doc#viewer] or banned from parent
    define editor: [user, doc#viewer, doc#reader]
    define viewer: [user, doc#reader] or editor or viewer from parent
    define reader: [user, doc#reader] or (viewer but not banned)
    define objected: [user] or signer from parent
    define signer: (reader and viewer from parent) but not objected
`
const MIXED_RULES: Rules = {
  doc: {
    parent: { direct: ['doc'] },
    banned: { or: [{ direct: ['user', 'doc#viewer'] }, { from: 'parent', relation: 'banned' }] },
    editor: { direct: ['user', 'doc#viewer', 'doc#reader'] },
    viewer: { or: [{ direct: ['user', 'doc#reader'] }, { same: 'editor' }, { from: 'parent', relation: 'viewer' }] },
    reader: { or: [{ direct: ['user', 'doc#reader'] }, { base: { same: 'viewer' }, butNot: { same: 'banned' } }] },
    objected: { or: [{ direct: ['user'] }, { from: 'parent', relation: 'signer' }] },
    signer: {
      base: { and: [{ same: 'reader' }, { from: 'parent', relation: 'viewer' }] },
      butNot: { same: 'objected' },
    },
  },
}

async function opened(model: string, texts: readonly string[], store: Store = memoryStore()): Promise<Pdp> {
  const manifest = { app: 'app', audiences: [], permissions: {}, roles: {}, model }
  await given(store, ENVIRONMENT, { kind: 'manifest', manifest })
  await given(store, 'acme')
  for (let i = 0; i < texts.length; i += 1_000)
    await given(store, 'acme', ...texts.slice(i, i + 1_000).map((text) => put(text)))
  return createPdp({ store })
}

async function ask(pdp: Pdp, checks: readonly string[], explain = false): Promise<readonly PermissionResult[]> {
  const permissions = checks.map((check) => {
    const [resource = '', relation = ''] = check.split('#')
    return { relation, resource }
  })
  return (await pdp.decide({ organization: 'acme', subject: user('ann'), permissions, explain })).permissions
}

const answers = (results: readonly PermissionResult[]): readonly (boolean | null)[] =>
  results.map(({ allowed, error }) => (error === undefined ? allowed : null))

function reference(rules: Rules, texts: readonly string[], checks: readonly string[]): readonly (boolean | null)[] {
  const world: World = {
    clockMs: 0,
    organizations: new Map([['acme', { parent: null }]]),
    content: new Map([['acme', { tuples: texts.map((text) => tuple(text)), memberships: new Map(), grants: [] }]]),
    environmentGrants: [],
    roles: [],
    manifests: [],
    rules,
  }
  return checks.map((check) => {
    const [resource = '', relation = ''] = check.split('#')
    return referenceAnswer(world, { organization: 'acme', subject: 'user:ann', relation, resource, app: null })
  })
}

/** The same for the same seed. */
function randomOf(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (state * 48_271) % 2_147_483_647
    return state % below
  }
}

describe.each([
  ['memory', () => memoryStore()],
  ['the cache', () => remoteMemoryStore()],
])('with %s', (_, store) => {
  test('teams that all name each other answer for those who are in one, and for those who are not', async () => {
    const names = Array.from({ length: 8 }, (_, i) => `team:${i}`)
    const all = names.flatMap((a) => names.filter((b) => b !== a).map((b) => `${a}#member@${b}#member`))
    const checks = names.map((name) => `${name}#member`)
    expect(answers(await ask(await opened(TEAMS, all, store()), checks))).toEqual(checks.map(() => false))
    const held = [...all, 'team:5#member@user:ann']
    expect(answers(await ask(await opened(TEAMS, held, store()), checks))).toEqual(checks.map(() => true))
  })

  test.each([60, 200])(
    'random graphs of %i teams with two members each are answered, every one of them',
    async (count) => {
      const random = randomOf(count)
      let allows = 0
      for (let graph = 0; graph < 3; graph++) {
        const named = Array.from({ length: count }, (_, i) => i).flatMap((i) => [
          `team:${i}#member@team:${random(count)}#member`,
          random(10) === 0 ? `team:${i}#member@user:ann` : `team:${i}#member@team:${random(count)}#member`,
        ])
        const texts = [...new Set(named)]
        const checks = Array.from({ length: count }, (_, i) => `team:${i}#member`)
        const rules = { team: { member: { direct: ['user', 'team#member'] } } }
        const right = reference(rules, texts, checks)
        allows += right.filter((answer) => answer === true).length
        expect(answers(await ask(await opened(TEAMS, texts, store()), checks))).toEqual(right)
      }
      expect(allows).toBeGreaterThan(count / 2)
    },
  )

  test('nothing but the number of tuples bounds how deep usersets, parents and groups may go', async () => {
    const deep = (link: (i: number) => string) => Array.from({ length: 60 }, (_, i) => link(i))
    const texts = [
      ...deep((i) => `team:${i}#member@team:${i + 1}#member`),
      'team:60#member@user:ann',
      ...deep((i) => `doc:${i}#parent@doc:${i + 1}`),
      'doc:60#viewer@user:ann',
      ...deep((i) => `group:${i}#member@group:${i + 1}#member`),
      'group:60#member@user:ann',
      'free:1#reader@group:0#member',
    ]
    const pdp = await opened(`${TEAMS}${MIXED.slice(MIXED.indexOf('type doc'))}`, texts, store())
    expect(answers(await ask(pdp, ['team:0#member', 'doc:0#viewer', 'free:1#reader', 'doc:0#banned']))).toEqual([
      true,
      true,
      true,
      false,
    ])
  })

  test('a circle below what is subtracted is complete before it is subtracted', async () => {
    const model = `${TEAMS}type doc\n  relations\n    define banned: [team#member]\n    define viewer: [user] but not banned\n`
    const circle = ['team:a#member@team:b#member', 'team:b#member@team:c#member', 'team:c#member@team:a#member']
    const texts = [...circle, 'doc:1#viewer@user:ann', 'doc:1#banned@team:a#member']
    expect(answers(await ask(await opened(model, texts, store()), ['doc:1#viewer']))).toEqual([true])
    const held = [...texts, 'team:c#member@user:ann']
    expect(answers(await ask(await opened(model, held, store()), ['doc:1#viewer', 'doc:1#banned']))).toEqual([
      false,
      true,
    ])
  })
})

describe('a relation that is subtracted from itself', () => {
  const moves = (...pairs: readonly string[]) => [
    ...pairs.map((pair) => `position:${pair[0]}#move@position:${pair[1]}`),
    ...['a', 'b', 'c', 'd'].map((position) => `position:${position}#player@user:ann`),
  ]
  const checks = ['a', 'b', 'c', 'd'].map((position) => `position:${position}#won`)

  test('is answered where the tuples lead nowhere in a circle', async () => {
    const found = answers(await ask(await opened(GAME, moves('ab', 'bc', 'cd')), checks))
    expect(found).toEqual([false, true, false, true])
  })

  test('has no answer where it would depend on its own absence, and has one everywhere else', async () => {
    const pdp = await opened(GAME, moves('aa', 'ba', 'cd', 'bd'))
    expect(answers(await ask(pdp, checks))).toEqual(reference(GAME_RULES, moves('aa', 'ba', 'cd', 'bd'), checks))
    expect(answers(await ask(pdp, checks))).toEqual([null, false, false, true])
    await expect(pdp.can('acme', user('ann'), 'won', 'position:a')).rejects.toMatchObject({
      ...limit,
      message: 'position:a#won depends on its own absence ("but not")',
    })
  })

  test('is answered in a circle too, where something else decides it', async () => {
    const texts = [...moves('aa', 'bb'), 'position:a#held@user:ann', 'position:b#beaten@user:ann']
    expect(answers(await ask(await opened(GAME, texts), checks.slice(0, 2)))).toEqual([true, false])
  })
})

describe('in random graphs', () => {
  const links = fc.uniqueArray(
    fc.tuple(
      fc.constantFrom('parent', 'parent', 'banned', 'editor', 'viewer', 'reader'),
      fc.nat(4),
      fc.constantFrom('user', 'viewer', 'reader', 'doc'),
      fc.nat(4),
    ),
    { minLength: 6, maxLength: 24, selector: (link) => link.join() },
  )
  const textsOf = (all: readonly (readonly [string, number, string, number])[]): readonly string[] => [
    ...new Set(
      all.map(([relation, i, kind, j]) =>
        relation === 'parent'
          ? `doc:${i}#parent@doc:${j}`
          : kind === 'user'
            ? `doc:${i}#${relation}@user:ann`
            : `doc:${i}#${relation}@doc:${j}#${kind === 'doc' ? 'viewer' : kind}`,
      ),
    ),
  ]
  const checks = [0, 1, 2, 3, 4].flatMap((i) =>
    ['viewer', 'reader', 'banned', 'signer'].map((relation) => `doc:${i}#${relation}`),
  )

  test('every answer is the reference’s, through "but not" and back, in whatever order the tuples were written', async () => {
    const seen = { allowed: 0, denied: 0, neither: 0 }
    await fc.assert(
      fc.asyncProperty(links, fc.boolean(), fc.nat(), async (all, cached, seed) => {
        const texts = textsOf(all)
        const random = randomOf(1 + seed)
        const shuffled = texts.map((text) => ({ text, at: random(1_000_000) })).sort((a, b) => a.at - b.at)
        const right = reference(MIXED_RULES, texts, checks)
        for (const answer of right) seen[answer === null ? 'neither' : answer ? 'allowed' : 'denied']++
        const store = cached ? remoteMemoryStore() : memoryStore()
        expect(answers(await ask(await opened(MIXED, texts, store), checks))).toEqual(right)
        const again = await opened(
          MIXED,
          shuffled.map(({ text }) => text),
        )
        expect(answers(await ask(again, checks.toReversed(), true))).toEqual(right.toReversed())
      }),
      { numRuns: effort({ short: 100, long: 300 }) },
    )
    for (const count of Object.values(seen)) expect(count).toBeGreaterThan(effort({ short: 10, long: 50 }))
  })

  test('the path of an allow is a chain of tuples that are there, from the resource to the subject, and no rule comes twice', async () => {
    await fc.assert(
      fc.asyncProperty(links, async (all) => {
        const texts = textsOf(all)
        for (const result of await ask(await opened(MIXED, texts), checks, true)) {
          if (!result.allowed) continue
          const path = result.reason?.path ?? []
          const tuples = path.flatMap((step) => ('tuple' in step ? [step.tuple] : []))
          expect(path.length).toBeGreaterThan(0)
          expect(texts).toEqual(expect.arrayContaining(tuples))
          const rules = path.flatMap((step) => ('rule' in step ? [step.rule] : []))
          expect(new Set(rules).size).toBe(rules.length)
          expect(tuples.some((text) => text.endsWith('@user:ann'))).toBe(true)
        }
      }),
      { numRuns: effort({ short: 50, long: 150 }) },
    )
  })
})

describe('a bound that is reached in one operand', () => {
  const model = compileModel(`${TEAMS}type doc
  relations
    define wide: [team#member]
    define deep: [team#member]
    define far: [doc#far, user]
    define named: [user]
    define none: [user]
    define or_first: wide or named
    define or_last: named or wide
    define or_far: deep or far
    define or_none: wide or none
    define and_first: wide and none
    define and_last: none and wide
    define and_named: wide and named
    define not_base: wide but not named
    define not_subtracted: none but not wide
    define not_known: named but not wide
`)
  const texts = [
    ...Array.from({ length: 251 }, (_, i) => `doc:1#wide@team:${i}#member`),
    // As many as on the other side, so that no side is short enough.
    ...Array.from({ length: 251 }, (_, i) => `team:own${i}#member@user:ann`),
    ...Array.from({ length: 3 }, (_, i) => `doc:1#deep@team:tree${i}#member`),
    ...Array.from({ length: 200 }, (_, i) =>
      Array.from({ length: 3 }, (_, child) => `team:tree${i}#member@team:tree${3 * i + 3 + child}#member`),
    ).flat(),
    'doc:1#named@user:ann',
    ...Array.from({ length: 5 }, (_, i) => `doc:${i + 1}#far@doc:${i + 2}#far`),
    'doc:6#far@user:ann',
  ]

  test.each([
    ['or_first', TRUE],
    ['or_last', TRUE],
    ['or_far', TRUE],
    ['or_none', null],
    ['and_first', FALSE],
    ['and_last', FALSE],
    ['and_named', null],
    ['not_base', FALSE],
    ['not_subtracted', FALSE],
    ['not_known', null],
  ])('does not hide what the other one decides: %s', async (relation, right) => {
    const store = memoryStore()
    await given(store, 'acme', ...texts.map((text) => put(text)))
    const search = new Search({
      view: store.currentView(),
      log: 'acme',
      model,
      subject: 'user:ann',
      tuplesMax: 250,
    })
    const held = () => search.holdsWithin(new Slice(Number.POSITIVE_INFINITY), 'doc:1', relation)
    if (right === null) expect(held).toThrow(expect.objectContaining(limit))
    else expect(held()).toBe(right)
    expect(search.tuplesCount).toBeLessThanOrEqual(250)
  })
})
