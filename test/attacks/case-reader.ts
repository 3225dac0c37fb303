/** Reads a line of an attack file: what this runner can play of it, and what it does not know, in words. */
import { readFileSync } from 'node:fs'
import type { AttackCase, Expectation, Step } from './case-format.ts'

export type ReadCase =
  | { readonly kind: 'case'; readonly attack: AttackCase; readonly unknown: readonly string[] }
  /** Nothing can be sent. */
  | { readonly kind: 'broken'; readonly id: string; readonly why: string }

type Members = { readonly [name: string]: unknown }

const REQUEST = new Set(['method', 'target', 'headers', 'body', 'raw', 'steps'])
const SETUP = new Set(['note', 'note2', 'tokens', 'proofs', 'config'])
const TOKEN = new Set(['base', 'header', 'claims', 'drop', 'key', 'sig', 'rawPayload', 'mutate', 'jwe'])
/** Beside these, `note…` explains. */
const EXPECT = new Set([
  ...['status', 'upstream', 'www_authenticate', 'upstream_headers_absent', 'upstream_headers_present'],
  ...['upstream_headers_absent_or_pep_value', 'upstream_target', 'response_headers_absent', 'content_type'],
  ...['no_outbound', 'max_ms', 'first_byte_ms', 'rss_growth_max_mb', 'close_within_s', 'decision_ctx'],
  ...['response_headers_present', 'body_absent'],
])
/** Words for what became of the request at the upstream; those of the last line are about more than one request shows. */
const UPSTREAM =
  /^(?:not_reached|not_reached_or_clean|reached|reached_(?:if|only|as)_\w+|reached_without_upgrade|first_only|refuses_to_start|any|documented|bounded|warned|stable|fixed_target_only|denied|admitted|injected|ignored_or_denied)$/
const isNote = (name: string): boolean => /^note\d*$/.test(name)

/** One for each line that is not empty; a line that cannot be played says so. */
export const readCases = (path: string): ReadCase[] =>
  readFileSync(path, 'utf8')
    .split('\n')
    .flatMap((line, at) => (line.trim() === '' ? [] : [readCase(line, at + 1)]))

/** `at`: the line's number. Never throws. */
export function readCase(line: string, at: number): ReadCase {
  const broken = (why: string, id: unknown = null): ReadCase => {
    return { kind: 'broken', id: typeof id === 'string' ? id : `line ${at}`, why }
  }
  let parsed: unknown
  try {
    parsed = JSON.parse(line)
  } catch {
    return broken('is not JSON')
  }
  if (!isMembers(parsed)) return broken('is not an object')
  const { id, class: kind, request, setup = {}, expect = {} } = parsed
  if (!isMembers(request)) return broken('has no request', id)
  if (!isMembers(setup) || !isMembers(expect)) return broken('setup or expect is not an object', id)
  const headers = readHeaders(request.headers)
  if (headers === null) return broken('request.headers are not names and values', id)
  if (typeof request.raw !== 'string' && !(isText(request.method) && isText(request.target)))
    return broken('the request has neither raw bytes nor method and target', id)
  const { method = '', target = '', body, raw, steps } = request
  const attack: AttackCase = {
    id: isText(id) ? id : `line ${at}`,
    class: isText(kind) ? kind : '',
    request: {
      method: String(method),
      target: String(target),
      headers,
      ...(body !== undefined && body !== null && { body }),
      ...(typeof raw === 'string' && { raw }),
      ...(steps !== undefined && steps !== null && { steps: [steps].flat().map(readStep) }),
    },
    // What these hold is looked at when it is used; what is not known there is a reason to skip.
    setup,
    expect: readExpectation(expect),
  }
  return { kind: 'case', attack, unknown: unknownNames({ request, setup, expect }) }
}

const isMembers = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const isText = (value: unknown): value is string => typeof value === 'string'

/** Pairs, or members with a value or several; null: neither. */
function readHeaders(value: unknown): [string, string][] | null {
  if (value === undefined || value === null) return []
  const pairs: unknown[] = Array.isArray(value)
    ? value
    : isMembers(value)
      ? Object.entries(value).flatMap(([name, one]) => [one].flat().map((each: unknown) => [name, each]))
      : [null]
  const read: [string, string][] = []
  for (const pair of pairs) {
    if (!Array.isArray(pair) || pair.length !== 2 || !isText(pair[0])) return null
    read.push([pair[0], String(pair[1])])
  }
  return read
}

/** A step in prose, or a request of its own. */
function readStep(step: unknown): Step {
  if (isText(step)) return step
  const headers = isMembers(step) ? readHeaders(step.headers) : null
  if (!isMembers(step) || headers === null || !isText(step.method) || !isText(step.target)) return JSON.stringify(step)
  return { method: step.method, target: step.target, headers, ...(step.body !== undefined && { body: step.body }) }
}

function readExpectation(expect: Members): Expectation {
  const { status, upstream } = expect
  const statuses = status === undefined || status === null ? [] : [status].flat().map(Number)
  const reached = typeof upstream === 'boolean' ? (upstream ? 'reached' : 'not_reached') : upstream
  return { ...expect, status: statuses, ...(reached !== undefined && { upstream: String(reached) }) }
}

function unknownNames({ request, setup, expect }: { request: Members; setup: Members; expect: Members }): string[] {
  const names = (part: string, members: Members, known: ReadonlySet<string>): string[] =>
    Object.keys(members)
      .filter((name) => !known.has(name) && !isNote(name))
      .map((name) => `${part}.${name}`)
  const deltas = [setup.tokens, setup.proofs].filter(isMembers).flatMap((group) => Object.entries(group))
  const tokens = deltas.flatMap(([name, delta]) => (isMembers(delta) ? names(name, delta, TOKEN) : [name]))
  const { status: statuses = [], upstream = 'any' } = readExpectation(expect)
  return [
    ...names('request', request, REQUEST),
    ...names('setup', setup, SETUP),
    ...tokens,
    ...names('expect', expect, EXPECT),
    ...(statuses.every((status) => Number.isInteger(status)) ? [] : ['expect.status']),
    ...(UPSTREAM.test(upstream) ? [] : [`expect.upstream ${upstream}`]),
  ]
}
