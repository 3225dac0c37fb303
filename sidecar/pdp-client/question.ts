/** The question about one request to the PDP, and its answer. */
import type { StreamedQuestion } from '../../pdp/shared/client/codec.ts'
import type { UndecidedCode } from '../../pdp/shared/domain/decision.ts'

/** How many checks one question may have (`DecideRequest` of decision.proto). */
export const CHECKS_MAX = 256

/** `undecided`: the PDP gave neither an answer nor a reason. */
export type PermissionOutcome = 'allowed' | 'denied' | UndecidedCode | 'undecided'
/** `any`: `resource` is a type, and one resource of the type is enough. Only lists of MCP ask so. */
export type PermissionQuestion = { readonly relation: string; readonly resource: string; readonly any?: true }
/** The question in the form of a route file. */
export const questionText = ({ relation, resource, any }: PermissionQuestion): string =>
  `${relation} ${any === true ? 'any ' : ''}${resource}`

/** A question about the subject of a verified token. */
export type PdpQuestion = StreamedQuestion & { readonly subject: string; readonly organization: string | null }
export type PdpAnswer = {
  /** True for an active token; false: everything is denied. */
  readonly active: boolean
  readonly subjectType: 'user' | 'service'
  /** The result of each permission of the question, in the same order. */
  readonly permissions: readonly PermissionOutcome[]
  /** Reasons in words for the log, one for each of `permissions`; empty for an allow. */
  readonly reasons: readonly string[]
  /** The entitlements. True only for a value whose `enabled` is the boolean true. */
  readonly entitlements: ReadonlyMap<string, boolean>
  /** The revision of the answer. Answers with equal texts hold at the same moment. */
  readonly revision: string
  /** How and when the subject signed in, if the PDP knows. */
  readonly signIn: SignIn
}

export type SignIn = {
  readonly acr: string | null
  /** The time of the sign-in in seconds since the epoch. */
  readonly authTime: number | null
}
