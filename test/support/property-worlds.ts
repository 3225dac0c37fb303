/** Random worlds for property tests: a model as text and as rules, and everything that decisions depend on. */
import fc from 'fast-check'
import type { Store } from '../../pdp/engine/store/contract.ts'
import type { Change } from '../../pdp/shared/domain/change.ts'
import { ENVIRONMENT } from '../../pdp/shared/domain/journal.ts'
import { MEMBERSHIP_STATUSES, type Membership, TIERS } from '../../pdp/shared/domain/membership.ts'
import type { RoleGrant } from '../../pdp/shared/domain/role.ts'
import type { Tuple } from '../../pdp/shared/domain/tuple.ts'
import type { Rule, Rules, World } from './reference.ts'
import { context, organization, tuple } from './tuples.ts'

/** Now, in every world. Some tuples expire at this very instant, some a millisecond later. */
export const NOW = 1_000_000

/** Relations of `doc` and `folder`. One refers to those before it and to itself, and negates only those before it. */
const RELATIONS = ['r0', 'r1', 'r2', 'r3'] as const
const TYPES = ['doc', 'folder'] as const
const OBJECTS = ['doc:0', 'doc:1', 'folder:0', 'folder:1'] as const
const GROUPS = ['group:0', 'group:1', 'group:2'] as const
export const ORGANIZATIONS = ['child', 'root', 'other'] as const
export const SUBJECTS = ['user:a', 'user:b', 'service:a'] as const
const KEYS = ['k0', 'k1'] as const

type Part = { readonly text: string; readonly rule: Rule }
type Relation = (typeof RELATIONS)[number]

/** The first part of a definition: whom tuples may name. */
const direct = (upTo: number): fc.Arbitrary<Part> => {
  const usersets = TYPES.flatMap((type) => RELATIONS.slice(0, upTo + 1).map((relation) => `${type}#${relation}`))
  return fc
    .subarray(['user', 'service', 'user:*', 'group#member', ...usersets], { minLength: 1, maxLength: 4 })
    .filter((names) => names.some((name) => !name.includes('#') || name === 'group#member'))
    .map((names) => ({ text: `[${names.join(', ')}]`, rule: { direct: names } }))
}
const other = (type: string, below: readonly Relation[], from: readonly Relation[]): fc.Arbitrary<Part> => {
  const computed = below.map((relation): Part => ({ text: relation, rule: { same: relation } }))
  const inherited =
    type === 'none' ? [] : from.map((r): Part => ({ text: `${r} from parent`, rule: { from: 'parent', relation: r } }))
  return fc.constantFrom(...computed, ...inherited)
}

function definition(type: string, index: number): fc.Arbitrary<Part> {
  const below = RELATIONS.slice(0, index)
  const positive = other(type, below, RELATIONS.slice(0, index + 1))
  const only = direct(index)
  const two = fc.record({ first: only, second: positive, third: positive })
  const union = two.map(
    ({ first, second }): Part => ({ text: `${first.text} or ${second.text}`, rule: { or: [first.rule, second.rule] } }),
  )
  if (index === 0) return fc.oneof({ weight: 3, arbitrary: only }, { weight: 1, arbitrary: union })
  // What has to hold besides, or must not, may not lead back here: the language refuses a relation without an entry.
  const strict = other(type, below, below)
  const three = fc.record({ first: only, second: strict, third: strict, inherited: positive })
  return fc.oneof(
    only,
    union,
    three.map(({ first, second }) => ({
      text: `${first.text} and ${second.text}`,
      rule: { and: [first.rule, second.rule] },
    })),
    three.map(({ first, inherited, third }) => ({
      text: `(${first.text} or ${inherited.text}) and ${third.text}`,
      rule: { and: [{ or: [first.rule, inherited.rule] }, third.rule] },
    })),
    three.map(({ first, second, inherited }) => ({
      text: `(${first.text} and ${second.text}) or ${inherited.text}`,
      rule: { or: [{ and: [first.rule, second.rule] }, inherited.rule] },
    })),
    three.map(({ first, second }) => ({
      text: `${first.text} but not ${second.text}`,
      rule: { base: first.rule, butNot: second.rule },
    })),
    three.map(({ first, inherited, third }) => ({
      text: `(${first.text} or ${inherited.text}) but not ${third.text}`,
      rule: { base: { or: [first.rule, inherited.rule] }, butNot: third.rule },
    })),
    three.map(({ first, second, third }) => ({
      text: `${first.text} but not (${second.text} and ${third.text})`,
      rule: { base: first.rule, butNot: { and: [second.rule, third.rule] } },
    })),
  )
}

