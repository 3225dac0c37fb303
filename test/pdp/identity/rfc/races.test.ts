/** What is good once is good once, when 20 use it at the same time, half of them on another node. */
import { createServer, type Server } from 'node:http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createPdp } from '../../../../pdp/engine/decision-point/create-pdp.ts'
import { appendJournal } from '../../../../pdp/engine/store/postgres/journal.ts'
import { appendEvents } from '../../../../pdp/engine/store/postgres/outbox.ts'
import { createIdentity, type Identity } from '../../../../pdp/identity/identity.ts'
import { masterKeysOf } from '../../../../pdp/shared/base/encryption.ts'
import { type RedisReplayMemory, redisReplayMemory } from '../../../../pdp/shared/token/replay-redis.ts'
import { createBrowser } from '../../../support/browser.ts'
import { hasRedis, startRedis } from '../../../support/peers/redis.ts'
import { createFlow, VERIFIER } from '../flow.ts'
import { ACCESS_TOKEN, CIBA, createFlows, DEVICE_CODE, EXCHANGE } from '../flows.ts'
import {
  DECOY_HASH,
  logInto,
  MASTER_KEY,
  openWorld,
  parseObject,
  postToken,
  REDIRECT,
  SECRET,
  type World,
} from '../harness.ts'
import { type ClientKey, digestOf, newClientKey, proveKey } from './forge.ts'

let world: World
let flows: ReturnType<typeof createFlows>
let nodes: readonly Node[]
beforeAll(async () => {
  world = await openWorld()
  flows = createFlows(world)
  nodes = [{ url: world.issuer, close: async () => undefined }, await openNode()]
})
afterAll(async () => {
  for (const node of nodes) await node.close()
  await world.close()
})

