/** Imports tuples line by line: 1,000 lines in one transaction, and no more than that in memory. */

import type { Restriction } from '../../../../engine/writes/restrictions.ts'
import { PdpError, type ValidationIssue } from '../../../../shared/domain/errors.ts'
import { formatTuple } from '../../../../shared/domain/names.ts'
import type { Tuple } from '../../../../shared/domain/tuple.ts'
import { RequestProblem } from '../../http/status.ts'
import { parseTupleLine } from './tuple-bodies.ts'

const LINES_PER_WRITE = 1_000
/** The longest line: a tuple with the largest context, with JSON's escapes. */
const LINE_CHARACTERS_MAX = 72 * 1024
/** How many characters one transaction writes at most. */
const WRITE_CHARACTERS_MAX = 4 * 1024 * 1024
const ISSUES_MAX = 100

export type Progress = {
  /** The last stored line, with all before it; an import goes on after it. */
  readonly line: number
  /** How many tuples the import has read so far. */
  readonly tuplesCount: number
  readonly revision: number
}
type Line = { readonly number: number; readonly text: string }

/**
 * Imports lines after `fromLine`, with progress after each transaction, at least once. Throws RequestProblem and PdpError with the wrong
 * lines; stored lines stay.
 */
export async function* importTuples(source: {
  readonly pieces: AsyncIterable<Buffer>
  readonly fromLine: number
  /** Writes the tuples of `tuplesOf` under the models in force at the write. */
  write(tuplesOf: (restriction: Restriction) => readonly Tuple[]): Promise<{ revision: number }>
}): AsyncGenerator<Progress> {
  const { fromLine, write } = source
  let tuplesCount = 0
  let progress: Progress | null = null
  for await (const lines of batchesOf(source.pieces)) {
    const last = lines.at(-1)?.number ?? 0
    if (last <= fromLine) continue
    const later = lines.filter(({ number }) => number > fromLine)
    const { revision, written } = await writeLines(write, later)
    tuplesCount += written
    progress = { line: last, tuplesCount, revision }
    yield progress
  }
  if (progress === null) yield { line: fromLine, tuplesCount, revision: (await write(() => [])).revision }
}

async function* batchesOf(pieces: AsyncIterable<Buffer>): AsyncGenerator<readonly Line[]> {
  const decoder = new TextDecoder('utf-8', { fatal: false })
  let rest = ''
  let number = 0
  let lines: Line[] = []
  let characters = 0
  for await (const piece of pieces) {
    const texts = (rest + decoder.decode(piece, { stream: true })).split('\n')
    rest = texts.pop() ?? ''
    for (const text of texts) {
      number += 1
      requireShort({ number, text })
      lines.push({ number, text })
      characters += text.length
      if (lines.length < LINES_PER_WRITE && characters < WRITE_CHARACTERS_MAX) continue
      yield lines
      lines = []
      characters = 0
    }
    requireShort({ number: number + 1, text: rest })
  }
  if (rest !== '') lines.push({ number: number + 1, text: rest })
  if (lines.length > 0) yield lines
}

function requireShort({ number, text }: Line): void {
  if (text.length <= LINE_CHARACTERS_MAX) return
  const issues = [{ place: String(number), message: `is longer than ${LINE_CHARACTERS_MAX} characters` }]
  throw new RequestProblem('request_invalid', `line ${number} is too long`, { issues })
}

type ParsedLine = { readonly tuple: Tuple; readonly line: number }

/** Tuples by name; if several lines have the same tuple, the last one counts. Throws RequestProblem with every line that is wrong. */
function parseLines(lines: readonly Line[], restriction: Restriction): ReadonlyMap<string, ParsedLine> {
  const tuples = new Map<string, ParsedLine>()
  const issues: ValidationIssue[] = []
  for (const { number, text } of lines) {
    const tuple = parseTupleLine(text)
    if (tuple === null) continue
    const issue = typeof tuple === 'string' ? tuple : restriction(tuple)
    if (typeof tuple !== 'string' && issue === null) tuples.set(formatTuple(tuple), { tuple, line: number })
    else if (issue !== null) issues.push({ place: String(number), message: issue })
  }
  if (issues.length > 0) throw invalidLines(issues)
  return tuples
}

function invalidLines(issues: readonly ValidationIssue[], cause?: unknown): RequestProblem {
  const said = issues.slice(0, ISSUES_MAX)
  const what = issues.length === 1 ? 'one of these lines is wrong' : `${issues.length} of these lines are wrong`
  return new RequestProblem('request_invalid', what, { issues: said, cause })
}

async function writeLines(
  write: (tuplesOf: (restriction: Restriction) => readonly Tuple[]) => Promise<{ revision: number }>,
  lines: readonly Line[],
): Promise<{ revision: number; written: number }> {
  let found: readonly ParsedLine[] = []
  try {
    const { revision } = await write((restriction) => {
      found = [...parseLines(lines, restriction).values()]
      return found.map(({ tuple }) => tuple)
    })
    return { revision, written: found.length }
  } catch (err) {
    // The store names a change by its index; the caller needs its line.
    if (!(err instanceof PdpError) || err.issues.length === 0) throw err
    throw invalidLines(
      err.issues.map(({ place, message }) => ({ place: String(found[Number(place.slice(1))]?.line ?? 0), message })),
      err,
    )
  }
}
