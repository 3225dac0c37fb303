/**
 * The entitlement source of an external system that owns the gates and is asked over HTTP. It commits a change first and
 * announces it then (`entitlements:changed`); whoever asks after the announcement never gets a value from before it.
 */
import { createHash } from 'node:crypto'
import { isEntitlementKey, quote } from '../decide/names.ts'
import { PdpError } from '../errors.ts'
import {
  ENFORCEMENTS,
  type Entitlement,
  type EntitlementSource,
  type JsonObject,
  type Standing,
  type Store,
} from './contracts.ts'
import { storeEntitlements } from './entitlement-source.ts'

export const SOURCE_DEADLINE_MS = 1_000
export const SOURCE_BYTES_MAX = 1_048_576
/** A change that nobody announced is noticed after this long in memory, and as long in the shared cache. */
const KEPT_MS_MAX = 30_000
/** Requests under way. Readers of the same keys share one, so this many differ. */
const RUNNING_MAX = 256
/** Reads begun anew because the version changed meanwhile. */
const TRIES_MAX = 5
const STATE_CHARACTERS_MAX = 256

/** The part of the platform's `fetch` that is used. */
export type SourceFetch = (
  url: string,
  init: { method: 'POST'; redirect: 'manual'; signal: AbortSignal; headers: { [name: string]: string }; body: string },
) => Promise<Pick<Response, 'status' | 'body'>>
type Answer = { readonly state: string; readonly values: ReadonlyMap<string, Entitlement> }
type Question = { readonly organization: string; readonly keys: readonly string[] | 'all' }

/**
 * `POST url` with `{organization, keys}` (`keys` null for all) is answered 200 with `{organization, state, values}`: `values`
 * maps each key that the organization has to `{value, enforcement?}`, all of one moment, and `state` is any text that is
 * another one after every change. Anything else is a failure. `secret` is sent as a bearer token.
 */
export function httpEntitlements(options: {
  readonly url: string
  readonly secret: string
  /** Owns the organizations and their versions. */
  readonly store: Pick<Store, 'entitlements' | 'vector'>
  readonly fetch: SourceFetch
  /** Default 1 s. */
  readonly deadlineMs?: number
}): EntitlementSource {
  const { url, store } = options
  let running = 0

  async function ask(question: Question): Promise<Answer> {
    if (running >= RUNNING_MAX) throw unavailable('is asked too much at once')
    running += 1
    try {
      return await request(options, question)
    } catch (error) {
      throw unavailable('gave no usable answer', error)
    } finally {
      running -= 1
    }
  }
  const standing = async (organization: string): Promise<Standing | undefined> =>
    (await store.vector([organization])).logs.get(organization)

  return {
    name: `external ${createHash('sha256').update(url).digest('base64url')}`,
    keptMsMax: KEPT_MS_MAX,
    async read(organization, keys) {
      let before = await standing(organization)
      for (let tries = 0; tries < TRIES_MAX; tries++) {
        if (before === undefined) return { version: 0, state: '', values: new Map() }
        if (keys.length === 0) return { version: before.entitlementVersion, state: '', values: new Map() }
        const answer = await ask({ organization, keys })
        const after = await standing(organization)
        // The version held before and after, so it held when the values were read.
        if (after !== undefined && sameVersion(before, after)) return { version: after.entitlementVersion, ...answer }
        before = after
      }
      throw unavailable('announces changes faster than it answers')
    },
    version: storeEntitlements(store).version,
  }
}

const sameVersion = (a: Standing, b: Standing): boolean =>
  a.entitlementVersion === b.entitlementVersion && a.entitlementWriteId === b.entitlementWriteId

const unavailable = (what: string, cause?: unknown): PdpError =>
  new PdpError('store_unavailable', `the entitlement source ${what}`, { cause })

async function request(
  options: {
    readonly url: string
    readonly secret: string
    readonly fetch: SourceFetch
    readonly deadlineMs?: number
  },
  question: Question,
): Promise<Answer> {
  const { organization, keys } = question
  const deadline = AbortSignal.timeout(options.deadlineMs ?? SOURCE_DEADLINE_MS)
  const work = options
    .fetch(options.url, {
      method: 'POST',
      redirect: 'manual',
      signal: deadline,
      headers: {
        'content-type': 'application/json',
        accept: 'application/json',
        authorization: `Bearer ${options.secret}`,
      },
      body: JSON.stringify({ organization, keys: keys === 'all' ? null : keys }),
    })
    .then(readBody)
  // The signal ends the request; the race ends the wait even for a fetch that does not heed it.
  return parseAnswer(await Promise.race([work, expired(deadline)]), question)
}

function expired(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(new Error('no answer in time')), { once: true })
  })
}

async function readBody(response: Pick<Response, 'status' | 'body'>): Promise<unknown> {
  if (response.status !== 200) {
    await response.body?.cancel()
    throw new Error(`status ${response.status}`)
  }
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length
    if (bytes > SOURCE_BYTES_MAX) throw new Error(`more than ${SOURCE_BYTES_MAX} bytes`)
    chunks.push(chunk)
  }
  return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks)))
}

function parseAnswer(answer: unknown, { organization, keys }: Question): Answer {
  const { state, values, ...rest } = members(answer, 'the answer')
  if (rest.organization !== organization) throw new Error('the answer is about another organization')
  if (typeof state !== 'string' || state === '' || state.length > STATE_CHARACTERS_MAX)
    throw new Error(`state is no text of 1 to ${STATE_CHARACTERS_MAX} characters`)
  const parsed = new Map<string, Entitlement>()
  for (const [key, entitlement] of Object.entries(members(values, 'values'))) {
    if (!isEntitlementKey(key)) throw new Error(`${quote(key)} is not an entitlement key`)
    if (keys !== 'all' && !keys.includes(key)) throw new Error(`${key} was not asked for`)
    parsed.set(key, parseEntitlement(key, entitlement))
  }
  return { state, values: parsed }
}

function parseEntitlement(key: string, given: unknown): Entitlement {
  const { value, enforcement: named = 'DecisionApi' } = members(given, key)
  const enforcement = ENFORCEMENTS.find((known) => known === named)
  if (enforcement === undefined) throw new Error(`enforcement of ${key} is none of ${ENFORCEMENTS.join(', ')}`)
  return { value: typeof value === 'boolean' ? { enabled: value } : members(value, `value of ${key}`), enforcement }
}

/** Of what JSON.parse returned. */
function members(value: unknown, what: string): JsonObject {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Error(`${what} is not an object`)
  return Object.fromEntries(Object.entries(value))
}
