/** How the parties around the sidecar misbehave in attack cases: the PDP, key sets, and whoever serves them. */
import { exportJWK, type JWK } from 'jose'
import type { Fetch } from '../../pdp/shared/token/remote-keys.ts'
import { type Script, tuples } from '../support/peers/scripted-pdp.ts'
import { type AttackCase, type Fixture, Unknown } from './case-format.ts'
import type { Keyring } from './credentials.ts'

export type Config = NonNullable<AttackCase['setup']['config']>
type KeySets = Map<string, { keys: unknown[] }>

/** How the PDP misbehaves. Faults of an HTTP PDP are translated to what a gRPC stream can do. */
export function scriptFor(config: Config, allowed: readonly string[]): Script {
  const answer = tuples(allowed)
  const { pdp } = config
  if (pdp === undefined || pdpCertificate(config) !== null) return answer
  const change = typeof pdp === 'string' ? readFault(pdp) : null
  if (change === null) throw new Unknown(`the PDP fault ${JSON.stringify(pdp)} is not known`)
  return (asked) => change(answer(asked))
}

type Answer = ReturnType<Script>
type Change = (answer: Answer) => Answer
const never: Change = () => null

/** By what a case calls it, from what is said first. Null: no answer; a text: an error of that code. */
const FAULTS: readonly (readonly [RegExp, Change])[] = [
  [/error ?\+ ?deny/, (answer) => partly(answer, false)],
  [/error ?\+ ?allow/, (answer) => partly(answer, true)],
  [/allow ?\+ ?error/, (answer) => partly(answer, true)],
  [/deny ?\+ ?error/, (answer) => partly(answer, false)],
  [/(?:sleeps?|slow|delay|after) ?:?(\d+(?:\.\d+)?) ?(ms|s|m)/, never],
  [/sleep|hangs?|time-?d? ?out|half.?open|never|drip|silent|black ?hole|frozen/, never],
  [/html/, () => '<html>502</html>'],
  [/\b30\d\b|redirect/, () => 'moved'],
  [/\b[45]\d\d\b|unavailable|internal|unknown|refused|reset|down|dead|dns|error/, () => 'store_unavailable'],
  [/not json|malformed|garbage|rubbish|truncated|broken|invalid/, () => 'not an answer'],
  [/inactive/, (answer) => withDecision(answer, { active: false, permissions: [] })],
  [/empty|null|undefined/, (answer) => withDecision(answer, { active: true, permissions: [] })],
  // A gRPC message has no text or number where a boolean stands: what comes instead is no result at all.
  [/string|number|truthy|\b1\b/, (answer) => withDecision(answer, { permissions: [] })],
  [/short|fewer|missing/, (answer) => withDecision(answer, { permissions: [] })],
  [/long|extra|more/, (answer) => withPermissions(answer, (all) => [...all, ...all])],
  [/order|swap(?:ped)?|other|mismatch(?:ed)?|wrong/, (answer) => withPermissions(answer, (all) => all.map(renamed))],
]
/** Words beside a fault that do not change it. */
const BESIDE =
  /^(?:\d{3}|grpc|http|pdp|is|with|an?|the|of|in|to|body|answers?|answered|responses?|results?|decisions?|batch|batches|status|code|json|true|false|allow|deny|connection|host|server|resource|questions?|than|gateway|forever|page|bad)$/

function readFault(text: string): Change | null {
  const lower = text.toLowerCase()
  for (const [form, change] of FAULTS) {
    const match = form.exec(lower)
    if (match === null) continue
    const [, time, unit] = match
    if (time !== undefined && Number(time) * (unit === 's' ? 1_000 : unit === 'm' ? 60_000 : 1) < DEADLINE_MS)
      return null
    const rest = lower.replace(match[0], ' ').split(/[^a-z0-9]+/)
    return rest.every((word) => word === '' || BESIDE.test(word) || form.test(word)) ? change : null
  }
  return null
}

/** What comes after it is no answer, however late. */
const DEADLINE_MS = 500

