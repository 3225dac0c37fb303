/** Compares what happened to a request with what its attack case expects. */
import { foldName } from '../../sidecar/http/folding.ts'
import { fieldOf, type Reached } from '../sidecar/support/upstream.ts'
import { field, type RawAnswer } from '../support/peers/raw-http.ts'
import { type Expectation, Unknown } from './case-format.ts'

export type Happened = {
  readonly answer: RawAnswer & { readonly firstByteMs: number }
  /** In the last step only. */
  readonly reached: readonly Reached[]
  readonly fetched: readonly string[]
  readonly tookMs: number
  readonly rssGrowthMb: number
  /** As it was sent. */
  readonly target: string
}

/** The times of cases are those of a machine with nothing else to do. What has no bound takes longer than this, or for ever. */
const TIMES_SLOWER = 5
const SLOWER_MS_MAX = 10_000
export const atMost = (ms: number): number => Math.min(ms * TIMES_SLOWER, ms + SLOWER_MS_MAX)

/** What is wrong, in words; empty when the case passed. */
export function judge(expect: Expectation, happened: Happened): string[] {
  const { answer, fetched, tookMs } = happened
  const complaints = [...judgeUpstream(expect, happened), ...judgeHeaders(expect, happened)]
  complaints.push(...judgeContext(expect, happened))
  const { status = [] } = expect
  if (status.length > 0 && !status.includes(answer.status))
    complaints.push(`status ${answer.status}, not ${status.join(' or ')}`)
  for (const wanted of [expect.www_authenticate ?? []].flat()) complaints.push(...judgeChallenge(wanted, answer))
  complaints.push(...judgeFraming(expect, happened))
  if (expect.first_byte_ms !== undefined && answer.firstByteMs > expect.first_byte_ms)
    complaints.push(`the first byte took ${Math.round(answer.firstByteMs)} ms, not ${expect.first_byte_ms} at most`)
  if (expect.max_ms !== undefined && tookMs > atMost(expect.max_ms))
    complaints.push(`took ${tookMs} ms, not ${atMost(expect.max_ms)} at most`)
  for (const host of expect.no_outbound ?? [])
    if (fetched.some((url) => url.includes(host))) complaints.push(`dialled ${host}`)
  if (expect.content_type !== undefined && field(answer, 'content-type') !== expect.content_type)
    complaints.push(`content-type ${field(answer, 'content-type')}`)
  if (expect.rss_growth_max_mb !== undefined && happened.rssGrowthMb > expect.rss_growth_max_mb)
    complaints.push(`memory grew by ${happened.rssGrowthMb} MB`)
  for (const name of expect.response_headers_absent ?? [])
    if (field(answer, name) !== null) complaints.push(`answered with ${name}`)
  for (const [name, value] of wantedFields(expect.response_headers_present)) {
    const got = field(answer, name.toLowerCase())
    if (got === null || (value !== null && got !== value)) complaints.push(`answered with ${name}: ${got}`)
  }
  for (const text of [expect.body_absent ?? []].flat())
    if (answer.body.includes(text)) complaints.push(`the answer says ${JSON.stringify(text)}`)
  if (expect.close_within_s !== undefined && !(tookMs < expect.close_within_s * 1_000 && CLOSED.test(answer.text)))
    complaints.push(`not closed with a code within ${expect.close_within_s} s`)
  return complaints
}

/** Notes to a smuggling case: one answer, after which nothing on this connection is believed. */
function judgeFraming({ note2 = '' }: Expectation, { answer, reached }: Happened): string[] {
  const complaints: string[] = []
  if (/exactly one response/.test(note2) && (answer.text.match(/^HTTP\/1\.1 /gm) ?? []).length > 1)
    complaints.push('there were two answers')
  if (/connection closed/.test(note2) && answer.status >= 400 && field(answer, 'connection') !== 'close')
    complaints.push('the connection stays open')
  if (/at most one request/.test(note2) && reached.length > 1) complaints.push('the upstream got two requests')
  return complaints
}

