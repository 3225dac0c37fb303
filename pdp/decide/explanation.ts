/** Why a check came out as it did, read off its gates: the steps that led to an allow, and tuples that would lead to one. */
import type { ReasonStep } from '../domain/decision.ts'
import type { LogId } from '../domain/log.ts'
import type { Edge, Gate, Notes } from './gates.ts'
import { type Spend, settle } from './settle.ts'
import type { Userset } from './usersets.ts'
import { FALSE, TRUE, type View } from './view.ts'

/** Missing tuples that are named at most. */
const MISSING_MAX = 20

/**
 * The chain from the resource down to the subject. Every gate was decided after what decided it, so that no chain comes
 * back to where it was; what several operands lean on is told once.
 */
export function pathTo(root: Gate): readonly ReasonStep[] {
  const path: ReasonStep[] = []
  const told = new Set<Gate>()
  const todo: { readonly gate: Gate; readonly steps: readonly ReasonStep[] | null }[] = [{ gate: root, steps: null }]
  for (let at = todo.pop(); at !== undefined; at = todo.pop()) {
    const { gate, steps } = at
    path.push(...(steps ?? []))
    if (told.has(gate)) continue
    told.add(gate)
    const { witness } = gate
    if (witness !== null) todo.push({ gate: witness.to, steps: witness.steps })
    else if (gate.kind !== 'all') path.push(...(gate.notes?.found ?? []))
    else for (const { to, negative, steps } of edgesOf(gate)) if (!negative) todo.push({ gate: to, steps })
  }
  return path
}

/** Tuples, any one of which would turn the denial into an allow. */
export function missingFor(root: Gate, spend: Spend): readonly string[] {
  const missing = new Set<string>()
  const seen = new Set<Gate>()
  const todo = [root]
  for (let gate = todo.pop(); gate !== undefined && missing.size < MISSING_MAX; gate = todo.pop()) {
    if (seen.has(gate)) continue
    seen.add(gate)
    const edges = [...edgesOf(gate)]
    for (const { to } of edges) settle(to, spend)
    if (gate.kind !== 'all') {
      for (const tuple of gate.notes?.missed ?? []) missing.add(tuple)
      for (const { to } of edges) if (to.truth !== TRUE) todo.push(to)
      continue
    }
    // One tuple can make good for one operand only, and none for what excludes.
    const wanting = edges.filter(({ to, negative }) => to.truth !== (negative ? FALSE : TRUE))
    const [only] = wanting
    if (wanting.length === 1 && only !== undefined && !only.negative) todo.push(only.to)
  }
  return [...missing].slice(0, MISSING_MAX)
}

/** The last in the definition first, so that the first is on top of what is still to do. */
function* edgesOf(gate: Gate): Iterable<Edge> {
  for (let edge = gate.edges; edge !== null; edge = edge.previous) yield edge
}

/** The memberships that lead from a group down to the subject, nearest to the group first; the shortest chain there is. */
export function groupSteps(
  view: View,
  log: LogId,
  of: { readonly subject: string; readonly group: string },
): readonly ReasonStep[] {
  const below = new Map<string, string>()
  const reached = [of.subject]
  for (let i = 0; i < reached.length && !below.has(of.group); i++) {
    const at = reached[i] ?? ''
    for (const group of view.groups(log, at) ?? []) {
      if (below.has(group)) continue
      below.set(group, at)
      reached.push(group)
    }
  }
  const steps: ReasonStep[] = []
  for (let at = of.group; at !== of.subject; ) {
    const member = below.get(at)
    if (member === undefined) break
    steps.push({ tuple: `${at}@${member}` })
    at = member
  }
  return steps
}

export const ruleStep = ({ object, relation }: Gate, rule: string): ReasonStep => ({
  rule: `${object}#${relation}: ${rule}`,
})

export const tupleStep = ({ object, relation }: Gate, { text }: Userset): ReasonStep => ({
  tuple: `${object}#${relation}@${text}`,
})

export function notesOf(node: Gate): Notes {
  node.notes ??= { found: [], missed: [] }
  return node.notes
}