const UNTRUSTED = /^(?:tls )?(?:self[- ]signed|untrusted|unknown ca|wrong ca)(?: (?:certificate|cert|tls|server))?$/i
const TRUSTED = /^(?:tls|trusted|tls trusted)(?: certificate)?$/i

/** Whether the PDP speaks TLS, and shows a certificate that the sidecar can believe; null: plain text. */
export function pdpCertificate({ pdp }: Config): 'trusted' | 'untrusted' | null {
  if (typeof pdp !== 'string') return null
  return UNTRUSTED.test(pdp) ? 'untrusted' : TRUSTED.test(pdp) ? 'trusted' : null
}

const UPSTREAM_FAULTS: readonly (readonly [RegExp, 'tls' | 'tls trusted' | 'closed' | 'silent'])[] = [
  [UNTRUSTED, 'tls'],
  [/^https?[- ](?:self[- ]signed|untrusted)$/i, 'tls'],
  [TRUSTED, 'tls trusted'],
  [/^(?:down|refused|closed|dead|unreachable|connection refused)$/i, 'closed'],
  [/^(?:hangs?|silent|never answers|timeout|frozen)$/i, 'silent'],
]

/** How the service behind is reached, or not; null: as usual. */
export function upstreamFault({ upstream }: Config): (typeof UPSTREAM_FAULTS)[number][1] | null {
  if (upstream === undefined) return null
  const found = typeof upstream === 'string' ? UPSTREAM_FAULTS.find(([form]) => form.test(upstream)) : undefined
  if (found === undefined) throw new Unknown(`the upstream ${JSON.stringify(upstream)} is not known`)
  return found[1]
}

type Permissions = Exclude<Answer, string | null>['permissions']

function withPermissions(answer: Answer, change: (permissions: Permissions) => Permissions): Answer {
  return answer === null || typeof answer === 'string' ? answer : { ...answer, permissions: change(answer.permissions) }
}

/** An allow, but of something else than was asked. */
const renamed = (result: Permissions[number]): Permissions[number] => {
  return { ...result, resource: 'invoice:other', allowed: true }
}

/** The first question undecided, the others all answered alike. */
function partly(decision: ReturnType<Script>, allowed: boolean): ReturnType<Script> {
  if (decision === null || typeof decision === 'string') return decision
  const permissions = decision.permissions.map((result, at) =>
    at === 0 ? { ...result, allowed: false, error: 'evaluation_limit' } : { ...result, allowed },
  )
  return { ...decision, permissions }
}

function withDecision(decision: ReturnType<Script>, members: object): ReturnType<Script> {
  return decision === null || typeof decision === 'string' ? decision : { ...decision, ...members }
}

/** What is served instead of the first issuer's key, or beside it. */
const KEY_SETS: { readonly [fault: string]: (key: JWK, keyring: Keyring) => Promise<unknown[]> | unknown[] } = {
  empty: () => [],
  oct: ({ kid }) => [{ kty: 'oct', k: 'AAAA', kid }],
  dupkid: async (key, keyring) => [{ ...(await exportJWK(keyring('other').publicKey)), kid: key.kid }, key],
  nokid: ({ kid: _, ...key }) => [key],
  private: async ({ kid }, keyring) => [{ ...(await exportJWK(keyring('as1').privateKey)), kid }],
  rsa1024: async ({ kid }, keyring) => [{ ...(await exportJWK(keyring('rsa1024').publicKey)), kid }],
  ec: async ({ kid }, keyring) => [{ ...(await exportJWK(keyring('p256').publicKey)), kid }],
  'other key': async ({ kid }, keyring) => [{ ...(await exportJWK(keyring('other').publicKey)), kid }],
}
/** What serves the key set instead. */
const KEY_ANSWERS: { readonly [fault: string]: (signal: AbortSignal) => Response | Promise<Response> } = {
  html: () => new Response('<html></html>', { headers: { 'content-type': 'text/html' } }),
  redirect: () => new Response('', { status: 302, headers: { location: 'https://evil.test/jwks' } }),
  'not json': () => new Response('keys'),
  'no keys': () => Response.json({}),
  array: () => Response.json([]),
  null: () => Response.json(null),
  huge: () => new Response(Buffer.alloc(HUGE_BYTES, ' ')),
  slow: (signal) => new Response(endless(signal)),
  'slow+huge': (signal) => new Response(endless(signal)),
  hang: (signal) => hung(signal),
  timeout: (signal) => hung(signal),
}
const HUGE_BYTES = 32 * 1024 * 1024
/** A member of the key that is another: `use=enc`. */
const MEMBER = /^(use|alg|kty|key_ops|e|kid|crv)=(\S+)$/
const REFUSED = /^(?:unreachable|down|refused|dns|reset)$/

