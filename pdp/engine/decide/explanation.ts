/** Explains a check by its subgoals: the steps that led to an allow, or the tuples that would lead to one. */

import { didYouMean } from '../../shared/base/nearest.ts'
import type { PermissionCheck, Reason, ReasonStep } from '../../shared/domain/decision.ts'
import type { JournalId } from '../../shared/domain/journal.ts'
import { typeOf } from '../../shared/domain/names.ts'
import { REASONS, type ReasonCode } from '../../shared/domain/reasons.ts'
import { type Model, SUBJECT_TYPES } from './model.ts'
import { type Spend, settle } from './search/settle.ts'
import type { Edge, Notes, Subgoal } from './subgoals.ts'
import type { Userset } from './usersets.ts'
import { FALSE, TRUE, type View } from './view.ts'

/** How many missing tuples and how many false conditions an explanation names. */
const MISSING_MAX = 20
const UNMET_MAX = 10

/** The explanation of a root that was decided with notes. */
export function explanationOf(root: Subgoal | null, spend: Spend): Omit<Reason, 'code' | 'message'> {
  if (root?.truth === TRUE) return { path: pathTo(root), missing: [] }
  if (root?.truth !== FALSE) return { path: [], missing: [] }
  const { missing, reached, unmet } = wantingIn(root, spend)
  return { path: [], missing, ...(reached.length > 0 && { reached }), details: [...exclusionsFor(root), ...unmet] }
}

/** The reason why a check could not be decided. */
export const undecidedReason = ({
  code,
  message,
}: {
  readonly code: ReasonCode
  readonly message: string
}): Reason => ({
  code,
  message: REASONS[code],
  path: [],
  missing: [],
  details: [message],
})

/** The chain from the resource to the subject, each subgoal once. It has no cycle: a subgoal is decided after the one that proves it. */
function pathTo(root: Subgoal): readonly ReasonStep[] {
  const path: ReasonStep[] = []
  const told = new Set<Subgoal>()
  const todo: { readonly goal: Subgoal; readonly steps: readonly ReasonStep[] | null }[] = [{ goal: root, steps: null }]
  for (let at = todo.pop(); at !== undefined; at = todo.pop()) {
    const { goal, steps } = at
    path.push(...(steps ?? []))
    if (told.has(goal)) continue
    told.add(goal)
    const { witness } = goal
    if (witness !== null) todo.push({ goal: witness.to, steps: witness.steps })
    else if (goal.kind !== 'all') path.push(...(goal.notes?.found ?? []))
    else for (const { to, negative, steps } of edgesOf(goal)) if (!negative) todo.push({ goal: to, steps })
  }
  return path
}

/** Tuples of which each alone would turn the denial into an allow, and tuples that would if their condition were true. */
function wantingIn(
  root: Subgoal,
  spend: Spend,
): {
  readonly missing: readonly string[]
  readonly reached: readonly ReasonStep[]
  readonly unmet: readonly string[]
} {
  const missing = new Set<string>()
  const unmet = new Set<string>()
  /** The edge by which each goal was first reached. */
  const ways = new Map<Subgoal, Edge | null>()
  const reached = new Map<string, ReasonStep>()
  const todo: { readonly goal: Subgoal; readonly by: Edge | null }[] = [{ goal: root, by: null }]
  for (let at = todo.pop(); at !== undefined && missing.size < MISSING_MAX; at = todo.pop()) {
    const { goal, by } = at
    if (ways.has(goal)) continue
    ways.set(goal, by)
    const edges = [...edgesOf(goal)]
    for (const { to } of edges) settle(to, spend)
    const { kind, notes } = goal
    if (kind !== 'all') {
      if ((notes?.missed ?? []).length > 0) addWay(reached, ways, by)
      for (const tuple of notes?.missed ?? []) missing.add(tuple)
      for (const sentence of notes?.unmet ?? []) unmet.add(sentence)
      for (const edge of edges) if (edge.to.truth !== TRUE) todo.push({ goal: edge.to, by: edge })
      continue
    }
    // While a condition cannot be evaluated, no further tuple can help.
    if (!goal.complete) continue
    // Only a goal that lacks a single operand can be helped by one tuple. No tuple undoes an exclusion.
    const wanting = edges.filter(({ to, negative }) => to.truth !== (negative ? FALSE : TRUE))
    const [only] = wanting
    if (wanting.length === 1 && only !== undefined && !only.negative) todo.push({ goal: only.to, by: only })
  }
  return {
    missing: [...missing].slice(0, MISSING_MAX),
    reached: [...reached.values()],
    unmet: [...unmet].slice(0, UNMET_MAX),
  }
}

