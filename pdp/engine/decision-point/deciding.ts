/** Evaluates one question's permissions and reads its entitlements at the same journal positions. */

import type { DecideRequest, Decision, RevocationQuestion } from '../../shared/domain/decision.ts'
import { PdpError } from '../../shared/domain/errors.ts'
import type { JournalPosition } from '../../shared/domain/journal.ts'
import type { createRevisionTexts } from '../../shared/domain/revision.ts'
import { subjectName } from '../../shared/domain/subjects.ts'
import type { CheckInput } from '../decide/check.ts'
import type { ModelCompiler } from '../decide/models/known-models.ts'
import { begin, type Slice, type Steps } from '../decide/slices.ts'
import type { View } from '../decide/view.ts'
import { TokenMembershipView } from '../decide/views/token-memberships.ts'
import type { EventLoopTurns } from '../store/cache/event-loop-turns.ts'
import type { Fresh, Question, SnapshotEvaluator } from '../store/cache/question.ts'
import type { Store } from '../store/contract.ts'
import type { EntitlementCache } from '../store/entitlements/cache.ts'
import { actorsOf, answerActing, linksOf } from './acting.ts'
import { type AllChecks, answerAll, ownerOf } from './all-checks.ts'
import { answerWithAny, isAny } from './any-resource.ts'
import { entitlementResults, NO_ENTITLEMENTS } from './entitlement-results.ts'
import type { PdpOptions } from './options.ts'
import { type CheckOutcome, resultOf } from './results.ts'

/** How often one request is evaluated when entitlements are written in between. */
const TRIES_MAX = 10
const NONE: readonly never[] = []

/** The parts of a PDP that answer questions. */
export type Parts = {
  readonly store: Store
  readonly evaluator: SnapshotEvaluator
  readonly entitlements: EntitlementCache
  readonly compile: ModelCompiler
  readonly revision: ReturnType<typeof createRevisionTexts>
  readonly tuplesMax: number
  readonly turns: EventLoopTurns
  readonly exists: NonNullable<PdpOptions['exists']>
}

export async function decideAt(parts: Parts, request: DecideRequest, app: string | null): Promise<Decision> {
  const { organization, subject, permissions = NONE, entitlements = NONE } = request
  const asked = {
    organization,
    subject: subjectName(subject),
    app,
    explain: request.explain === true,
    tuplesMax: parts.tuplesMax,
  }
  const all = {
    asked,
    audiences: request.audiences ?? NONE,
    checks: permissions,
    contextualTuples: request.contextualTuples ?? NONE,
    withoutTuples: request.withoutTuples ?? NONE,
    context: request.context,
  }
  const evaluate = (view: View, slice: Slice) => begin(evaluation({ stored: view, slice, parts, request, all }))
  const question = { organization, evaluate }
  // Most questions have no entitlements, so nothing else has to be read at the answer's position.
  if (entitlements.length === 0)
    return decisionOf(parts, { request, asked, fresh: await parts.evaluator.ask(question) })
  const { fresh, read } = await atOnePosition(parts, question, (position) =>
    entitlementResults(parts.entitlements, { organization, keys: entitlements, position }),
  )
  return { ...decisionOf(parts, { request, asked, fresh }), entitlements: read }
}

/** Defined outside of decideAt: V8 makes a hidden class at the first call of each new generator function. */
function* evaluation(of: {
  readonly stored: View
  readonly slice: Slice
  readonly parts: Parts
  readonly request: DecideRequest
  readonly all: AllChecks
}): Steps<Evaluated | undefined> {
  const { stored, slice, parts, request, all } = of
  const revoked = isRevoked(stored, request)
  const { memberships } = request
  const view = memberships === undefined ? stored : new TokenMembershipView(stored, all.asked.subject, memberships)
  const [actor, ...through] = actorsOf(request, stored, all.asked.app)
  const acting = actor === undefined ? null : { all, actors: [actor, ...through] as const, scopes: request.scopes }
  const { compile } = parts
  const answer = (of: AllChecks): ReturnType<typeof answerAll> =>
    acting === null
      ? answerAll(slice, view, compile, of)
      : answerActing(slice, { stored, held: view }, compile, { ...acting, all: of })
  const answers = all.checks.some(isAny)
    ? yield* answerWithAny({ slice, view, request, all, answer }, compile)
    : yield* answer(all)
  if (revoked === undefined || answers === undefined) return undefined
  const app = ownerOf(stored.manifests() ?? NONE, all.audiences)?.app ?? all.asked.app
  if (acting === null || actor === request.actor || all.checks.length > 0) return { revoked, answers, app }
  // A question about the token alone: it is revoked when its delegation has ended.
  const linked = linksOf(stored, acting)
  return linked === undefined || stored.manifests() === undefined
    ? undefined
    : { revoked: revoked || linked.missing !== null, answers, app }
}

type Evaluated = {
  readonly revoked: boolean
  readonly answers: readonly CheckOutcome[]
  readonly app: string | null
}

function decisionOf(
  parts: Parts,
  { request, asked, fresh }: { request: DecideRequest; asked: CheckInput; fresh: Fresh<Evaluated> },
): Decision {
  const { permissions = NONE } = request
  const { revoked, answers, app } = fresh.value
  return {
    permissions: permissions.map((check, i) => resultOf(check, answers[i], asked)),
    entitlements: NO_ENTITLEMENTS,
    tokenRevoked: revoked,
    revision: parts.revision(fresh),
    validUntilMs: fresh.validUntilMs,
    app,
  }
}

/**
 * Evaluates the question, then reads entitlements at the position of its answer. Starts over while `read` returns
 * undefined: the entitlements were written in between.
 * Throws PdpError `store_unavailable` when they are written faster than they can be read.
 */
export async function atOnePosition<T, R>(
  { evaluator }: Parts,
  question: Question<T> & { readonly organization: string },
  read: (position: JournalPosition | undefined, fresh: Fresh<T>) => R | undefined | Promise<R | undefined>,
): Promise<{ readonly fresh: Fresh<T>; readonly read: R }> {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const fresh = await evaluator.ask(question)
    const found = await read(fresh.vector.logs.get(question.organization), fresh)
    if (found !== undefined) return { fresh, read: found }
  }
  throw new PdpError('store_unavailable', 'the entitlements changed faster than they could be read')
}

/** True if the token is revoked; undefined while the token journal is not loaded. */
export function isRevoked(
  view: View,
  { revocationKeys = [], issuedAtMs = 0 }: RevocationQuestion,
): boolean | undefined {
  if (revocationKeys.length === 0) return false
  const revocations = view.revocations()
  if (revocations === undefined) return undefined
  return revocationKeys.some((key) => revocations.revokes(key, issuedAtMs))
}
