/** The door for nginx, Traefik and Caddy, which ask over HTTP and let a request pass only on status 200. */
import { randomUUID } from 'node:crypto'
import { formatAddress } from '../../pdp/shared/process/listen.ts'
import { type DenialAnswer, describeDenial, sendDenial } from '../enforce/denial-response.ts'
import type { Permit } from '../enforce/enforce.ts'
import type { ClientAnswer, ClientRequest } from '../http/client-request.ts'
import { AUTHORIZE_PATH, CALLER_FIELD, type HttpProfile, REFUSAL_FIELD, REFUSED_PATH } from '../http/door-fields.ts'
import { type HeaderNames, onlyValue, valuesOf } from '../http/fields.ts'
import { CREDENTIAL_FIELDS } from '../http/stripped-fields.ts'
import { createListener } from '../listener/listener.ts'
import type { SidecarLimits } from '../route-file/default-limits.ts'
import type { DoorEntry } from '../route-file/doors.ts'
import { ANSWER_MS, type Door, type DoorDeps } from './ext-authz.ts'
import { readForwarded } from './forwarded-request.ts'
import { type DoorOutcome, type DoorRules, evaluateHeld, failure } from './held-request.ts'
import { createRemoval, type Removes } from './removed-fields.ts'
import { identityFields, ownFields, unremovable } from './service-fields.ts'
import { openSocketFile } from './socket-file.ts'

const ALLOWED = 200
const FORBIDDEN = 403
const SUCCESSES = 300
/** The question has the gateway's fields in addition to the client's. */
const EXTRA_HEADER_BYTES = 16 * 1024
const CLOSE_MS = 2_000
const REFUSAL_CHARS_MAX = 8_192
const BAD_REQUEST = 400
const STATUS_LAST = 599

/** Throws StartError when it cannot listen. */
export async function openForwardAuth(
  entry: DoorEntry & { readonly profile: HttpProfile },
  deps: DoorDeps,
): Promise<Door> {
  const { profile, listen } = entry
  const limitsNow = (): SidecarLimits => {
    const limits = deps.limits()
    return { ...limits, headerBytesMax: limits.headerBytesMax + EXTRA_HEADER_BYTES }
  }
  const removal = createRemoval(profile)
  const listener = createListener({
    limits: limitsNow(),
    certificate: deps.keys.tls,
    onRequest: (client, res) => void answer({ client, res, removal }, entry, deps),
    mayUpgrade: () => false,
    onUpgrade: (_client, _res, { socket }) => socket.destroy(),
    onRejected(connection, { code, reason, answers }) {
      deps.log.warn({ event: 'door_question_rejected', door: profile, code, reason })
      // Without an answer the gateway refuses the request, so the connection may just be closed.
      if (answers) connection.destroy()
    },
    // A gateway's connections carry the requests of many clients.
    isProxy: () => true,
    namesClient: () => false,
    onDropped: () => deps.log.warn({ event: 'connections_dropped', door: profile, reason: 'connections_max' }),
  })
  const door = {
    applyLimits: () => listener.setLimits(limitsNow()),
    close: () => listener.close({ drainMs: CLOSE_MS, onLate: () => undefined }),
  }
  if (!('path' in listen)) return { ...door, address: formatAddress(await listener.listen(listen)) }
  await openSocketFile(listen.path, `The ${profile} door`, () => listener.listenAt(listen.path))
  return { ...door, address: `unix:${listen.path}` }
}

