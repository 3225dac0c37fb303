/** What received events mean for the tokens of an issuer, at every PDP on the database. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createPdp } from '../../../../pdp/engine/decision-point/create-pdp.ts'
import { openPostgres } from '../../../../pdp/engine/store/postgres/postgres.ts'
import type { TokenRecord } from '../../../../pdp/identity/issuer/tokens/token-state.ts'
import { createEntryBudget } from '../../../../pdp/signals/receiver/entry-budget.ts'
import { CAEP_EVENTS } from '../../../../pdp/signals/set/event-types.ts'
import { undoOnce } from '../../../support/database.ts'
import { eventually, openReceiver, type ReceiverWorld } from './world.ts'

const DAY_S = 86_400
let world: ReceiverWorld
beforeEach(async () => {
  world = await openReceiver()
})
afterEach(() => world.close())

const now = (): number => Math.floor(Date.now() / 1_000)
const tokenOf = (sub: string, claims: object = {}): Promise<string> =>
  world.transmitter.sign(
    {
      ...{ iss: world.transmitter.issuer, sub, aud: 'https://orders.test', client_id: 'web', jti: crypto.randomUUID() },
      ...{ iat: now(), exp: now() + 600, ...claims },
    },
    { typ: 'at+jwt' },
  )
const recordOf = async (token: Promise<string>): Promise<TokenRecord> => {
  const record = await world.issuers.record(await token)
  if (record === null) throw new Error('the token is refused')
  return record
}
const isDead = ({ externalKeys = [], issuedAtMs }: TokenRecord, pdp = world.pdp): Promise<boolean> =>
  pdp.isRevoked({ revocationKeys: externalKeys, issuedAtMs })
const revoke = async (sub: string): Promise<void> => {
  const subject = { format: 'iss_sub', iss: world.transmitter.issuer, sub }
  await world.transmitter.send(
    world.transmitter.claims(CAEP_EVENTS.sessionRevoked, subject, { event_timestamp: now() }),
  )
  await eventually(() => expect(world.transmitter.stream().queue).toEqual([]))
}

describe('a token of an issuer that sends events', () => {
  test('dies at every PDP, also at one that starts later', async () => {
    await world.connect()
    const [ann, bob] = [await recordOf(tokenOf('ann')), await recordOf(tokenOf('bob'))]
    const other = await openPostgres({ connectionString: world.connectionString })
    const running = createPdp({ store: other.store })
    expect(await isDead(ann, running)).toBe(false)
    await revoke('ann')
    for (const pdp of [world.pdp, running, createPdp({ store: other.store })])
      expect([await isDead(ann, pdp), await isDead(bob, pdp)]).toEqual([true, false])
    await other.close()
  })

  test('stays dead for a day, and not because its prefix is the same', async () => {
    await world.connect()
    const ann = await recordOf(tokenOf('ann'))
    await revoke('ann')
    await world.sql.query(
      "update change_log set written_at = now() - interval '23 hours' where organization_id = '#tokens'",
    )
    const later = await openPostgres({ connectionString: world.connectionString })
    expect(await isDead(ann, createPdp({ store: later.store }))).toBe(true)
    await later.close()
  })

  test('is refused a day after it was issued, because what revoked it may be forgotten', async () => {
    await world.connect()
    const old = tokenOf('ann', { iat: now() - DAY_S - 60, exp: now() + DAY_S })
    const young = tokenOf('ann', { iat: now() - DAY_S + 600, exp: now() + DAY_S })
    expect(await world.issuers.record(await old)).toBeNull()
    expect((await recordOf(young)).expiresAtMs).toBeLessThan(Date.now() + 601_000)
  })

  test('is not refused for its age when nothing is said about revocations', async () => {
    await world.putPlain()
    expect(
      await world.issuers.record(await tokenOf('ann', { iat: now() - 2 * DAY_S, exp: now() + DAY_S })),
    ).not.toBeNull()
  })

  test('does not count while the transmitter is silent, if its entry says so', async () => {
    world.transmitter.ways.mute = true
    await world.put(world.transmitter.issuer, { on_silence: 'refuse' })
    await expect(recordOf(tokenOf('ann'))).rejects.toMatchObject({ code: 'issuer_unavailable' })
    world.transmitter.ways.mute = false
    await eventually(async () => expect(await world.issuers.record(await tokenOf('ann'))).not.toBeNull())
    world.transmitter.ways.mute = true
    await eventually(async () => expect((await world.state())?.silent).toBe(true))
    await expect(recordOf(tokenOf('ann'))).rejects.toMatchObject({ code: 'issuer_unavailable' })
    await world.put(world.transmitter.issuer, { on_silence: 'accept' })
    expect(await world.issuers.record(await tokenOf('ann'))).not.toBeNull()
  })
})

test('an issuer ends nothing of another issuer, and nothing of ours, whatever it calls its people', async () => {
  await world.connect()
  const names = ['ann', 'x https://other.example ann', 'https://other.example ann', ' ', '~idp:ann', 'user ann']
  for (const sub of names) await revoke(sub)
  const ours = ['user ann', 'user ~idp:ann', 'client ann', 'session ann', 'grant ann', 'jti ann']
  expect(await world.pdp.isRevoked({ revocationKeys: ours, issuedAtMs: 0 })).toBe(false)
  const record = await recordOf(tokenOf('ann'))
  const others = (record.externalKeys ?? []).map((key) =>
    key.replace(world.transmitter.issuer, 'https://other.example'),
  )
  expect(others).toHaveLength(4)
  expect(await world.pdp.isRevoked({ revocationKeys: others, issuedAtMs: 0 })).toBe(false)
  expect(await world.ended()).toHaveLength(names.length)
})

test('an issuer that names more than there is room for ends all its tokens, and those of no other issuer', async () => {
  await world.receiver.close()
  world.another({ budget: createEntryBudget(3) })
  await world.connect()
  const [zoe, later] = [await recordOf(tokenOf('zoe')), await recordOf(tokenOf('zoe', { iat: now() + 50 }))]
  for (const sub of ['ann', 'bob', 'cy']) await revoke(sub)
  expect(await isDead(zoe)).toBe(false)
  await revoke('dan')
  await eventually(() => expect(world.outcomes).toContain('all_ended'))
  expect([await isDead(zoe), await isDead(later)]).toEqual([true, false])
  const others = (zoe.externalKeys ?? []).map((key) => key.replace(world.transmitter.issuer, 'https://other.example'))
  expect(await world.pdp.isRevoked({ revocationKeys: others, issuedAtMs: 0 })).toBe(false)
  for (const sub of ['eve', 'fay']) await revoke(sub)
  expect(new Set(await world.ended()).size).toBe(4)
})

test('what the database undid and is done again is counted once for that room', async () => {
  await world.receiver.close()
  world.another({ budget: createEntryBudget(3) })
  await world.connect()
  const commits = await undoOnce(world.sql, 'insert on change_log')
  for (const sub of ['ann', 'bob', 'cy']) await revoke(sub)
  expect([await commits(), (await world.ended()).length]).toEqual([4, 3])
  expect(world.outcomes).not.toContain('all_ended')
  expect(world.outcomes).not.toContain('deferred')
})

test('an event and that it was seen are stored together, or not at all', async () => {
  await world.connect()
  await world.sql.query("alter table change_log add constraint broken check (organization_id <> '#tokens') not valid")
  const claims = world.transmitter.claims(CAEP_EVENTS.sessionRevoked, {
    format: 'iss_sub',
    iss: world.transmitter.issuer,
    sub: 'ann',
  })
  await world.transmitter.send(claims)
  await eventually(() => expect(world.outcomes).toContain('deferred'))
  expect(await world.ended()).toEqual([])
  await world.sql.query('alter table change_log drop constraint broken')
  await eventually(async () => expect(await world.ended()).toHaveLength(1))
})

test('what was seen is forgotten after the last day on which it is accepted', async () => {
  await world.connect()
  await world.sql.query(
    "insert into received_set values ('x', 'old', now() - interval '9 days'), ('x', 'new', now() - interval '7 days')",
  )
  await world.receiver.close()
  world.another()
  const left = async () =>
    (await world.sql.query<{ jti: string }>("select jti from received_set where issuer = 'x'")).map(({ jti }) => jti)
  await eventually(async () => expect(await left()).toEqual(['new']))
})
