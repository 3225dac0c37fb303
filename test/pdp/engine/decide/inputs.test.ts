/** Every input counts: no answer is remembered under a key that lacks something that can change it. */
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createPdp } from '../../../../pdp/engine/decision-point/create-pdp.ts'
import type { Store } from '../../../../pdp/engine/store/contract.ts'
import { memoryStore } from '../../../../pdp/engine/store/memory/memory.ts'
import { appendJournal } from '../../../../pdp/engine/store/postgres/journal.ts'
import { openPostgres } from '../../../../pdp/engine/store/postgres/postgres.ts'
import type { Change } from '../../../../pdp/shared/domain/change.ts'
import type {
  AskedSubject,
  DecideRequest,
  Decision,
  Pdp,
  PermissionCheck,
} from '../../../../pdp/shared/domain/decision.ts'
import { ENVIRONMENT, TOKENS } from '../../../../pdp/shared/domain/journal.ts'
import type { Manifest } from '../../../../pdp/shared/domain/manifest.ts'
import { revocationKey } from '../../../../pdp/shared/domain/revocation.ts'
import { service, user } from '../../../../pdp/shared/domain/subjects.ts'
import { type Edit, plantSource } from '../../../consistency/mistakes.ts'
import { openTestDatabase } from '../../../support/database.ts'
import { LONG } from '../../../support/effort.ts'
import { remoteMemoryStore } from '../../../support/stores.ts'
import { context, gate, given, grant, organization, put, putIf, tuple } from '../../../support/tuples.ts'

/** Whatever a request is made of: one that is new has no case below, which does not compile. */
type Field =
  | Exclude<keyof DecideRequest, 'subject' | 'permissions'>
  | `subject.${keyof AskedSubject}`
  // Without `any` a type alone is refused, and with it everything else is: no two requests differ in it alone.
  | `permissions.${Exclude<keyof PermissionCheck, 'any'>}`

const LATER_MS = Date.now() + 86_400_000
const VIEWS = { relation: 'viewer', resource: 'doc:1' }
const EDITS = { relation: 'editor', resource: 'doc:2' }
const LEVELED = { relation: 'leveled', resource: 'doc:1' }
const READS = { relation: 'reports:read', resource: 'organization:acme' }
const BASE = {
  organization: 'acme',
  subject: user('ann'),
  permissions: [VIEWS, READS, EDITS, LEVELED],
  entitlements: ['seats'],
  app: 'one',
  explain: false,
  audiences: [],
  revocationKeys: [revocationKey('client', 'ended')],
  issuedAtMs: LATER_MS,
  context: { level: 1 },
} satisfies DecideRequest
/** Requests that differ from the base in one input, and are answered otherwise for it. */
const OTHERS: { readonly [F in Field]: DecideRequest } = {
  organization: { ...BASE, organization: 'other' },
  actor: { ...BASE, actor: { type: 'service', id: 'bot' } },
  actors: { ...BASE, actors: [{ type: 'service', id: 'bot' }] },
  scopes: { ...BASE, actor: { type: 'service', id: 'bot' }, scopes: ['docs:read'] },
  'subject.type': { ...BASE, subject: service('ann') },
  'subject.id': { ...BASE, subject: user('bob') },
  'subject.relation': { ...BASE, subject: { ...user('ann'), relation: 'friend' } },
  'permissions.relation': { ...BASE, permissions: [{ ...VIEWS, relation: 'editor' }, READS, EDITS, LEVELED] },
  'permissions.resource': { ...BASE, permissions: [{ ...VIEWS, resource: 'doc:2' }, READS, EDITS, LEVELED] },
  entitlements: { ...BASE, entitlements: ['sso'] },
  app: { ...BASE, app: 'two' },
  explain: { ...BASE, explain: true },
  contextualTuples: { ...BASE, contextualTuples: [tuple('doc:2#editor@user:ann')] },
  withoutTuples: { ...BASE, withoutTuples: [tuple('doc:1#viewer@user:ann')] },
  asOfMs: { ...BASE, asOfMs: 1 },
  audiences: { ...BASE, audiences: ['https://two.example'] },
  revocationKeys: { ...BASE, revocationKeys: [revocationKey('jti', 'ended')] },
  issuedAtMs: { ...BASE, issuedAtMs: 0 },
  memberships: { ...BASE, memberships: { groups: ['~idp:group:barred'], organizations: ['acme'] } },
  context: { ...BASE, context: { level: 9 } },
}
/** Scopes count for an actor alone. */
const baseOf = (field: Field): DecideRequest => (field === 'scopes' ? OTHERS.actor : BASE)
const FIELDS = Object.keys(OTHERS) as readonly Field[]
/** Only a database has a token log. */
const OF_TOKENS: readonly Field[] = ['revocationKeys', 'issuedAtMs']
const ALL_AT_ONCE: DecideRequest = {
  ...BASE,
  permissions: [
    { ...VIEWS, relation: 'editor' },
    VIEWS,
    ...['doc:2', 'memo:1'].map((resource) => ({ ...VIEWS, resource })),
    READS,
    EDITS,
  ],
  entitlements: ['seats', 'sso'],
}
const REQUESTS: readonly DecideRequest[] = [BASE, ...Object.values(OTHERS), ALL_AT_ONCE]