/** Never rejects. */
async function answer(
  options: {
    readonly client: ClientRequest
    readonly res: ClientAnswer
    readonly removal: (headers: HeaderNames) => Removes
  },
  entry: DoorEntry & { readonly profile: HttpProfile },
  { enter, knowsCaller, log }: DoorDeps,
): Promise<void> {
  const { client, res, removal } = options
  const { profile } = entry
  try {
    if (!knowsCaller(valuesOf(client.raw, CALLER_FIELD))) {
      log.warn({ event: 'door_caller_refused', door: profile, address: client.peerAddress() })
      return sendDenial(res, failure('internal', randomUUID()))
    }
    if (hasBody(client)) {
      log.error({ event: 'door_unfit', door: profile, reason: 'the gateway sends a body, or announces one' })
      return sendDenial(res, failure('internal', randomUUID()), { close: true })
    }
    // Caddy appends the query of the client's request to the path.
    const [path] = client.target.split('?')
    if (profile === 'nginx' && path === REFUSED_PATH) return sendDenial(res, unpackRefusal(client.raw, REFUSAL_FIELD))
    if (path !== AUTHORIZE_PATH) {
      log.error({ event: 'door_unfit', door: profile, reason: `the gateway must ask at ${AUTHORIZE_PATH}` })
      return sendDenial(res, failure('internal', randomUUID()))
    }
    const objection = (permit: Permit, { forwarding }: DoorRules): string | null =>
      unremovable(permit, forwarding.rules, removal(forwarding.headers))
    const held = readForwarded(client, profile)
    const asked = { ...held, door: profile, holdsBody: false, withinMs: ANSWER_MS, objection }
    const verdict = await evaluateHeld(asked, enter)
    if (verdict.kind === 'allow') res.writeHead(ALLOWED, allowedFields(verdict))
    else return sendDenial(res, refusalFor(profile, verdict.answer))
    res.end()
  } catch (err) {
    log.error({ event: 'request_failed', door: profile, err })
    res.destroy()
  }
}

/** True if the question has a body: a gateway that announces one and sends none would make us read its next question as the body. */
const hasBody = ({ raw, version, bodiless }: ClientRequest): boolean =>
  (version === '2' && !bodiless) ||
  raw.some((name, at) => {
    if (at % 2 === 1) return false
    const folded = name.toLowerCase()
    return folded === 'transfer-encoding' || (folded === 'content-length' && raw[at + 1] !== '0')
  })

function allowedFields({
  permit,
  rules: inForce,
  origin,
  requestId,
}: Extract<DoorOutcome, { kind: 'allow' }>): string[] {
  const { publicPort, rules } = inForce.forwarding
  const own = ownFields(permit, { origin, requestId, publicPort, rules })
  const { raw, names } = permit.request
  const credentials = permit.route.forwardToken
    ? names.flatMap((name, at) => (CREDENTIAL_FIELDS.includes(name) ? [name, raw[2 * at + 1] ?? ''] : []))
    : []
  return [...identityFields(own, rules).flat(), ...credentials, 'x-request-id', requestId, 'content-length', '0']
}

/** The refusal in the form that this gateway understands. It contains the answer for the client. */
function refusalFor(profile: HttpProfile, denial: DenialAnswer): DenialAnswer {
  // A status 2xx would let the request pass. Only the data port answers for the metadata and OPTIONS.
  const refused = denial.status < SUCCESSES ? ownRefusal(denial) : denial
  if (profile !== 'nginx') return refused
  // auth_request treats any status except 401 and 403 as an error, and adds its own challenges to a 401.
  return { ...refused, status: FORBIDDEN, fields: [...refused.fields, REFUSAL_FIELD, packRefusal(refused)] }
}

function ownRefusal({ fields }: DenialAnswer): DenialAnswer {
  const at = fields.indexOf('allow')
  const context = { requestId: fields[fields.indexOf('x-request-id') + 1] ?? '', metadataUrl: null }
  if (at < 0) return describeDenial('route_unknown', {}, context)
  return describeDenial('method_unsupported', { allow: (fields[at + 1] ?? '').split(', ') }, context)
}

/** The refusal in one field: nginx forwards neither the body of a refusal nor most of its fields. */
export const packRefusal = ({ status, fields, body }: DenialAnswer): string =>
  Buffer.from(JSON.stringify([status, fields, body])).toString('base64url')

/** The refusal that the field holds; an internal error if it holds none. */
export function unpackRefusal(raw: readonly string[], name: string): DenialAnswer {
  const value = onlyValue(raw, name) ?? ''
  return (value.length <= REFUSAL_CHARS_MAX ? parseRefusal(value) : null) ?? failure('internal', randomUUID())
}

function parseRefusal(text: string): DenialAnswer | null {
  try {
    const read: unknown = JSON.parse(Buffer.from(text, 'base64url').toString())
    if (!Array.isArray(read)) return null
    const [status, fields, body]: readonly unknown[] = read
    if (typeof status !== 'number' || !(status >= BAD_REQUEST && status <= STATUS_LAST)) return null
    if (!Array.isArray(fields) || !fields.every((one) => typeof one === 'string') || typeof body !== 'string')
      return null
    return { status, fields, body }
  } catch {
    return null
  }
}
