/**
 * Sends requests for guarded paths to a running gateway. A probe is "held" if the door knows that it refused the probe and the client got
 * this refusal. All others are not: a success, a redirect, or a refusal of unknown origin.
 */
import { randomUUID } from 'node:crypto'
import { messageOf } from '../../../pdp/shared/base/error-message.ts'
import { isRequestId } from '../../../pdp/shared/domain/names.ts'
import { StartError } from '../../../pdp/shared/process/exit.ts'
import { type Answer, answers, findRefusal, type Sent, send } from './send.ts'

export type Result =
  | 'held'
  /** The gateway itself refuses the malformed message without asking the door. */
  | 'malformed'
  /** The answer was 2xx, 3xx or an upgrade. */
  | 'passed'
  | 'unproven'
export type Probe = Sent & {
  /** True for the usual spelling of the path. */
  readonly plain: boolean
  /** The served host. */
  readonly host: string
  /** The id of the route that guards the path. */
  readonly route: string
  readonly token: boolean
}
export type Probed = { readonly probe: Probe; readonly result: Result; readonly why: string }
export type ProbeOptions = {
  readonly url: URL
  readonly admins: readonly URL[]
  /** The token for some probes; null: no probe has a token. */
  readonly token: string | null
  /** True: the sidecar has been stopped, so it cannot refuse, and the gateway must let no request pass. */
  readonly doorStopped: boolean
}

const AT_ONCE = 4
/** A gateway that leaves so many probes unanswered is not probed to the end. */
const UNANSWERED_MAX = 20

/** Throws StartError when gateway or sidecar are not in the state that the run needs. */
export async function probeAll(probes: readonly Probe[], options: ProbeOptions): Promise<readonly Probed[]> {
  await requireSidecar(options)
  const seen = new Set<string>()
  const probed: Probed[] = []
  const waiting = probes.values()
  let unanswered = 0
  const work = async (): Promise<void> => {
    for (const probe of waiting) {
      const id = `probe-${randomUUID()}`
      const answer = await send(options.url, withFields(probe, id, options), probe.host)
      if (typeof answer === 'string') unanswered += 1
      if (unanswered > UNANSWERED_MAX)
        throw new StartError(`--url ${options.url.origin}: ${unanswered} probes got no answer, the last: ${answer}`)
      probed.push({ probe, ...(await assess({ probe, id, answer, seen }, options)) })
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
  return probed
}

function withFields({ method, target, fields, token }: Probe, id: string, { token: bearer }: ProbeOptions): Sent {
  const names = new Set(fields.map(([name]) => name.toLowerCase()))
  const usual = [
    ['accept', 'application/json'],
    ['user-agent', 'portcullis-sidecar probe-gateway'],
    ['x-request-id', id],
    ['connection', 'close'],
  ] as const
  const empty = method === 'GET' || method === 'HEAD' ? [] : [['content-length', '0'] as const]
  const bearers = token ? [['authorization', `Bearer ${bearer}`] as const] : []
  return { method, target, fields: [...fields, ...usual.filter(([name]) => !names.has(name)), ...empty, ...bearers] }
}

type Answered = {
  readonly probe: Probe
  readonly id: string
  /** The answer of the gateway, or the reason why none came. */
  readonly answer: Answer | string
  /** Request ids for which the sidecar has confirmed a refusal. */
  readonly seen: Set<string>
}

async function assess(answered: Answered, options: ProbeOptions): Promise<Omit<Probed, 'probe'>> {
  const { answer, probe } = answered
  if (typeof answer === 'string') return { result: 'unproven', why: `no answer: ${answer}` }
  const { status } = answer
  if (status < 400) return { result: 'passed', why: `${status}` }
  const found = options.doorStopped ? assessWithoutDoor(status) : await assessByDoor(answered, answer, options.admins)
  if (found.result === 'held' || probe.plain || status !== 400) return found
  return (await isMalformed(answered, answer, options)) ? { result: 'malformed', why: `${status}` } : found
}

/** RFC 9112 section 3.2: a server must answer 400 to a request without Host. True if this probe got the same answer as such a request. */
async function isMalformed({ probe, id }: Answered, { digest }: Answer, options: ProbeOptions): Promise<boolean> {
  const { fields, ...others } = withFields(probe, id, options)
  const hostless = { ...others, fields: fields.filter(([name]) => name !== 'host') }
  const answer = await send(options.url, hostless, probe.host)
  return typeof answer !== 'string' && answer.status === 400 && answer.digest === digest
}

function assessWithoutDoor(status: number): Omit<Probed, 'probe'> {
  // Envoy answers 403 if it cannot ask the door.
  if (status >= 500 || status === 403) return { result: 'held', why: `${status}` }
  return { result: 'unproven', why: `${status}, which does not say that the door cannot be asked` }
}

async function assessByDoor(
  { probe, id, seen }: Answered,
  answer: Answer,
  admins: readonly URL[],
): Promise<Omit<Probed, 'probe'>> {
  const { status, requestId } = answer
  // Some gateways replace the request's id by their own, so both ids are looked up.
  const own = requestId !== null && isRequestId(requestId) && !/^\.+$/.test(requestId) ? [requestId] : []
  for (const one of new Set([id, ...own])) {
    const found = seen.has(one) ? null : await asking(admins, () => findRefusal(admins, one))
    if (found === null) continue
    seen.add(one)
    if (probe.token && probe.plain && found.reason.startsWith('token_'))
      return { result: 'unproven', why: `${status} ${found.reason}: the door does not accept the token` }
    if (found.status === status) return { result: 'held', why: `${status} ${found.reason}` }
    return { result: 'unproven', why: `${status}, but the door refused it with ${found.status} ${found.reason}` }
  }
  return { result: 'unproven', why: `${status}, and the door did not refuse it` }
}

async function requireSidecar({ admins, doorStopped }: ProbeOptions): Promise<void> {
  for (const admin of admins) {
    if (!doorStopped) await asking([admin], () => findRefusal([admin], `probe-${randomUUID()}`))
    else if (await answers(admin))
      throw new StartError(`--admin ${admin.origin}: the sidecar still runs; stop it, then run this again`)
  }
}

async function asking<Given>(admins: readonly URL[], ask: () => Promise<Given>): Promise<Given> {
  try {
    return await ask()
  } catch (err) {
    // `fetch` gives its reason in `cause`.
    const reason = messageOf(err instanceof Error && err.cause !== undefined ? err.cause : err)
    throw new StartError(`--admin ${admins.map(({ origin }) => origin).join(', ')}: ${reason}`)
  }
}
