import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createPdp } from '../../../../../pdp/engine/decision-point/create-pdp.ts'
import { appendJournal } from '../../../../../pdp/engine/store/postgres/journal.ts'
import { appendEvents } from '../../../../../pdp/engine/store/postgres/outbox.ts'
import { createIdentity, type Identity } from '../../../../../pdp/identity/identity.ts'
import { PUBLISHED_SECONDS_MIN, rotateKeys } from '../../../../../pdp/identity/issuer/keys/key-rotation.ts'
import { masterKeysOf } from '../../../../../pdp/shared/base/encryption.ts'
import { createBrowser } from '../../../../support/browser.ts'
import { createFlows } from '../../flows.ts'
import {
  DECOY_HASH,
  decode,
  logInto,
  MASTER_KEY,
  openWorld,
  parseObject,
  postToken,
  type World,
} from '../../harness.ts'

let world: World
let other: Identity
beforeAll(async () => {
  world = await openWorld()
  const { issuer, sql, store, directory } = world
  const parts = {
    appendJournal,
    appendEvents,
    fetch: globalThis.fetch,
    masterKeys: masterKeysOf(MASTER_KEY),
    decoyHash: DECOY_HASH,
    clock: Date.now,
  }
  other = await createIdentity({ issuer, sql, store, directory, pdp: createPdp({ store }), ...parts, log: logInto([]) })
})
afterAll(async () => {
  await other.close()
  await world.close()
})

const mint = async () => {
  const { body } = await postToken(world, { grant_type: 'client_credentials' }, { id: 'robot' })
  return String(body.access_token)
}
const published = async () => {
  const { keys } = parseObject(await (await fetch(`${world.issuer}/oauth/jwks`)).text())
  return Array.isArray(keys) ? keys : []
}
const publishedForLong = () =>
  world.sql.query("update signing_key set created_at = now() - make_interval(secs => $1) where state = 'next'", [
    PUBLISHED_SECONDS_MIN + 1,
  ])
const rotate = () => rotateKeys({ sql: world.sql, masterKeys: masterKeysOf(MASTER_KEY) })

describe('the signing key', () => {
  test('does not change to one that nobody has had time to fetch', async () => {
    await expect(rotate()).rejects.toMatchObject({ code: 'conflict' })
  })

  test('changes to the one that was published before, and the former one goes on verifying on every node', async () => {
    const flows = createFlows(world)
    const person = await flows.code({ person: 'eve' })
    const before = await mint()
    const next = (await published()).map((key) => key.kid)
    expect(next).toHaveLength(2)
    await publishedForLong()
    const { activeKid } = await rotate()
    expect(next).toContain(activeKid)
    expect(decode(await mint()).header.kid).toBe(decode(before).header.kid)
    await world.identity.reloadKeys()
    const after = await mint()
    expect(decode(after).header.kid).toBe(activeKid)
    for (const token of [before, after, person.tokens.access_token]) {
      expect((await world.identity.introspect(token)).active).toBe(true)
      // Another node that has not noticed yet knows the key already.
      expect((await other.introspect(token)).active).toBe(true)
    }
    const refreshed = await flows.refreshed(person)
    expect(decode(refreshed.tokens.id_token ?? '').header.kid).toBe(activeKid)
    const keys = await published()
    expect(keys).toHaveLength(3)
    for (const key of keys) expect(key).not.toHaveProperty('d')
  })

  test('is no longer published once every token that it signed is dead', async () => {
    await world.sql.query("update signing_key set retire_after = now() - interval '1 s' where state = 'retired'")
    await world.identity.reloadKeys()
    expect(await published()).toHaveLength(2)
  })

  test('changes once when several ask at the same time', async () => {
    await publishedForLong()
    const answers = await Promise.allSettled(Array.from({ length: 5 }, rotate))
    expect(answers.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    const [row] = await world.sql.query<{ active: number; next: number }>(
      `select count(*) filter (where state = 'active')::int as active, count(*) filter (where state = 'next')::int as next
       from signing_key`,
    )
    expect(row).toEqual({ active: 1, next: 1 })
  })
})

describe('another node', () => {
  test('refuses a token on the very next call after this one revoked it, its session or its grant', async () => {
    const flows = createFlows(world)
    const { tokens } = await flows.code({ person: 'eve', scope: 'openid', browser: createBrowser(world.issuer) })
    const child = await flows.exchangeOf(tokens.access_token, { person: 'eve', client: 'gateway' }, { scope: 'openid' })
    for (const token of [tokens.access_token, child.tokens.access_token]) {
      expect((await other.introspect(token)).active).toBe(true)
    }
    const session = (await world.identity.record(tokens.access_token))?.sessionUid ?? ''
    await world.identity.sessions.revokeSession(session, { actor: 'test', requestId: 'test' })
    for (const token of [tokens.access_token, child.tokens.access_token]) {
      expect(await other.introspect(token)).toEqual({ active: false })
    }
  })
})