const app = (name: string, model: string): Manifest => ({
  app: name,
  audiences: [`https://${name}.example`],
  permissions: { 'reports:read': 'Read reports' },
  roles: { reader: { name: 'Reader', permissions: name === 'one' ? ['reports:read'] : [] } },
  model: `model\n  schema 1.1\n${model}`,
  actors: 'both',
})
const DOC = 'define viewer: [user] but not barred\n    define editor: [user]\n    define leveled: [user with low]'
const DOCS = app(
  'one',
  `type doc\n  relations\n    define barred: [group#member]\n    ${DOC}\ncondition low(level: int) {\n  level < 5\n}`,
)
const MEMOS = app('two', 'type memo\n  relations\n    define owner: [user]\n    define viewer: [service] or owner')

async function fill(store: Store): Promise<void> {
  const manifests = [DOCS, MEMOS].map((manifest): Change => ({ kind: 'manifest', manifest }))
  await given(store, ENVIRONMENT, ...manifests, organization('acme'), organization('other'))
  const tuples = ['doc:1#viewer@user:ann', 'doc:1#editor@user:bob', 'memo:1#viewer@user:ann'].map((text) => put(text))
  tuples.push(put('doc:1#barred@group:~idp:group:barred#member'), putIf('doc:1#leveled@user:ann', 'low'))
  tuples.push(putIf('service:bot#acts_for@user:ann', 'scopes', { scopes: ['docs:read'] }))
  await given(
    store,
    'acme',
    ...tuples,
    grant('1', 'reader', 'user:ann', 'one'),
    grant('2', 'reader', 'service:bot', 'one'),
    gate('seats', true),
  )
}

/** Everything that was answered, without when. */
const shown = ({ permissions, entitlements, tokenRevoked: tokenDead, validUntilMs }: Decision): string =>
  JSON.stringify([permissions, [...entitlements], tokenDead, validUntilMs])

type Decide = Pick<Pdp, 'decide'>
type Answers = ReadonlyMap<DecideRequest, string>

/** What PDPs answer that were never asked anything else. */
async function answersOf(store: Store): Promise<Answers> {
  const right = new Map<DecideRequest, string>()
  for (const request of REQUESTS) right.set(request, shown(await createPdp({ store }).decide(request)))
  return right
}

/** Requests that are answered otherwise, when asked in this order or all at once. */
async function mistaken(pdp: Decide, right: Answers, order: readonly DecideRequest[]) {
  const answers: Decision[] = []
  for (const request of order) answers.push(await pdp.decide(request))
  answers.push(...(await Promise.all(order.map((request) => pdp.decide(request)))))
  return [...order, ...order].filter(
    (request, i) => answers[i] === undefined || shown(answers[i]) !== right.get(request),
  )
}

/** Answers like the PDP, but what it was asked before from memory: under all of a request but one field. */
function remembering(pdp: Decide, without: Field | null): Decide {
  const known = new Map<string, Promise<Decision>>()
  return {
    decide(request) {
      const [part, field] = without?.split('.') ?? []
      const key = JSON.stringify(request, (name, value) =>
        (field === undefined && name === part) || name === field ? undefined : value,
      )
      const answer = known.get(key) ?? pdp.decide(request)
      known.set(key, answer)
      return answer
    },
  }
}

