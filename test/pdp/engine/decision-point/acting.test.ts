/** What an actor does for a subject: both may, and the link stands, at one moment. */
import { describe, expect, test } from 'vitest'
import { createPdp } from '../../../../pdp/engine/decision-point/create-pdp.ts'
import type { Store } from '../../../../pdp/engine/store/contract.ts'
import { type MemoryStoreOptions, memoryStore } from '../../../../pdp/engine/store/memory/memory.ts'
import type { DecideRequest } from '../../../../pdp/shared/domain/decision.ts'
import { ENVIRONMENT } from '../../../../pdp/shared/domain/journal.ts'
import { parseTuple } from '../../../../pdp/shared/domain/names.ts'
import { service, user } from '../../../../pdp/shared/domain/subjects.ts'
import { effort } from '../../../support/effort.ts'
import { remoteMemoryStore } from '../../../support/stores.ts'
import { drop, given, grant, member, organization, put, putIf, tuple } from '../../../support/tuples.ts'

const LINK = 'service:bot#acts_for@user:alice'
const VIEWS = { relation: 'viewer', resource: 'doc:1' }
const bot = service('bot')
const START_MS = Date.parse('2026-01-01T00:00:00Z')

async function open(make: (options: MemoryStoreOptions) => Store = memoryStore) {
  let nowMs = START_MS
  const store = make({ clock: () => nowMs })
  const pdp = createPdp({ store })
  await given(store, ENVIRONMENT, organization('acme'), organization('other'))
  await given(store, 'acme', put('doc:1#viewer@user:alice'), put('doc:1#viewer@service:bot'), put(LINK))
  const ask = async (more: Partial<DecideRequest> = {}) => {
    const request = { organization: 'acme', subject: user('alice'), actor: bot, permissions: [VIEWS], ...more }
    const { permissions, validUntilMs } = await pdp.decide(request)
    const { allowed, reasonCode, reason } = permissions[0] ?? {}
    return { allowed, reasonCode, reason, validUntilMs }
  }
  const pass = (ms: number): void => {
    nowMs += ms
  }
  return { store, pdp, ask, pass }
}

describe.each([
  ['in memory', memoryStore],
  ['behind the cache', remoteMemoryStore],
])('an actor, %s,', (_, make) => {
  test('may what both may, while the subject lets it', async () => {
    const { ask } = await open(make)
    expect(await ask()).toMatchObject({ allowed: true, reasonCode: 'tuple' })
  })

  test.each([
    ['the link', LINK, 'delegation_missing'],
    ['the grant of the actor', 'doc:1#viewer@service:bot', 'actor_denied'],
    ['the grant of the subject', 'doc:1#viewer@user:alice', 'none'],
  ])('may nothing from the very call after %s went, and the answer says which', async (_what, gone, code) => {
    const { store, ask } = await open(make)
    await ask()
    await given(store, 'acme', drop(gone))
    expect(await ask()).toMatchObject({ allowed: false, reasonCode: code })
    await given(store, 'acme', put(gone))
    expect((await ask()).allowed).toBe(true)
  })

  test('may nothing when the link has expired, and the answer is valid until then', async () => {
    const { store, ask, pass } = await open(make)
    await given(store, 'acme', put(LINK, START_MS + 1_000))
    expect(await ask()).toMatchObject({ allowed: true, validUntilMs: START_MS + 1_000 })
    pass(1_000)
    expect(await ask()).toMatchObject({ allowed: false, reasonCode: 'delegation_missing' })
  })

  test.each([
    'service:bot#acts_for@user:bob',
    'service:bot#acts_for@user:*',
    'service:bot#acts_for@group:all#member',
    'service:other#acts_for@user:alice',
    'user:alice#acts_for@service:bot',
    'user:bot#acts_for@user:alice',
    'service:bot#acts@user:alice',
  ])('is not let by %s', async (link) => {
    const { store, ask } = await open(make)
    await given(store, 'acme', drop(LINK), put(link), put('group:all#member@user:alice'))
    expect(await ask()).toMatchObject({ allowed: false, reasonCode: 'delegation_missing' })
  })

  test('is let in the organization of the link alone', async () => {
    const { store, ask } = await open(make)
    await given(store, 'acme', drop(LINK))
    await given(store, 'other', put(LINK))
    expect((await ask()).reasonCode).toBe('delegation_missing')
  })
})

