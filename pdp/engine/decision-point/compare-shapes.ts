/** The types of a comparison: who would gain and lose a relation with another model or other tuples. */
import type { ContextualTuple } from '../../shared/domain/decision.ts'

/**
 * Which subjects of a type have a relation on resources of a type, now and under another model or with other tuples.
 *
 * @example
 * ```ts
 * const request: CompareRequest = { organization: 'acme', relation: 'viewer', type: 'invoice', withoutTuples: [] }
 * const { gains, loses } = await pdp.compare(request)
 * ```
 */
export type CompareRequest = {
  readonly organization: string
  readonly relation: string
  /** The resources' type. */
  readonly type: string
  /** The type of the subjects; `user` by default. */
  readonly subjectType?: string
  /** The app whose roles answer permission keys on the organization. */
  readonly app?: string | null
  /** The model to replace the app's present one; `text`: null for no model. */
  readonly model?: { readonly app: string; readonly text: string | null }
  readonly contextualTuples?: readonly ContextualTuple[]
  readonly withoutTuples?: readonly ContextualTuple[]
  /** `next` of an earlier answer: goes on after this resource. */
  readonly after?: string
}
/**
 * Several relations of one type, compared in one snapshot.
 *
 * @example
 * ```ts
 * const request: CompareAllRequest = { organization: 'acme', relations: ['viewer', 'editor'], type: 'invoice' }
 * const [viewers, editors] = await pdp.compareAll(request)
 * ```
 */
export type CompareAllRequest = Omit<CompareRequest, 'relation'> & { readonly relations: readonly string[] }
/**
 * One pair that the comparison found.
 *
 * @example
 * ```ts
 * const effect: ComparedAccess = { subject: 'user:alice', resource: 'invoice:42' }
 * ```
 */
export type ComparedAccess = { readonly subject: string; readonly resource: string }
/**
 * The result of a comparison, in one snapshot.
 *
 * @example
 * ```ts
 * const found: Comparison = await pdp.compare({ organization: 'acme', relation: 'viewer', type: 'invoice' })
 * if (!found.complete) console.log(`at least these; ${found.resourcesCompared} resources were looked at`)
 * ```
 */
export type Comparison = {
  /** The first 100 pairs. */
  readonly gains: readonly ComparedAccess[]
  readonly loses: readonly ComparedAccess[]
  /** The number of all pairs found; there are more if the comparison is incomplete. */
  readonly gainsCount: number
  readonly losesCount: number
  /** True if every question about the compared resources was decided, and none has more than 10,000 subjects. */
  readonly decided: boolean
  /** True if no resource is left; false also if the time was over. */
  readonly complete: boolean
  /** How many resources this call compared. */
  readonly resourcesCompared: number
  /** How many resources the change may touch; null: more than 100,000, or this call continues another. */
  readonly resourcesCount: number | null
  /** The resource after which the next call continues; null: none is left. */
  readonly next: string | null
}

/** The part of a decision point that compares. */
export interface Comparing {
  /** Throws PdpError as `listResources` does, and `request_invalid` for a model with mistakes. */
  compare(request: CompareRequest): Promise<Comparison>
  /** Compares each relation on the same snapshot, with results in the same order. Throws as `compare` does. */
  compareAll(request: CompareAllRequest): Promise<readonly Comparison[]>
}

/** A comparison in the JSON of the HTTP API. */
export type ComparisonJson = Pick<Comparison, 'gains' | 'loses' | 'decided' | 'complete' | 'next'> & {
  readonly gains_count: number
  readonly loses_count: number
  readonly resources_compared: number
  readonly resources_count: number | null
}

/** The count as text, with "at least" if the comparison is incomplete. */
export const atLeast = (count: number, complete: boolean): string =>
  complete ? String(count) : `at least ${count.toLocaleString('en-US')}`

/** How much an incomplete comparison has read, as text: `100 of 2,411 looked at`. `all` null: not counted. */
export function lookedAt(compared: number, all: number | null): string {
  const some = all === null || compared < all ? '' : ', but not for every subject'
  return `${compared.toLocaleString('en-US')}${all === null ? '' : ` of ${all.toLocaleString('en-US')}`} looked at${some}`
}
