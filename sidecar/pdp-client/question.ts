/** The question about one request to the PDP, and its answer. */
import type { StreamedQuestion } from '../../pdp/shared/client/question.ts'
import type { UndecidedCode } from '../../pdp/shared/domain/decision.ts'

/** As many checks as one question may have (`DecideRequest` of decision.proto). */
export const CHECKS_MAX = 256

/** `undecided`: the PDP says of it neither that nor why it could not be decided. */
export type PermissionOutcome = 'allowed' | 'denied' | UndecidedCode | 'undecided'
/** `any`: `resource` is a type, and one of its resources is enough. Only lists ask it. */
export type PermissionQuestion = { readonly relation: string; readonly resource: string; readonly any?: true }
/** As a route file writes it. */
export const questionText = ({ relation, resource, any }: PermissionQuestion): string =>
  `${relation} ${any === true ? 'any ' : ''}${resource}`

/** About a verified token. */
export type PdpQuestion = StreamedQuestion & { readonly subject: string; readonly organization: string | null }
export type PdpAnswer = {
  /** False: the token is not active, and everything is denied. */
  readonly active: boolean
  readonly subjectType: 'user' | 'service'
  /** One result per permission of the question, in the same order. */
  readonly permissions: readonly PermissionOutcome[]
  /** Why, for the log: one text for each of `permissions`, empty for what is allowed. */
  readonly reasons: readonly string[]
  /** True only for a value whose `enabled` is the boolean true. */
  readonly entitlements: ReadonlyMap<string, boolean>
  /** Equal texts: the answers hold at one moment. */
  readonly revision: string
  /** How and when the subject signed in, as far as the PDP knows. */
  readonly signIn: SignIn
}

export type SignIn = {
  readonly acr: string | null
  /** Seconds since the epoch. */
  readonly authTime: number | null
}
