/** Errors of the driver and the server, which tell an outage from a faulty statement. */
import { PdpError } from '../../../../shared/domain/errors.ts'

/** An answer of the server, also to a client of another copy of the driver. */
export const isDatabaseError = (error: unknown): error is Error & { readonly code: string } =>
  error instanceof Error && 'severity' in error && 'code' in error && typeof error.code === 'string'

/** Whether the connection gave no answer, rather than one that says why not. */
export const isLost = (error: unknown): boolean =>
  error instanceof PdpError && error.code === 'store_unavailable' && !isDatabaseError(error.cause)

/**
 * Whether the connection is of no more use: it is lost, or leads to a server that takes no writes (25006) or has other prepared
 * statements than this connection made (26000, 42P05), since a pooler gave it another session.
 */
export const isWorthless = (error: unknown): boolean => isLost(error) || /^(25006|26000|42P05)$/.test(codeOf(error))

/** A serialization failure or a deadlock: nothing of the transaction is left, and done again it may succeed. */
export const isUndone = (error: unknown): boolean => /^40(001|P01)$/.test(codeOf(error))

const codeOf = (error: unknown): string =>
  error instanceof PdpError && isDatabaseError(error.cause) ? error.cause.code : ''

/** Errors of the connection and of a server that is going away. What the statement itself did wrong passes unchanged. */
export function asPdpError(error: unknown): unknown {
  if (error instanceof PdpError) return error
  if (isDatabaseError(error)) {
    const { code } = error
    // 08 connection, 53 resources, 57P server going away, 25006 read-only (a standby), 26000 and 42P05 another session,
    // 40 what was undone for others each time
    if (/^(08|53|57P|40|25006|26000|42P05)/.test(code))
      return new PdpError('store_unavailable', 'the database is not available', { cause: error })
    // 55P03 a lock, 57014 a statement, 25P03 and 25P04 a transaction: what took longer than the session allows
    if (/^(55P03|57014|25P0[34])$/.test(code))
      return new PdpError('store_unavailable', 'the database took too long', { cause: error })
    // 22021, 22P05: U+0000, which a string of ours may hold and a text of PostgreSQL may not
    if (/^(22021|22P05)$/.test(code))
      return new PdpError('request_invalid', 'a text holds the character U+0000', { cause: error })
    return error
  }
  return new PdpError('store_unavailable', 'the database cannot be reached', { cause: error })
}
