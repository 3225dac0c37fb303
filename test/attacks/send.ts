/** Sends the requests of one step of an attack case, once or many times, and judges the answers. */
import { type AttackCase, Unknown } from './case-format.ts'
import { atMost, judge } from './judge.ts'
import type { Planned } from './plan.ts'
import { acrOfOthers } from './route-text.ts'
import type { Sending } from './step-reader.ts'
import { type Playing, slowDown } from './steps.ts'
import { prepare, type Sent } from './wire.ts'

export type Answered = {
  readonly statuses: readonly number[]
  readonly complaints: readonly string[]
  /** How much of the number that the step names was sent. */
  readonly share: number
}
type Step = Extract<Planned, { kind: 'send' | 'own' }>
type Options = { readonly playing: Playing; readonly bornMs: number; readonly judge?: boolean }
type Request = AttackCase['request']

const TIMES_MAX = 1_000
const CONCURRENT_MAX = 2_000
/** Of those that may come one after the other. */
const AT_ONCE = 16

/** `step`: null is the case's own request, once. */
export async function judgeRequest(
  step: Step | null,
  { playing, bornMs, judge: judges = false }: Options,
): Promise<Answered> {
  const { attack, fixture, world, keyring, time } = playing
  const sending = step?.kind === 'send' ? step : null
  const request = step?.kind === 'own' ? step.request : requestOf(attack.request, sending, playing)
  if (sending?.atMs != null) time.offsetMs = Math.max(time.offsetMs, sending.atMs)
  if (sending?.slow === true) slowDown(world)
  const ready = (wanted: Request): Promise<(port: number) => Promise<Sent>> =>
    prepare({
      attack: { ...attack, request: wanted },
      fixture,
      keyring,
      nowMs: () => Date.now() + time.offsetMs,
      bornMs,
      nonce: world.nonce,
      newKey: sending?.newKey === true,
      acr: acrOfOthers(fixture, attack),
      ...(sending?.varied === 'kid' && { header: { kid: '{{rand}}' } }),
    })
  const port = sending?.replica != null && sending.replica !== 'A' ? await world.replicaPort?.() : world.port
  if (port === undefined) throw new Unknown(`the replica ${sending?.replica} is not there`)
  if (judges && attack.expect.upstream !== 'first_only') world.upstream.reached.length = 0
  if (sending === null || sending.times === 1) return sendOne(request, { ready, port, playing, judges })
  return sendMany(request, { ready, port, playing, judges, sending })
}

type How = {
  readonly ready: (wanted: Request) => Promise<(port: number) => Promise<Sent>>
  readonly port: number
  readonly playing: Playing
  readonly judges: boolean
}

async function sendOne(request: Request, { ready, port, playing, judges }: How): Promise<Answered> {
  const { attack, world } = playing
  const sender = await ready(request)
  // The first use of each part is not what a limit of memory is about; what grows with a body would show all the same.
  if (judges && attack.expect.rss_growth_max_mb !== undefined && world.peakMb !== null)
    await (await ready({ ...request, body: WARM_UP }))(port)
  const peakBefore = world.peakMb?.() ?? 0
  const startedMs = performance.now()
  const answer = await sender(port)
  const happened = {
    answer,
    reached: world.upstream.reached,
    fetched: world.fetched,
    tookMs: Math.round(performance.now() - startedMs),
    rssGrowthMb: Math.round((world.peakMb?.() ?? 0) - peakBefore),
    target: request.target,
  }
  return { statuses: [answer.status], complaints: judges ? judge(attack.expect, happened) : [], share: 1 }
}

/** What is wrong with any of them, and the time of the slowest. */
async function sendMany(
  request: Request,
  { ready, port, playing, judges, sending }: How & { sending: Sending },
): Promise<Answered> {
  const { attack, world } = playing
  const count = Math.min(sending.times, sending.concurrent ? CONCURRENT_MAX : TIMES_MAX)
  const fetchedBefore = world.fetched.length
  const statuses: number[] = []
  const complaints = new Set<string>()
  let slowestMs = 0
  let left = count
  // A proof is for one use, and what is random is so each time; all others are sent as they are.
  const again = sending.varied !== null
  const sender = await ready(request)
  const worker = async (): Promise<void> => {
    while (left > 0) {
      left -= 1
      const send = again ? await ready(varied(request, sending)) : sender
      const startedMs = performance.now()
      const answer = await send(port)
      slowestMs = Math.max(slowestMs, Math.round(performance.now() - startedMs))
      statuses.push(answer.status)
      const happened = { answer, reached: world.upstream.reached, fetched: [], tookMs: 0, rssGrowthMb: 0, target: '' }
      if (judges) for (const complaint of judge(attack.expect, happened)) complaints.add(complaint)
    }
  }
  await Promise.all(Array.from({ length: sending.concurrent ? count : Math.min(count, AT_ONCE) }, worker))
  const { max_ms: quietMs = slowestMs } = attack.expect
  const longestMs = atMost(quietMs)
  if (judges && slowestMs > longestMs) complaints.add(`took up to ${slowestMs} ms, not ${longestMs} at most`)
  const fetches = world.fetched.length - fetchedBefore
  // Whoever makes up key ids must not make the sidecar ask the issuer for each.
  if (sending.varied === 'kid' && fetches > FETCHES_MAX) complaints.add(`the issuer was asked ${fetches} times`)
  return { statuses, complaints: [...complaints], share: count / sending.times }
}

/** Metadata and keys, for one refresh and the next. */
const FETCHES_MAX = 4
const WARM_UP = '{{stream:8388608}}'

function varied(request: Request, { varied: what }: Sending): Request {
  if (what !== 'path' || request.target.includes('{{rand}}')) return request
  return { ...request, target: request.target.replace(/[^/]+$/, '{{rand}}') }
}

/** The case's own, or another of the same client, or of the one that is named when the case has its token. */
function requestOf(own: Request, sending: Sending | null, { attack, fixture }: Playing): Request {
  if (sending === null) return own
  const { as, request } = sending
  if (as !== null && { ...fixture.tokens, ...attack.setup.tokens }[as] === undefined)
    throw new Unknown(`the token ${as} is not defined`)
  const headers = own.headers.map(
    ([field, value]) => [field, as === null ? value : value.replace(/\{\{tok:\w+\}\}/, `{{tok:${as}}}`)] as const,
  )
  // The last request of a case may be written out as a step; its body is still its own.
  const body = request === null || request.method === own.method ? own.body : undefined
  const { raw, body: _, ...others } = own
  return {
    ...others,
    ...(request ?? {}),
    headers,
    ...(body !== undefined && { body }),
    ...(raw !== undefined && request === null && { raw }),
  }
}
