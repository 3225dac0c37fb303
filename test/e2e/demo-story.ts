/** The story of the demo, played over real sockets: every step says what it did, and whether what should hold does. */
import { connect } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { DemoStack } from './demo-stack.ts'
import { ALICE_READS, BOB_IN_GROUP, GATE, type World } from './demo-world.ts'

const RETURN_TIMEOUT_MS = 30_000

type Reply = {
  readonly status: number
  readonly challenge: string | null
  readonly body: { readonly [member: string]: unknown }
}
type Step = { readonly title: string; readonly run: () => Promise<string | null> }

/** Runs all steps in order; the number of those that failed. `say` gets one line a step. */
export async function playStory(stack: DemoStack, world: World, say: (line: string) => void): Promise<number> {
  let failedCount = 0
  for (const { title, run } of steps(stack, world)) {
    const startedMs = performance.now()
    const wrong = await run().catch((err: unknown) => (err instanceof Error ? err.message : String(err)))
    if (wrong !== null) failedCount += 1
    const outcome = wrong === null ? 'ok  ' : 'FAIL'
    say(`${outcome} ${title}${wrong === null ? '' : `: ${wrong}`} (${Math.round(performance.now() - startedMs)} ms)`)
  }
  return failedCount
}

type Visitor = {
  get(path: string, token?: string, headers?: { readonly [name: string]: string }): Promise<Reply>
  /** What is wrong with the answer to a GET, or null. */
  gets(path: string, token: string | undefined, status: number, code?: string): Promise<string | null>
}
const step = (title: string, run: Step['run']): Step => ({ title, run })

function steps(stack: DemoStack, world: World): readonly Step[] {
  const get: Visitor['get'] = (path, token, headers) => fetchJson(`${stack.sidecarUrl}${path}`, { token, headers })
  const gets: Visitor['gets'] = async (path, token, status, code) => judge(await get(path, token), status, code)
  const visitor = { get, gets }
  return [
    ...answers(stack, world, visitor),
    ...changes(world, visitor),
    ...attacks(stack, world, visitor),
    ...outage(stack, world, visitor),
  ]
}

function answers(stack: DemoStack, { tokens: { alice, bob } }: World, { get, gets }: Visitor): readonly Step[] {
  const remove = () => fetchJson(`${stack.sidecarUrl}/invoices/1`, { token: alice, method: 'DELETE' })
  return [
    step('alice reads her invoice: 200', () => gets('/invoices/1', alice, 200)),
    step("alice reads another's invoice: 403", () => gets('/invoices/2', alice, 403, 'permission_denied')),
    step('bob reads it through a group in a group: 200', () => gets('/invoices/2', bob, 200)),
    step('a public route without a token: 200', () => gets('/public/status', undefined, 200)),
    step('no token: 401 with a challenge', async () => withChallenge(await get('/invoices/1'))),
    step('a forged token: 401 with a challenge', async () => withChallenge(await get('/invoices/1', forge(alice)))),
    step('an unknown route: 404, unasked', () => untouched(stack, () => gets('/unknown', alice, 404))),
    step('a method that the route lacks: 405', async () => judge(await remove(), 405)),
  ]
}

function changes(world: World, { get, gets }: Visitor): readonly Step[] {
  const { alice, bob } = world.tokens
  const aliceGets = (status: number) => () => gets('/invoices/1', alice, status)
  const bobGets = (status: number) => () => gets('/invoices/2', bob, status)
  const exports = () => gets('/invoices/1/export', alice, 200)
  const denied = async () => namesGate(await get('/invoices/1/export', alice))
  const next = 'very next call'
  return [
    step(`relationship removed, ${next}: 403`, () => world.relate({ delete: [ALICE_READS] }).then(aliceGets(403))),
    step(`relationship added again, ${next}: 200`, () => world.relate({ write: [ALICE_READS] }).then(aliceGets(200))),
    step(`group membership removed, ${next}: 403`, () => world.relate({ delete: [BOB_IN_GROUP] }).then(bobGets(403))),
    step(`group membership added, ${next}: 200`, () => world.relate({ write: [BOB_IN_GROUP] }).then(bobGets(200))),
    step('the gate is on: 200', exports),
    step(`gate turned off, ${next}: 403 that names the gate`, () => world.setGate(false).then(denied)),
    step(`gate turned on, ${next}: 200`, () => world.setGate(true).then(exports)),
  ]
}