type Opened = { readonly store: Store; close(): Promise<unknown> }
const opened = (store: Store): Opened => ({ store, close: async () => undefined })
const stores: Record<string, () => Promise<Opened>> = {
  memory: async () => opened(memoryStore()),
  'far memory': async () => opened(remoteMemoryStore()),
  postgres: async () => {
    const database = await openTestDatabase()
    const { store, sql, close } = await openPostgres({ connectionString: database.connectionString, poolCountMax: 4 })
    const ended = (['client', 'jti'] as const).map((by) => ({ kind: 'token', by, id: 'ended' }) as const)
    await sql.transaction((transaction) => appendJournal(transaction, TOKENS, ended, context))
    return { store, close: () => close().then(database.drop) }
  },
}

describe.each(Object.keys(stores))('on %s', (name) => {
  let store: Store
  let close: () => Promise<unknown>
  let right: Answers
  beforeAll(async () => {
    ;({ store, close } = await (stores[name] ?? Promise.reject)())
    await fill(store)
    right = await answersOf(store)
  })
  afterAll(() => close())

  const fields = FIELDS.filter((field) => name === 'postgres' || !OF_TOKENS.includes(field))
  test.each(fields)('%s changes the answer', (field) => {
    expect(right.get(OTHERS[field])).not.toBe(right.get(baseOf(field)))
  })

  test('whatever was asked before or at the same time changes nothing', async () => {
    const orders = fc.shuffledSubarray([...REQUESTS, ...REQUESTS], { minLength: 2 })
    await fc.assert(
      fc.asyncProperty(orders, async (order) => {
        expect(await mistaken(createPdp({ store }), right, order)).toEqual([])
      }),
      { numRuns: 20 },
    )
  })

  test.each(fields)('an answer remembered under everything but %s is found out', async (field) => {
    const pdp = remembering(createPdp({ store }), field)
    expect(await mistaken(pdp, right, [baseOf(field), OTHERS[field]])).not.toEqual([])
  })

  test('an answer remembered under everything is not', async () => {
    expect(await mistaken(remembering(createPdp({ store }), null), right, REQUESTS)).toEqual([])
  })
})

// A test of this test.
describe.runIf(LONG)('a copy of the source', () => {
  const plantedIn = (file: string, ...edits: readonly (readonly [string, string])[]): readonly Edit[] =>
    edits.map(([find, replace]) => ({ file, find, replace }))
  test.each<[string, 'near' | 'far', readonly Edit[]]>([
    [
      'a row set under its object alone',
      'far',
      plantedIn('engine/store/cache/rows-view.ts', [' && relation === this.#lastRelation', '']),
    ],
    [
      'the number of an object for any other',
      'near',
      plantedIn('engine/store/memory/tuple-index.ts', [
        'if (text !== this.#lastObject)',
        'if (this.#lastObject === null)',
      ]),
    ],
    [
      'the number of a subject for any other',
      'near',
      plantedIn('engine/store/memory/tuple-index.ts', [
        'if (text !== this.#lastSubject)',
        'if (this.#lastSubject === null)',
      ]),
    ],
    [
      'one model for all texts',
      'near',
      plantedIn(
        'engine/decide/models/known-models.ts',
        ['texts.map(knownModel)', 'texts.map((text) => knownModel((plantedText ??= text)))'],
        [
          'export function createModelCompiler',
          'let plantedText: string | undefined\nexport function createModelCompiler',
        ],
      ),
    ],
    [
      'the value of one entitlement for all',
      'far',
      plantedIn('engine/store/entitlements/cache.ts', [
        'value = known.values.get(key)',
        'value = [...known.values.values()][0]',
      ]),
    ],
  ])('is found out that remembers %s', async (issue, where, edits) => {
    const root = pathToFileURL(`${join(plantSource(`inputs ${issue}`, edits), 'pdp')}/`).href
    const planted: { createPdp: typeof createPdp } = await import(`${root}engine/decision-point/create-pdp.ts`)
    const memory: { memoryStore: typeof memoryStore } = await import(`${root}engine/store/memory/memory.ts`)
    const { currentView, positions, ...far } = memory.memoryStore()
    const store = where === 'near' ? { ...far, currentView, positions } : far
    await fill(store)
    const sound = remoteMemoryStore()
    await fill(sound)
    expect(await mistaken(planted.createPdp({ store }), await answersOf(sound), REQUESTS)).not.toEqual([])
  })
})
