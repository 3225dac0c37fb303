/** Reads the steps of an attack file, which are prose: what is sent, what happens to the parties, what is looked at. */
import { Unknown } from './case-format.ts'

export type Sending = {
  readonly kind: 'send'
  /** Another request than the case's own. */
  readonly request: { readonly method: string; readonly target: string } | null
  /** Whose token is shown instead. */
  readonly as: string | null
  readonly times: number
  readonly concurrent: boolean
  /** What is different each time. */
  readonly varied: 'kid' | 'path' | 'other' | null
  readonly replica: string | null
  /** Signed by the key that the issuer rotated to. */
  readonly newKey: boolean
  /** Time since the first request. */
  readonly atMs: number | null
  /** The service takes a while to answer. */
  readonly slow: boolean
  /** The step says so. */
  readonly statuses: readonly number[]
}
export type Act =
  | { readonly kind: 'rotate' | 'replace key' | 'remove key' | 'keys down' | 'keys up' | 'wait max age' }
  | { readonly kind: 'hang PDP' | 'stop PDP' | 'start PDP' | 'terminate' }
  | { readonly kind: 'pass' | 'skew'; readonly ms: number }
  | { readonly kind: 'revoke' | 'grant'; readonly tuple: string }
export type Look = { readonly kind: 'look'; readonly at: 'metrics' | 'fetches' | 'reached'; readonly max: number }
export type Clause = Sending | Act | Look

const SEND: Sending = {
  kind: 'send',
  request: null,
  as: null,
  times: 1,
  concurrent: false,
  varied: null,
  replica: null,
  newKey: false,
  atMs: null,
  slow: false,
  statuses: [],
}

/** Throws Unknown for a clause that says something else. */
export const readStep = (text: string): Clause[] =>
  text
    .split(/\s*;\s*|,?\s+(?:and )?then\s+/)
    .filter((clause) => clause !== '')
    .map(readClause)

function readClause(text: string): Clause {
  for (const [form, read] of FORMS) {
    const match = form.exec(text)
    if (match !== null) return read(match)
  }
  const sending = readSending(text)
  if (sending === null) throw new Unknown(`the step ${JSON.stringify(text)} is not known`)
  return sending
}

const TIME = String.raw`(\d+(?:\.\d+)?) ?(ms|s|sec|seconds?|m|min|minutes?|h|hours?)`
const whole = (source: string): RegExp => new RegExp(`^(?:${source})$`, 'i')

const FORMS: readonly (readonly [RegExp, (match: RegExpExecArray) => Act | Look])[] = [
  [
    whole(
      String.raw`(?:AS )?(?:replaces?|changes?|swaps?) (?:the )?key (?:with|under|behind) the same kid(?: at (?:the )?AS)?`,
    ),
    () => ({ kind: 'replace key' }),
  ],
  [
    whole(String.raw`(?:AS )?rotates? (?:the |its )?(?:signing )?keys?(?: at (?:the )?(?:AS|issuer))?`),
    () => ({ kind: 'rotate' }),
  ],
  [
    whole(
      String.raw`(?:AS )?(?:removes?|drops?|retires?|withdraws?) (?:k1|(?:the )?(?:old )?key)(?: (?:from|at) (?:the )?(?:AS|JWKS))?`,
    ),
    () => ({ kind: 'remove key' }),
  ],
  [
    whole(
      String.raw`(?:stop|kill|shut down) (?:the )?(?:AS|issuer|JWKS)|(?:AS|issuer|JWKS)(?: (?:goes|is|becomes))? (?:down|unreachable)`,
    ),
    () => ({ kind: 'keys down' }),
  ],
  [
    whole(
      String.raw`(?:start|restart) (?:the )?(?:AS|issuer|JWKS)|(?:AS|issuer|JWKS)(?: (?:comes|is))? (?:up|back|reachable)(?: again)?`,
    ),
    () => ({ kind: 'keys up' }),
  ],
  [whole('wait(?: for)?(?: the)? max[_ ]age'), () => ({ kind: 'wait max age' })],
  [whole(`(?:wait|sleep|pause)(?: for)? ${TIME}`), ([, n, unit]) => ({ kind: 'pass', ms: milliseconds(n, unit) })],
  [whole(`${TIME} (?:later|pass(?:es)?)`), ([, n, unit]) => ({ kind: 'pass', ms: milliseconds(n, unit) })],
  [
    whole(
      String.raw`(?:set |move |step |jump )?(?:the )?(?:PEP |sidecar )?clock(?: jumps| steps)? (forward|ahead|back|behind|backwards?|[+-])(?: by)? ?${TIME}`,
    ),
    ([, way = '', n, unit]) => ({ kind: 'skew', ms: (/^(?:b|-)/i.test(way) ? -1 : 1) * milliseconds(n, unit) }),
  ],
  [whole('(?:hang|freeze|pause|SIGSTOP) (?:the )?PDP|PDP (?:hangs|freezes)'), () => ({ kind: 'hang PDP' })],
  [whole('(?:stop|kill) (?:the )?PDP|PDP (?:stops|dies|goes down)'), () => ({ kind: 'stop PDP' })],
  [whole('(?:start|restart|resume) (?:the )?PDP|PDP (?:is back|comes back)'), () => ({ kind: 'start PDP' })],
  [
    whole(
      '(?:send |deliver )?SIGTERM(?: (?:to )?(?:the )?(?:PEP|sidecar))?|(?:stop|terminate|drain) (?:the )?(?:PEP|sidecar)',
    ),
    () => ({ kind: 'terminate' }),
  ],
  [
    whole(String.raw`(?:revoke|delete|remove)(?: the)?(?: tuple)? (\S+ \S+ \S+:\S+)`),
    ([, tuple = '']) => ({ kind: 'revoke', tuple }),
  ],
  [
    whole(String.raw`(?:grant|write|add)(?: the)?(?: tuple)? (\S+ \S+ \S+:\S+)`),
    ([, tuple = '']) => ({ kind: 'grant', tuple }),
  ],
  [
    whole(String.raw`/metrics (?:stays|is|remains)? ?(?:<|below|under) ?(\d+) ?(kB|KB|MB)`),
    ([, n, unit]) => ({ kind: 'look', at: 'metrics', max: Number(n) * (/^k/i.test(unit ?? '') ? 1_000 : 1_000_000) }),
  ],
  [
    whole(
      String.raw`(?:JWKS|keys|key set)(?: is| are)? fetched (?:at most|<=|no more than) (once|twice|\d+)(?: times)?`,
    ),
    ([, count]) => ({ kind: 'look', at: 'fetches', max: countOf(count) }),
  ],
  [
    whole(String.raw`(?:the )?upstream(?: is| was)? reached (?:at most|<=|no more than) (once|twice|\d+)(?: times)?`),
    ([, count]) => ({ kind: 'look', at: 'reached', max: countOf(count) }),
  ],
]

