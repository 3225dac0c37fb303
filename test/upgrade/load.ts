/** Writes, questions and revocations at several PDPs of one database, with an oracle that judges every answer. */
import { setTimeout as delay } from 'node:timers/promises'
import { createOracle, missingOf, type Oracle } from '../faults/oracle.ts'
import { adminToken, LOADER, ORGANIZATION, SECRET } from './world.ts'

export type Load = {
  /** Where clients are sent to; may change at any time. */
  readonly origins: string[]
  readonly counts: { asked: number; unavailable: number; wrote: number; refused: number; revoked: number }
  /** Answers that cannot be right, and acknowledged writes that are not there, in words. */
  complaints(): Promise<string[]>
  /** What each document's last acknowledged write said. */
  readonly oracle: Oracle
  /** Ends what is under way. */
  stop(): Promise<void>
}
type Answer = { readonly status: number; readonly body: unknown }

const WRITERS = 2
const ASKERS = 3
const PAUSE_MS = 10
const WRITES_PER_DOCUMENT = 5
const SERVICE = `service:${LOADER}`
const RELATIONSHIPS = `/v1/organizations/${ORGANIZATION}/relationships`

export async function startLoad(first: readonly string[], issuer: string): Promise<Load> {
  const origins = [...first]
  const manager = await adminToken(issuer)
  const asker = await token(issuer)
  const wrong: string[] = []
  const documents: string[] = []
  const oracle = createOracle()
  const counts = { asked: 0, unavailable: 0, wrote: 0, refused: 0, revoked: 0 }
  let stopped = false
  let turn = 0
  const next = (): string => {
    turn += 1
    return origins[turn % origins.length] ?? ''
  }

  /** Both tuples or none: a half of it is a half of a transaction. */
  async function write(name: string, value: boolean): Promise<boolean> {
    const tuples = ['viewer', 'editor'].map((relation) => `document:${name}#${relation}@${SERVICE}`)
    const acknowledge = oracle.begin(name, value, performance.now())
    const { status } = await post(next(), RELATIONSHIPS, manager, value ? { write: tuples } : { delete: tuples })
    if (status < 200 || status >= 300) {
      counts.refused += 1
      if (![0, 429, 503].includes(status)) wrong.push(`a write got ${status}`)
      return false
    }
    acknowledge(performance.now())
    counts.wrote += 1
    return true
  }

  async function keepWriting(writer: number): Promise<void> {
    for (let number = 0; !stopped; number += 1) {
      const name = `${writer}-${number}`
      documents.push(name)
      for (let round = 0; round < WRITES_PER_DOCUMENT && !stopped; round += 1) {
        // What has no known outcome gets the same value until it is acknowledged.
        while (!stopped && !(await write(name, round % 2 === 0))) await delay(PAUSE_MS * 10)
        await delay(PAUSE_MS)
      }
    }
  }

  async function keepAsking(): Promise<void> {
    for (; !stopped; await delay(PAUSE_MS)) {
      const recent = documents.slice(-6)
      const name = recent[Math.floor(Math.random() * recent.length)] ?? 'none'
      const startMs = performance.now()
      const origin = next()
      const { status, body } = await ask(origin, asker, `document:${name}`)
      counts.asked += 1
      const allowed = allowedOf(body)
      if (status !== 200 || allowed === null) {
        counts.unavailable += 1
        if (![0, 200, 429, 503].includes(status)) wrong.push(`a question got ${status} ${JSON.stringify(body)}`)
      } else if (!oracle.possible(name, allowed, { startMs, endMs: performance.now() }))
        wrong.push(`${origin} says ${allowed} of ${name}, against what was written`)
    }
  }

  async function keepRevoking(): Promise<void> {
    for (; !stopped; await delay(PAUSE_MS * 10)) {
      const one = await token(next()).catch(() => null)
      if (one === null || !isOfBearer((await ask(next(), one, 'document:1')).body)) continue
      if ((await revoke(next(), one)) !== 200) continue
      counts.revoked += 1
      const { body } = await ask(next(), one, 'document:1')
      if (isOfBearer(body)) wrong.push(`a revoked token got ${JSON.stringify(body)}`)
    }
  }

  /** Each makes an event. */
  async function keepSelling(): Promise<void> {
    const path = `/v1/organizations/${ORGANIZATION}/entitlements/feature.load`
    for (let round = 0; !stopped; round += 1) {
      const { status } = await post(next(), path, manager, { value: round % 2 === 0 }, 'PUT')
      if (status >= 200 && status < 300) counts.wrote += 1
      await delay(PAUSE_MS * 4)
    }
  }

  const workers = [
    ...Array.from({ length: WRITERS }, (_, writer) => keepWriting(writer)),
    ...Array.from({ length: ASKERS }, keepAsking),
    keepRevoking(),
    keepSelling(),
  ]
  return {
    origins,
    counts,
    oracle,
    async complaints() {
      const before = oracle.settled()
      const { whole, halves } = await held(next(), manager)
      return [
        ...wrong,
        ...missingOf(whole, { before, after: oracle.settled() }),
        ...(stopped ? halves.map((name) => `there is half of what was written for ${name}`) : []),
      ].slice(0, 10)
    },
    async stop() {
      stopped = true
      await Promise.all(workers)
    },
  }
}

