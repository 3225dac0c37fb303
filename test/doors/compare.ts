/** What became of one request, at the data port and through a gateway, and whether the gateway was looser. */
import { setTimeout as delay } from 'node:timers/promises'
import { IDENTITY_FIELDS } from '../../sidecar/http/door-fields.ts'
import { createHeaderRules } from '../../sidecar/http/fields.ts'
import { foldName } from '../../sidecar/http/folding.ts'
import type { Reached } from '../sidecar/support/upstream.ts'
import type { RawAnswer } from '../support/peers/raw-http.ts'
import type { Way } from './world.ts'

export type Seen = {
  readonly status: number
  /** Of the problem; null: it was none. */
  readonly code: string | null
  readonly challenges: readonly string[]
  readonly reached: readonly Reached[]
  /** Routes by which the door allowed, and the subjects that it named. */
  readonly allowed: readonly { readonly route: string; readonly subject: string | null }[]
}
/**
 * `otherwise`: both refuse, with another status or for another reason. `cleaned`: the gateway read a malformed message in one
 * way, asked about the request that it made of it, and forwarded that.
 */
export type Agreement = 'same' | 'stricter' | 'otherwise' | 'cleaned' | 'looser'
export type Compared = { readonly agreement: Agreement; readonly why: string }

const SETTLE_MS = 1_000

/**
 * A gateway is looser only if it is so again: on a busy machine a request may arrive after its time, beside the next one.
 * `settleMs` is for requests that follow on the same connection.
 */
export async function surely(attempt: (settleMs: number) => Promise<Compared>): Promise<Compared> {
  const found = await attempt(0)
  if (found.agreement !== 'looser') return found
  await delay(SETTLE_MS)
  return attempt(SETTLE_MS)
}

/** `settleMs`: for requests that follow on the same connection. */
export async function look(way: Way, send: (port: number) => Promise<RawAnswer>, settleMs = 0): Promise<Seen> {
  way.upstream.reached.length = 0
  way.log.length = 0
  const { status, body, fields } = await send(way.port)
  if (settleMs > 0) await delay(settleMs)
  const challenges = fields.filter(([name]) => name.toLowerCase() === 'www-authenticate').map(([, value]) => value)
  return { status, code: codeOf(body), challenges, reached: [...way.upstream.reached], allowed: allowedIn(way.log) }
}

export function allowedIn(log: readonly object[]): Seen['allowed'] {
  return log.flatMap((line) => {
    if (!('decision' in line && line.decision === 'allow' && 'route' in line && typeof line.route === 'string'))
      return []
    const subject = 'subject' in line && typeof line.subject === 'string' ? line.subject : null
    return [{ route: line.route, subject }]
  })
}

function codeOf(body: string): string | null {
  try {
    const read: unknown = JSON.parse(body)
    return typeof read === 'object' && read !== null && 'code' in read && typeof read.code === 'string'
      ? read.code
      : null
  } catch {
    return null
  }
}

/** Fields of one name and one with a list are the same (RFC 9110 section 5.3). */
const answerOf = ({ status, code, challenges }: Seen): string =>
  `${status} ${code ?? ''} ${challenges.join(', ').replaceAll(/,\s*/g, ', ')}`.trim()

const lineOf = ({ method, target }: Reached): string => `${method} ${target}`

/** `sent`: names and values of the client. `routeOf`: where a request leads by the rules in force; null: nowhere. */
export function compare(
  inline: Seen,
  gateway: Seen,
  {
    sent,
    routeOf,
  }: { readonly sent: readonly (readonly [string, string])[]; readonly routeOf: (one: Reached) => string | null },
): Compared {
  let cleaned = ''
  for (const one of gateway.reached) {
    const twin = inline.reached.find((other) => lineOf(other) === lineOf(one))
    const as = gateway.allowed.find(({ route }) => route === routeOf(one))
    // What reaches the service is what the door allowed, and leads where the door was told that it leads.
    if (as === undefined)
      return { agreement: 'looser', why: `${lineOf(one)} reached the service, inline ${inline.status}` }
    const forged = forgedField(one, { inline: twin, subject: as.subject, sent })
    if (forged !== null) return { agreement: 'looser', why: `${forged} of the client reached the service` }
    if (twin === undefined) cleaned = `${lineOf(one)} reached the service, inline ${inline.status} ${inline.code ?? ''}`
  }
  if (cleaned !== '') return { agreement: 'cleaned', why: cleaned }
  if (gateway.reached.length < inline.reached.length)
    return { agreement: 'stricter', why: `${gateway.status} ${gateway.code ?? ''}` }
  if (inline.reached.length > 0 || answerOf(inline) === answerOf(gateway)) return { agreement: 'same', why: '' }
  return { agreement: 'otherwise', why: `${answerOf(gateway)}, inline ${answerOf(inline)}` }
}

const { passes } = createHeaderRules({ strip: [], pass: [] })
/** What gateways write themselves, and what belongs to their connection with the service. */
const WRITTEN = new Set([
  ...['host', 'via', 'connection', 'content-length', 'transfer-encoding', 'te', 'expect', 'keep-alive', 'trailer'],
  ...[
    'x-request-id',
    'x-forwarded-for',
    'x-forwarded-host',
    'x-forwarded-proto',
    'x-forwarded-port',
    'x-forwarded-server',
  ],
  ...['x-real-ip', 'x-envoy-expected-rq-timeout-ms', 'x-envoy-external-address', 'x-envoy-internal'],
])

/** The first field at the service that a sidecar would not have let there; null: none. */
function forgedField(
  { rawHeaders }: Reached,
  about: {
    readonly inline: Reached | undefined
    readonly subject: string | null
    readonly sent: readonly (readonly [string, string])[]
  },
): string | null {
  const { inline, subject, sent } = about
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const [name = '', value = ''] = [rawHeaders[at]?.toLowerCase(), rawHeaders[at + 1]]
    if (IDENTITY_FIELDS.includes(name)) {
      const own = inline === undefined ? (name === 'x-auth-subject' ? subject : value) : fieldValue(inline, name)
      if (value !== (own ?? '')) return name
      continue
    }
    if (passes(name)) continue
    if (!WRITTEN.has(name)) return name
    const isClients = sent.some(([own, text]) => foldName(own) === name && text.trim() === value && value.length > 1)
    // A client may guess what is true.
    const isTrue = inline !== undefined && fieldValue(inline, name) === value
    if (isClients && !isTrue && FORGEABLE.has(name)) return name
  }
  return null
}

/** Of those that gateways write: which a client must not be able to choose. */
const FORGEABLE = new Set(['x-forwarded-for', 'x-forwarded-host', 'x-real-ip'])

function fieldValue({ rawHeaders }: Reached, name: string): string | null {
  for (let at = 0; at + 1 < rawHeaders.length; at += 2)
    if (rawHeaders[at]?.toLowerCase() === name) return rawHeaders[at + 1] ?? null
  return null
}