export type RandomModel = { readonly text: string; readonly rules: Rules }
/** A folder's parent may not be a document, though tuples say so. */
const PARENTS = { doc: ['folder', 'doc'], folder: ['folder'] } as const
/** With and without a definition of `group`. */
export const models: fc.Arbitrary<RandomModel> = fc
  .record({
    doc: fc.tuple(...RELATIONS.map((_, i) => definition('doc', i))),
    folder: fc.tuple(...RELATIONS.map((_, i) => definition('folder', i))),
    group: fc.constantFrom(null, ['user', 'group#member'], ['user', 'user:*', 'service', 'group#member']),
  })
  .map(({ doc, folder, group }) => {
    const typeText = (type: keyof typeof PARENTS, parts: readonly Part[]): string =>
      `type ${type}\n  relations\n    define parent: [${PARENTS[type].join(', ')}]\n${parts.map((part, i) => `    define r${i}: ${part.text}\n`).join('')}`
    const typeRules = (type: keyof typeof PARENTS, parts: readonly Part[]) =>
      Object.fromEntries([
        ['parent', { direct: PARENTS[type] }] as const,
        ...parts.map((part, i) => [`r${i}`, part.rule] as const),
      ])
    const groupText = group === null ? '' : `type group\n  relations\n    define member: [${group.join(', ')}]\n`
    return {
      text: `model\n  schema 1.1\n${typeText('doc', doc)}${typeText('folder', folder)}${groupText}`,
      rules: {
        doc: typeRules('doc', doc),
        folder: typeRules('folder', folder),
        ...(group === null ? {} : { group: { member: { direct: group } } }),
      },
    }
  })

const pick = <T>(items: readonly T[]): fc.Arbitrary<T> => fc.constantFrom(...items)
/** Also such as the model forbids: those must not count. */
const tupleTexts: fc.Arbitrary<string> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc
      .tuple(pick(OBJECTS), pick(RELATIONS), pick([...SUBJECTS, 'user:*']))
      .map(([o, r, s]) => `${o}#${r}@${s}`),
  },
  {
    weight: 3,
    arbitrary: fc.tuple(pick(OBJECTS), pick(RELATIONS), pick(GROUPS)).map(([o, r, g]) => `${o}#${r}@${g}#member`),
  },
  {
    weight: 2,
    arbitrary: fc
      .tuple(pick(OBJECTS), pick(RELATIONS), pick(OBJECTS), pick(RELATIONS))
      .map(([o, r, p, q]) => `${o}#${r}@${p}#${q}`),
  },
  { weight: 4, arbitrary: fc.tuple(pick(OBJECTS), pick(OBJECTS)).map(([o, p]) => `${o}#parent@${p}`) },
  { weight: 3, arbitrary: fc.tuple(pick(GROUPS), pick([...SUBJECTS, 'user:*'])).map(([g, s]) => `${g}#member@${s}`) },
  { weight: 2, arbitrary: fc.tuple(pick(GROUPS), pick(GROUPS)).map(([g, h]) => `${g}#member@${h}#member`) },
  {
    weight: 1,
    arbitrary: pick([
      'free:0#r0@user:a',
      'free:0#r0@free:1#r1',
      'free:1#r1@user:*',
      'free:1#r1@organization:child#owner',
    ]),
  },
)
const expiries = fc.oneof(
  { weight: 6, arbitrary: fc.constant(null) },
  { weight: 1, arbitrary: pick([NOW - 1, NOW, NOW + 1]) },
)
export const tuples: fc.Arbitrary<Tuple> = fc
  .record({ text: tupleTexts, expiresAtMs: expiries })
  .map(({ text, expiresAtMs }) => tuple(text, expiresAtMs))
