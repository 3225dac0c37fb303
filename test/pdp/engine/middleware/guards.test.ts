/** One line in Express, Fastify, Hono and node:http lets in who may, and refuses everybody else in the same way. */
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import express from 'express'
import Fastify from 'fastify'
import { Hono } from 'hono'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createPdp } from '../../../../pdp/engine/decision-point/create-pdp.ts'
import type { EmbeddedPdp } from '../../../../pdp/engine/decision-point/embedded.ts'
import { expressGuard } from '../../../../pdp/engine/middleware/express.ts'
import { fastifyGuard } from '../../../../pdp/engine/middleware/fastify.ts'
import type { GuardOptions } from '../../../../pdp/engine/middleware/guard.ts'
import { honoGuard } from '../../../../pdp/engine/middleware/hono.ts'
import { httpGuard } from '../../../../pdp/engine/middleware/http.ts'
import { memoryStore } from '../../../../pdp/engine/store/memory/memory.ts'
import { PdpError } from '../../../../pdp/shared/domain/errors.ts'
import { createIssuer, ecKeys, type Issuer, proof, thumbprint } from '../../../support/peers/issuer.ts'

const RESOURCE = 'https://app.test'
/** Of two values. */
const FILE = 'file:{folder}/{name}'
const clock = Date.now
const closing: (() => Promise<unknown>)[] = []
let issuer: Issuer
/** Null: the key set cannot be had. */
let keySet: object | null
let pdp: EmbeddedPdp
let decide: EmbeddedPdp['decide']
const bases = new Map<string, string>()

async function listen(listener: RequestListener): Promise<string> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  closing.push(() => new Promise((resolve) => server.close(resolve)))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const FRAMEWORKS: { readonly [name: string]: (options: GuardOptions) => Promise<RequestListener> } = {
  async express(options) {
    const { allow, callerOf } = expressGuard(options)
    const app = express()
    app.get('/invoices/:id', allow('viewer', 'invoice:{id}'), (req, res) => void res.send(callerOf(req).subject.id))
    app.get('/files/:folder/:name', allow('viewer', FILE), (req, res) => void res.send(callerOf(req).subject.id))
    app.get('/me', allow(), (req, res) => void res.send(callerOf(req).subject.id))
    return app
  },
  async fastify(options) {
    const { allow, callerOf } = fastifyGuard(options)
    const app = Fastify()
    app.get(
      '/invoices/:id',
      { onRequest: allow('viewer', 'invoice:{id}') },
      async (request) => callerOf(request).subject.id,
    )
    app.get(
      '/files/:folder/:name',
      { onRequest: allow('viewer', FILE) },
      async (request) => callerOf(request).subject.id,
    )
    app.get('/me', { onRequest: allow() }, async (request) => callerOf(request).subject.id)
    await app.ready()
    return (req, res) => void app.server.emit('request', req, res)
  },
  async hono(options) {
    const { allow, callerOf } = honoGuard(options)
    const app = new Hono()
    app.get('/invoices/:id', allow('viewer', 'invoice:{id}'), (c) => c.text(callerOf(c).subject.id))
    app.get('/files/:folder/:name', allow('viewer', FILE), (c) => c.text(callerOf(c).subject.id))
    app.get('/me', allow(), (c) => c.text(callerOf(c).subject.id))
    return getRequestListener(app.fetch)
  },
  async http(options) {
    const allow = httpGuard(options)
    return async (req, res) => {
      const id = /^\/invoices\/([^/?]+)/.exec(req.url ?? '')?.[1]
      // A server of node:http reads its paths itself.
      const resource = id === undefined ? null : (`invoice:${decodeURIComponent(id)}` as const)
      const caller = await (resource === null ? allow(req, res) : allow(req, res, 'viewer', resource))
      if (caller !== null) res.end(caller.subject.id)
    }
  },
}