/** Adds the steps from the root to the goal at which a tuple is missing. */
function addWay(steps: Map<string, ReasonStep>, ways: ReadonlyMap<Subgoal, Edge | null>, last: Edge | null): void {
  const edges: Edge[] = []
  for (let edge = last; edge !== null; edge = ways.get(edge.from) ?? null) edges.unshift(edge)
  for (const step of edges.flatMap((edge) => edge.steps ?? [])) steps.set(JSON.stringify(step), step)
}

/** For each `but not` that alone denies the relation: the tuples by which the subject is excluded. */
function exclusionsFor(root: Subgoal): readonly string[] {
  const found = new Set<string>()
  const seen = new Set<Subgoal>()
  const todo = [root]
  for (let at = todo.pop(); at !== undefined && found.size < MISSING_MAX; at = todo.pop()) {
    if (seen.has(at)) continue
    seen.add(at)
    const edges = [...edgesOf(at)]
    const taken = edges.find(({ to, negative }) => negative && to.truth === TRUE)
    if (at.kind === 'all' && taken !== undefined) {
      if (edges.some(({ to, negative }) => !negative && to.truth !== TRUE)) continue
      const by = pathTo(taken.to).flatMap((step) =>
        'tuple' in step ? [step.tuple] : 'member' in step ? [step.member] : [],
      )
      const what = by.length === 0 ? `${taken.to.object}#${taken.to.relation}` : by.join(', then ')
      found.add(`"but not" in ${at.object}#${at.relation} takes it away: ${what}`)
    } else for (const { to } of edges) if (to.truth === FALSE) todo.push(to)
  }
  return [...found]
}

/** More reasons for a denial: names that no model declares, and a membership that is not active. */
export function denialDetails(
  view: View,
  model: Model,
  of: { readonly log: JournalId; readonly subject: string; readonly check: PermissionCheck },
): readonly string[] {
  const { log, subject, check } = of
  const details: string[] = []
  if (view.organization(log) === null) details.push(`there is no organization "${log}"`)
  const membership = view.membership(log, subject)
  if (membership != null && membership.status !== 'active')
    details.push(`the membership of ${subject} in "${log}" is ${membership.status}, so that nothing held there counts`)
  if (model.size === 0) return details
  const type = typeOf(check.resource)
  const relations = model.get(type)
  const known = [...model.keys()]
  if (relations === undefined && !OURS.has(type)) {
    const hint = didYouMean(type, [...known, ...OURS])
    details.push(`no model declares type "${type}", so that only its own tuples count${hint}`)
  } else if (relations !== undefined && relations.size > 0 && !relations.has(check.relation)) {
    if (type !== 'organization')
      details.push(`type "${type}" has no relation "${check.relation}"${didYouMean(check.relation, relations.keys())}`)
  }
  const subjectType = typeOf(subject)
  if (!model.has(subjectType) && !OURS.has(subjectType))
    details.push(
      `no model declares type "${subjectType}" of the subject${didYouMean(subjectType, [...known, ...OURS])}`,
    )
  return details
}

const OURS: ReadonlySet<string> = new Set([...SUBJECT_TYPES, 'app'])

/** The edges of a goal, last operand first, so that a stack takes the first operand next. */
function* edgesOf(goal: Subgoal): Iterable<Edge> {
  for (let edge = goal.edges; edge !== null; edge = edge.previous) yield edge
}

/** The memberships that lead from a group down to the subject, nearest to the group first; the shortest chain there is. */
export function groupSteps(
  view: View,
  log: JournalId,
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

export const ruleStep = ({ object, relation }: Subgoal, rule: string): ReasonStep => ({
  rule: `${object}#${relation}: ${rule}`,
})

export const tupleStep = ({ object, relation }: Subgoal, { text }: Userset): ReasonStep => ({
  tuple: `${object}#${relation}@${text}`,
})

export function notesOf(goal: Subgoal): Notes {
  goal.notes ??= { found: [], missed: [], unmet: [] }
  return goal.notes
}
