/**
 * Delegation: an actor may do something for a subject (RFC 8693 section 4.1) if the subject may, the actor may, and the subject
 * lets the actor act. All three are read at the moment of the question.
 */
import type { Actor, DecideRequest, Reason } from '../../shared/domain/decision.ts'
import { REASONS } from '../../shared/domain/reasons.ts'
import { ACTS_FOR, scopesOf, subjectName } from '../../shared/domain/subjects.ts'
import type { ModelCompiler } from '../decide/models/known-models.ts'
import { ANY_APP } from '../decide/roles.ts'
import type { Slice, Steps } from '../decide/slices.ts'
import { FALSE, TRUE, type Truth, UNKNOWN, type View } from '../decide/view.ts'
import { type AllChecks, answerAll, ownerOf } from './all-checks.ts'
import type { CheckOutcome } from './results.ts'

type Acting = {
  readonly all: AllChecks
  readonly actors: readonly [Actor, ...Actor[]]
  /** The scopes of the token; a delegation may allow only some of them. */
  readonly scopes: readonly string[] | undefined
}

/**
 * The actors whose rights count, the present one first; empty: only the subject's count. Until manifests are loaded, all actors of the
 * token, so that their rows are loaded, too.
 */
export function actorsOf(
  { actor, actors = [], audiences = [] }: DecideRequest,
  view: View,
  app: string | null,
): readonly Actor[] {
  if (actor !== undefined) return [actor]
  if (actors.length === 0) return actors
  const manifests = view.manifests()
  if (manifests === undefined) return actors
  const owner = ownerOf(manifests, audiences)
  // A question about no particular app takes all actors of the token.
  if (owner === undefined && app === ANY_APP) return actors
  return (owner ?? manifests.find((manifest) => manifest.app === app))?.actors === 'both' ? actors : []
}

/**
 * The delegations by which the subject lets the actors act. Each link of a chain must exist, although only the current actor's rights
 * count. `missing`: the first link that does not exist. Undefined while rows are missing.
 */
export function linksOf(
  stored: View,
  { all, actors, scopes }: Acting,
): { readonly links: readonly string[]; readonly missing: string | null } | undefined {
  const { organization, subject } = all.asked
  const links = actors.map(subjectName).map((name) => ({
    link: `${name}#${ACTS_FOR}@${subject}`,
    stands: isWithout(all, name) ? FALSE : standsNow(stored, { organization, name, subject, scopes }),
  }))
  if (links.some(({ stands }) => stands === UNKNOWN)) return undefined
  return { links: links.map(({ link }) => link), missing: links.find(({ stands }) => stands === FALSE)?.link ?? null }
}

/** Does what answerAll does, for an actor. `held`: the view with the token's groups, which are the subject's and not the actor's. */
export function* answerActing(
  slice: Slice,
  { stored, held: view }: { readonly stored: View; readonly held: View },
  compile: ModelCompiler,
  acting: Acting,
): Steps<readonly CheckOutcome[] | undefined> {
  const { all, actors } = acting
  const name = subjectName(actors[0])
  // No part is skipped when rows are missing, so that one load brings the rows of all parts.
  const linked = linksOf(stored, acting)
  const theirs = yield* answerAll(slice, view, compile, all)
  const own = yield* answerAll(slice, stored, compile, { ...all, asked: { ...all.asked, subject: name } })
  if (theirs === undefined || own === undefined || linked === undefined) return undefined
  const { links: held, missing } = linked
  return theirs.map((outcome, i) =>
    both({ subject: outcome, actor: own[i], missing, held, explains: all.asked.explain === true }),
  )
}

function standsNow(
  stored: View,
  of: {
    readonly organization: string
    readonly name: string
    readonly subject: string
    readonly scopes: readonly string[] | undefined
  },
): Truth {
  const { organization, name, subject, scopes } = of
  const plain = stored.has(organization, name, ACTS_FOR, subject)
  if (plain !== FALSE) return plain
  const condition = stored.conditionOf(organization, name, ACTS_FOR, subject)
  if (condition === undefined) return UNKNOWN
  const allowed = condition === null ? null : scopesOf(condition)
  return allowed !== null && scopes?.every((scope) => allowed.includes(scope)) === true ? TRUE : FALSE
}

/** True if the question leaves out this very delegation (`withoutTuples`). */
const isWithout = ({ asked, withoutTuples }: AllChecks, name: string): boolean =>
  withoutTuples.some((t) => t.object === name && t.relation === ACTS_FOR && t.subject === asked.subject)

/** The outcome of the three conditions; the first that does not hold is the reason. */
function both(of: {
  readonly subject: CheckOutcome
  readonly actor: CheckOutcome | undefined
  readonly missing: string | null
  readonly held: readonly string[]
  readonly explains: boolean
}): CheckOutcome {
  const { subject, actor, missing, held, explains } = of
  // The delegation comes first, so that an agent without one learns nothing about the person's rights.
  if (missing !== null) return denied('delegation_missing', explains, { path: [], missing: [missing] })
  if ('undecided' in subject || !subject.allowed) return subject
  const path = subject.reason?.path ?? []
  if (actor === undefined || 'undecided' in actor) return actor ?? denied('actor_denied', explains, undefined)
  if (!actor.allowed) return denied('actor_denied', explains, actor.reason)
  if (subject.reason === undefined) return subject
  return {
    ...subject,
    reason: { ...subject.reason, path: [...path, ...held.map((tuple) => ({ tuple })), ...(actor.reason?.path ?? [])] },
  }
}

function denied(
  code: 'delegation_missing' | 'actor_denied',
  explains: boolean,
  why: Omit<Reason, 'code' | 'message'> | undefined,
): CheckOutcome {
  if (!explains) return { allowed: false, code }
  return { allowed: false, code, reason: { path: [], missing: [], ...why, code, message: REASONS[code] } }
}
