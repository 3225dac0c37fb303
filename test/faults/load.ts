/** Steady load: questions through both sidecars, writes to all PDPs, and a judgement of every answer. */
import { setTimeout as delay } from 'node:timers/promises'
import { type Dispatcher, Pool, request } from 'undici'
import { createOracle, type Oracle } from './oracle.ts'
import { RESOURCE, type System } from './system.ts'

export type Asked = {
  readonly sidecar: number
  readonly startMs: number
  readonly endMs: number
  /** `unavailable`: nobody could say, which is no wrong answer. */
  readonly outcome: 'allowed' | 'denied' | 'unavailable'
  readonly detail: string
  /** Names it in the sidecar's log. */
  readonly id: string
}
export type Wrote = {
  readonly pdp: number
  readonly startMs: number
  readonly endMs: number
  readonly acknowledged: boolean
}
export type Load = {
  readonly asked: Asked[]
  readonly wrote: Wrote[]
  /** Answers that cannot be right, in words. */
  readonly wrong: string[]
  readonly oracle: Oracle
  /** Whom clients are sent to, as by a Service. */
  readonly serving: Set<number>
  /** A clock is wrong, so that good tokens may be refused. */
  refusesTokens: boolean
  /** Acknowledged writes that are not there, in words. */
  lost(): Promise<string[]>
  stop(): Promise<void>
}

const ORGANIZATION = 'acme'
const CLIENT = 'loader'
const SECRET = 'loader-secret-0123456789-abcdef'
const SCOPES = 'relationships:write relationships:read directory:write manifest:write clients:write'
const ASKERS_PER_SIDECAR = 4
const WRITERS = 3
const PAUSE_MS = 10
/** Toggled so often, then left as it is. */
const WRITES_PER_DOCUMENT = 6
const CLIENT_TIMEOUT_MS = 65_000
const TOKEN_AGE_MS = 300_000

export async function startLoad(system: System): Promise<Load> {
  const oracle = createOracle()
  const [first] = system.pdps
  if (first === undefined) throw new TypeError('there is no PDP')
  const tokens = await createWorld(first.http, system.adminSecret)
  const asked: Asked[] = []
  const wrote: Wrote[] = []
  const wrong: string[] = []
  const documents: string[] = ['never-written']
  const serving = new Set(system.sidecars.keys())
  let stopped = false
  let askCount = 0
  const load: Load = { asked, wrote, wrong, oracle, serving, refusesTokens: false, lost, stop }
  const pools = system.sidecars.map(
    ({ port }) => new Pool(`http://127.0.0.1:${port}`, { connections: ASKERS_PER_SIDECAR + 2 }),
  )

  async function ask(sidecar: number): Promise<void> {
    const document = pick(documents)
    askCount += 1
    const id = `ask-${askCount}`
    const startMs = performance.now()
    const { status, text } = await send(pools[sidecar], {
      path: `/documents/${document}`,
      method: 'GET',
      headers: { host: 'documents.faults.example', authorization: `Bearer ${tokens.loader}`, 'x-request-id': id },
    })
    const endMs = performance.now()
    const outcome = outcomeOf(status, load.refusesTokens)
    asked.push({
      sidecar,
      startMs,
      endMs,
      outcome: outcome ?? 'unavailable',
      detail: `${status} ${text.slice(0, 200)}`,
      id,
    })
    if (outcome === null) wrong.push(`sidecar ${sidecar} answered ${status} ${text.slice(0, 200)}`)
    if (outcome === null || outcome === 'unavailable') return
    const possible = oracle.possible(document, outcome === 'allowed', { startMs, endMs })
    if (!possible)
      wrong.push(`sidecar ${sidecar} ${outcome} ${document} at ${Math.round(startMs)} ms, against what was written`)
    if (status === 200 && JSON.parse(text).subject !== CLIENT)
      wrong.push(`the service was told of another subject: ${text.slice(0, 200)}`)
  }

  async function write(writer: number, round: number, document: string, value: boolean): Promise<boolean> {
    const pdp = (writer + round) % system.pdps.length
    const startMs = performance.now()
    const acknowledge = oracle.begin(document, value, startMs)
    const tuple = { object: `document:${document}`, relation: 'viewer', subject: `service:${CLIENT}` }
    const { status, text } = await send(system.pdps[pdp]?.http ?? '', {
      path: `/v1/organizations/${ORGANIZATION}/relationships`,
      method: 'POST',
      headers: { authorization: `Bearer ${tokens.admin}`, 'content-type': 'application/json' },
      body: JSON.stringify(value ? { write: [tuple] } : { delete: [tuple] }),
    })
    const endMs = performance.now()
    const acknowledged = status === 200
    if (acknowledged) acknowledge(endMs)
    else if (status !== 0 && status !== 503 && status !== 429 && !(status === 401 && load.refusesTokens))
      wrong.push(`PDP ${pdp} answered a write with ${status} ${text.slice(0, 200)}`)
    wrote.push({ pdp, startMs, endMs, acknowledged })
    return acknowledged
  }

  /** A document whose write had no known outcome gets the same value until it is acknowledged, and is then left alone. */
  async function keepWriting(writer: number): Promise<void> {
    let round = 0
    for (let number = 0; !stopped; number += 1) {
      const document = `${writer}-${number}`
      documents.push(document)
      let doubtful = false
      for (let times = 0; times < WRITES_PER_DOCUMENT && !doubtful && !stopped; times += 1) {
        const value = times % 2 === 0
        while (!stopped && !(await write(writer, round, document, value))) {
          doubtful = true
          round += 1
          await delay(PAUSE_MS * 10)
        }
        round += 1
        if (Math.random() < 0.2) break
        await delay(PAUSE_MS)
      }
    }
  }

  async function keepAsking(sidecar: number): Promise<void> {
    while (!stopped) {
      if (serving.has(sidecar)) await ask(sidecar)
      await delay(PAUSE_MS)
    }
  }

  async function keepTokens(): Promise<void> {
    for (let renewedMs = performance.now(); !stopped; await delay(200)) {
      if (performance.now() - renewedMs < TOKEN_AGE_MS) continue
      const renewed = await mintAll(first?.http ?? '', system.adminSecret).catch(() => null)
      if (renewed === null) continue
      Object.assign(tokens, renewed)
      renewedMs = performance.now()
    }
  }

  async function lost(): Promise<string[]> {
    const missing: string[] = []
    const settled = oracle.settled()
    const held = await readAll(first?.http ?? '', tokens.admin)
    for (const [document, value] of settled)
      if (held.has(`document:${document}`) !== value)
        missing.push(`${document} is ${held.has(`document:${document}`)}, but ${value} was acknowledged`)
    return missing
  }

  const workers = [
    ...Array.from({ length: WRITERS }, (_, writer) => keepWriting(writer)),
    ...system.sidecars.flatMap((_, sidecar) => Array.from({ length: ASKERS_PER_SIDECAR }, () => keepAsking(sidecar))),
    keepTokens(),
  ]
  async function stop(): Promise<void> {
    stopped = true
    await Promise.race([Promise.all(workers), delay(CLIENT_TIMEOUT_MS)])
    for (const pool of pools) await pool.destroy()
  }
  return load
}

