/** Stores a new password and ends the person's sessions, in one transaction. */

import { appendArrivals } from '../../../engine/store/arrivals.ts'
import type { Queries, Sql, Transaction } from '../../../engine/store/directory.ts'
import { lockPerson } from '../../../engine/store/journal-lock.ts'
import type { WriteContext } from '../../../shared/domain/change.ts'
import { DIRECTORY } from '../../../shared/domain/journal.ts'
import { credentialChanged } from '../../../shared/domain/outbox/events.ts'
import type { AppendEvents } from '../../issuer/append.ts'
import { isStillSignedIn, type SignedInBy } from '../../issuer/sign-in-validity.ts'
import type { Revocations } from '../../issuer/tokens/revocation.ts'
import type { MailedTokens } from '../mail/mailed-tokens.ts'

export type Passwords = {
  /**
   * Sets the password of a mailed token's user and verifies the address, unless `opensToOthers` forbids it. Returns the user's id; null:
   * the token is no longer valid.
   */
  reset(token: string, passwordHash: string): Promise<string | null>
  /** Changes the password; false: the stored one is no longer `formerHash`, or the person was signed out meanwhile. */
  change(
    user: string,
    change: { readonly formerHash: string; readonly passwordHash: string; readonly by: SignedInBy },
  ): Promise<boolean>
}

/**
 * True for an unverified address with another way to sign in. The address may belong to another person than the account: if a mail let that
 * person in, both would share the account, for whose maker a passkey or another service's sign-in would still work.
 */
const OTHERS = `not email_verified and (exists (select 1 from passkey p where p.user_id = user_account.user_id)
  or exists (select 1 from foreign_identity f where f.user_id = user_account.user_id))`
export const opensToOthers = async (sql: Queries, user: string): Promise<boolean> =>
  (await sql.query(`select 1 from user_account where user_id = $1 and ${OTHERS}`, [user])).length > 0

export function createPasswords(deps: {
  readonly sql: Sql
  readonly tokens: Pick<MailedTokens, 'find' | 'take'>
  readonly appendEvents: AppendEvents
  readonly revocations: Pick<Revocations, 'endUser'>
}): Passwords {
  const { sql, tokens, appendEvents, revocations } = deps

  /** Ends all sessions and tokens, also a thief's who knew the old password. */
  async function stored(tx: Transaction, user: string, context: WriteContext): Promise<void> {
    await revocations.endUser(tx, user, context)
    const event = credentialChanged({ user, credential: 'password', changed: 'update', actor: context.actor })
    await appendEvents(tx, [{ ...event, tenantsOf: user }])
  }

  return {
    reset: (token, passwordHash) =>
      whenDone(sql, async (tx) => {
        // The lock comes first, as in all writes about a person: other writers wait here, and no two wait for each other.
        const user = (await tokens.find(tx, 'reset', token))?.user ?? null
        if (user === null) return null
        await lockPerson(tx, user)
        const used = await tokens.take(tx, 'reset', token)
        if (used?.user !== user) return null
        const context = contextOf(user)
        await appendArrivals(tx, DIRECTORY, [{ kind: 'user', id: user, op: 'write' }], context)
        // Verifies only the address to which the mail went, not one set later.
        const changed = await tx.query(
          `update user_account set password_hash = $3, email_verified = true
           where user_id = $1 and lower(email) = lower($2) and password_hash is not null and not (${OTHERS}) returning 1`,
          [user, used.email, passwordHash],
        )
        if (changed.length === 0) return null
        await stored(tx, user, context)
        return user
      }),
    async change(user, { formerHash, passwordHash, by }) {
      const context = contextOf(user)
      const done = await whenDone(sql, async (tx) => {
        await lockPerson(tx, user)
        await appendArrivals(tx, DIRECTORY, [{ kind: 'user', id: user, op: 'write' }], context)
        if (!(await isStillSignedIn(tx, user, by))) return null
        const changed = await tx.query(
          'update user_account set password_hash = $3 where user_id = $1 and password_hash = $2 returning 1',
          [user, formerHash, passwordHash],
        )
        if (changed.length === 0) return null
        await stored(tx, user, context)
        return user
      })
      return done !== null
    },
  }
}

export const contextOf = (user: string): WriteContext => ({ actor: `user:${user}`, requestId: '' })

/** Runs `work` in a transaction. If `work` returns null, everything is undone, its log entry too. */
export async function whenDone<T>(sql: Sql, work: (tx: Transaction) => Promise<T | null>): Promise<T | null> {
  const nothing = new Error('nothing was done')
  try {
    return await sql.transaction(async (tx) => {
      const done = await work(tx)
      if (done === null) throw nothing
      return done
    })
  } catch (err) {
    if (err === nothing) return null
    throw err
  }
}
