/** Steady load: questions through both sidecars, writes to all PDPs, and a judgement of every answer. */
import { setTimeout as delay } from 'node:timers/promises'
import { Pool } from 'undici'
import { proof } from '../support/peers/issuer.ts'
import { createOracle, missingOf, type Oracle } from './oracle.ts'
import { FEATURES, RESOURCE, type System } from './system.ts'
import {
  CLIENT_TIMEOUT_MS,
  createWorld,
  LOADER,
  mintAll,
  ORGANIZATION,
  PROVER,
  readAll,
  type Sent,
  send,
} from './world.ts'

/** `proof`: with a DPoP proof, which the sidecars remember in Redis. */
export type Kind = 'bearer' | 'proof' | 'feature'
export type Asked = {
  readonly kind: Kind
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
  /** Redis starts anew without its memory, so that a used proof may be good again. */
  forgetsProofs: boolean
  /** How many used proofs were sent again. */
  replays(): number
  /** Acknowledged writes that are not there, in words. */
  lost(): Promise<string[]>
  stop(): Promise<void>
}

const ASKERS_PER_SIDECAR: { readonly [kind in Kind]: number } = { bearer: 4, proof: 2, feature: 1 }
const WRITERS = 3
const PAUSE_MS = 10
/** Every so manieth proof is sent to another sidecar as well. */
const REPLAY_EVERY = 4
/** Toggled so often, then left as it is. */
const WRITES_PER_DOCUMENT = 6
const WRITES_PER_FEATURE = 200
const FEATURE_PAUSE_MS = 100
const TOKEN_AGE_MS = 300_000
/** What a client is told of a proof that was used before. */
const REPLAYED = 401

/** Of a write of which nothing was done: no answer, 503, 429, and 408 by a PDP that was frozen while the request came. */
const REFUSALS: ReadonlySet<number> = new Set([0, 408, 429, 503])