function attacks(stack: DemoStack, { tokens: { alice } }: World, { get }: Visitor): readonly Step[] {
  const spoofed = { 'x-auth-subject': 'mallory', x_auth_subject: 'mallory', 'x-auth-organization': 'other' }
  const refused = (target: string): Step =>
    step(`GET ${target}: 400, unasked`, () => untouched(stack, () => rawStatus(stack, target, alice)))
  return [
    step('a spoofed X-Auth-Subject is replaced', async () => seesAlice(await get('/invoices/1', alice, spoofed))),
    refused('/public/../invoices/1'),
    refused('/public/%2e%2e/invoices/1'),
    refused('/public//invoices/1'),
  ]
}

function outage(stack: DemoStack, { tokens: { alice } }: World, { gets }: Visitor): readonly Step[] {
  const unavailable = () => untouched(stack, () => gets('/invoices/1', alice, 503))
  const served = () => eventually(() => gets('/invoices/1', alice, 200))
  return [
    step('PDP stopped: 503, unasked', () => stack.stopPdp().then(unavailable)),
    step('PDP back: 200', () => stack.startPdp().then(served)),
  ]
}

function judge(reply: Reply, status: number, code?: string): string | null {
  if (reply.status !== status) return `got ${reply.status} ${JSON.stringify(reply.body)}`
  return code === undefined || reply.body.code === code
    ? null
    : `got the problem ${String(reply.body.code)}, not ${code}`
}

function withChallenge(reply: Reply): string | null {
  const wrong = judge(reply, 401)
  if (wrong !== null) return wrong
  return reply.challenge?.startsWith('Bearer') === true ? null : `the challenge is ${reply.challenge}`
}

function namesGate(reply: Reply): string | null {
  const wrong = judge(reply, 403, 'entitlement_required')
  if (wrong !== null) return wrong
  return reply.body.entitlement === GATE ? null : `it names ${String(reply.body.entitlement)}`
}

function seesAlice(reply: Reply): string | null {
  const wrong = judge(reply, 200)
  if (wrong !== null) return wrong
  if (reply.body.token_seen !== false) return 'the service saw the access token'
  return reply.body.requested_by === 'alice' ? null : `the service saw ${String(reply.body.requested_by)}`
}

async function untouched(stack: DemoStack, check: () => Promise<string | null>): Promise<string | null> {
  const before = stack.api.requestCount()
  const wrong = await check()
  return wrong ?? (stack.api.requestCount() === before ? null : 'the service was asked')
}

async function eventually(check: () => Promise<string | null>): Promise<string | null> {
  const deadline = Date.now() + RETURN_TIMEOUT_MS
  for (;;) {
    const wrong = await check()
    if (wrong === null || Date.now() > deadline) return wrong
    await delay(20)
  }
}

/** Another first character of the signature. */
function forge(token: string): string {
  const dot = token.lastIndexOf('.') + 1
  return `${token.slice(0, dot)}${token[dot] === 'A' ? 'B' : 'A'}${token.slice(dot + 1)}`
}

async function fetchJson(
  url: string,
  options: { token?: string | undefined; headers?: { readonly [name: string]: string } | undefined; method?: string },
): Promise<Reply> {
  const { token, headers, method = 'GET' } = options
  const authorization: { [name: string]: string } = token === undefined ? {} : { authorization: `Bearer ${token}` }
  const response = await fetch(url, { method, headers: { ...authorization, ...headers } })
  const text = await response.text()
  const challenge = response.headers.get('www-authenticate')
  return { status: response.status, challenge, body: text === '' ? {} : JSON.parse(text) }
}

/** Written byte for byte: a URL parser would resolve the dots before they are sent. */
function rawStatus(stack: DemoStack, target: string, token: string): Promise<string | null> {
  const { hostname, port, host } = new URL(stack.sidecarUrl)
  const fields = [`Host: ${host}`, `Authorization: Bearer ${token}`, 'Connection: close']
  const request = `GET ${target} HTTP/1.1\r\n${fields.join('\r\n')}\r\n\r\n`
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => socket.write(request))
    let text = ''
    socket.on('data', (chunk) => {
      text += chunk
    })
    socket.on('error', reject)
    socket.on('end', () => resolve(text.startsWith('HTTP/1.1 400 ') ? null : `got ${text.split('\r\n', 1)[0]}`))
  })
}