const tupleSets = (maxLength: number): fc.Arbitrary<readonly Tuple[]> =>
  fc.uniqueArray(tuples, { maxLength, selector: (t) => `${t.object}#${t.relation}@${t.subject}` })

const memberships = fc.dictionary(
  pick(['a', 'b']),
  fc.record<Membership>({ role: pick(TIERS), status: pick(MEMBERSHIP_STATUSES) }),
  {
    noNullPrototype: true,
  },
)
const grantsTo = (subjects: readonly string[]): fc.Arbitrary<readonly RoleGrant[]> =>
  fc
    .uniqueArray(
      fc.record({ app: pick([null, 'app']), role: pick(['wide', 'own', 'gone']), subject: pick(subjects) }),
      {
        maxLength: 4,
        selector: (g) => `${g.app}-${g.role}-${g.subject}`,
      },
    )
    .map((grants) => grants.map((g) => ({ id: `${g.app ?? 'wide'}-${g.role}-${g.subject}`, ...g })))

export type RandomWorld = {
  readonly model: RandomModel
  readonly parents: Readonly<Record<string, string | null>>
  readonly content: Readonly<
    Record<
      string,
      { tuples: readonly Tuple[]; memberships: Readonly<Record<string, Membership>>; grants: readonly RoleGrant[] }
    >
  >
  readonly environmentGrants: readonly RoleGrant[]
}
const contents = (maxLength: number) =>
  fc.record({ tuples: tupleSets(maxLength), memberships, grants: grantsTo([...SUBJECTS, ...GROUPS]) })
export const worlds: fc.Arbitrary<RandomWorld> = fc.record({
  model: models,
  parents: pick<Readonly<Record<string, string | null>>>([
    { child: 'root', root: null, other: null },
    { child: 'root', root: 'other', other: null },
    { child: null, root: null, other: 'child' },
  ]),
  content: fc.record({ child: contents(16), root: contents(6), other: contents(3) }),
  environmentGrants: grantsTo(SUBJECTS),
})

const MANIFEST = {
  app: 'app',
  audiences: [],
  permissions: { k0: 'k0', k1: 'k1' },
  roles: { own: { name: 'Own', permissions: ['k0'] } },
}
const WIDE = { key: 'wide', name: 'Wide', permissions: ['k1'] }

/** The same world, as the reference evaluator knows it. */
export function referenceWorld(world: RandomWorld): World {
  return {
    clockMs: NOW,
    organizations: new Map(Object.entries(world.parents).map(([id, parent]) => [id, { parent }])),
    content: new Map(
      Object.entries(world.content).map(([id, c]) => [
        id,
        { tuples: c.tuples, memberships: new Map(Object.entries(c.memberships)), grants: c.grants },
      ]),
    ),
    environmentGrants: world.environmentGrants,
    roles: [WIDE],
    manifests: [{ ...MANIFEST, model: world.model.text, version: 1 }],
    rules: world.model.rules,
  }
}