export async function startLoad(system: System): Promise<Load> {
  const oracle = createOracle()
  const [first] = system.pdps
  if (first === undefined) throw new TypeError('there is no PDP')
  const tokens = await createWorld(first.http, system.adminSecret)
  const asked: Asked[] = []
  const wrote: Wrote[] = []
  const wrong: string[] = []
  const documents: string[] = ['never-written']
  const features: string[] = []
  const serving = new Set(system.sidecars.keys())
  let stopped = false
  let askCount = 0
  let replayCount = 0
  const load: Load = {
    asked,
    wrote,
    wrong,
    oracle,
    serving,
    refusesTokens: false,
    forgetsProofs: false,
    replays: () => replayCount,
    lost,
    stop,
  }
  const connections = Object.values(ASKERS_PER_SIDECAR).reduce((sum, count) => sum + count, 2)
  const pools = system.sidecars.map(({ port }) => new Pool(`http://127.0.0.1:${port}`, { connections }))

  async function credentials(kind: Kind, path: string): Promise<{ [name: string]: string }> {
    if (kind !== 'proof') return { authorization: `Bearer ${tokens.loader}` }
    const { prover: token, keys } = tokens
    const dpop = await proof({ keys, method: 'GET', url: `${RESOURCE}${path}`, token, clock: Date.now })
    return { authorization: `DPoP ${token}`, dpop }
  }

  async function ask(kind: Kind, sidecar: number): Promise<void> {
    const name = kind === 'feature' ? pick(features) : pick(documents)
    if (name === null) return
    const path = kind === 'feature' ? `/features/${name}` : `/documents/${name}`
    askCount += 1
    const id = `ask-${askCount}`
    const fields = await credentials(kind, path)
    const headers = { host: 'documents.faults.example', ...fields, 'x-request-id': id }
    const startMs = performance.now()
    const { status, text } = await send(pools[sidecar], { path, method: 'GET', headers })
    const endMs = performance.now()
    const outcome = outcomeOf(status, load.refusesTokens)
    const detail = `${status} ${text.slice(0, 200)}`
    asked.push({ kind, sidecar, startMs, endMs, outcome: outcome ?? 'unavailable', detail, id })
    if (outcome === null) wrong.push(`sidecar ${sidecar} answered a ${kind} with ${detail}`)
    if (outcome === null || outcome === 'unavailable') return
    if (!oracle.possible(name, outcome === 'allowed', { startMs, endMs }))
      wrong.push(`sidecar ${sidecar} ${outcome} ${name} at ${Math.round(startMs)} ms, against what was written`)
    const subject = kind === 'proof' ? PROVER : LOADER
    if (status === 200 && JSON.parse(text).subject !== subject)
      wrong.push(`the service was told of another subject: ${text.slice(0, 200)}`)
    if (kind === 'proof' && askCount % REPLAY_EVERY === 0) await replay(sidecar, { path, method: 'GET', headers })
  }

  /** The proof was good, so it must not be good again, anywhere; without Redis, sidecars remember for themselves. */
  async function replay(sidecar: number, sent: Sent): Promise<void> {
    const forgot = (): boolean => load.forgetsProofs
    const forgotBefore = forgot()
    const again = system.redis === null ? sidecar : (sidecar + 1) % pools.length
    if (!serving.has(again)) return
    const { status, text } = await send(pools[again], sent)
    replayCount += 1
    const outcome = outcomeOf(status, true)
    const refused = status === REPLAYED || outcome === 'unavailable'
    if (!refused && !forgotBefore && !forgot())
      wrong.push(`sidecar ${again} took a used proof: ${status} ${text.slice(0, 200)}`)
  }

  type Change = { readonly name: string; readonly value: boolean; readonly sent: Sent }

  async function write(pdp: number, { name, value, sent }: Change): Promise<boolean> {
    const startMs = performance.now()
    const acknowledge = oracle.begin(name, value, startMs)
    const { status, text } = await send(system.pdps[pdp]?.http ?? '', sent)
    const endMs = performance.now()
    const acknowledged = status >= 200 && status < 300
    if (acknowledged) acknowledge(endMs)
    else if (!REFUSALS.has(status) && !(status === 401 && load.refusesTokens))
      wrong.push(`PDP ${pdp} answered a write with ${status} ${text.slice(0, 200)}`)
    wrote.push({ pdp, startMs, endMs, acknowledged })
    return acknowledged
  }

  const fields = () => ({ authorization: `Bearer ${tokens.admin}`, 'content-type': 'application/json' })

  /** For both clients at once. */
  function documentChange(name: string, value: boolean): Change {
    const subjects = [LOADER, PROVER].map((id) => `service:${id}`)
    const tuples = subjects.map((subject) => ({ object: `document:${name}`, relation: 'viewer', subject }))
    const body = JSON.stringify(value ? { write: tuples } : { delete: tuples })
    const path = `/v1/organizations/${ORGANIZATION}/relationships`
    return { name, value, sent: { path, method: 'POST', headers: fields(), body } }
  }

  function featureChange(name: string, value: boolean): Change {
    const path = `/v1/organizations/${ORGANIZATION}/entitlements/feature.${name}`
    return { name, value, sent: { path, method: 'PUT', headers: fields(), body: JSON.stringify({ value }) } }
  }

  /** Toggles one after the other. What has no known outcome gets the same value until it is acknowledged, and then no other. */
  async function keepWriting(options: {
    readonly writer: number
    readonly nameOf: (number: number) => string | null
    readonly names: string[]
    readonly changeOf: (name: string, value: boolean) => Change
    readonly times: number
    readonly pauseMs: number
  }): Promise<void> {
    const { writer, nameOf, names, changeOf, times, pauseMs } = options
    let round = writer
    for (let number = 0; !stopped; number += 1) {
      const name = nameOf(number)
      if (name === null) return
      names.push(name)
      let doubtful = false
      for (let count = 0; count < times && !doubtful && !stopped; count += 1) {
        while (!stopped && !(await write(round % system.pdps.length, changeOf(name, count % 2 === 0)))) {
          doubtful = true
          round += 1
          await delay(PAUSE_MS * 10)
        }
        round += 1
        await delay(pauseMs)
      }
    }
  }

  async function keepAsking(kind: Kind, sidecar: number): Promise<void> {
    while (!stopped) {
      if (serving.has(sidecar)) await ask(kind, sidecar)
      await delay(PAUSE_MS)
    }
  }

  async function keepTokens(): Promise<void> {
    const { keys } = tokens
    for (let renewedMs = performance.now(); !stopped; await delay(200)) {
      if (performance.now() - renewedMs < TOKEN_AGE_MS) continue
      const { adminSecret } = system
      const renewed = await mintAll(first?.http ?? '', { adminSecret, keys }).catch(() => null)
      if (renewed === null) continue
      Object.assign(tokens, renewed)
      renewedMs = performance.now()
    }
  }

  async function lost(): Promise<string[]> {
    const before = oracle.settled()
    const held = await readAll(first?.http ?? '', tokens.admin)
    return missingOf(held, { before, after: oracle.settled() })
  }

  const workers = [
    ...Array.from({ length: WRITERS }, (_, writer) => {
      const nameOf = (number: number): string => `${writer}-${number}`
      const what = { names: documents, changeOf: documentChange, times: WRITES_PER_DOCUMENT, pauseMs: PAUSE_MS }
      return keepWriting({ writer, nameOf, ...what })
    }),
    keepWriting({
      writer: WRITERS,
      nameOf: (number) => FEATURES[number] ?? null,
      names: features,
      changeOf: featureChange,
      times: WRITES_PER_FEATURE,
      pauseMs: FEATURE_PAUSE_MS,
    }),
    ...system.sidecars.flatMap((_, sidecar) =>
      (['bearer', 'proof', 'feature'] as const).flatMap((kind) =>
        Array.from({ length: ASKERS_PER_SIDECAR[kind] }, () => keepAsking(kind, sidecar)),
      ),
    ),
    keepTokens(),
  ]
  async function stop(): Promise<void> {
    stopped = true
    // With a reference, this timer would keep the process alive for a minute after its last line.
    await Promise.race([Promise.all(workers), delay(CLIENT_TIMEOUT_MS, undefined, { ref: false })])
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

/** Mostly the newest, which change; null: there are none. */
function pick<T>(items: readonly T[]): T | null {
  const recent = Math.random() < 0.6 ? items.slice(-6) : items
  return recent[Math.floor(Math.random() * recent.length)] ?? null
}
