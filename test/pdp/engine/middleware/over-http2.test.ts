/** Guards in servers that speak HTTP/2: Node's requests there lack some members that those of HTTP/1.1 have. */
import { connect, createServer } from 'node:http2'
import type { AddressInfo } from 'node:net'
import Fastify from 'fastify'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createPdp } from '../../../../pdp/engine/decision-point/create-pdp.ts'
import type { EmbeddedPdp } from '../../../../pdp/engine/decision-point/embedded.ts'
import { fastifyGuard } from '../../../../pdp/engine/middleware/fastify.ts'
import type { GuardOptions } from '../../../../pdp/engine/middleware/guard.ts'
import { httpGuard } from '../../../../pdp/engine/middleware/http.ts'
import { memoryStore } from '../../../../pdp/engine/store/memory/memory.ts'
import { createIssuer, ecKeys, type Issuer, proof, thumbprint } from '../../../support/peers/issuer.ts'
import { serveKeys } from './keys.ts'

const RESOURCE = 'https://app.test'
/** Else the client would not send a field twice. */
const AS_SENT = { strictSingleValueFields: false } as const
let issuer: Issuer
let pdp: EmbeddedPdp
const ports = new Map<string, number>()
const closing: (() => Promise<unknown>)[] = []

const SERVERS: { readonly [name: string]: (options: GuardOptions) => Promise<number> } = {
  async fastify(options) {
    const { allow, callerOf } = fastifyGuard(options)
    const app = Fastify({ http2: true })
    app.get('/doc', { onRequest: allow('viewer', 'doc:1') }, async (request) => callerOf(request).subject.id)
    await app.listen({ host: '127.0.0.1', port: 0 })
    closing.push(() => app.close())
    return (app.server.address() as AddressInfo).port
  },
  async http2(options) {
    const allow = httpGuard(options)
    const server = createServer(async (req, res) => {
      const caller = await allow(req, res, 'viewer', 'doc:1')
      if (caller !== null) res.end(caller.subject.id)
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    closing.push(() => new Promise((resolve) => server.close(resolve)))
    return (server.address() as AddressInfo).port
  },
}

beforeAll(async () => {
  const keys = await serveKeys(() => issuer)
  closing.push(keys.close)
  issuer = await createIssuer({ issuer: keys.url, audience: RESOURCE, clock: Date.now })
  pdp = createPdp({ store: memoryStore() })
  await pdp.putOrganization('acme', { name: 'Acme' })
  await pdp.write('acme', { write: ['doc:1#viewer@user:alice'] })
  for (const [name, start] of Object.entries(SERVERS))
    ports.set(name, await start({ pdp, issuer: keys.url, resource: RESOURCE }))
})
afterAll(async () => {
  await Promise.all(closing.map((close) => close()))
  await pdp.close()
})

function ask(
  name: string,
  fields: { readonly [name: string]: string | string[] },
): Promise<{ status: number; text: string }> {
  const session = connect(`http://127.0.0.1:${ports.get(name)}`, { ...AS_SENT, settings: {} })
  return new Promise((resolve, reject) => {
    const stream = session.request({ ':path': '/doc', ...fields })
    let [status, text] = [0, '']
    stream.on('response', (head) => {
      status = head[':status'] ?? 0
    })
    stream.setEncoding('utf8').on('data', (piece: string) => {
      text += piece
    })
    stream.on('end', () => session.close(() => resolve({ status, text }))).on('error', reject)
  })
}

test.each(Object.keys(SERVERS))('a guard of %s lets in who may, and refuses all others', async (name) => {
  const token = `Bearer ${await issuer.token()}`
  expect(await ask(name, { authorization: token })).toEqual({ status: 200, text: 'alice' })
  expect((await ask(name, { authorization: `Bearer ${await issuer.token({ sub: 'bob' })}` })).status).toBe(403)
  expect((await ask(name, {})).status).toBe(401)
  expect((await ask(name, { authorization: [token, token] })).status).toBe(400)
})

test.each(Object.keys(SERVERS))('a guard of %s takes one proof, once', async (name) => {
  const keys = ecKeys()
  const token = await issuer.token({ cnf: { jkt: await thumbprint(keys.publicKey) } })
  const made = { keys, method: 'GET', url: `${RESOURCE}/doc`, token, clock: Date.now }
  const [one, two, three] = [await proof(made), await proof(made), await proof(made)]
  const send = async (dpop: string | string[]) => (await ask(name, { authorization: `DPoP ${token}`, dpop })).status
  expect([await send(one), await send(one), await send([two, three])]).toEqual([200, 401, 401])
})
