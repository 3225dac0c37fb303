/** Clients that act for a person: the delegations that people and administrators wrote, in the tuples of an organization. */

import type { Store } from '../../../engine/store/contract.ts'
import type { Sql } from '../../../engine/store/directory.ts'
import type { WriteContext } from '../../../shared/domain/change.ts'
import { ACTS_FOR, delegationTo, onlyScopes, scopesOf } from '../../../shared/domain/subjects.ts'
import type { Tuple, TupleCondition } from '../../../shared/domain/tuple.ts'
import type { Revocations } from './revocation.ts'

export type Delegation = {
  readonly organization: string
  readonly client: string
  /** Scopes that the client may use; null: all those of the person's tokens. */
  readonly scopes: readonly string[] | null
  readonly expiresAtMs: number | null
}
/** A delegation for its person's eyes. `usedAtMs`: the last exchange whose token may still be valid; null: no such exchange. */
export type OwnDelegation = Delegation & {
  readonly name: string
  readonly organizationName: string
  readonly sinceMs: number | null
  readonly usedAtMs: number | null
}
type Pair = { readonly organization: string; readonly client: string; readonly user: string }
export type Delegations = {
  /** The valid delegation; null: there is none. Throws PdpError `store_unavailable`. */
  find(pair: Pair): Promise<Delegation | null>
  /** The delegations of a person that are in force, at most a hundred. */
  of(user: string): Promise<readonly OwnDelegation[]>
  grant(
    pair: Pair,
    given: { readonly scopes: readonly string[]; readonly expiresAtMs: number | null; readonly context: WriteContext },
  ): Promise<void>
  /** Ends the delegation; false: it did not exist. */
  end(pair: Pair, context: WriteContext): Promise<boolean>
}

const LISTED_MAX = 100
// The bounds on `subject` let PostgreSQL use the index of people.
const OWN = `
  select r.organization_id as organization, o.name as "organizationName", substr(r.object, length('service:') + 1) as client,
    coalesce(c.metadata ->> 'client_name', substr(r.object, length('service:') + 1)) as name,
    r.condition, r.context, (extract(epoch from r.expires_at) * 1000)::float8 as "expiresAtMs",
    (select (extract(epoch from max(b.created_at)) * 1000)::float8 from grant_binding b where b.user_id = $2
      and b.client_id = substr(r.object, length('service:') + 1) and b.organization_id = r.organization_id and b.parent_grant_id is not null) as "usedAtMs"
  from stored_relationship r join organization o on o.organization_id = r.organization_id
    left join client c on c.client_id = substr(r.object, length('service:') + 1)
  where r.subject = $1 and r.subject >= 'user:' and r.subject < 'user;' and r.subject <> 'user:*'
    and r.relation = '${ACTS_FOR}' and r.object like 'service:%' and (r.expires_at is null or r.expires_at > now())
  order by 4, 1 limit ${LISTED_MAX}`
const EXCHANGED = `select grant_id as id from grant_binding
  where user_id = $1 and client_id = $2 and organization_id = $3 and parent_grant_id is not null`

export function createDelegations({
  sql,
  store,
  clock,
  revocations,
}: {
  readonly sql: Sql
  readonly store: Pick<Store, 'tuples' | 'write'>
  readonly clock: () => number
  readonly revocations: Pick<Revocations, 'endGrant'>
}): Delegations {
  return {
    async find({ organization, client, user }) {
      const named = { object: delegationTo(client), relation: ACTS_FOR, subject: `user:${user}` }
      const [tuple] = await store.tuples(organization, named, { after: null, countMax: 1 })
      if (tuple === undefined || (tuple.expiresAtMs !== null && tuple.expiresAtMs <= clock())) return null
      const { expiresAtMs, condition } = tuple
      return { organization, client, expiresAtMs, scopes: condition === undefined ? null : (scopesOf(condition) ?? []) }
    },
    async of(user) {
      const rows = await sql.query<
        Omit<OwnDelegation, 'scopes' | 'sinceMs'> & {
          readonly condition: string | null
          readonly context: TupleCondition['context'] | null
        }
      >(OWN, [`user:${user}`, user])
      return rows.map(({ condition, context, ...row }) => {
        if (condition === null || context === null) return { ...row, scopes: null, sinceMs: null }
        const { since } = context
        const scopes = scopesOf({ name: condition, context }) ?? []
        return { ...row, scopes, sinceMs: typeof since === 'number' ? since * 1_000 : null }
      })
    },
    async grant({ organization, client, user }, { scopes, expiresAtMs, context }) {
      const condition = onlyScopes(scopes, Math.floor(clock() / 1_000))
      const tuple: Tuple = {
        object: delegationTo(client),
        relation: ACTS_FOR,
        subject: `user:${user}`,
        expiresAtMs,
        condition,
      }
      await store.write(organization, [{ kind: 'tuple', op: 'write', tuple }], { context })
    },
    async end({ organization, client, user }, context) {
      const tuple: Tuple = {
        object: delegationTo(client),
        relation: ACTS_FOR,
        subject: `user:${user}`,
        expiresAtMs: null,
      }
      // Ends exchanged tokens, even where an app would accept them as the person's own.
      const endExchanged = async (): Promise<void> => {
        for (const { id } of await sql.query<{ id: string }>(EXCHANGED, [user, client, organization]))
          await revocations.endGrant(id, context)
      }
      // Tokens end before the write, too: if the write fails, the delegation stays listed and can be ended again.
      await endExchanged()
      const { changed } = await store.write(organization, [{ kind: 'tuple', op: 'delete', tuple }], { context })
      await endExchanged()
      return changed
    },
  }
}
