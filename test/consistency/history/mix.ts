/** What the history checker writes and asks at random: everything that answers depend on, with a few hot rows. */
import type { Change } from '../../../pdp/shared/domain/change.ts'
import { DIRECTORY, ENVIRONMENT, type JournalId, TOKENS } from '../../../pdp/shared/domain/journal.ts'
import type { JsonObject } from '../../../pdp/shared/domain/json.ts'
import type { Manifest } from '../../../pdp/shared/domain/manifest.ts'
import type { RoleGrant } from '../../../pdp/shared/domain/role.ts'
import type { Tuple } from '../../../pdp/shared/domain/tuple.ts'
import { drop, gate, grant, member, organization, put, tuple } from '../../support/tuples.ts'
import { MODELS } from '../conditions/models.ts'
import { CONDITIONAL, conditionalManifest, conditionalQuestion, conditionalWrite } from '../conditions/world.ts'

export type Write = { readonly log: JournalId; readonly changes: readonly Change[] }
export type Check = { readonly relation: string; readonly resource: string }
export type Question = {
  readonly organization: string
  /** `user:<id>`, or the reader of the organization. */
  readonly subject: string
  /** `service:<id>`, which acts for the subject; absent: nobody does. */
  readonly actor?: string | undefined
  readonly permissions: readonly Check[]
  readonly entitlements: readonly string[]
  readonly context?: JsonObject | undefined
  readonly contextual?: readonly Tuple[] | undefined
}
/** What a run asks and writes mostly about, where the general mix comes by it too rarely. */
type Answered = 'groups' | 'tree' | 'gates' | 'expiry' | 'memberships' | 'grants' | 'delegation'
export type Focus = Answered | 'conditions' | 'revocations'

export const ORGANIZATIONS = ['o0', 'o1', 'p'] as const
export const USERS = ['u0', 'u1', 'u2'] as const
/** The client whose tokens ask in the organization, and are asked about on streams. */
export const readerOf = (organization: string): string => `reader-${organization}`
export const GATES = ['feature.a', 'feature.b'] as const
export const APP = 'a'
/** Its tokens need the person, the agent and the delegation. */
export const AUDIENCE = 'https://api.history.example'
export const AGENT = 'service:bot'
const LINK = `${AGENT}#acts_for@user:u0`

const manifest = (model: string | null, approves: boolean): Manifest => ({
  app: APP,
  audiences: [AUDIENCE],
  actors: 'both',
  permissions: { 'x:approve': 'Approve', 'x:list': 'List' },
  roles: { clerk: { name: 'Clerk', permissions: approves ? ['x:approve', 'x:list'] : ['x:list'] } },
  model,
})

/** The world before the first write. */
const SEED: readonly Write[] = [
  { log: ENVIRONMENT, changes: [organization('p'), organization('o1')] },
  { log: ENVIRONMENT, changes: [organization('o0', 'p')] },
  { log: ENVIRONMENT, changes: [{ kind: 'manifest', manifest: manifest(MODELS[0]?.text ?? null, true) }] },
  {
    log: ENVIRONMENT,
    changes: [{ kind: 'role', key: 'r', role: { key: 'r', name: 'R', permissions: ['x:read'] } }],
  },
]

/** For tokens of the agent: the person is there, lets it act, and has what it lacks. */
export const DELEGATED_SEED: readonly Write[] = [
  { log: 'o0', changes: [member('u0', 'member'), put(LINK), grant('user-u0-wide', 'r', 'user:u0')] },
]

/** Where conditions are in focus no other model is ever in force, so that no tuple of a question is refused. */
export const seedFor = (focus: Focus | undefined): readonly Write[] =>
  focus === 'conditions' ? [...SEED, { log: ENVIRONMENT, changes: [conditionalManifest()] }] : SEED

export const aboutReader = (question: Question): Question => ({
  ...question,
  subject: `service:${readerOf(question.organization)}`,
})

const GROUPS = ['g0', 'g1', 'g2'] as const
const DOCS = ['doc:0', 'doc:1'] as const
const EXPIRY_MS_MAX = 150
/** Organizations that come and go under `p`, at most at once. */
const VISITORS_MAX = 3