/** The documents of which both tuples are there, and those of which one is. */
export async function held(
  origin: string,
  manager: string,
): Promise<{ readonly whole: Set<string>; readonly halves: readonly string[] }> {
  const tuples: string[] = []
  for (let after = ''; ; ) {
    const { status, body } = await call(origin, `${RELATIONSHIPS}?page_size=1000${after}`, { method: 'GET' }, manager)
    if (status !== 200) throw new Error(`the relationships cannot be read: ${status}`)
    const page = body as { items: { object: string; subject: string }[]; next_page_token?: string | null }
    tuples.push(...page.items.filter(({ subject }) => subject === SERVICE).map(({ object }) => object.slice(9)))
    if (typeof page.next_page_token !== 'string' || page.next_page_token === '') break
    after = `&page_token=${encodeURIComponent(page.next_page_token)}`
  }
  const counts = Map.groupBy(tuples, (name) => name)
  const ofSize = (size: number): string[] => [...counts].filter(([, all]) => all.length === size).map(([name]) => name)
  return { whole: new Set(ofSize(2)), halves: ofSize(1) }
}

export async function token(origin: string): Promise<string> {
  const { body } = await form(origin, '/oauth/token', { grant_type: 'client_credentials' })
  const value = (body as { access_token?: unknown } | null)?.access_token
  if (typeof value !== 'string') throw new Error(`no token for ${LOADER}`)
  return value
}

const revoke = async (origin: string, value: string): Promise<number> =>
  (await form(origin, '/oauth/revoke', { token: value })).status

export const ask = (origin: string, bearer: string, resource: string): Promise<Answer> =>
  post(origin, '/oauth/decisions', bearer, { permissions: [{ relation: 'viewer', resource }] })

/** Whether an answer is about somebody: a token that ended is nobody's. */
export const isOfBearer = (body: unknown): boolean =>
  typeof (body as { subject?: unknown } | null)?.subject === 'object' && (body as { subject: unknown }).subject !== null

/** Null: the answer has an error, or none. */
export function allowedOf(body: unknown): boolean | null {
  const [item] = (body as { permissions?: { allowed: boolean; error?: unknown }[] } | null)?.permissions ?? []
  return item === undefined || item.error !== undefined ? null : item.allowed
}

export const post = (origin: string, path: string, bearer: string, body: object, method = 'POST'): Promise<Answer> =>
  call(origin, path, { method, body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }, bearer)

function form(origin: string, path: string, fields: { readonly [name: string]: string }): Promise<Answer> {
  const authorization = `Basic ${Buffer.from(`${LOADER}:${SECRET}`).toString('base64')}`
  return call(origin, path, { method: 'POST', body: new URLSearchParams(fields), headers: { authorization } })
}

/** Status 0: there was no answer. */
async function call(origin: string, path: string, init: RequestInit, bearer?: string): Promise<Answer> {
  const authorization = bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }
  try {
    const response = await fetch(`${origin}${path}`, { ...init, headers: { ...init.headers, ...authorization } })
    const text = await response.text()
    return { status: response.status, body: text.startsWith('{') ? JSON.parse(text) : null }
  } catch {
    return { status: 0, body: null }
  }
}
