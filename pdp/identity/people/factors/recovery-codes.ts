/** Recovery codes, which a person writes down. Each replaces the second factor once. */
import { hash, randomBytes } from 'node:crypto'
import { appendArrivals } from '../../../engine/store/arrivals.ts'
import type { Queries, Sql } from '../../../engine/store/directory.ts'
import { lockPerson } from '../../../engine/store/journal-lock.ts'
import type { WriteContext } from '../../../shared/domain/change.ts'
import { DIRECTORY } from '../../../shared/domain/journal.ts'
import { base32 } from './totp.ts'

/** Deletes the codes of users without a second factor. */
export const DELETE_UNNEEDED = `
  delete from recovery_code r where user_id = $1 and not exists (select 1 from passkey p where p.user_id = r.user_id)
    and not exists (select 1 from authenticator a where a.user_id = r.user_id)`

export const RECOVERY_CODES_COUNT = 10
/** 80 random bits cannot be guessed from a digest, so no slow hash is needed. */
const BYTES = 10
const FORM = /^[A-Z2-7]{16}$/
/** Characters that the alphabet does not have, and the ones that they are read as. */
const LOOKALIKES: { readonly [character: string]: string } = { '0': 'O', '1': 'I', '8': 'B' }

export type RecoveryCodes = {
  left(user: string): Promise<number>
  /** Makes new codes; all earlier ones become invalid. Call it after the lock of the person. */
  renew(sql: Queries, user: string): Promise<readonly string[]>
  /** Uses a code and returns how many are left; null: the person has no such code. Only one of several requests gets it. */
  use(user: string, code: string, context: WriteContext): Promise<number | null>
}

export function createRecoveryCodes({ sql }: { readonly sql: Sql }): RecoveryCodes {
  async function left(at: Queries, user: string): Promise<number> {
    const [row] = await at.query<{ count: number }>(
      'select count(*)::int as count from recovery_code where user_id = $1',
      [user],
    )
    return row?.count ?? 0
  }
  return {
    left: (user) => left(sql, user),
    async renew(tx, user) {
      const codes = Array.from({ length: RECOVERY_CODES_COUNT }, () => base32(randomBytes(BYTES)))
      await tx.query('delete from recovery_code where user_id = $1', [user])
      await tx.query('insert into recovery_code (user_id, digest) select $1, unnest($2::text[])', [
        user,
        codes.map((code) => digestOf(user, code)),
      ])
      return codes.map(grouped)
    },
    async use(user, code, context) {
      const key = [user, digestOf(user, normalized(code))]
      // Checked before the transaction, so that guesses do not delay writers.
      if ((await sql.query('select 1 from recovery_code where user_id = $1 and digest = $2', key)).length === 0)
        return null
      return sql.transaction(async (tx) => {
        await lockPerson(tx, user)
        const used = await tx.query('delete from recovery_code where user_id = $1 and digest = $2 returning 1', key)
        if (used.length === 0) return null
        await appendArrivals(tx, DIRECTORY, [{ kind: 'recovery_code', id: user, op: 'delete' }], context)
        return left(tx, user)
      })
    },
  }
}

/** True for the form of a code, with or without its groups, in upper or lower case. */
export const isRecoveryCode = (text: string): boolean => FORM.test(normalized(text))

const normalized = (text: string): string =>
  text
    .replace(/[\s-]/g, '')
    .toUpperCase()
    .replace(/[018]/g, (character) => LOOKALIKES[character] ?? '')
const grouped = (code: string): string => (code.match(/.{4}/g) ?? []).join('-')
const digestOf = (user: string, code: string): string => hash('sha256', `recovery code of ${user} ${code}`, 'base64url')