type Node = { readonly url: string; close(): Promise<void> }
/** Another process's worth of identity service for the same issuer and database. */
async function openNode(replay?: RedisReplayMemory): Promise<Node> {
  const { issuer, sql, store, directory } = world
  const parts = {
    appendJournal,
    appendEvents,
    fetch: globalThis.fetch,
    masterKeys: masterKeysOf(MASTER_KEY),
    decoyHash: DECOY_HASH,
    clock: Date.now,
  }
  const identity: Identity = await createIdentity({
    ...parts,
    ...{ issuer, sql, store, directory, pdp: createPdp({ store }), log: logInto([]) },
    ...(replay === undefined ? {} : { replay }),
  })
  const routes = identity.routes(null)
  const server: Server = createServer((req, res) => void routes.handle(req, res))
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const address = server.address()
  return {
    url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`,
    async close() {
      await identity.close()
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
    },
  }
}

const COUNT = 20
type Outcome = { readonly status: number; readonly body: { readonly [name: string]: unknown } }
const race = <T>(work: (url: string) => Promise<T>, on = nodes): Promise<readonly T[]> =>
  Promise.all(Array.from({ length: COUNT }, (_, i) => work(on[i % on.length]?.url ?? '')))
const token = (form: Record<string, string>, options: Parameters<typeof postToken>[2] = { id: 'flows' }) =>
  race((issuer): Promise<Outcome> => postToken({ ...world, issuer }, form, options))
function expectOne(answers: readonly Outcome[], status: number, error: string) {
  expect(answers.filter((answer) => answer.status === 200)).toHaveLength(1)
  const others = answers.filter((answer) => answer.status !== 200)
  expect(new Set(others.map(({ status: s, body }) => `${s} ${body.error}`))).toEqual(new Set([`${status} ${error}`]))
}

/** How many tokens of these answers are active afterwards. */
async function goodTokens(answers: readonly Outcome[]): Promise<number> {
  const states = await Promise.all(answers.map(({ body }) => world.identity.introspect(String(body.access_token))))
  return states.filter(({ active }) => active).length
}

const eve = { person: 'eve', organization: 'acme' }

describe('of 20 at once on two nodes, one gets a token by', () => {
  test('one authorization code', async () => {
    const code = await createFlow(world).newCode()
    const form = { grant_type: 'authorization_code', code, redirect_uri: REDIRECT, code_verifier: VERIFIER }
    const answers = await token(form, { id: 'web' })
    expectOne(answers, 400, 'invalid_grant')
    expect(await goodTokens(answers)).toBe(0)
  })

  test('one refresh token', async () => {
    const { tokens } = await flows.code(eve)
    const answers = await token({ grant_type: 'refresh_token', refresh_token: tokens.refresh_token ?? '' })
    expectOne(answers, 400, 'invalid_grant')
    expect(await goodTokens(answers)).toBe(0)
  })

  test('one device code', async () => {
    const { started, browser } = await flows.startDevice(eve)
    await flows.answerDevice(browser, started.verification_uri, eve, started.user_code)
    const answers = await token({ grant_type: DEVICE_CODE, device_code: started.device_code })
    expectOne(answers, 400, 'invalid_grant')
    expect(await goodTokens(answers)).toBe(1)
  })

  test('one auth_req_id', async () => {
    const { started } = await flows.startCiba(eve)
    await flows.answerCiba(createBrowser(world.issuer), eve)
    const answers = await token({ grant_type: CIBA, auth_req_id: started.auth_req_id })
    expectOne(answers, 400, 'invalid_grant')
    expect(await goodTokens(answers)).toBe(1)
  })

  test('one DPoP proof', async () => {
    const dpop = await proveKey(world, await newClientKey())
    const options = { id: 'robot', headers: { dpop } }
    expectOne(await token({ grant_type: 'client_credentials' }, options), 400, 'invalid_dpop_proof')
  })

  test('one DPoP proof that is dated ahead, or has a nonce', async () => {
    const key = await newClientKey()
    const first = await postToken(
      world,
      { grant_type: 'client_credentials' },
      { id: 'robot', headers: { dpop: await proveKey(world, key) } },
    )
    for (const claims of [{ iat: Math.floor(Date.now() / 1_000) + 200 }, { nonce: first.headers.get('dpop-nonce') }]) {
      const options = { id: 'robot', headers: { dpop: await proveKey(world, key, claims) } }
      expectOne(await token({ grant_type: 'client_credentials' }, options), 400, 'invalid_dpop_proof')
    }
  })

  test('one client assertion', async () => {
    const key = await newClientKey()
    const { kty = '', crv = '', x = '', y = '' } = key.jwk
    const jwks = { keys: [{ kty, crv, x, y, alg: 'ES256', use: 'sig' }] }
    const metadata = { grant_types: ['client_credentials'], token_endpoint_auth_method: 'private_key_jwt', jwks }
    await world.putClient({ id: 'keyed', metadata })
    const body = { iss: 'keyed', sub: 'keyed', aud: world.issuer, exp: Math.floor(Date.now() / 1_000) + 60 }
    const form = {
      grant_type: 'client_credentials',
      client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
      client_assertion: await proveKey(world, key, body, { typ: undefined, jwk: undefined }),
    }
    expectOne(await token(form, {}), 401, 'invalid_client')
  })
})

test('of 20 at once on two nodes, one gets a code by one pushed request', async () => {
  const browser = createBrowser(world.issuer)
  await flows.code({ ...eve, client: 'web', scope: 'openid', browser })
  const authorization = `Basic ${Buffer.from(`web:${SECRET}`).toString('base64')}`
  const body = new URLSearchParams({
    ...{ client_id: 'web', response_type: 'code', redirect_uri: REDIRECT, scope: 'openid', state: 'st' },
    ...{ code_challenge: digestOf(VERIFIER), code_challenge_method: 'S256' },
  })
  const pushed = await fetch(`${world.issuer}/oauth/par`, { method: 'POST', headers: { authorization }, body })
  const { request_uri: uri } = parseObject(await pushed.text())
  const cookie = [...browser.cookies()].map(([name, value]) => `${name}=${value}`).join('; ')
  const query = new URLSearchParams({ client_id: 'web', request_uri: String(uri) })
  const answers = await race(async (url) => {
    const answer = await fetch(`${url}/oauth/authorize?${query}`, {
      redirect: 'manual',
      headers: { cookie, accept: 'text/html' },
    })
    const location = answer.headers.get('location')
    const end = location === null ? null : new URL(location, world.issuer).searchParams
    return { code: end?.get('code') ?? null, error: end?.get('error') ?? null, status: answer.status }
  })
  expect(answers.filter(({ code }) => code !== null)).toHaveLength(1)
  for (const { code, error, status } of answers) {
    // Who comes when it is used up is shown a page: where to send them back to was in the request.
    if (code === null)
      expect([
        [303, 'invalid_request_uri'],
        [400, null],
      ]).toContainEqual([status, error])
  }
})

describe('a proof at UserInfo', () => {
  async function boundTo(key: ClientKey): Promise<{ authorization: string; ath: string }> {
    const subject = (await flows.code(eve)).tokens.access_token
    const form = { grant_type: EXCHANGE, subject_token: subject, subject_token_type: ACCESS_TOKEN }
    const { body } = await postToken(world, form, { id: 'gateway', headers: { dpop: await proveKey(world, key) } })
    return { authorization: `DPoP ${body.access_token}`, ath: digestOf(String(body.access_token)) }
  }
  async function countAccepted(on: readonly Node[]): Promise<number> {
    const key = await newClientKey()
    const { authorization, ath } = await boundTo(key)
    const dpop = await proveKey(world, key, { htm: 'GET', htu: `${world.issuer}/oauth/userinfo`, ath })
    const answers = await race((url) => fetch(`${url}/oauth/userinfo`, { headers: { authorization, dpop } }), on)
    return answers.filter(({ status }) => status === 200).length
  }

  test('is good once on a node of its own', async () => {
    expect(await countAccepted(nodes.slice(0, 1))).toBe(1)
  })

  test.skipIf(!hasRedis())('is good once on all nodes that share a Redis, and never while that is gone', async () => {
    const redis = await startRedis()
    const memory = () =>
      redisReplayMemory({ url: redis.url, clock: Date.now, timeoutMs: 2_000, onError: () => undefined })
    const memories = [await memory(), await memory()]
    const shared = await Promise.all(memories.map(openNode))
    expect(await countAccepted(shared)).toBe(1)
    await redis.kill()
    expect(await countAccepted(shared)).toBe(0)
    for (const node of shared) await node.close()
    for (const replay of memories) replay.close()
  })
})