/** Null: no status that there is a reason for. */
function outcomeOf(status: number, refusesTokens: boolean): Asked['outcome'] | null {
  if (status === 200) return 'allowed'
  if (status === 403) return 'denied'
  if ([0, 429, 502, 503, 504].includes(status)) return 'unavailable'
  return status === 401 && refusesTokens ? 'unavailable' : null
}

type Sent = {
  readonly path: string
  readonly method: 'GET' | 'POST' | 'PUT'
  readonly headers: { readonly [name: string]: string }
  readonly body?: string
}

/** Status 0: there was no answer. */
async function send(
  to: Dispatcher | string | undefined,
  { path, ...options }: Sent,
): Promise<{ status: number; text: string }> {
  const timeouts = { headersTimeout: CLIENT_TIMEOUT_MS, bodyTimeout: CLIENT_TIMEOUT_MS }
  try {
    const { statusCode, body } =
      typeof to === 'string'
        ? await request(`${to}${path}`, { ...options, ...timeouts })
        : await (to as Dispatcher).request({ path, ...options, ...timeouts })
    return { status: statusCode, text: await body.text() }
  } catch (err) {
    return { status: 0, text: err instanceof Error ? err.message : String(err) }
  }
}

type Tokens = { admin: string; loader: string }

async function createWorld(origin: string, adminSecret: string): Promise<Tokens> {
  const admin = await mint(origin, { id: 'admin', secret: adminSecret, scope: SCOPES })
  const put = async (path: string, body: object): Promise<void> => {
    const headers = { authorization: `Bearer ${admin}`, 'content-type': 'application/json' }
    const { status, text } = await send(origin, { path, method: 'PUT', headers, body: JSON.stringify(body) })
    if (status >= 300) throw new Error(`PUT ${path}: ${status} ${text}`)
  }
  await put(`/v1/organizations/${ORGANIZATION}`, { name: 'Acme' })
  await put('/v1/apps/documents/manifest', { audiences: [RESOURCE] })
  await put(`/v1/clients/${CLIENT}`, {
    app: 'documents',
    grant_types: ['client_credentials'],
    organization: ORGANIZATION,
    client_secret: SECRET,
  })
  return mintAll(origin, adminSecret)
}

async function mintAll(origin: string, adminSecret: string): Promise<Tokens> {
  return {
    admin: await mint(origin, { id: 'admin', secret: adminSecret, scope: SCOPES }),
    loader: await mint(origin, { id: CLIENT, secret: SECRET, resource: RESOURCE }),
  }
}

async function mint(
  origin: string,
  from: { id: string; secret: string; scope?: string; resource?: string },
): Promise<string> {
  const { id, secret, scope, resource } = from
  const form = {
    grant_type: 'client_credentials',
    ...(scope !== undefined && { scope }),
    ...(resource !== undefined && { resource }),
  }
  const { status, text } = await send(origin, {
    path: '/oauth/token',
    method: 'POST',
    headers: {
      authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`,
      'content-type': 'application/x-www-form-urlencoded',
    },
    body: new URLSearchParams(form).toString(),
  })
  const token: unknown = status === 200 ? JSON.parse(text).access_token : undefined
  if (typeof token !== 'string') throw new Error(`no token for ${id}: ${status} ${text}`)
  return token
}

async function readAll(origin: string, token: string): Promise<Set<string>> {
  const held = new Set<string>()
  for (let after = ''; ; ) {
    const path = `/v1/organizations/${ORGANIZATION}/relationships?page_size=1000${after}`
    const { status, text } = await send(origin, { path, method: 'GET', headers: { authorization: `Bearer ${token}` } })
    if (status !== 200) throw new Error(`the relationships cannot be read: ${status} ${text}`)
    const { items, next_page_token: next } = JSON.parse(text)
    for (const { object } of items) held.add(object)
    if (typeof next !== 'string' || next === '') return held
    after = `&page_token=${encodeURIComponent(next)}`
  }
}

const pick = <T>(items: readonly T[]): T => {
  // Mostly the newest, which change.
  const recent = Math.random() < 0.6 ? items.slice(-6) : items
  const found = recent[Math.floor(Math.random() * recent.length)]
  if (found === undefined) throw new TypeError('nothing to pick from')
  return found
}
