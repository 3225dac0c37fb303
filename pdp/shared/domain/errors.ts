/** All error codes of the PDP. The transports map each to a status in serve/http/status.ts. */
export const PDP_ERROR_CODES = [
  'request_invalid', // malformed input; the message names the place
  'organization_unknown',
  'not_found',
  'conflict', // the write contradicts what is stored (a second owner, a reused id, a cycle)
  'precondition_failed',
  'evaluation_limit', // a bound of evaluation was reached: no answer, never an allow
  'condition_failed', // the answer depends on a condition that cannot be evaluated with the context that is there
  'store_unavailable', // the store did not answer
  'overloaded', // too many requests wait already
] as const
/**
 * The closed set of codes of a PdpError.
 *
 * @example
 * ```ts
 * const isRetryable = (code: PdpErrorCode): boolean => code === 'store_unavailable' || code === 'overloaded'
 * ```
 */
export type PdpErrorCode = (typeof PDP_ERROR_CODES)[number]

/** A fault in an input: its position (a JSON pointer or a line), and what is wrong. */
export type ValidationIssue = { readonly place: string; readonly message: string }

/**
 * A decision or a write failed. A denial is never an error. `issues` names each fault of an input with its place; `cause`
 * is for your log, not for a client.
 *
 * @example
 * ```ts
 * try {
 *   await pdp.write('acme', { write: ['invoice 42'] })
 * } catch (err) {
 *   if (err instanceof PdpError && err.code === 'request_invalid') console.log(err.issues)
 * }
 * ```
 */
export class PdpError extends Error {
  override readonly name = 'PdpError'
  readonly code: PdpErrorCode
  readonly issues: readonly ValidationIssue[]
  /** The parameters that the context lacks, if they are the reason of `condition_failed`. */
  readonly missingContext: readonly string[]
  constructor(
    code: PdpErrorCode,
    message: string,
    options: { cause?: unknown } & Partial<Pick<PdpError, 'issues' | 'missingContext'>> = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.issues = options.issues ?? []
    this.missingContext = options.missingContext ?? []
  }
}

/** A `request_invalid` with these issues, which are in its message, too. */
export const invalidRequest = (issues: readonly ValidationIssue[]): PdpError =>
  new PdpError('request_invalid', issues.map((m) => `${m.place} ${m.message}`).join('; '), { issues })