export function createMix(options: { random: () => number; nowMs: () => number; focus: Focus | null }) {
  const { random, nowMs, focus } = options
  const pick = <T>(items: readonly T[]): T => {
    const item = items[Math.floor(random() * items.length)]
    if (item === undefined) throw new TypeError('nothing to pick from')
    return item
  }
  let visitors: string[] = []
  let visitorsCount = 0
  let tokensCount = 0

  const user = (): string => `user:${pick(USERS)}`
  const group = (): string => `group:${pick(GROUPS)}`
  /** Somebody whom questions are about. */
  const holder = (log: JournalId): string => (random() < 0.25 ? pick([`service:${readerOf(log)}`, AGENT]) : user())
  const someTuple = (log: JournalId): string =>
    pick([
      () => `${pick(DOCS)}#${pick(['viewer', 'editor', 'banned'])}@${user()}`,
      () => `${pick(DOCS)}#viewer@${group()}#member`,
      () => 'doc:0#parent@doc:1',
      () => 'doc:0#viewer@user:*',
      () => `${group()}#member@${holder(log)}`,
      () => `thing:0#r@${holder(log)}`,
      () => `${group()}#member@${group()}#member`,
      () => `thing:0#r@organization:${pick(['o0', 'o1'])}#member`,
      () => `${AGENT}#acts_for@${user()}`,
      // Two hot rows, which the hot question needs both of.
      () => 'group:g0#member@user:u0',
      () => 'thing:0#r@group:g0#member',
    ])()
  const tupleChange = (text: string): Change => {
    if (random() < 0.45) return { kind: 'tuple', op: 'delete', tuple: tuple(text) }
    return put(text, random() < 0.12 ? nowMs() + 1 + Math.floor(random() * EXPIRY_MS_MAX) : null)
  }
  const tuples = (): Write => {
    const log = pick(ORGANIZATIONS)
    const changes = new Map<string, Change>()
    for (let i = Math.floor(random() * 3); i >= 0; i--) {
      const text = someTuple(log)
      changes.set(text, tupleChange(text))
    }
    return { log, changes: [...changes.values()] }
  }
  /** Never allowed by it: the group loses the document when the user gets the group. */
  const crossMove = (): Write => ({
    log: pick(ORGANIZATIONS),
    changes: pick([
      [{ kind: 'tuple', op: 'delete', tuple: tuple('thing:0#r@group:g0#member') }, put('group:g0#member@user:u0')],
      [{ kind: 'tuple', op: 'delete', tuple: tuple('group:g0#member@user:u0') }, put('thing:0#r@group:g0#member')],
    ] as const),
  })
  const membership = (): Write => {
    const id = pick(USERS)
    const change: Change =
      random() < 0.3
        ? { kind: 'membership', user: id, membership: null }
        : member(id, pick(['owner', 'member'] as const), pick(['active', 'active', 'invited', 'suspended'] as const))
    return { log: pick(ORGANIZATIONS), changes: [change] }
  }
  const roleGrant = (): Write => {
    const log = pick(['p', ...ORGANIZATIONS])
    const subject = pick(['user:u0', 'user:u1', 'group:g0', 'group:g1', `service:${readerOf(log)}`, AGENT])
    const wide = random() < 0.25 && !subject.startsWith('group:')
    const app = pick([null, APP])
    const id = `${subject.replace(':', '-')}-${app ?? 'wide'}`
    const given = grant(id, app === null ? 'r' : 'clerk', subject, app) as Change & { grant: RoleGrant }
    // Now and then one that says something else of the grant, which is refused.
    const told = random() < 0.1 ? { ...given.grant, subject: user() } : given.grant
    const change: Change = { kind: 'role_grant', op: pick(['write', 'delete'] as const), grant: told }
    return { log: wide ? ENVIRONMENT : log, changes: [change] }
  }
  const tree = (): Write => ({ log: ENVIRONMENT, changes: [organization('o0', pick([null, 'p', 'o1']))] })
  const role = (): Write => ({
    log: ENVIRONMENT,
    changes: [
      random() < 0.2
        ? { kind: 'role', key: 'r', role: null }
        : { kind: 'role', key: 'r', role: { key: 'r', name: 'R', permissions: pick([[], ['x:read']]) } },
    ],
  })
  const newManifest = (): Write => ({
    log: ENVIRONMENT,
    changes: [
      {
        kind: 'manifest',
        manifest: manifest(
          focus === 'conditions' ? CONDITIONAL.text : pick([null, ...MODELS.map((m) => m.text)]),
          random() < 0.5,
        ),
      },
    ],
  })
  const entitlement = (): Write => {
    const key = pick(GATES)
    const change: Change = random() < 0.25 ? { kind: 'entitlement', key, entitlement: null } : gate(key, random() < 0.5)
    return { log: pick(ORGANIZATIONS), changes: [change] }
  }
  const visitor = (): Write => {
    const [oldest] = visitors
    if (oldest !== undefined && (visitors.length >= VISITORS_MAX || random() < 0.3)) {
      visitors = visitors.slice(1)
      return { log: ENVIRONMENT, changes: [{ kind: 'organization', id: oldest, organization: null }] }
    }
    const id = `t${visitorsCount++}`
    visitors.push(id)
    return { log: ENVIRONMENT, changes: [organization(id, 'p')] }
  }
  const visit = (): Write => ({
    log: visitors.length > 0 ? pick(visitors) : 'o0',
    changes: [pick([put('thing:0#r@user:u0'), member('u0', 'member'), gate('feature.a', true)])],
  })
  const token = (): Write => ({
    log: TOKENS,
    changes: [{ kind: 'token', by: pick(['jti', 'grant', 'session']), id: `j${tokensCount++}` }],
  })

  const person = (): Write => ({ log: DIRECTORY, changes: [{ kind: 'user', id: pick(USERS), op: 'write' }] })

  /** One of the three, or one goes as another comes. */
  const delegated = (): readonly Change[] => {
    const three = [LINK, `thing:0#r@${AGENT}`, 'thing:0#r@user:u0']
    const gone = pick(three)
    const come = pick(three)
    return random() < 0.5 || gone === come ? [tupleChange(gone)] : [drop(gone), put(come)]
  }

  const FOCUSED: { readonly [F in Focus]: () => Write } = {
    groups: () => {
      const text = pick([
        'group:g0#member@user:u0',
        'group:g1#member@group:g0#member',
        'group:g2#member@group:g1#member',
        'thing:0#r@group:g2#member',
      ])
      return { log: 'o0', changes: [tupleChange(text)] }
    },
    tree: () => (random() < 0.5 ? tree() : roleGrant()),
    gates: () => ({ ...entitlement(), log: 'o0' }),
    expiry: () => ({
      log: 'o0',
      changes: [
        put('group:g0#member@user:u0'),
        put('thing:0#r@group:g1#member'),
        put('group:g1#member@group:g0#member', nowMs() + 5 + Math.floor(random() * 60)),
      ],
    }),
    memberships: () => ({ ...membership(), log: 'o0' }),
    revocations: () => (random() < 0.6 ? token() : person()),
    grants: roleGrant,
    delegation: () => (random() < 0.2 ? roleGrant() : { log: 'o0', changes: delegated() }),
    conditions: () => {
      const change = conditionalWrite(pick)
      return { log: change.kind === 'manifest' ? ENVIRONMENT : 'o0', changes: [change] }
    },
  }
  const mixed: readonly (readonly [share: number, make: () => Write])[] = [
    [0.5, tuples],
    [0.08, crossMove],
    [0.08, membership],
    [0.1, roleGrant],
    [0.05, tree],
    [0.03, role],
    [0.03, newManifest],
    [0.06, entitlement],
    [0.02, visitor],
    [0.03, visit],
    [0.02, token],
  ]

  function write(): Write {
    if (focus !== null && random() < 0.7) return FOCUSED[focus]()
    let roll = random()
    for (const [share, make] of mixed) {
      roll -= share
      if (roll < 0) return make()
    }
    return tuples()
  }

  const focusedQuestion = (on: Answered): { organization: string; subject: string; checks: readonly Check[] } => {
    const checks = {
      groups: { relation: 'r', resource: 'thing:0' },
      delegation: { relation: 'r', resource: 'thing:0' },
      expiry: { relation: 'r', resource: 'thing:0' },
      gates: { relation: 'r', resource: 'thing:0' },
      tree: { relation: 'x:read', resource: 'organization:o0' },
      grants: { relation: 'x:read', resource: 'organization:o0' },
      memberships: { relation: 'member', resource: 'organization:o0' },
    }
    return { organization: 'o0', subject: pick(['user:u0', 'user:u0', 'user:u1']), checks: [checks[on]] }
  }
  const someCheck = (id: string): Check => {
    const [relation, resource] = pick([
      ['viewer', pick(DOCS)],
      ['viewer', pick(DOCS)],
      ['editor', pick(DOCS)],
      ['r', 'thing:0'],
      ['r', 'thing:0'],
      ['member', `organization:${id}`],
      ['active_member', `organization:${id}`],
      ['x:read', `organization:${id}`],
      ['x:approve', `app:${APP}`],
    ] as const)
    return { relation, resource }
  }

  function question(): Question {
    const focused = focus !== null && random() < 0.7 ? focus : null
    if (focused === 'conditions') {
      const { relation, resource, ...asked } = conditionalQuestion(pick)
      return { ...asked, permissions: [{ relation, resource }], entitlements: [] }
    }
    const asked = focused === null || focused === 'revocations' ? null : focusedQuestion(focused)
    const visited = visitors.length > 0 && random() < 0.06
    const id = asked?.organization ?? (visited ? pick(visitors) : pick(ORGANIZATIONS))
    const count = random() < 0.75 ? 1 : 3
    const permissions = asked?.checks ?? Array.from({ length: count }, () => someCheck(id))
    const gates = random() < (focus === 'gates' ? 0.9 : 0.1)
    const actor = random() < (focused === 'delegation' ? 0.9 : 0.1) ? AGENT : undefined
    const subject = asked?.subject ?? user()
    return { organization: id, subject, actor, permissions, entitlements: gates ? GATES : [] }
  }
  return { write, question }
}