beforeAll(async () => {
  const url = await listen((req, res) => {
    const found = req.url === '/jwks' ? keySet : { issuer: issuer.issuer, jwks_uri: `${issuer.issuer}/jwks` }
    res.writeHead(found === null ? 503 : 200, { 'content-type': 'application/json' }).end(JSON.stringify(found))
  })
  issuer = await createIssuer({ issuer: url, audience: RESOURCE, clock })
  keySet = issuer.jwks
  const store = memoryStore()
  pdp = createPdp({ store })
  await pdp.putOrganization('acme', { name: 'Acme' })
  await pdp.write('acme', {
    write: ['invoice:42#viewer@user:alice', 'invoice:42#viewer@service:robot', 'file:a/b/c#viewer@user:alice'],
  })
  const asked: GuardOptions['pdp'] = {
    decide: (request) => decide(request),
    isRevoked: (token) => pdp.isRevoked(token),
    tokenKeys: (token) => pdp.tokenKeys(token),
  }
  for (const [name, start] of Object.entries(FRAMEWORKS))
    bases.set(name, await listen(await start({ pdp: asked, issuer: url, resource: RESOURCE })))
})
beforeEach(() => {
  decide = (request) => pdp.decide(request)
})
afterAll(async () => {
  await Promise.all(closing.map((close) => close()))
  await pdp.close()
})

describe.each(Object.keys(FRAMEWORKS))('a guard of %s', (name) => {
  const ask = (path: string, headers: { [name: string]: string }) => fetch(`${bases.get(name)}${path}`, { headers })
  const bearer = (token: string, path = '/invoices/42') => ask(path, { authorization: `Bearer ${token}` })

  test('lets in who may, and says who it was', async () => {
    expect(await (await bearer(await issuer.token())).text()).toBe('alice')
    expect(await (await bearer(await issuer.token({ sub: 'robot', client_id: 'robot' }))).text()).toBe('robot')
    expect(await (await bearer(await issuer.token({ org: undefined }), '/me')).text()).toBe('alice')
  })

  test('lets an agent in where the app, the person and its own rights do', async () => {
    const token = await issuer.token({ act: { sub: 'robot' } })
    expect((await bearer(token)).status).toBe(200)
    await pdp.putManifest('app', { audiences: [RESOURCE], actors: 'both' })
    try {
      expect((await bearer(token)).status).toBe(403)
      await pdp.write('acme', { write: ['service:robot#acts_for@user:alice'] })
      expect(await (await bearer(token)).text()).toBe('alice')
      for (const act of [{ sub: 'other' }, { sub: 'robot', act: { sub: 'other' } }, { sub: 7 }, {}, 'robot', null])
        for (const [path, status] of [
          ['/invoices/42', 403],
          ['/me', 401],
        ] as const)
          expect([act, path, (await bearer(await issuer.token({ act }), path)).status]).toEqual([act, path, status])
      expect((await bearer(await issuer.token())).status).toBe(200)
    } finally {
      await pdp.write('acme', { delete: ['service:robot#acts_for@user:alice'] })
      await pdp.putManifest('app', { audiences: [RESOURCE] })
    }
  })

  const refusals: readonly (readonly [
    name: string,
    token: () => Promise<string>,
    path: string,
    status: number,
    code: string,
  ])[] = [
    ['who has no grant', () => issuer.token({ sub: 'bob' }), '/invoices/42', 403, 'permission_denied'],
    ['another resource', () => issuer.token(), '/invoices/43', 403, 'permission_denied'],
    [
      'a token without an organization',
      () => issuer.token({ org: undefined }),
      '/invoices/42',
      403,
      'permission_denied',
    ],
    [
      'a token of an unknown organization',
      () => issuer.token({ org: 'nobody' }),
      '/invoices/42',
      403,
      'permission_denied',
    ],
    ['a token for another resource', () => issuer.token({ aud: 'https://other.test' }), '/me', 401, 'token_invalid'],
    ['a token of another issuer', () => issuer.token({ iss: 'https://other.test' }), '/me', 401, 'token_invalid'],
    ['a token that has expired', () => issuer.token({ exp: 1_000 }), '/me', 401, 'token_expired'],
    ['an ID token', () => issuer.token({}, { typ: 'JWT' }), '/me', 401, 'token_invalid'],
    [
      'a bound token without its proof',
      async () => issuer.token({ cnf: { jkt: await thumbprint(ecKeys().publicKey) } }),
      '/me',
      401,
      'token_invalid',
    ],
    ['a text that is not a token', async () => 'x.y.z', '/me', 401, 'token_invalid'],
    ['an id that makes no resource', () => issuer.token(), '/invoices/4%232', 400, 'request_invalid'],
  ]
  test.each(refusals)('refuses %s', async (_, token, path, status, code) => {
    const answer = await bearer(await token(), path)
    expect([answer.status, await answer.json()]).toMatchObject([status, { code, status }])
    expect(answer.headers.get('content-type')).toMatch(/^application\/problem\+json/)
    expect(answer.headers.has('www-authenticate')).toBe(status === 401)
  })

  test('refuses who sends no token, or two', async () => {
    const none = await ask('/me', {})
    expect([none.status, none.headers.get('www-authenticate')]).toEqual([401, 'Bearer'])
    const token = await issuer.token()
    expect((await ask('/me', { authorization: `Bearer ${token}, Bearer ${token}` })).status).toBe(401)
  })

  test('takes a proof of the bound key once, for this method and path', async () => {
    const keys = ecKeys()
    const token = await issuer.token({ cnf: { jkt: await thumbprint(keys.publicKey) } })
    const given = { keys, method: 'GET', url: `${RESOURCE}/invoices/42`, token, clock }
    const dpop = await proof(given)
    const send = (one: string) => ask('/invoices/42?page=2', { authorization: `DPoP ${token}`, dpop: one })
    expect((await send(dpop)).status).toBe(200)
    const codes: unknown[] = []
    for (const one of [
      dpop,
      await proof({ ...given, method: 'POST' }),
      await proof({ ...given, url: `${RESOURCE}/invoices/43` }),
      '',
    ])
      codes.push(((await (await send(one)).json()) as { code: string }).code)
    expect(codes).toEqual(['proof_replayed', 'proof_invalid', 'proof_invalid', expect.stringMatching(/^proof_/)])
  })

  test('refuses a token that was revoked by its id, its client or its user', async () => {
    for (const key of ['jti t1', 'client c9', 'user alice']) {
      decide = async (request) => ({
        ...(await pdp.decide(request)),
        tokenRevoked: request.revocationKeys?.includes(key) === true,
      })
      expect((await bearer(await issuer.token({ jti: 't1', client_id: 'c9' }))).status).toBe(401)
    }
  })

  test('answers 503, and lets nobody in, while it cannot decide', async () => {
    decide = async (request) => pdp.decide({ ...request, permissions: [] })
    expect((await bearer(await issuer.token())).status).toBe(403)
    decide = () => Promise.reject(new PdpError('store_unavailable', 'down'))
    const answer = await bearer(await issuer.token())
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '1'])
  })
})

