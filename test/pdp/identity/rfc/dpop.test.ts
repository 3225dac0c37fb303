/** RFC 9449 at the token endpoint and at UserInfo: nonces, replay and binding, beyond the form of a proof. */
import { connect } from 'node:net'
import * as oauth from 'openid-client'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { deriveKey } from '../../../../pdp/shared/base/encryption.ts'
import { createNonces } from '../../../../pdp/shared/token/nonces.ts'
import { createFlow, VERIFIER } from '../flow.ts'
import { createFlows, EXCHANGE, type UserGrant } from '../flows.ts'
import {
  decode,
  GRANTS,
  MASTER_KEY,
  openWorld,
  parseObject,
  postToken,
  REDIRECT,
  SECRET,
  type World,
} from '../harness.ts'
import { type ClientKey, digestOf, type Members, newClientKey, proveKey } from './forge.ts'

// RFC 9449's own example.
const OTHER_KEY = '0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I'
let world: World
let flows: ReturnType<typeof createFlows>
let key: ClientKey
beforeAll(async () => {
  world = await openWorld()
  flows = createFlows(world)
  key = await newClientKey()
})
afterAll(() => world.close())

const eve = { person: 'eve', organization: 'acme' }
const prove = (claims: Members = {}, by: ClientKey = key) => proveKey(world, by, claims)
const mint = (dpop: string | null, id = 'robot') =>
  postToken(world, { grant_type: 'client_credentials' }, { id, ...(dpop === null ? {} : { headers: { dpop } }) })
const nonceOf = ({ headers }: { headers: Headers }) => headers.get('dpop-nonce') ?? ''
const STALE = { iat: Math.floor(Date.now() / 1_000) - 3_600 }

async function later<T>(byMs: number, work: () => Promise<T>): Promise<T> {
  const { now } = Date
  const clock = vi.spyOn(Date, 'now').mockImplementation(() => now() + byMs)
  try {
    return await work()
  } finally {
    clock.mockRestore()
  }
}

describe('a nonce of the token endpoint (section 8)', () => {
  test('comes with every answer to a proof, good or bad, one at a time, of characters that a header may hold', async () => {
    const good = await mint(await prove())
    const bad = await mint(await prove(STALE))
    expect([good.status, bad.status, bad.body.error]).toEqual([200, 400, 'use_dpop_nonce'])
    for (const answer of [good, bad]) expect(nonceOf(answer)).toMatch(/^[\x21\x23-\x5b\x5d-\x7e]{40,}$/)
    expect((await mint(await prove({ nonce: nonceOf(good) }))).status).toBe(200)
  })

  test('is not sent to who did not prove anything', async () => {
    expect((await mint(null)).headers.get('dpop-nonce')).toBeNull()
  })

  test('is replaced when it is old, by one that works', async () => {
    const old = nonceOf(await mint(await prove()))
    await later(600_000, async () => {
      const iat = Math.floor(Date.now() / 1_000)
      const refused = await mint(await prove({ nonce: old, iat }))
      expect([refused.status, refused.body.error]).toEqual([400, 'use_dpop_nonce'])
      expect(nonceOf(refused)).not.toBe(old)
      expect((await mint(await prove({ nonce: nonceOf(refused), iat }))).status).toBe(200)
    })
  })

  test.each([
    ['another character', (nonce: string) => (nonce.startsWith('A') ? 'B' : 'A') + nonce.slice(1)],
    ['a character less', (nonce: string) => nonce.slice(1)],
    ['a character more', (nonce: string) => `${nonce}A`],
    ['other capitals', (nonce: string) => nonce.toUpperCase()],
  ])('is refused with %s', async (_, change) => {
    const nonce = nonceOf(await mint(await prove()))
    const refused = await mint(await prove({ nonce: change(nonce) }))
    expect([refused.status, refused.body.error]).toEqual([400, 'use_dpop_nonce'])
  })

  test('stands for the time of the proof, whose iat then says nothing, but the proof is good once all the same', async () => {
    const proof = await prove({ nonce: nonceOf(await mint(await prove())), iat: 1 })
    expect((await mint(proof)).status).toBe(200)
    expect((await mint(proof)).body.error).toBe('invalid_dpop_proof')
    // The nonce is good for three minutes, the memory of the proof for eleven.
    const [row] = await world.sql.query<{ seconds: number }>(
      `select extract(epoch from max(expires_at) - now())::int as seconds from oidc_record where kind = 'ReplayDetection'`,
    )
    expect(row?.seconds).toBeGreaterThan(600)
  })

  test('may be read by pages of other origins', async () => {
    const form = { grant_type: 'authorization_code', client_id: 'spa', code: 'x', redirect_uri: REDIRECT }
    const headers = { origin: 'https://app.example', dpop: await prove(STALE) }
    const answer = await postToken(world, { ...form, code_verifier: VERIFIER }, { headers })
    expect(answer.body.error).toBe('use_dpop_nonce')
    expect(answer.headers.get('access-control-allow-origin')).toBe('https://app.example')
    expect(answer.headers.get('access-control-expose-headers')).toMatch(/dpop-nonce/i)
  })

  test('is another than that of a resource server, even with the same secret', async () => {
    const secret = deriveKey(MASTER_KEY, 'dpop-nonce')
    const resource = createNonces({ secret, clock: Date.now })
    expect(resource.classify(nonceOf(await mint(await prove())))).toBe('bad')
    expect((await mint(await prove({ nonce: resource.current() }))).body.error).toBe('use_dpop_nonce')
  })
})