const UNITS: { readonly [unit: string]: number } = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 }
const milliseconds = (n = '0', unit = 's'): number => Number(n) * (UNITS[unit === 'ms' ? unit : (unit[0] ?? '')] ?? 0)
const countOf = (text = ''): number => (text === 'once' ? 1 : text === 'twice' ? 2 : Number(text))

type Read = (match: RegExpExecArray, sending: Sending) => Partial<Sending>

/** Parts of a sentence about sending; what is left of it when they are taken out must be words that change nothing. */
const PARTS: readonly (readonly [RegExp, Read])[] = [
  [
    /\b(GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS) ((?:\/|https?:)\S*)/,
    ([, method = '', target = '']) => ({ request: { method, target } }),
  ],
  [
    /(?:->|=>|→|\bgives|\bgets|\bexpect(?:s|ed)?|\banswer(?:s|ed)?)\s*(\d{3}(?:\s*(?:\/|\||or)\s*\d{3})*)\b/,
    ([, list = '']) => ({ statuses: list.match(/\d{3}/g)?.map(Number) ?? [] }),
  ],
  [new RegExp(String.raw`\bat t0 ?\+ ?${TIME}\b`), ([, n, unit]) => ({ atMs: milliseconds(n, unit) })],
  [/\bat t0\b/, () => ({ atMs: 0 })],
  [
    new RegExp(String.raw`\b(?:after|in) ${TIME}\b|\b${TIME} later\b`),
    ([, n, unit, n2, unit2]) => ({ atMs: milliseconds(n ?? n2, unit ?? unit2) }),
  ],
  [
    /\b(?:to|at|via|through|on) (?:(?:another|the other|a second) (?:replica|PEP|sidecar)|(?:replica |PEP |sidecar )([A-Z]))\b/,
    ([, name = 'B']) => ({ replica: name }),
  ],
  [/\b(?:with )?(?:the )?new (?:kid|key)\b/, () => ({ newKey: true })],
  [/\bas (?!before|usual)(\w+)\b/, ([, name = '']) => ({ as: name })],
  [
    /\b(?:different|distinct|random|unique|unknown|fresh)( \w+)?/,
    ([, what = '']) => ({ varied: /kid/.test(what) ? 'kid' : /path|url|id/i.test(what) ? 'path' : 'other' }),
  ],
  [
    /\b(?:concurrent(?:ly)?|(?:in )?parallel|at once|simultaneous(?:ly)?|at the same time)\b/,
    () => ({ concurrent: true }),
  ],
  [
    /(?:\bx ?|×)?\b(\d+)(k)?(?:x|×| times)?(?= |$)/,
    ([, n, k], { times }) => ({ times: times * Number(n) * (k === undefined ? 1 : 1_000) }),
  ],
  [/\btwice\b/, (_, { times }) => ({ times: times * 2 })],
  [/\b(?:slow|long|long-running|in-flight)\b/, () => ({ slow: true })],
]
const VERBS = /^(?:send|sends|request|requests|replay|retry|repeat|call|use|present|open|start)$/
const PLAIN = new Set(
  'the a an same again it once more another token tokens proof proofs with and of path paths kid kids k1 old first second before as usual too back valid connection connections socket stream websocket'.split(
    ' ',
  ),
)

function readSending(text: string): Sending | null {
  let sending = SEND
  let rest = text
  for (const [form, read] of PARTS) {
    const match = form.exec(rest)
    if (match === null) continue
    sending = { ...sending, ...read(match, sending) }
    rest = rest.replace(match[0], ' ')
  }
  const words = rest.split(/[\s,.:]+/).filter((word) => word !== '')
  const says = sending.request !== null || sending.times > 1 || words.some((word) => VERBS.test(word))
  return says && words.every((word) => VERBS.test(word) || PLAIN.has(word)) ? sending : null
}
