/** Links between other issuers' people and accounts here, found by issuer and subject, never by mail address. */

import { appendArrivals } from '../../../engine/store/arrivals.ts'
import type { Queries, Sql } from '../../../engine/store/directory.ts'
import { lockPerson } from '../../../engine/store/journal-lock.ts'
import type { WriteContext } from '../../../shared/domain/change.ts'
import { DIRECTORY } from '../../../shared/domain/journal.ts'
import { type CredentialChange, credentialChanged } from '../../../shared/domain/outbox/events.ts'
import type { AppendEvents } from '../../issuer/append.ts'
import { isStillSignedIn, type SignedInBy } from '../../issuer/sign-in-validity.ts'
import type { Revocations } from '../../issuer/tokens/revocation.ts'
import { whenDone } from '../passwords/new-password.ts'
import type { UpstreamPerson } from './client.ts'

type Key = Pick<UpstreamPerson, 'issuer' | 'subject'>
export type Link = Key & {
  readonly email: string | null
  /** The linking in seconds since the epoch. */
  readonly linkedAt: number
}
export type Links = {
  /** The linked account; null: there is no link. */
  userOf(key: Key): Promise<string | null>
  of(user: string): Promise<readonly Link[]>
  /** Adds a link in the transaction that makes the account. False when another account has the link. */
  insert(tx: Queries, person: UpstreamPerson, user: string): Promise<boolean>
  /** Adds a link; false: an account has it already, this account has too many, or its person was signed out meanwhile. */
  add(
    person: UpstreamPerson,
    to: { readonly user: string; readonly by: SignedInBy },
    context: WriteContext,
  ): Promise<boolean>
  /** Removes a link and ends all sign-ins of the person. `missing` also when the person was signed out meanwhile. */
  remove(
    key: Key,
    of: { readonly user: string; readonly by: SignedInBy },
    context: WriteContext,
  ): Promise<'removed' | 'missing' | 'last'>
}

const LINKS_MAX = 20
const INSERT = `
  insert into foreign_identity (issuer, subject, user_id, email) select $1, $2, $3, $4
  where (select count(*) from foreign_identity where user_id = $3) < ${LINKS_MAX}
  on conflict do nothing returning 1`

export function createLinks(deps: {
  readonly sql: Sql
  readonly appendEvents: AppendEvents
  readonly revocations: Pick<Revocations, 'endUser'>
}): Links {
  const { sql, appendEvents, revocations } = deps

  async function insert(tx: Queries, { issuer, subject, email }: UpstreamPerson, user: string): Promise<boolean> {
    return (await tx.query(INSERT, [issuer, subject, user, email])).length > 0
  }

  return {
    insert,
    async userOf({ issuer, subject }) {
      const [row] = await sql.query<{ user: string }>(
        'select user_id as "user" from foreign_identity where issuer = $1 and subject = $2',
        [issuer, subject],
      )
      return row?.user ?? null
    },
    of: (user) =>
      sql.query<Link>(
        `select issuer, subject, email, extract(epoch from linked_at)::float8 as "linkedAt" from foreign_identity
         where user_id = $1 order by linked_at, issuer, subject`,
        [user],
      ),
    async add(person, { user, by }, context) {
      const done = await whenDone(sql, async (tx) => {
        await lockPerson(tx, user)
        await appendArrivals(tx, DIRECTORY, [{ kind: 'foreign_identity', id: user, op: 'write' }], context)
        if (!(await isStillSignedIn(tx, user, by)) || !(await insert(tx, person, user))) return null
        await appendEvents(tx, [eventOf(user, 'create', context)])
        return user
      })
      return done !== null
    },
    async remove({ issuer, subject }, { user, by }, context) {
      return sql.transaction(async (tx) => {
        await lockPerson(tx, user)
        if (!(await isStillSignedIn(tx, user, by))) return 'missing'
        const rows = await tx.query<Key & { isMore: boolean }>(
          `select issuer, subject,
             password_hash is not null or exists (select 1 from passkey p where p.user_id = $1) as "isMore"
           from foreign_identity join user_account using (user_id) where user_id = $1`,
          [user],
        )
        const found = rows.find((row) => row.issuer === issuer && row.subject === subject)
        if (found === undefined) return 'missing'
        if (!found.isMore && rows.length === 1) return 'last'
        await appendArrivals(tx, DIRECTORY, [{ kind: 'foreign_identity', id: user, op: 'delete' }], context)
        await tx.query('delete from foreign_identity where issuer = $1 and subject = $2', [issuer, subject])
        await revocations.endUser(tx, user, context)
        await appendEvents(tx, [eventOf(user, 'delete', context)])
        return 'removed'
      })
    },
  }
}

const eventOf = (user: string, changed: CredentialChange, { actor }: WriteContext) => ({
  ...credentialChanged({ user, credential: 'federated', changed, actor }),
  tenantsOf: user,
})
