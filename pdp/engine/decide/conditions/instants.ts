/** Finds the next instant at which an expression that reads the clock may change its value. */
import { type CelEnv, type CelInput, isCelError, plan } from '@bufbuild/cel'
import { isMessage } from '@bufbuild/protobuf'
import { isReflectMessage } from '@bufbuild/protobuf/reflect'
import { TimestampSchema } from '@bufbuild/protobuf/wkt'
import { callOf, type Expression, operandsOf } from './expression.ts'

/** The parameter that gets the time of the answer if a condition declares it as a timestamp. */
export const CLOCK = 'now'
/** How long an answer holds when its condition reads the clock in another way than by comparing it with an instant. */
export const UNKNOWN_MS = 1_000
const COMPARISONS: ReadonlySet<string> = new Set(['_<_', '_<=_', '_>_', '_>=_'])

/** The first instant after `nowMs` at which the value may change; null for never. */
export type NextInstant = (bindings: Record<string, CelInput>, nowMs: number) => number | null

export function createNextInstant(env: CelEnv, expression: Expression): NextInstant {
  const instants = comparedInstants(expression)?.map((instant) => plan(env, instant))
  if (instants === undefined) return (_, nowMs) => nowMs + UNKNOWN_MS
  return (bindings, nowMs) => {
    let next: number | null = null
    for (const evaluate of instants) {
      const value = evaluate(bindings)
      // An operand that cannot be evaluated gives the same error at any time.
      if (isCelError(value) || !isReflectMessage(value) || !isMessage(value.message, TimestampSchema)) continue
      const { seconds, nanos } = value.message
      const ms = Number(seconds) * 1_000 + nanos / 1_000_000
      for (const at of [Math.ceil(ms), Math.floor(ms) + 1]) if (at > nowMs) next = Math.min(next ?? at, at)
    }
    return next
  }
}

/** The expressions that the clock is compared with; null when it is read in any other way. */
function comparedInstants(expression: Expression): readonly Expression[] | null {
  if (!reads(expression)) return []
  const call = callOf(expression)
  if (call !== null && COMPARISONS.has(call.name)) {
    const [left, right] = call.args
    if (left !== undefined && right !== undefined) {
      if (isClock(left) && !reads(right)) return [right]
      if (isClock(right) && !reads(left)) return [left]
    }
  }
  // Inside a macro, the instant may differ for each element.
  if (isClock(expression) || expression.exprKind.case === 'comprehensionExpr') return null
  const found = operandsOf(expression).map(comparedInstants)
  return found.some((instants) => instants === null) ? null : found.flatMap((instants) => instants ?? [])
}

const isClock = ({ exprKind }: Expression): boolean => exprKind.case === 'identExpr' && exprKind.value.name === CLOCK
const reads = (expression: Expression): boolean => isClock(expression) || operandsOf(expression).some(reads)
