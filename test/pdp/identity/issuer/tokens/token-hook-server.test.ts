/** The token hook over a real connection: whatever its server does, tokens are issued, and soon. */
import { createHmac } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  HOOK_DEADLINE_MS,
  HOOK_DEPTH_MAX,
  RESERVED_CLAIMS,
} from '../../../../../pdp/identity/issuer/tokens/token-hook.ts'
import { CONTEXT, decode, openWorld, postToken, type World } from '../../harness.ts'

const SECRET = 'a-secret-of-the-hook-0123'
type Respond = (req: IncomingMessage, res: ServerResponse, body: string) => void
let world: World
let url: string
let respond: Respond
const asked: string[] = []
const server = createServer(async (req, res) => {
  let body = ''
  for await (const chunk of req) body += chunk
  asked.push(req.url ?? '')
  respond(req, res, body)
})
beforeAll(async () => {
  world = await openWorld()
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const address = server.address()
  url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/hook`
  await world.identity.hook.configure({ url, secret: SECRET }, CONTEXT)
})
afterAll(async () => {
  server.closeAllConnections()
  await new Promise((done) => server.close(done))
  await world.close()
})

/** The breaker has had its rest. */
async function mint() {
  world.time.offsetMs += 11_000
  const startedMs = performance.now()
  const before = world.hookOutcomes.length
  const { status, body } = await postToken(world, { grant_type: 'client_credentials' }, { id: 'robot' })
  expect(status).toBe(200)
  const { payload } = decode(String(body.access_token))
  return { payload, ms: performance.now() - startedMs, outcomes: world.hookOutcomes.slice(before) }
}
const answer =
  (claims: unknown): Respond =>
  (_req, res) =>
    res.end(JSON.stringify({ claims }))
const nested = (levels: number): unknown => (levels === 0 ? 1 : [nested(levels - 1)])

describe('a hook that answers', () => {
  test('adds its claims when the signature is right, as it can check', async () => {
    respond = (req, res, body) => {
      const [, at, signature] = /^t=(\d+),v1=([0-9a-f]+)$/.exec(String(req.headers['portcullis-signature'])) ?? []
      const isOurs = signature === createHmac('sha256', SECRET).update(`${at}.${body}`).digest('hex')
      res.writeHead(isOurs ? 200 : 401).end(JSON.stringify({ claims: { checked: true } }))
    }
    expect(await mint()).toMatchObject({ payload: { checked: true }, outcomes: ['added'] })
    await world.identity.hook.configure({ url, secret: `${SECRET}-changed` }, CONTEXT)
    const refused = await mint()
    expect(refused.outcomes).toEqual(['failed'])
    expect(refused.payload).not.toHaveProperty('checked')
    await world.identity.hook.configure({ url, secret: SECRET }, CONTEXT)
  })

  test('cannot set a reserved claim by another spelling of JSON, nor a name that every object has', async () => {
    respond = answer({})
    const without = Object.keys((await mint()).payload)
    const text = RESERVED_CLAIMS.map((name) => `"\\u00${name.charCodeAt(0).toString(16)}${name.slice(1)}":"evil"`)
    respond = (_req, res) =>
      res.end(`{"claims":{${text.join()},"__proto__":{"org":"evil"},"constructor":"kept","toString":1}}`)
    const { payload } = await mint()
    expect(Object.keys(payload).filter((name) => !without.includes(name))).toEqual([])
    expect(JSON.stringify(payload)).not.toContain('evil')
  })

  test('may nest its claims as deep as the bound, and not one level deeper', async () => {
    respond = answer({ deep: nested(HOOK_DEPTH_MAX - 1) })
    expect((await mint()).outcomes).toEqual(['added'])
    respond = answer({ deep: nested(HOOK_DEPTH_MAX) })
    const { payload, outcomes } = await mint()
    expect(outcomes).toEqual(['failed'])
    expect(payload).not.toHaveProperty('deep')
  })
})

describe('a hook that fails', () => {
  const failures: { readonly [what: string]: Respond } = {
    'with a redirect': (_req, res) => res.writeHead(307, { location: '/elsewhere' }).end(),
    'with half a JSON': (_req, res) => res.end('{"claims": {"a": '),
    'with JSON that is deep': (_req, res) => res.end(`{"claims":{"a":${'['.repeat(7_000)}${']'.repeat(7_000)}}}`),
    'with JSON that is deeper than any parser goes': (_req, res) => res.end('{"claims":'.repeat(1_600)),
    'with more than it may': (_req, res) => res.end(JSON.stringify({ claims: { big: 'x'.repeat(200_000) } })),
    'with little that unpacks to much': (_req, res) => {
      res.writeHead(200, { 'content-encoding': 'gzip' })
      res.end(gzipSync(JSON.stringify({ claims: { big: 'x'.repeat(20_000_000) } })))
    },
    'with headers only': (_req, res) => res.writeHead(200).flushHeaders(),
    'drop by drop': (_req, res) => {
      const timer = setInterval(() => res.write(' '), 50)
      res.once('close', () => clearInterval(timer))
    },
    'by hanging up': (req) => req.socket.destroy(),
    'by hanging up in the middle': (req, res) => {
      res.writeHead(200, { 'content-length': '1000' }).write('{"claims":')
      setTimeout(() => req.socket.destroy(), 20)
    },
    'with an empty answer': (_req, res) => res.end(),
    'with claims that are text': answer('claims'),
    'without content': (_req, res) => res.writeHead(204).end(),
  }
  test.each(Object.entries(failures))('%s costs its deadline at most, is counted and logged', async (_, failure) => {
    respond = failure
    asked.length = 0
    const { payload, ms, outcomes } = await mint()
    expect(outcomes).toEqual(['failed'])
    expect(payload).toMatchObject({ sub: 'robot', org: 'acme' })
    expect(payload).not.toHaveProperty('a')
    expect(ms).toBeLessThan(HOOK_DEADLINE_MS + 10_000)
    expect(asked).toEqual(['/hook'])
    expect(world.log.at(-1)).toContain('token_hook_failed')
    expect(world.log.join('')).not.toContain(SECRET)
  })
})
