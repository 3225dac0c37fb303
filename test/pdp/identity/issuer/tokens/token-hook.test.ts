import { createHmac } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { appendJournal } from '../../../../../pdp/engine/store/postgres/journal.ts'
import {
  createTokenHook,
  HOOK_BYTES_MAX,
  HOOK_DEADLINE_MS,
  RESERVED_CLAIMS,
} from '../../../../../pdp/identity/issuer/tokens/token-hook.ts'
import { masterKeysOf } from '../../../../../pdp/shared/base/encryption.ts'
import { createFlows } from '../../flows.ts'
import { CONTEXT, decode, logInto, MASTER_KEY, openWorld, parseObject, postToken, type World } from '../../harness.ts'

type Call = { url: string; headers: { [name: string]: string }; body: string; redirect: string }
const calls: Call[] = []
let respond: () => Promise<Response>
const answer =
  (claims: unknown, status = 200) =>
  async () =>
    new Response(JSON.stringify({ claims }), { status })
const SECRET = 'a-secret-of-the-hook-0123'

let world: World
beforeAll(async () => {
  world = await openWorld({
    fetch: async (url, init) => {
      const { headers, redirect } = init
      calls.push({ url, headers, redirect, body: 'body' in init ? String(init.body) : '' })
      return respond()
    },
  })
  await world.identity.hook.configure({ url: 'https://hook.example/claims', secret: SECRET }, CONTEXT)
})
afterAll(() => world.close())

const mint = async () => {
  const started = performance.now()
  const { status, body } = await postToken(world, { grant_type: 'client_credentials' }, { id: 'robot' })
  expect(status).toBe(200)
  return { claims: decode(String(body.access_token)).payload, ms: performance.now() - started }
}
/** The breaker closes again after its rest. */
const rest = () => {
  world.time.offsetMs += 11_000
}

describe('the token hook', () => {
  test('adds claims to tokens of services and of people, and to no ID token', async () => {
    respond = answer({ plan_hint: 'x', nested: { a: [1] } })
    expect((await mint()).claims).toMatchObject({ plan_hint: 'x', nested: { a: [1] } })
    const { tokens } = await createFlows(world).code({ person: 'eve', organization: 'acme' })
    expect(decode(tokens.access_token).payload).toMatchObject({ plan_hint: 'x', org: 'acme' })
    expect(decode(tokens.id_token ?? '').payload).not.toHaveProperty('plan_hint')
  })

  test('is told what is minted, signed with the secret and the time', async () => {
    respond = answer({})
    calls.length = 0
    const { claims } = await mint()
    const [call] = calls
    expect(call).toMatchObject({ url: 'https://hook.example/claims', redirect: 'manual' })
    expect(parseObject(call?.body ?? '')).toEqual({
      type: 'token.minting',
      token: {
        jti: claims.jti,
        client_id: 'robot',
        sub: 'robot',
        subject_type: 'service',
        aud: world.issuer,
        org: 'acme',
        scope: '',
        grant_type: 'client_credentials',
      },
    })
    const [, at, signature] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(call?.headers['portcullis-signature'] ?? '') ?? []
    expect(signature).toBe(createHmac('sha256', SECRET).update(`${at}.${call?.body}`).digest('hex'))
  })

  test.each([...RESERVED_CLAIMS, 'act'])('cannot set %s', async (claim) => {
    respond = answer({ [claim]: 'evil', org_hint: 1 })
    const { claims } = await mint()
    expect(claims[claim]).not.toBe('evil')
    expect(claims.org_hint).toBe(1)
  })

  test('is kept out of the way of all 18 reserved claims at once', async () => {
    expect(RESERVED_CLAIMS).toHaveLength(18)
    respond = answer({})
    const without = Object.keys((await mint()).claims)
    respond = answer(Object.fromEntries(RESERVED_CLAIMS.map((name) => [name, 'evil'])))
    expect(Object.keys((await mint()).claims)).toEqual(without)
  })

  test.each([
    ['an error', answer({}, 500)],
    ['a redirect', answer({}, 302)],
    ['no JSON', async () => new Response('<html>')],
    ['no claims', async () => new Response('{}')],
    ['claims that are a list', answer(['a'])],
    ['too much', async () => new Response('x'.repeat(HOOK_BYTES_MAX + 1))],
    ['no connection', () => Promise.reject(new Error('no network'))],
    ['bytes that are not UTF-8', async () => new Response(new Uint8Array([0xff, 0xfe]))],
  ])('that answers %s changes nothing, is logged and counted', async (_, response) => {
    rest()
    respond = response
    const before = world.hookOutcomes.length
    expect((await mint()).claims).toMatchObject({ sub: 'robot' })
    expect(world.hookOutcomes.slice(before)).toEqual(['failed'])
    expect(world.log.at(-1)).toContain('token_hook_failed')
    expect(world.log.join('')).not.toContain(SECRET)
  })

  test('is asked for other tenants, however many tokens one tenant asks for at once', async () => {
    const asked: string[] = []
    const skipped: string[] = []
    const hook = createTokenHook({
      sql: world.sql,
      appendJournal,
      masterKeys: masterKeysOf(MASTER_KEY),
      fetch: (_url, init) => {
        const { token } = parseObject('body' in init ? String(init.body) : '')
        asked.push(String(Object(token).org))
        return asked.length === 1 ? answer({})() : new Promise(() => undefined)
      },
      // What is read once of the hook stays fresh.
      clock: () => 0,
      log: logInto([]),
      onOutcome: (outcome) => void (outcome === 'skipped' && skipped.push(outcome)),
    })
    const claimsOf = (org: string) => {
      const client = {
        client_id: 'robot',
        sub: 'robot',
        subject_type: 'service',
        grant_type: 'client_credentials',
      } as const
      return hook.claims({ ...client, jti: 'j', aud: 'x', scope: '', org })
    }
    await claimsOf('first')
    // Of what a tenant makes below its own organization, too.
    const all = [...Array.from({ length: 40 }, (_, i) => claimsOf(i % 2 === 0 ? 'acme' : 'acme~eu')), claimsOf('beta')]
    await expect.poll(() => asked.length).toBe(34)
    expect([asked.filter((org) => org === 'beta').length, skipped.length]).toEqual([1, 8])
    await Promise.all(all)
  })

  test('that never answers costs its deadline at most, and after some failures nothing', async () => {
    rest()
    respond = answer({})
    await mint()
    respond = () => new Promise(() => undefined)
    const slow = await Promise.all(Array.from({ length: 5 }, mint))
    for (const { ms } of slow) expect(ms).toBeLessThan(HOOK_DEADLINE_MS + 10_000)
    calls.length = 0
    const before = world.hookOutcomes.length
    await mint()
    expect([world.hookOutcomes.slice(before), calls]).toEqual([['skipped'], []])
    rest()
    respond = answer({ back: true })
    expect((await mint()).claims.back).toBe(true)
  })

  test('cannot make a token too large: its claims are in it whole or not at all', async () => {
    respond = answer({ big: 'x'.repeat(6_000) })
    const { claims } = await mint()
    expect(claims).not.toHaveProperty('big')
    expect(claims).toHaveProperty('ent')
    expect(world.log.join('')).toContain('hook_left_out')
  })

  test('is asked no more once it is removed, and its secret lies sealed', async () => {
    const rows = await world.sql.query('select 1 from token_hook h where strpos(h::text, $1) > 0', [SECRET])
    expect(rows).toEqual([])
    calls.length = 0
    await world.identity.hook.configure(null, CONTEXT)
    await mint()
    expect(calls).toEqual([])
  })
})
