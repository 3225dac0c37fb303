import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Change } from '../../../../pdp/shared/domain/change.ts'
import { formatSubject } from '../../../../pdp/signals/set/subjects.ts'
import { effort } from '../../../support/effort.ts'
import { CONTEXT, openSignals, type SignalWorld, setsOf } from './world.ts'

let world: SignalWorld
beforeAll(async () => {
  world = await openSignals()
})
afterAll(() => world.close())
const CAEP = 'https://schemas.openid.net/secevent/caep/event-type'

async function drain(token: string, stream: string) {
  const all = []
  for (;;) {
    const answer = await world.poll(token, stream)
    const sets = setsOf(answer)
    all.push(...sets)
    if (sets.length === 0 && answer.body.moreAvailable !== true) return all
    await world.poll(token, stream, { maxEvents: 0, ack: sets.map(({ jti }) => jti) })
  }
}
const write = (organization: string, changes: readonly Change[]) =>
  world.store.write(organization, changes, { context: CONTEXT })
const ORGANIZATIONS = ['acme', 'acme-lab', 'beta'] as const
const USERS = ['alice', 'bob'] as const

/** A change of one organization, about a user and roles that say whose they are. */
function change(organization: string, n: number, { kind, user }: { kind: number; user: string }): Change {
  const role = `${organization}:role-${n % 5}`
  if (kind === 0)
    return { kind: 'membership', user, membership: { role: n % 2 === 0 ? 'viewer' : 'admin', status: 'active' } }
  if (kind === 1) return { kind: 'membership', user, membership: null }
  if (kind === 2)
    return {
      kind: 'role_grant',
      op: 'write',
      grant: { id: `g-${user}-${n % 5}`, app: null, role, subject: `user:${user}` },
    }
  return {
    kind: 'entitlement',
    key: `${organization}.seats`,
    entitlement: { value: { n }, enforcement: 'DecisionApi' },
  }
}

test('no random change of another tenant reaches a receiver', async () => {
  const own = await world.client('of-acme', { organization: 'acme' })
  const other = await world.client('of-beta', { organization: 'beta' })
  const every = await world.client('of-all')
  const streams = await Promise.all([own, other, every].map(async (by) => (await world.stream(by)).stream_id))
  const [ofAcme = '', ofBeta = '', ofAll = ''] = streams
  const step = fc.record({
    organization: fc.constantFrom(...ORGANIZATIONS),
    kind: fc.nat(3),
    user: fc.constantFrom(...USERS),
    n: fc.nat(9),
  })
  const steps = fc.sample(step, { numRuns: effort({ short: 300, long: 1_500 }), seed: 19 })
  for (const { organization, n, ...rest } of steps) {
    await write(organization, [change(organization, n, rest)]).catch(() => undefined)
    if (n === 9) await world.sessions.revokeUser(rest.user, { actor: `user:${rest.user}`, requestId: 'test' })
  }
  const [acme, beta, all] = [await drain(own, ofAcme), await drain(other, ofBeta), await drain(every, ofAll)]
  const text = (sets: typeof acme) => sets.map(({ subject, event }) => JSON.stringify([formatSubject(subject), event]))
  expect(text(acme).filter((set) => set.includes('beta'))).toEqual([])
  expect(text(beta).filter((set) => set.includes('acme'))).toEqual([])
  expect(acme.length).toBeGreaterThan(10)
  expect(beta.length).toBeGreaterThan(10)
  const changes = (sets: typeof acme) => sets.filter(({ event }) => !event.type.endsWith('session-revoked')).length
  expect(changes(all)).toBe(changes(acme) + changes(beta))
})

test('a membership is told with the tier that holds now, and a role with the roles that the receiver may see', async () => {
  const token = await world.client('of-shop', { organization: 'acme', app: 'shop' })
  const { stream_id: id } = await world.stream(token, { events_requested: [`${CAEP}/token-claims-change`] })
  const grant = (role: string, app: string | null) =>
    ({ kind: 'role_grant', op: 'write', grant: { id: role, app, role, subject: 'user:dora' } }) as const
  await write('acme', [{ kind: 'membership', user: 'dora', membership: { role: 'owner', status: 'suspended' } }])
  await write('acme', [{ kind: 'membership', user: 'dora', membership: { role: 'developer', status: 'active' } }])
  await write('acme', [grant('payroll-clerk', 'payroll')])
  await write('acme', [grant('cashier', 'shop')])
  await write('acme', [grant('reader', null)])
  const claims = (await drain(token, id)).map(({ event }) => event.members.claims)
  expect(claims).toEqual([
    { org_role: null },
    { org_role: 'developer' },
    // Nothing of the grant in another app.
    { roles: ['cashier'] },
    { roles: ['cashier', 'reader'] },
  ])
})

test('a credential is told with its type, and never its value', async () => {
  const token = await world.client('of-credentials', { organization: 'acme' })
  const { stream_id: id } = await world.stream(token, { events_requested: [`${CAEP}/credential-change`] })
  await write('acme', [{ kind: 'membership', user: 'alice', membership: { role: 'viewer', status: 'active' } }])
  const alice = { id: 'alice', email: 'alice@acme.test', emailVerified: true, name: 'alice' }
  const admin = { actor: 'service:admin', requestId: 'test' }
  await world.directory.putUser({ ...alice, passwordHash: 'first-hash' }, admin)
  await world.directory.putUser({ ...alice, name: 'Alice' }, admin)
  await world.directory.putUser({ ...alice, passwordHash: 'second-hash' }, { actor: 'user:alice', requestId: 'test' })
  const sets = await drain(token, id)
  expect(sets.map(({ event }) => event.members)).toMatchObject([
    {
      credential_type: 'password',
      change_type: 'create',
      initiating_entity: 'admin',
      reason_admin: { en: expect.any(String) },
    },
    { credential_type: 'password', change_type: 'update', initiating_entity: 'user' },
  ])
  expect(JSON.stringify(sets)).not.toContain('hash')
})

test('a deleted user and a client whose secret changed are told to those whom it concerns', async () => {
  await world.directory.putUser({ id: 'carol', email: null, emailVerified: false, name: null }, CONTEXT)
  await write('beta', [{ kind: 'membership', user: 'carol', membership: { role: 'viewer', status: 'active' } }])
  const [ours, theirs] = [
    await world.client('in-acme', { organization: 'acme' }),
    await world.client('in-beta', { organization: 'beta' }),
  ]
  const [mine, yours] = [(await world.stream(ours)).stream_id, (await world.stream(theirs)).stream_id]
  await world.directory.deleteUser('carol', CONTEXT)
  await world.directory.putClient(
    { id: 'robot', app: null, organization: 'acme', metadata: {}, secretHash: 'hash-of-the-robot' },
    CONTEXT,
  )
  const short = async (token: string, id: string) =>
    (await drain(token, id)).map(({ event }) => event.type.split('/').at(-1)).sort()
  expect(await short(theirs, yours)).toEqual(['session-revoked', 'token-claims-change'])
  expect(await short(ours, mine)).toEqual(['credential-change'])
})

test('a stream of a client that moved to another organization carries nothing of either', async () => {
  const token = await world.client('moving', { organization: 'acme' })
  const { stream_id: id } = await world.stream(token)
  await world.client('moving', { organization: 'beta' })
  for (const organization of ORGANIZATIONS)
    await write(organization, [change(organization, 1, { kind: 3, user: 'bob' })])
  expect((await world.poll(token, id)).body).toEqual({ sets: {}, moreAvailable: false })
})