describe('an actor whom the subject lets act with some scopes', () => {
  const some = putIf(LINK, 'scopes', { scopes: ['docs:read', 'docs:list'], since: 1 })

  test('acts with tokens of these scopes, and with no others', async () => {
    const { store, ask } = await open(remoteMemoryStore)
    await given(store, 'acme', some)
    for (const scopes of [[], ['docs:read'], ['docs:list', 'docs:read']])
      expect(await ask({ scopes })).toMatchObject({ allowed: true })
    for (const scopes of [['docs:write'], ['docs:read', 'docs:write'], ['docs'], undefined])
      expect(await ask(scopes === undefined ? {} : { scopes })).toMatchObject({ reasonCode: 'delegation_missing' })
    await given(store, 'acme', put(LINK))
    expect((await ask({ scopes: ['docs:write'] })).allowed).toBe(true)
  })

  test('acts until then', async () => {
    const { store, ask, pass } = await open(remoteMemoryStore)
    const { tuple: link } = some as Extract<typeof some, { kind: 'tuple' }>
    const until = START_MS + 1_000
    await given(store, 'acme', { kind: 'tuple', op: 'write', tuple: { ...link, expiresAtMs: until } })
    expect(await ask({ scopes: [] })).toMatchObject({ allowed: true, validUntilMs: until })
    pass(1_000)
    expect((await ask({ scopes: [] })).reasonCode).toBe('delegation_missing')
  })

  test.each([
    ['low', { scopes: ['docs:read'] }],
    ['scopes', {}],
    ['scopes', { scopes: 'docs:read' }],
    ['scopes', { scopes: ['docs:read', 1] }],
    ['scopes', { scopes: ['docs:read'], level: 1 }],
  ])('is not let by the condition %s with %j', async (name, context) => {
    const { store, ask } = await open()
    await given(store, 'acme', putIf(LINK, name, context))
    expect((await ask({ scopes: ['docs:read'] })).reasonCode).toBe('delegation_missing')
  })
})

describe('a delegation that is written', () => {
  const MODEL = 'model\n  schema 1.1\ntype user\ntype service\n  relations\n    define owner: [user]\n'

  test('needs no place in a model of clients, and stays when one comes', async () => {
    const { store, pdp, ask } = await open()
    await pdp.putManifest('clients', { model: MODEL })
    expect((await ask()).allowed).toBe(true)
    await given(store, 'acme', drop(LINK))
    await pdp.write('acme', { write: [LINK] })
    expect((await ask()).allowed).toBe(true)
  })

  test.each([
    'service:bot#acts_for@user:*',
    'service:bot#acts_for@group:all#member',
    'service:bot#acts_for@service:other',
    { object: 'service:bot', relation: 'acts_for', subject: 'user:alice', condition: { name: 'low' } },
    { object: 'service:bot', relation: 'acts_for', subject: 'user:alice', condition: { name: 'scopes' } },
  ])('is refused: %j', async (link) => {
    const { pdp } = await open()
    await expect(pdp.write('acme', { write: [link] })).rejects.toMatchObject({ code: 'request_invalid' })
  })
})

