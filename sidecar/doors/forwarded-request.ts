/** Reads the request about which a gateway asks over HTTP. Only the fields of the gateway's profile describe it. */
import { METHODS } from 'node:http'
import { parseAddress } from '../../pdp/shared/base/addresses.ts'
import { type ClientRequest, syntheticRequest } from '../http/client-request.ts'
import { CALLER_FIELD, DOOR_FIELDS, type DoorFields, type HttpProfile, REFUSAL_FIELD } from '../http/door-fields.ts'
import { splitList, valuesOf } from '../http/fields.ts'
import type { HeldRequest } from './held-request.ts'
import { FRAMING_FIELDS } from './service-fields.ts'

const KNOWN_METHODS = new Set(METHODS)
/** Values of Connection that are about the connection from gateway to door, not about the client's request. */
const HARMLESS = new Set(['close', 'keep-alive'])

/** An error in the question becomes the fault of the request. */
export function readForwarded({ raw }: Pick<ClientRequest, 'raw'>, profile: HttpProfile): HeldRequest {
  const names = DOOR_FIELDS[profile]
  const asked = askedFields(raw, names)
  const [method = ''] = asked.method
  const [target = ''] = asked.target
  const [host = ''] = asked.host
  const scheme = asked.scheme[0]?.toLowerCase() === 'https' ? 'https' : 'http'
  // The last address is the client's: the gateway has appended it to the list, or has replaced the list.
  const address = parseAddress(splitList(asked.client.at(-1)).at(-1) ?? '') ?? ''
  const client: ClientRequest = {
    ...syntheticRequest({ method, target, raw: host === '' ? asked.others : ['host', host, ...asked.others] }),
    fault: faultOf(asked, names),
    scheme,
    peerAddress: () => address,
  }
  return { client, origin: { address, scheme, host: null, fault: null } }
}

function askedFields(raw: readonly string[], names: DoorFields) {
  const own = new Set([...names.ofGateway, CALLER_FIELD, REFUSAL_FIELD, ...FRAMING_FIELDS])
  const others = raw.filter((_, at) => !own.has((raw[at & ~1] ?? '').toLowerCase()))
  return {
    method: valuesOf(raw, names.method),
    target: valuesOf(raw, names.target),
    host: valuesOf(raw, names.host),
    scheme: valuesOf(raw, names.scheme),
    client: valuesOf(raw, names.client),
    connection: valuesOf(raw, 'connection'),
    /** The client's fields, names and values alternating. */
    others,
  }
}

function faultOf(asked: ReturnType<typeof askedFields>, names: DoorFields): string | null {
  for (const name of ['method', 'target', 'host', 'scheme'] as const)
    if (asked[name].length !== 1 || asked[name][0] === '') return `The gateway must send ${names[name]} exactly once`
  const [method = '', target = '', scheme = ''] = [asked.method[0], asked.target[0], asked.scheme[0]]
  if (!KNOWN_METHODS.has(method)) return 'The method is unknown'
  if (method !== 'CONNECT' && !target.startsWith('/')) return 'The path must start with a slash'
  // Traefik sends `ws` as the scheme of a WebSocket handshake.
  if (!/^https?$/i.test(scheme)) return 'A gateway that asks here forwards http and https, and upgrades no connection'
  // Gateways drop the fields that Connection lists, even fields that they got from us (CVE-2022-31813 and similar).
  if (asked.connection.flatMap(splitList).some((name) => !HARMLESS.has(name)))
    return 'The Connection field of the question lists a field'
  return null
}
