/** The header fields that a gateway must set or remove before it forwards a permitted request. */
import type { Permit } from '../enforce/enforce.ts'
import { IDENTITY_FIELDS } from '../http/door-fields.ts'
import { type HeaderRules, pairsOf, upstreamFields } from '../http/fields.ts'
import { CREDENTIAL_FIELDS } from '../http/stripped-fields.ts'
import type { Origin } from '../request/origin.ts'

/** Fields of one connection or of the framing of a message: the gateway's own work (RFC 9110 section 7.6.1). */
export const FRAMING_FIELDS: ReadonlySet<string> = new Set([
  'host',
  'connection',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'content-length',
  'expect',
  'via',
])

/** Lower-case names of the request's fields that a sidecar before the service would remove, in each spelling that occurs. */
export function unwantedFields({ request, route }: Permit, { passes }: HeaderRules): readonly string[] {
  const { raw, names, connectionListed } = request
  const unwanted = new Set<string>()
  for (const [at, folded] of names.entries()) {
    const name = (raw[2 * at] ?? '').toLowerCase()
    if (FRAMING_FIELDS.has(name)) continue
    const wanted = passes(name) || (route.forwardToken && CREDENTIAL_FIELDS.includes(name))
    if (!wanted || connectionListed.has(folded)) unwanted.add(name)
  }
  return [...unwanted]
}

/** The fields that the service gets from us, as pairs of name and value. */
export function ownFields(
  { request, identity }: Permit,
  about: {
    readonly origin: Origin
    readonly requestId: string
    readonly publicPort: number
    readonly rules: HeaderRules
  },
): readonly (readonly [name: string, value: string])[] {
  const { origin, requestId, publicPort } = about
  const { hostname, port } = request.host
  const host = port !== null && Number(port) === publicPort ? `${hostname}:${port}` : hostname
  const forwarded = { for: origin.address, host, proto: origin.scheme }
  const { version, hostField } = request
  const own = { version, host: hostField, forwarded, requestId, traceparent: null, identity }
  const none = {
    raw: [],
    names: [],
    connectionListed: new Set<string>(),
    rules: { ...about.rules, passes: () => false },
  }
  const fields = upstreamFields({ ...none, forwardToken: false, own })
  return pairsOf(fields).filter(([name]) => !FRAMING_FIELDS.has(name))
}

/** Every identity field. Unknown ones have an empty value, so that the client's own cannot pass. */
export function identityFields(
  own: ReturnType<typeof ownFields>,
  { identity }: HeaderRules,
): readonly (readonly [string, string])[] {
  const known = new Map(own)
  return [...IDENTITY_FIELDS, ...identity.map(({ name }) => name)].map((name) => [name, known.get(name) ?? ''])
}

/**
 * A field that the gateway would forward but a sidecar would remove; null: there is none. `removes`: true if the gateway removes or
 * overwrites the field after its question.
 */
export function unremovable(permit: Permit, rules: HeaderRules, removes: (name: string) => boolean): string | null {
  return unwantedFields(permit, rules).find((name) => !removes(name)) ?? null
}
