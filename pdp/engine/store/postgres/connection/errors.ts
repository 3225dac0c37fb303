/** Classifies errors of the driver and the server: an outage, a failure that may pass, or a faulty statement. */
import { PdpError } from '../../../../shared/domain/errors.ts'

/** Is it an error that the server sent? Not by `instanceof`: the application may use another copy of the driver. */
export const isDatabaseError = (error: unknown): error is Error & { readonly code: string } =>
  error instanceof Error && 'severity' in error && 'code' in error && typeof error.code === 'string'

/** Whether the connection gave no answer, not even an error of the server. */
export const isLost = (error: unknown): boolean =>
  error instanceof PdpError && error.code === 'store_unavailable' && !isDatabaseError(error.cause)

/**
 * Whether the connection is of no more use: it is lost, leads to a server that takes no writes (25006), or has other prepared
 * statements than this process made (26000, 42P05), because a pooler gave it another session.
 */
export const isWorthless = (error: unknown): boolean => isLost(error) || /^(25006|26000|42P05)$/.test(codeOf(error))

/**
 * Whether PostgreSQL undid the transaction because of a serialization failure or a deadlock, or because another one took an id or an
 * address after this one had looked: if repeated, it may succeed, or finds what is taken.
 */
export const isUndone = (error: unknown): boolean =>
  /^40(001|P01)$/.test(codeOf(error)) || (isDatabaseError(error) && error.code === '23505' && isClaim(error))

const isClaim = (error: Error): boolean =>
  'constraint' in error && /^(principal_pkey|user_account_email)$/.test(String(error.constraint))

const codeOf = (error: unknown): string =>
  error instanceof PdpError && isDatabaseError(error.cause) ? error.cause.code : ''

/** Turns errors of the connection and of an unavailable server into PdpErrors. Errors of the statement itself stay as they are. */
export function asPdpError(error: unknown): unknown {
  if (error instanceof PdpError) return error
  if (isDatabaseError(error)) {
    const { code } = error
    // 08 connection, 53 resources, 57P server going away, 25006 read-only (a standby), 26000 and 42P05 another session,
    // 40 deadlock or serialization failure on every try
    if (/^(08|53|57P|40|25006|26000|42P05)/.test(code))
      return new PdpError('store_unavailable', 'the database is not available', { cause: error })
    // The time limits of the session: 55P03 lock, 57014 statement, 25P03 idle in a transaction, 25P04 transaction
    if (/^(55P03|57014|25P0[34])$/.test(code))
      return new PdpError('store_unavailable', 'the database took too long', { cause: error })
    // 22021 and 22P05: a text holds U+0000, which PostgreSQL cannot store
    if (/^(22021|22P05)$/.test(code))
      return new PdpError('request_invalid', 'a text holds the character U+0000', { cause: error })
    return error
  }
  return new PdpError('store_unavailable', 'the database cannot be reached', { cause: error })
}