describe('an actor', () => {
  test('gains neither from what the question supposes of the link, nor from groups of the subject’s token', async () => {
    const { store, ask } = await open()
    await given(store, 'acme', drop('doc:1#viewer@service:bot'), put('doc:1#viewer@group:idp#member'))
    const memberships = { groups: ['idp'], organizations: ['acme'] }
    expect((await ask({ memberships })).reasonCode).toBe('actor_denied')
    await given(store, 'acme', put('doc:1#viewer@service:bot'), drop(LINK))
    expect((await ask({ contextualTuples: [tuple(LINK)] })).reasonCode).toBe('delegation_missing')
    await given(store, 'acme', put(LINK))
    expect((await ask({ withoutTuples: [tuple(LINK)] })).reasonCode).toBe('delegation_missing')
  })

  test('holds permission keys by roles of its own', async () => {
    const { store, ask } = await open()
    const role = { key: 'auditor', name: 'Auditor', permissions: ['logs:read'] }
    await given(store, ENVIRONMENT, { kind: 'role', key: 'auditor', role })
    await given(store, 'acme', grant('g1', 'auditor', 'user:alice'))
    const permissions = [{ relation: 'logs:read', resource: 'organization:acme' }]
    expect((await ask({ permissions })).reasonCode).toBe('actor_denied')
    await given(store, 'acme', grant('g2', 'auditor', 'service:bot'))
    expect(await ask({ permissions })).toMatchObject({ allowed: true, reasonCode: 'role' })
    await given(store, 'acme', member('alice', 'member', 'suspended'))
    expect((await ask({ permissions })).reasonCode).toBe('membership_suspended')
  })

  test('is explained by the whole chain, or by what is missing', async () => {
    const { store, ask } = await open()
    expect((await ask({ explain: true })).reason?.path).toEqual([
      { tuple: 'doc:1#viewer@user:alice' },
      { tuple: LINK },
      { tuple: 'doc:1#viewer@service:bot' },
    ])
    await given(store, 'acme', drop(LINK))
    expect((await ask({ explain: true })).reason).toMatchObject({
      code: 'delegation_missing',
      path: [],
      missing: [LINK],
    })
    await given(store, 'acme', put(LINK), drop('doc:1#viewer@service:bot'))
    const { reason } = await ask({ explain: true })
    expect(reason).toMatchObject({ code: 'actor_denied', missing: ['doc:1#viewer@service:bot'] })
  })

  test.each([
    [user('bot')],
    [{ type: 'service', id: '' }],
    [{ type: 'service', id: '*' }],
    [{ type: 'service' }],
    ['bot'],
  ])('is not %j', async (actor) => {
    const { ask } = await open()
    await expect(ask({ actor: actor as typeof bot })).rejects.toThrow()
  })
})

test('random people, agents and links get what sets say', async () => {
  let seed = 7
  const random = (below: number): number => {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0
    return seed % below
  }
  const names = [...[0, 1, 2].map((i) => `user:u${i}`), ...[0, 1, 2].map((i) => `service:s${i}`)]
  let triples = 0
  let allowed = 0
  while (triples < effort({ short: 20_000, long: 1_000_000 })) {
    const pdp = createPdp({ store: memoryStore() })
    await pdp.putOrganization('acme', { name: 'Acme', parent: null })
    const chosen = (all: readonly string[], of: number): readonly string[] => all.filter(() => random(of) === 0)
    const direct = chosen(
      names.flatMap((n) => [0, 1, 2, 3].map((d) => `doc:${d}#viewer@${n}`)),
      3,
    )
    const groups = chosen(
      names.map((n) => `group:g#member@${n}`),
      2,
    )
    const shared = chosen(
      [0, 1, 2, 3].map((d) => `doc:${d}#viewer@group:g#member`),
      3,
    )
    const links = chosen(
      [0, 1, 2].flatMap((s) => [0, 1, 2].map((u) => `service:s${s}#acts_for@user:u${u}`)),
      2,
    )
    const all = new Set([...direct, ...groups, ...shared, ...links])
    await pdp.write('acme', { write: [...all].map(parseTuple) })
    const may = (name: string, doc: number): boolean =>
      all.has(`doc:${doc}#viewer@${name}`) ||
      (all.has(`group:g#member@${name}`) && all.has(`doc:${doc}#viewer@group:g#member`))
    for (let i = 0; i < 400; i++, triples++) {
      const [u, s] = [random(3), random(3)]
      const docs = [random(4), random(4)]
      const permissions = docs.map((doc) => ({ relation: 'viewer', resource: `doc:${doc}` }))
      const actor = service(`s${s}`)
      const decision = await pdp.decide({ organization: 'acme', subject: user(`u${u}`), actor, permissions })
      const expected = docs.map(
        (doc) => may(`user:u${u}`, doc) && may(`service:s${s}`, doc) && all.has(`service:s${s}#acts_for@user:u${u}`),
      )
      expect(decision.permissions.map((one) => one.allowed)).toEqual(expected)
      allowed += expected.filter(Boolean).length
    }
  }
  expect(allowed).toBeGreaterThan(1_000)
}, 600_000)