describe('a proof that was used (section 11.1)', () => {
  test('is refused by its jti, also when it was signed anew', async () => {
    const jti = crypto.randomUUID()
    expect((await mint(await prove({ jti }))).status).toBe(200)
    expect((await mint(await prove({ jti, iat: Math.floor(Date.now() / 1_000) - 1 }))).body.error).toBe(
      'invalid_dpop_proof',
    )
  })

  test('does not stand in the way of another client, nor of another key at UserInfo', async () => {
    const jti = crypto.randomUUID()
    expect((await mint(await prove({ jti }), 'robot')).status).toBe(200)
    expect((await mint(await prove({ jti }), 'free-robot')).status).toBe(200)
    const subject = (await flows.code(eve)).tokens.access_token
    for (const by of [key, await newClientKey()]) {
      const token = await boundTo(by, subject)
      const claims = { jti, htm: 'GET', htu: `${world.issuer}/oauth/userinfo`, ath: digestOf(token) }
      const headers = { authorization: `DPoP ${token}`, dpop: await prove(claims, by) }
      expect((await fetch(`${world.issuer}/oauth/userinfo`, { headers })).status).toBe(200)
    }
  })

  test('stands in the way of the same client with another key: oidc-provider remembers by client', async () => {
    const jti = crypto.randomUUID()
    expect((await mint(await prove({ jti }))).status).toBe(200)
    expect((await mint(await prove({ jti }, await newClientKey()))).body.error).toBe('invalid_dpop_proof')
  })
})

async function boundTo(by: ClientKey, subject: string): Promise<string> {
  const type = 'urn:ietf:params:oauth:token-type:access_token'
  const form = { grant_type: EXCHANGE, subject_token: subject, subject_token_type: type }
  const { body } = await postToken(world, form, { id: 'gateway', headers: { dpop: await prove({}, by) } })
  return String(body.access_token)
}