/** Everything but the tuples of `child`, which the caller writes in an order of its own. */
export async function writeWorld(store: Store, world: RandomWorld): Promise<void> {
  const grants = (all: readonly RoleGrant[]): Change[] =>
    all.map((grant) => ({ kind: 'role_grant', op: 'write', grant }))
  const write = async (log: string, changes: readonly Change[]): Promise<void> => {
    if (changes.length > 0) await store.write(log, changes, { context })
  }
  const inOrder = ORGANIZATIONS.filter((id) => id in world.parents).sort((a, b) => depth(world, a) - depth(world, b))
  await write(ENVIRONMENT, [
    ...inOrder.map((id) => organization(id, world.parents[id] ?? null)),
    { kind: 'manifest', manifest: { ...MANIFEST, model: world.model.text } },
    { kind: 'role', key: 'wide', role: WIDE },
    ...grants(world.environmentGrants),
  ])
  for (const [id, content] of Object.entries(world.content)) {
    await write(id, [
      ...(id === 'child' ? [] : content.tuples.map(written)),
      ...Object.entries(content.memberships).map(
        ([user, membership]): Change => ({ kind: 'membership', user, membership }),
      ),
      ...grants(content.grants),
    ])
  }
}
const depth = (world: RandomWorld, id: string): number => {
  const parent = world.parents[id] ?? null
  return parent === null ? 0 : 1 + depth(world, parent)
}
export const written = (of: Tuple): Change => ({ kind: 'tuple', op: 'write', tuple: of })
export const deleted = (of: Tuple): Change => ({ kind: 'tuple', op: 'delete', tuple: of })

/** Every question about `child` that is worth asking. */
export const CHECKS: readonly { readonly relation: string; readonly resource: string }[] = [
  ...OBJECTS.flatMap((resource) => [...RELATIONS, 'parent'].map((relation) => ({ relation, resource }))),
  ...GROUPS.map((resource) => ({ relation: 'member', resource })),
  ...[...TIERS, 'active_member', ...KEYS].map((relation) => ({ relation, resource: 'organization:child' })),
  { relation: 'owner', resource: 'organization:root' },
  ...KEYS.flatMap((relation) => ['app:app', 'app:none'].map((resource) => ({ relation, resource }))),
  { relation: 'r0', resource: 'free:0' },
  { relation: 'r1', resource: 'free:1' },
]

/** Documents that hold one another in circles, where a result may depend on one that is still being worked out. */
export const CIRCLES: { readonly model: RandomModel; readonly tuples: fc.Arbitrary<readonly Tuple[]> } = {
  model: {
    text: `model
  schema 1.1
type doc
  relations
    define parent: [doc]
    define r0: [user, doc#r0, doc#r1] or r1 from parent
    define r1: [doc#r0] and r0
    define r2: [user, doc#r2] or (r0 from parent and r1)
    define r3: r0 but not r1
`,
    rules: {
      doc: {
        parent: { direct: ['doc'] },
        r0: { or: [{ direct: ['user', 'doc#r0', 'doc#r1'] }, { from: 'parent', relation: 'r1' }] },
        r1: { and: [{ direct: ['doc#r0'] }, { same: 'r0' }] },
        r2: {
          or: [{ direct: ['user', 'doc#r2'] }, { and: [{ from: 'parent', relation: 'r0' }, { same: 'r1' }] }],
        },
        r3: { base: { same: 'r0' }, butNot: { same: 'r1' } },
      },
    },
  },
  tuples: fc
    .record({
      links: fc.uniqueArray(
        fc.tuple(pick([0, 1, 2, 3]), pick(['r0', 'r0', 'r1', 'parent']), pick([0, 1, 2, 3]), pick(['r0', 'r0', 'r1'])),
        { minLength: 8, maxLength: 20, selector: (link) => link.join() },
      ),
      held: fc.uniqueArray(pick([0, 1, 2, 3]), { minLength: 1, maxLength: 2 }),
    })
    .map(({ links, held }) => [
      ...new Set([
        ...links.map(([i, r, j, q]) => (r === 'parent' ? `doc:${i}#parent@doc:${j}` : `doc:${i}#${r}@doc:${j}#${q}`)),
        ...held.map((i) => `doc:${i}#r0@user:a`),
      ]),
    ])
    .map((texts) => texts.map((text) => tuple(text))),
}
export const CIRCLE_CHECKS = [0, 1, 2, 3].flatMap((i) =>
  ['r0', 'r1', 'r2', 'r3'].map((relation) => ({ relation, resource: `doc:${i}` })),
)