// A server of node:http makes its resources itself.
test.each(['express', 'fastify', 'hono'])('a guard of %s asks about one file for each two values', async (name) => {
  const headers = { authorization: `Bearer ${await issuer.token()}` }
  const ask = async (path: string) => (await fetch(`${bases.get(name)}${path}`, { headers })).status
  expect(await ask('/files/a/b%2Fc')).toBe(200)
  // To the handler, these are a file of the folder `a/b`.
  expect(await ask('/files/a%2Fb/c')).toBe(400)
})

test('fails where two placeholders stand side by side', async () => {
  const { allow } = fastifyGuard({ pdp, issuer: issuer.issuer, resource: RESOURCE })
  const app = Fastify()
  app.get('/:a/:b', { onRequest: allow('viewer', 'file:{a}{b}') }, async () => 'reached')
  const headers = { authorization: `Bearer ${await issuer.token()}` }
  const answer = await app.inject({ url: '/a/b', headers })
  expect([answer.statusCode, answer.json().message]).toEqual([500, expect.stringContaining('side by side')])
})

test('refuses to be made where no proof could name its URL', () => {
  const options = { pdp, issuer: issuer.issuer }
  for (const resource of ['urn:example:app', 'api://app', 'app'])
    expect(() => httpGuard({ ...options, resource })).toThrow(/publicUrl/)
  expect(() => httpGuard({ ...options, resource: RESOURCE, publicUrl: 'app:' })).toThrow(/publicUrl/)
  expect(() => httpGuard({ ...options, resource: 'urn:example:app', publicUrl: RESOURCE })).not.toThrow()
})

test('refuses to be made for an issuer without TLS', () => {
  expect(() => httpGuard({ pdp, issuer: 'http://id.example.com', resource: RESOURCE })).toThrow(/https/)
})

test('answers 503 while the keys of the issuer cannot be had', async () => {
  keySet = null
  const allow = httpGuard({ pdp, issuer: issuer.issuer, resource: RESOURCE })
  const base = await listen(async (req, res) => void (await allow(req, res)))
  const answer = await fetch(base, { headers: { authorization: `Bearer ${await issuer.token()}` } })
  expect([answer.status, await answer.json()]).toMatchObject([503, { code: 'keys_unavailable' }])
  keySet = issuer.jwks
})
