/**
 * Delegation: what an actor does for a subject (RFC 8693 section 4.1) is allowed where the subject may, the actor may, and the
 * subject lets it act. All three are read at the moment of the question.
 */
import type { DecideRequest, Reason } from '../../shared/domain/decision.ts'
import { REASONS } from '../../shared/domain/reasons.ts'
import { subjectName } from '../../shared/domain/subjects.ts'
import type { ModelCompiler } from '../decide/models/known-models.ts'
import type { Slice, Steps } from '../decide/slices.ts'
import { FALSE, type Truth, UNKNOWN, type View } from '../decide/view.ts'
import { answerAll } from './all-checks.ts'
import type { CheckOutcome } from './results.ts'

/** `service:bot#acts_for@user:alice` says that the client bot may act for Alice in the organization of the tuple. */
export const ACTS_FOR = 'acts_for'

type All = Parameters<typeof answerAll>[3]

/** As answerAll, for an actor. `held`: the view in which the groups of the subject's token count; they are not the actor's. */
export function* answerActing(
  slice: Slice,
  { stored, held }: { readonly stored: View; readonly held: View },
  compile: ModelCompiler,
  { all, actor }: { readonly all: All; readonly actor: NonNullable<DecideRequest['actor']> },
): Steps<readonly CheckOutcome[] | undefined> {
  const { organization, subject } = all.asked
  const name = subjectName(actor)
  const link = `${name}#${ACTS_FOR}@${subject}`
  // All are evaluated before giving up for want of rows, so that one load brings what each needs.
  const stands = isWithout(all, name) ? FALSE : stored.has(organization, name, ACTS_FOR, subject)
  const theirs = yield* answerAll(slice, held, compile, all)
  const own = yield* answerAll(slice, stored, compile, { ...all, asked: { ...all.asked, subject: name } })
  if (theirs === undefined || own === undefined || stands === UNKNOWN) return undefined
  return theirs.map((outcome, i) => both({ subject: outcome, actor: own[i], stands, link }))
}

/** The question asks what would be without the link. */
const isWithout = ({ asked, withoutTuples }: All, name: string): boolean =>
  withoutTuples.some((t) => t.object === name && t.relation === ACTS_FOR && t.subject === asked.subject)

/** The first of the three that does not hold is the reason. */
function both(of: {
  readonly subject: CheckOutcome
  readonly actor: CheckOutcome | undefined
  readonly stands: Truth
  readonly link: string
}): CheckOutcome {
  const { subject, actor, stands, link } = of
  if ('undecided' in subject || !subject.allowed) return subject
  const path = subject.reason?.path ?? []
  if (stands === FALSE) return denied('delegation_missing', subject.reason, { path: [], missing: [link] })
  if (actor === undefined || 'undecided' in actor) return actor ?? denied('actor_denied', subject.reason, undefined)
  if (!actor.allowed) return denied('actor_denied', subject.reason, actor.reason)
  if (subject.reason === undefined) return subject
  return {
    ...subject,
    reason: { ...subject.reason, path: [...path, { tuple: link }, ...(actor.reason?.path ?? [])] },
  }
}

/** Explained where the subject's own answer was. */
function denied(
  code: 'delegation_missing' | 'actor_denied',
  asked: Reason | undefined,
  why: Omit<Reason, 'code' | 'message'> | undefined,
): CheckOutcome {
  if (asked === undefined) return { allowed: false, code }
  return { allowed: false, code, reason: { path: [], missing: [], ...why, code, message: REASONS[code] } }
}