/** A WebSocket close frame with 1008, 4401 or 4403, and its reason. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: bytes of a frame
const CLOSED = /\x88[\x00-\x7d](?:\x03\xf0|\x11[\x31\x33])/

function judgeUpstream(expect: Expectation, { reached, target }: Happened): string[] {
  const first = reached[0]
  const sent = target.replace(/^https?:\/\/[^/]+/i, '')
  switch (expect.upstream) {
    case 'reached':
      return first === undefined ? ['the upstream was not reached'] : []
    case 'not_reached':
    case 'refuses_to_start':
      return first === undefined ? [] : [`the upstream got ${first.method} ${first.target}`]
    case 'first_only':
      return reached.length > 1 ? ['the upstream was reached twice'] : []
    case 'reached_without_upgrade':
      return fieldOf(first, 'upgrade') === null ? [] : ['the upstream was asked to upgrade']
    default:
      return expect.upstream !== undefined && /^reached_(?:if|only|as)_/.test(expect.upstream)
        ? asSent(first, sent)
        : []
  }
}

const asSent = (first: Reached | undefined, sent: string): string[] =>
  first === undefined || first.target === sent ? [] : [`the upstream got ${first.target}`]

function judgeHeaders(expect: Expectation, { reached }: Happened): string[] {
  const complaints: string[] = []
  if (expect.upstream_target !== undefined && reached[0]?.target !== expect.upstream_target)
    complaints.push(`the upstream got ${reached[0]?.target}`)
  for (const one of reached) {
    const names = one.rawHeaders.filter((_, at) => at % 2 === 0).map(foldName)
    const ours = (name: string): boolean => one.rawHeaders.some((raw, at) => at % 2 === 0 && raw === foldName(name))
    for (const name of expect.upstream_headers_absent ?? [])
      if (names.includes(foldName(name)) && !ours(name)) complaints.push(`the upstream got ${name}`)
    for (const name of expect.upstream_headers_absent_or_pep_value ?? [])
      if (/^(?:root|admin)$/.test(fieldOf(one, name.toLowerCase()) ?? ''))
        complaints.push(`the upstream got the client's ${name}`)
    for (const [name, value] of wantedFields(expect.upstream_headers_present)) {
      const got = fieldOf(one, name.toLowerCase())
      if (!names.includes(foldName(name))) complaints.push(`the upstream did not get ${name}`)
      else if (value !== null && got !== value) complaints.push(`the upstream got ${name}: ${got}`)
    }
  }
  return complaints
}

/** What the decision was made with, as the service learns it. Throws Unknown for what it does not learn. */
function judgeContext({ decision_ctx: context = {} }: Expectation, { reached }: Happened): string[] {
  const unknown = Object.entries(context).filter(([name, value]) => name !== 'client_ip' || value !== 'peer')
  if (unknown.length > 0) throw new Unknown(`the context ${JSON.stringify(Object.fromEntries(unknown))} is not known`)
  if (context.client_ip === undefined) return []
  return reached.flatMap((one) =>
    CLIENT_FIELDS.flatMap((name) => {
      const got = fieldOf(one, name)
      return got === null || got === PEER ? [] : [`the upstream got ${name}: ${got}, not the address of the peer`]
    }),
  )
}
const PEER = '127.0.0.1'
const CLIENT_FIELDS = ['x-forwarded-for', 'x-real-ip', 'forwarded', 'true-client-ip', 'x-client-ip', 'cf-connecting-ip']

/** Names, or names with values. */
const wantedFields = (wanted: Expectation['upstream_headers_present'] = []): (readonly [string, string | null])[] =>
  Array.isArray(wanted) ? wanted.map((name: string) => [name, null]) : Object.entries(wanted)

/** `Bearer error="x", scope="y"`: one challenge of that scheme has these; `name=...` any value; `no name attribute` none. */
function judgeChallenge(expected: string, answer: RawAnswer): string[] {
  const [scheme = '', ...rest] = expected.split(' ')
  const challenges = answer.fields
    .filter(([name]) => name.toLowerCase() === 'www-authenticate')
    .map(([, value]) => value)
  const wanted = rest
    .join(' ')
    .split(/,\s*/)
    .filter((part) => part !== '')
  const fits = (challenge: string): boolean =>
    challenge.startsWith(`${scheme} `) && wanted.every((part) => hasPart(challenge.slice(scheme.length + 1), part))
  return challenges.some(fits) ? [] : [`challenge ${challenges.join(' | ') || 'missing'}, not ${expected}`]
}

function hasPart(challenge: string, part: string): boolean {
  const absent = /^no (\w+) attribute$/.exec(part)?.[1]
  const parts = challenge.split(', ')
  if (absent !== undefined) return !parts.some((one) => one.startsWith(`${absent}=`))
  if (part.endsWith('=...')) return parts.some((one) => one.startsWith(part.slice(0, -3)))
  return parts.includes(part)
}
