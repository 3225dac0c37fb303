/** Compares what happened to a request with what its attack case expects. */
import { foldName } from '../../sidecar/headers.ts'
import { field, type RawAnswer } from '../sidecar/support/raw-http.ts'
import { fieldOf, type Reached } from '../sidecar/support/upstream.ts'
import type { Expectation } from './cases.ts'

export type Happened = {
  readonly answer: RawAnswer
  /** In the last step only. */
  readonly reached: readonly Reached[]
  readonly fetched: readonly string[]
  readonly tookMs: number
  readonly rssGrowthMb: number
  /** As it was sent. */
  readonly target: string
}

/** What is wrong, in words; empty when the case passed. */
export function judge(expect: Expectation, happened: Happened): string[] {
  const { answer, fetched, tookMs } = happened
  const complaints = [...judgeUpstream(expect, happened), ...judgeHeaders(expect, happened)]
  const { status = [] } = expect
  if (status.length > 0 && !status.includes(answer.status))
    complaints.push(`status ${answer.status}, not ${status.join(' or ')}`)
  if (expect.www_authenticate !== undefined) complaints.push(...judgeChallenge(expect.www_authenticate, answer))
  if (expect.max_ms !== undefined && tookMs > expect.max_ms)
    complaints.push(`took ${tookMs} ms, not ${expect.max_ms} at most`)
  for (const host of expect.no_outbound ?? [])
    if (fetched.some((url) => url.includes(host))) complaints.push(`dialled ${host}`)
  if (expect.content_type !== undefined && field(answer, 'content-type') !== expect.content_type)
    complaints.push(`content-type ${field(answer, 'content-type')}`)
  if (expect.rss_growth_max_mb !== undefined && happened.rssGrowthMb > expect.rss_growth_max_mb)
    complaints.push(`memory grew by ${happened.rssGrowthMb} MB`)
  for (const name of expect.response_headers_absent ?? [])
    if (field(answer, name) !== null) complaints.push(`answered with ${name}`)
  if (expect.close_within_s !== undefined && !(tookMs < expect.close_within_s * 1_000 && CLOSED.test(answer.text)))
    complaints.push(`not closed with a code within ${expect.close_within_s} s`)
  return complaints
}

/** A WebSocket close frame with 1008 or 4401, and its reason. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: bytes of a frame
const CLOSED = /\x88[\x00-\x7d](?:\x03\xf0|\x11\x31)/

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
    case 'reached_only_as_sent':
    case 'reached_if_param_exact':
    case 'reached_if_exact':
      return first === undefined || first.target === sent ? [] : [`the upstream got ${first.target}`]
    default:
      return []
  }
}

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
    for (const name of expect.upstream_headers_present ?? [])
      if (!names.includes(foldName(name))) complaints.push(`the upstream did not get ${name}`)
  }
  return complaints
}

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
