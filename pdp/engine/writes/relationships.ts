/** Parses relationships to write and delete, over HTTP and in process, and reports each issue with its position. */
import { parseInstantText } from '../../shared/base/instant.ts'
import type { Change, Precondition } from '../../shared/domain/change.ts'
import { PdpError, type ValidationIssue } from '../../shared/domain/errors.ts'
import { type JsonObject, pointer } from '../../shared/domain/json.ts'
import { parseTuple, tupleIssue } from '../../shared/domain/names.ts'
import type { Tuple } from '../../shared/domain/tuple.ts'
import type { Restriction } from './restrictions.ts'

/** The most tuples of one write, and the most preconditions. */
export const CHANGES_MAX = 1_000
export const PRECONDITIONS_MAX = 100

/** `type:id#relation@subject`, or the same in parts with the instant (RFC 3339) from which it no longer counts. */
export type TupleInput =
  | string
  | {
      readonly object: string
      readonly relation: string
      readonly subject: string
      readonly expires_at?: string | null
      readonly condition?: ConditionInput | null
    }
export type ConditionInput = { readonly name: string; readonly context?: JsonObject }
/** `if`: preconditions: the write happens only if each of these tuples exists, or does not exist. */
export type RelationshipsWrite = {
  readonly write?: readonly TupleInput[]
  readonly delete?: readonly TupleInput[]
  readonly if?: readonly { readonly tuple: TupleInput; readonly exists: boolean }[]
}

/** Throws PdpError `request_invalid` with all issues and their positions. A tuple that cannot count may still be deleted. */
export function parseRelationships(
  input: RelationshipsWrite,
  restriction: Restriction,
): {
  readonly changes: readonly Extract<Change, { kind: 'tuple' }>[]
  /** The position of each change in the input. */
  readonly places: readonly string[]
  readonly preconditions: readonly Precondition[]
} {
  const issues: ValidationIssue[] = []
  const seen = new Set<string>()
  const read = (tuple: TupleInput, place: string): Tuple => {
    const parsed = parseTupleInput(tuple)
    if (typeof parsed !== 'string') return parsed
    issues.push({ place, message: parsed })
    return { object: '', relation: '', subject: '', expiresAtMs: null }
  }
  const changes: Extract<Change, { kind: 'tuple' }>[] = []
  const places: string[] = []
  for (const op of ['write', 'delete'] as const) {
    for (const [i, item] of (input[op] ?? []).entries()) {
      const place = pointer('', op, i)
      const tuple = read(item, place)
      const key = formatKey(tuple)
      if (tuple.object === '') continue
      const restricted = op === 'write' ? restriction(tuple) : null
      if (restricted !== null) issues.push({ place, message: restricted })
      if (seen.has(key)) issues.push({ place, message: 'repeats a tuple of this request' })
      seen.add(key)
      changes.push({ kind: 'tuple', op, tuple })
      places.push(place)
    }
  }
  const preconditions = (input.if ?? []).map(({ tuple, exists }, i) => ({
    tuple: read(tuple, pointer('', 'if', i, 'tuple')),
    exists,
  }))
  if (changes.length === 0 && issues.length === 0)
    issues.push({ place: '', message: 'has no tuples to write or delete' })
  if (changes.length > CHANGES_MAX)
    issues.push({ place: '', message: `has more than ${CHANGES_MAX} tuples to write and delete` })
  if (issues.length > 0) throw nothingWritten('request_invalid', issues)
  return { changes, places, preconditions }
}

/** The tuple, or its fault. */
export function parseTupleInput(input: TupleInput): Tuple | string {
  if (typeof input === 'string') {
    try {
      return { ...parseTuple(input), expiresAtMs: null }
    } catch (err) {
      if (err instanceof PdpError) return err.message
      throw err
    }
  }
  const { object, relation, subject } = input
  const expiresAtMs = input.expires_at == null ? null : parseInstantText(input.expires_at)
  if (Number.isNaN(expiresAtMs)) return 'expires_at is not an instant'
  const parsed = { object, relation, subject, expiresAtMs }
  return tupleIssue(parsed) ?? (input.condition == null ? parsed : withCondition(parsed, input.condition))
}

function withCondition(tuple: Tuple, { name, context = {} }: ConditionInput): Tuple {
  return { ...tuple, condition: { name, context } }
}

/** Replaces the change's index in the store's error by its position in the input, which the caller knows. */
export function relocate(err: unknown, places: readonly string[]): unknown {
  if (!(err instanceof PdpError) || err.issues.length === 0) return err
  const issues = err.issues.map(({ place, message }) => ({ place: places[Number(place.slice(1))] ?? '', message }))
  return nothingWritten(err.code, issues, err)
}

/** A text that differs for different tuples, whatever their ids contain. */
export const formatKey = ({ object, relation, subject }: Omit<Tuple, 'expiresAtMs'>): string =>
  JSON.stringify([object, relation, subject])

/** The error of a write that stored nothing, with all issues. */
export const nothingWritten = (code: PdpError['code'], issues: readonly ValidationIssue[], cause?: unknown): PdpError =>
  new PdpError(code, 'nothing was written', { issues, cause })