type KeyFault =
  | { readonly kind: 'none' | 'refused' }
  | { readonly kind: 'answer'; readonly answer: (signal: AbortSignal) => Response | Promise<Response> }
  | { readonly kind: 'keys'; readonly keys: (key: JWK, keyring: Keyring) => Promise<unknown[]> | unknown[] }

/** Throws Unknown for a fault that nobody here knows. */
function readKeyFault({ jwks }: Config): KeyFault {
  if (jwks === undefined) return { kind: 'none' }
  const text = String(jwks)
  const status = /^[345]\d\d$/.exec(text)?.[0]
  if (REFUSED.test(text)) return { kind: 'refused' }
  if (status?.startsWith('3') === true) return readKeyFault({ jwks: 'redirect' })
  if (status !== undefined) return { kind: 'answer', answer: () => new Response('', { status: Number(status) }) }
  const answer = Object.hasOwn(KEY_ANSWERS, text) ? KEY_ANSWERS[text] : undefined
  if (answer !== undefined) return { kind: 'answer', answer }
  const keys = Object.hasOwn(KEY_SETS, text) ? KEY_SETS[text] : undefined
  if (keys !== undefined) return { kind: 'keys', keys }
  const [, member, value] = MEMBER.exec(text) ?? []
  if (member === undefined) throw new Unknown(`the key set fault ${JSON.stringify(jwks)} is not known`)
  return { kind: 'keys', keys: (key) => [{ ...key, [member]: member === 'key_ops' ? [value] : value }] }
}

/** Whether there is a key set for the sidecar to be ready with. */
export const hasKeys = (config: Config): boolean => ['none', 'keys'].includes(readKeyFault(config).kind)

export async function keySets(fixture: Fixture, keyring: Keyring, config: Config): Promise<KeySets> {
  const fault = readKeyFault(config)
  const sets = new Map<string, { keys: unknown[] }>()
  for (const { iss, kid, key } of fixture.issuers) {
    const jwk = { ...(await exportJWK(keyring(key).publicKey)), kid }
    sets.set(iss, { keys: fault.kind === 'keys' ? await fault.keys(jwk, keyring) : [jwk] })
  }
  return sets
}

type Serving = { readonly jwks: KeySets; readonly fetched: string[]; readonly issuing: { served: boolean } }

export function fetchFor(config: Config, { jwks, fetched, issuing }: Serving): Fetch {
  const fault = readKeyFault(config)
  return async (url, { signal }) => {
    fetched.push(url)
    if (fault.kind === 'refused' || !issuing.served) throw new Error('ECONNREFUSED')
    for (const [issuer, keys] of jwks) {
      if (url === `${issuer}/.well-known/openid-configuration`)
        return Response.json({ issuer, jwks_uri: `${issuer}/jwks` })
      if (url === `${issuer}/jwks`) return fault.kind === 'answer' ? fault.answer(signal) : Response.json(keys)
    }
    return new Response('', { status: 404 })
  }
}

const hung = (signal: AbortSignal): Promise<Response> =>
  new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))

function endless(signal: AbortSignal): ReadableStream<Uint8Array> {
  return new ReadableStream({
    async pull(controller) {
      await new Promise((resolve) => setTimeout(resolve, 100))
      if (signal.aborted) controller.error(signal.reason)
      else controller.enqueue(new Uint8Array(1))
    },
  })
}