/** As bytes: fetch joins fields of one name. */
function raw(lines: readonly string[], body = ''): Promise<string> {
  const { hostname, port } = new URL(world.issuer)
  return new Promise((done, fail) => {
    const socket = connect(Number(port), hostname, () =>
      socket.write(
        `${lines.join('\r\n')}\r\nHost: x\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
      ),
    )
    let text = ''
    socket.on('data', (part) => {
      text += part
    })
    socket.on('end', () => done(text)).on('error', fail)
  })
}

describe('two DPoP fields', () => {
  test('are refused at the token endpoint', async () => {
    const basic = Buffer.from(`robot:${SECRET}`).toString('base64')
    const answer = await raw(
      [
        'POST /oauth/token HTTP/1.1',
        'Content-Type: application/x-www-form-urlencoded',
        `Authorization: Basic ${basic}`,
        `DPoP: ${await prove()}`,
        `DPoP: ${await prove()}`,
      ],
      'grant_type=client_credentials',
    )
    expect(answer).toMatch(/^HTTP\/1.1 400 .*"error":"invalid_dpop_proof"/s)
  })

  test('are refused at UserInfo, also when one of them is good', async () => {
    const token = await boundTo(key, (await flows.code(eve)).tokens.access_token)
    const claims = { htm: 'GET', htu: `${world.issuer}/oauth/userinfo`, ath: digestOf(token) }
    const fields = [`DPoP: ${await prove(claims)}`, `DPoP: ${await prove(claims)}`]
    const answer = await raw(['GET /oauth/userinfo HTTP/1.1', `Authorization: DPoP ${token}`, ...fields])
    expect(answer).toMatch(/^HTTP\/1.1 401 .*DPoP error="invalid_dpop_proof"/s)
  })
})

describe('a pushed authorization request with a proof (section 10.1)', () => {
  const request = {
    client_id: 'web',
    response_type: 'code',
    redirect_uri: REDIRECT,
    scope: 'openid',
    code_challenge: digestOf(VERIFIER),
    code_challenge_method: 'S256',
  }
  async function push(claims: Members, more: Record<string, string> = {}) {
    const authorization = `Basic ${Buffer.from(`web:${SECRET}`).toString('base64')}`
    const dpop = await prove({ htu: `${world.issuer}/oauth/par`, ...claims })
    const body = new URLSearchParams({ ...request, ...more })
    const response = await fetch(`${world.issuer}/oauth/par`, {
      method: 'POST',
      headers: { authorization, dpop },
      body,
    })
    return { status: response.status, body: parseObject(await response.text()) }
  }

  test('gives a code that is redeemed with that key only', async () => {
    const flow = createFlow(world)
    const codeOf = async () => {
      const { body } = await push({})
      const parameters = { request_uri: String(body.request_uri) }
      const { client_id: _, ...others } = request
      const empty = Object.fromEntries(Object.keys({ ...others, state: '' }).map((name) => [name, undefined]))
      return (await flow.authorize({ ...empty, ...parameters })).searchParams.get('code') ?? ''
    }
    const redeem = (code: string, dpop: string | null) =>
      postToken(
        world,
        { grant_type: 'authorization_code', code, redirect_uri: REDIRECT, code_verifier: VERIFIER },
        { id: 'web', ...(dpop === null ? {} : { headers: { dpop } }) },
      )
    expect((await redeem(await codeOf(), null)).body.error).toBe('invalid_grant')
    expect((await redeem(await codeOf(), await prove({}, await newClientKey()))).body.error).toBe('invalid_grant')
    expect((await redeem(await codeOf(), await prove())).body.token_type).toBe('DPoP')
  })

  test.each([
    ['a proof for the token endpoint', () => ({ htu: `${world.issuer}/oauth/token` }), {}, 'invalid_dpop_proof'],
    ['a proof for another method', () => ({ htm: 'GET' }), {}, 'invalid_dpop_proof'],
    ['another dpop_jkt than its key', () => ({}), { dpop_jkt: OTHER_KEY }, 'invalid_request'],
  ])('is refused with %s', async (_, claims, more, error) => {
    const { status, body } = await push(claims(), more)
    expect([status, body.error]).toEqual([400, error])
  })

  test('is used up with its proof', async () => {
    const jti = crypto.randomUUID()
    const first = await push({ jti })
    expect([first.status, first.body]).toMatchObject([201, { expires_in: 60 }])
    expect((await push({ jti })).body.error).toBe('invalid_dpop_proof')
  })
})

describe('a client that is registered for bound tokens only', () => {
  beforeAll(async () => {
    const stored = await world.directory.client('flows')
    if (stored === null) throw new Error('no client')
    const metadata = {
      ...stored.metadata,
      grant_types: [...GRANTS, 'client_credentials'],
      dpop_bound_access_tokens: true,
    }
    await world.putClient({ ...stored, id: 'bound-flows', metadata: { ...metadata, exchange_clients: ['flows'] } })
  })

  const grants: readonly UserGrant[] = ['code', 'refresh', 'device', 'ciba', 'exchange']
  test.each(grants)('gets no token by %s without a proof, and a bound one with it', async (grant) => {
    const request = { ...eve, client: grant === 'exchange' ? 'flows' : 'bound-flows' }
    if (grant === 'exchange') {
      const subject = (await flows.code(eve)).tokens.access_token
      const form = {
        grant_type: EXCHANGE,
        subject_token: subject,
        subject_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      }
      expect((await postToken(world, form, { id: 'bound-flows' })).body.error).toBe('invalid_dpop_proof')
      const proven = await postToken(world, form, { id: 'bound-flows', headers: { dpop: await prove() } })
      expect(proven.body.token_type).toBe('DPoP')
      return
    }
    await expect(flows.obtain(grant, request)).rejects.toMatchObject({ error: 'invalid_dpop_proof', status: 400 })
    const { tokens, options } = await flows.obtain(grant, { ...request, dpop: true })
    expect(decode(tokens.access_token).payload.cnf).toEqual({ jkt: await options.DPoP?.calculateThumbprint() })
  })

  test('and a client that is free to choose may not change its mind between proof and none', async () => {
    const first = await flows.code({ ...eve, dpop: true })
    const unproven = { ...first, options: {} }
    await expect(flows.refreshed(unproven)).rejects.toMatchObject({ error: 'invalid_dpop_proof' })
    expect((await flows.refreshed(first)).tokens.token_type).toBe('dpop')
  })
})

test('openid-client is sent a nonce, takes it and succeeds, without its user noticing', async () => {
  const { config, options, tokens } = await flows.code({ ...eve, dpop: true })
  const info = await oauth.fetchUserInfo(config, tokens.access_token, 'eve', options)
  expect(info.sub).toBe('eve')
  expect((await flows.refreshed({ config, options, tokens })).tokens.token_type).toBe('dpop')
})
