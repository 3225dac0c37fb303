/**
 * Decides whether a relation holds on any resource of a type: checks resources above the subject until one is allowed. User interfaces use
 * the answer to show or hide things; it allows nothing on a single resource.
 */
import type { DecideRequest, PermissionCheck } from '../../shared/domain/decision.ts'
import { PdpError } from '../../shared/domain/errors.ts'
import { isRelation } from '../../shared/domain/names.ts'
import { REASONS } from '../../shared/domain/reasons.ts'
import { Budget } from '../decide/budget.ts'
import { isUndecided } from '../decide/check.ts'
import { ConditionalTuples } from '../decide/conditional-tuples.ts'
import { candidatesOf } from '../decide/lists/lists.ts'
import type { ModelCompiler } from '../decide/models/known-models.ts'
import type { Slice, Steps } from '../decide/slices.ts'
import type { View } from '../decide/view.ts'
import { relationViewOf } from '../decide/views/contextual-tuples.ts'
import { SubjectSide } from '../decide/wide/subject-side.ts'
import { type AllChecks, TUPLES_PER_REQUEST_MAX } from './all-checks.ts'
import type { CheckOutcome } from './results.ts'

type Searching = {
  readonly slice: Slice
  readonly view: View
  readonly request: DecideRequest
  readonly all: AllChecks
  /** answerAll or answerActing: the same resource must be allowed to the subject and to its actor. */
  readonly answer: (all: AllChecks) => Steps<readonly CheckOutcome[] | undefined>
  /** The climb from the subject, shared by the questions of a request. */
  readonly side: SubjectSide
  readonly meter: { tuplesCount: number }
  readonly candidates: { left: number }
}

/** The most resources that are checked for one question, and for one request. */
const CANDIDATES_MAX = 2_000
const CANDIDATES_PER_REQUEST_MAX = 10_000
/** How many resources are checked together: first one, which is often allowed, then growing chunks. */
const CHUNK_MAX = 250
const CHUNK_GROWTH = 16
/** An id that no tuple can have, because of its character. */
const NO_ID = '\x7f'

export const isAny = ({ any }: PermissionCheck): boolean => any === true

/** Answers all checks of a request when some are about any resource. Undefined while rows are missing. */
export function* answerWithAny(
  of: Omit<Searching, 'side' | 'meter' | 'candidates'>,
  compile: ModelCompiler,
): Steps<readonly CheckOutcome[] | undefined> {
  const { view, all, answer } = of
  const { organization, subject } = all.asked
  const plain = yield* answer({ ...all, checks: all.checks.filter((check) => !isAny(check)) })
  const manifests = view.manifests()
  const model = manifests === undefined ? null : compile(manifests)
  const shown = relationViewOf(view, model, organization, all.contextualTuples, all.withoutTuples) ?? view
  const conditions = new ConditionalTuples(shown, organization, null)
  const budget = new Budget(TUPLES_PER_REQUEST_MAX)
  const side =
    model === null ? null : new SubjectSide({ view: shown, log: organization, model, subject, conditions, budget })
  const searching = { ...of, meter: { tuplesCount: 0 }, candidates: { left: CANDIDATES_PER_REQUEST_MAX } }
  const found: CheckOutcome[] = []
  let missing = plain === undefined || side === null
  for (const check of all.checks.filter(isAny)) {
    const outcome = side === null ? yield* onNone(searching, check) : yield* answerAny({ ...searching, side }, check)
    if (outcome === undefined) missing = true
    else found.push(outcome)
  }
  if (missing || plain === undefined) return undefined
  const [plainAnswers, anyAnswers] = [plain.values(), found.values()]
  return all.checks.flatMap((check) => (isAny(check) ? anyAnswers : plainAnswers).next().value ?? [])
}

function* answerAny(searching: Searching, check: PermissionCheck): Steps<CheckOutcome | undefined> {
  const { slice, all, answer, meter, candidates } = searching
  const { relation } = check
  const named = yield* resourcesFor(searching, check)
  if (named === undefined) {
    // Also evaluates the check of no resource, so that its rows are loaded together with the search's.
    yield* onNone(searching, check)
    return undefined
  }
  const { resources, whole } = named
  const asked = { ...all.asked, explain: false }
  const explained = function* (resource: string, outcome: CheckOutcome): Steps<CheckOutcome | undefined> {
    if (all.asked.explain !== true) return outcome
    return (yield* answer({ ...all, checks: [{ relation, resource }] }))?.[0]
  }
  let denied: { readonly resource: string; readonly outcome: CheckOutcome } | null = null
  let undecided: CheckOutcome | null = null
  let at = 0
  for (let size = 1; at < resources.length; size = Math.min(CHUNK_MAX, size * CHUNK_GROWTH)) {
    const left = Math.min(size, candidates.left, CANDIDATES_MAX - at)
    if (left <= 0 || meter.tuplesCount > TUPLES_PER_REQUEST_MAX) return undecided ?? tooMany(check)
    const chunk = resources.slice(at, at + left)
    const outcomes = yield* answer({ ...all, asked, meter, checks: chunk.map((resource) => ({ relation, resource })) })
    if (outcomes === undefined) return undefined
    for (const [i, outcome] of outcomes.entries()) {
      const resource = chunk[i] ?? ''
      if ('undecided' in outcome) undecided ??= outcome
      else if (outcome.allowed || outcome.code === 'delegation_missing') return yield* explained(resource, outcome)
      else denied ??= { resource, outcome }
    }
    at += chunk.length
    candidates.left -= chunk.length
    if (slice.left <= 0) yield
  }
  if (undecided !== null || !whole) return undecided ?? tooMany(check)
  return denied === null ? yield* onNone(searching, check) : yield* explained(denied.resource, denied.outcome)
}

/** The resources that the check may allow, and perhaps others. Undefined while rows are missing. */
function* resourcesFor(
  { view, request, all, side }: Searching,
  { relation, resource: type }: PermissionCheck,
): Steps<{ readonly resources: readonly string[]; readonly whole: boolean } | undefined> {
  const { organization, subject, contextualTuples = [] } = request
  const question = { organization, subject, relation, type, app: all.asked.app, contextualTuples }
  const candidates = candidatesOf(view, { ...question, kind: 'resources' })
  // True for permission keys, and for everything on an app: only roles give these.
  const byRole = type === 'app' || !isRelation(relation)
  const above = byRole ? { found: [], whole: true } : yield* side.objects(type, relation)
  if (candidates === undefined || above === undefined) return undefined
  return { resources: [...new Set([...candidates.known, ...above.found])], whole: above.whole }
}

/** The denial if no resource is allowed, made by a check of a resource that does not exist. */
function* onNone(
  { all, answer }: Pick<Searching, 'all' | 'answer'>,
  { relation, resource: type }: PermissionCheck,
): Steps<CheckOutcome | undefined> {
  const asked = { ...all.asked, explain: false }
  const outcomes = yield* answer({ ...all, asked, checks: [{ relation, resource: `${type}:${NO_ID}` }] })
  const outcome = outcomes?.[0]
  if (outcome === undefined || 'undecided' in outcome) return outcome
  const code = outcome.allowed ? 'none' : outcome.code
  const reason = { code, message: REASONS[code], path: [], missing: [] }
  return all.asked.explain === true ? { allowed: false, code, reason } : { allowed: false, code }
}

function tooMany({ relation, resource: type }: PermissionCheck): CheckOutcome {
  const undecided = new PdpError(
    'evaluation_limit',
    `too much may be ${relation} of some ${type}: it was not all checked`,
  )
  if (!isUndecided(undecided)) throw undecided
  return { undecided }
}
