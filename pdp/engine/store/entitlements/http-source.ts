/**
 * An entitlement source over HTTP. The external system commits a change before it announces it (`entitlements:changed`), so no question
 * after the announcement gets an older value.
 */
import { createHash } from 'node:crypto'
import { createCircuit } from '../../../shared/base/circuit-breaker.ts'
import { BadAnswer, type PostFetch, postJson } from '../../../shared/base/http-json.ts'
import { ENFORCEMENTS, type Entitlement } from '../../../shared/domain/entitlement.ts'
import { PdpError } from '../../../shared/domain/errors.ts'
import type { JournalPosition } from '../../../shared/domain/journal.ts'
import { isJsonObject, type JsonObject } from '../../../shared/domain/json.ts'
import { isEntitlementKey, quote } from '../../../shared/domain/names.ts'
import type { EntitlementSource, Store } from '../contract.ts'
import { createTenantPlaces } from '../tenant-places.ts'
import { storeEntitlements } from './store-source.ts'

export const SOURCE_DEADLINE_MS = 1_000
export const SOURCE_BYTES_MAX = 1_048_576
/** How long memory and the shared cache each keep a value: an unannounced change is noticed after both times. */
const KEPT_MS_MAX = 30_000
/** How many requests may run, in total and per tenant. Equal reads share one request. */
const RUNNING_MAX = { all: 256, tenant: 128 }
/** How many failures in a row make the source rest, first for REST_MS and then twice as long each time, up to REST_MS_MAX. */
const FAILURES_MAX = 3
const REST_MS = 500
const REST_MS_MAX = 5_000
/** How often a read is tried when the version changes while the source answers. */
const TRIES_MAX = 5
const STATE_CHARACTERS_MAX = 256

type Answer = { readonly state: string; readonly values: ReadonlyMap<string, Entitlement> }
type Question = { readonly organization: string; readonly keys: readonly string[] | 'all' }

/**
 * `POST url` with `{organization, keys}` (`keys` null for all) is answered 200 with `{organization, state, values}`: `values`
 * maps each key that the organization has to `{value, enforcement?}`, all of one moment, and `state` is a text that differs
 * after every change. Anything else is a failure. `secret` is sent as a bearer token.
 *
 * @example
 * ```ts
 * const store = memoryStore()
 * const entitlements = httpEntitlements({ url: 'https://billing.example.com/entitlements', secret: 's', store, fetch })
 * const billed = createPdp({ store, entitlements })
 * ```
 */
export function httpEntitlements(options: {
  readonly url: string
  readonly secret: string
  /** Owns the organizations and their versions. */
  readonly store: Pick<Store, 'entitlements' | 'vector'>
  readonly fetch: PostFetch
  /** The deadline of a request; default: 1 s. */
  readonly deadlineMs?: number
  /** Monotonic milliseconds. */
  readonly clock?: () => number
}): EntitlementSource {
  const { url, store, clock = () => performance.now() } = options
  const circuit = createCircuit({ failuresMax: FAILURES_MAX, restMs: REST_MS, restMsMax: REST_MS_MAX, clock })
  const places = createTenantPlaces({ open: RUNNING_MAX })

  const ask = (question: Question): Promise<Answer> =>
    places
      .run(question.organization, () => answerTo(question))
      .catch((err: unknown) => {
        const isFull = err instanceof PdpError && err.code === 'overloaded'
        throw isFull ? unavailable('has too many requests under way') : err
      })
  async function answerTo(question: Question): Promise<Answer> {
    const settle = circuit.begin()
    if (settle === null) throw unavailable('did not answer several times; requests to it are paused')
    try {
      const answer = parseAnswer(await request(options, question), question)
      settle(true)
      return answer
    } catch (err) {
      settle(err instanceof BadAnswer)
      throw unavailable('gave no usable answer', err)
    }
  }
  const position = async (organization: string): Promise<JournalPosition | undefined> =>
    (await store.vector([organization])).logs.get(organization)

  return {
    name: `external ${createHash('sha256').update(url).digest('base64url')}`,
    keptMsMax: KEPT_MS_MAX,
    async read(organization, keys) {
      let before = await position(organization)
      for (let tries = 0; tries < TRIES_MAX; tries++) {
        if (before === undefined) return { version: 0, writeId: '', state: '', values: new Map() }
        const { entitlementVersion: version, entitlementWriteId: writeId } = before
        if (keys.length === 0) return { version, writeId, state: '', values: new Map() }
        const answer = await ask({ organization, keys })
        const after = await position(organization)
        // The version was the same before and after, so it was the version when the values were read.
        if (after !== undefined && sameVersion(before, after)) return { version, writeId, ...answer }
        before = after
      }
      throw unavailable('announces changes faster than it answers')
    },
    version: storeEntitlements(store).version,
  }
}

const sameVersion = (a: JournalPosition, b: JournalPosition): boolean =>
  a.entitlementVersion === b.entitlementVersion && a.entitlementWriteId === b.entitlementWriteId

const unavailable = (what: string, cause?: unknown): PdpError =>
  new PdpError('store_unavailable', `the entitlement source ${what}`, { cause })

/** The source's answer, as JSON. */
function request(
  { url, secret, fetch, deadlineMs = SOURCE_DEADLINE_MS }: Parameters<typeof httpEntitlements>[0],
  { organization, keys }: Question,
): Promise<unknown> {
  return postJson({
    fetch,
    url,
    headers: { authorization: `Bearer ${secret}` },
    body: JSON.stringify({ organization, keys: keys === 'all' ? null : keys }),
    deadlineMs,
    bytesMax: SOURCE_BYTES_MAX,
  })
}

function parseAnswer(answer: unknown, { organization, keys }: Question): Answer {
  const { state, values, ...rest } = members(answer, 'the answer')
  if (rest.organization !== organization) throw new BadAnswer('the answer is about another organization')
  if (typeof state !== 'string' || state === '' || state.length > STATE_CHARACTERS_MAX)
    throw new BadAnswer(`state is not a text of 1 to ${STATE_CHARACTERS_MAX} characters`)
  const parsed = new Map<string, Entitlement>()
  for (const [key, entitlement] of Object.entries(members(values, 'values'))) {
    if (!isEntitlementKey(key)) throw new BadAnswer(`${quote(key)} is not an entitlement key`)
    if (keys !== 'all' && !keys.includes(key)) throw new BadAnswer(`${key} was not asked for`)
    parsed.set(key, parseEntitlement(key, entitlement))
  }
  return { state, values: parsed }
}

function parseEntitlement(key: string, given: unknown): Entitlement {
  const { value, enforcement: named = 'DecisionApi' } = members(given, key)
  const enforcement = ENFORCEMENTS.find((known) => known === named)
  if (enforcement === undefined) throw new BadAnswer(`enforcement of ${key} is not one of ${ENFORCEMENTS.join(', ')}`)
  return { value: typeof value === 'boolean' ? { enabled: value } : members(value, `value of ${key}`), enforcement }
}

function members(value: unknown, what: string): JsonObject {
  if (!isJsonObject(value)) throw new BadAnswer(`${what} is not an object`)
  return Object.fromEntries(Object.entries(value))
}
