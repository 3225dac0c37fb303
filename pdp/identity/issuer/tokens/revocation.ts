/**
 * Revokes tokens for all causes: in one transaction both in the token log and in the tables, so that no node can miss it. No transaction
 * waits for another, but a caller is answered only after all earlier ends are in the log, even if nothing was left to end.
 */

import { appendArrivals } from '../../../engine/store/arrivals.ts'
import type { Sql, Transaction } from '../../../engine/store/directory.ts'
import { queueLogouts } from '../../../engine/store/logouts.ts'
import type { Change, WriteContext } from '../../../shared/domain/change.ts'
import { TOKENS } from '../../../shared/domain/journal.ts'
import { initiatorOf } from '../../../shared/domain/outbox/events.ts'
import { SESSION_SECONDS } from '../../oauth/durations.ts'
import type { AppendEvents, IdentityEvent } from '../append.ts'

/** `clients`: clients that the person signed in to with this session, at most 20. */
export type BrowserSession = {
  readonly uid: string
  readonly signedInMs: number | null
  /** The time of the browser's last request. */
  readonly usedMs: number | null
  /** The browser at that time; null: unknown, or stored by a version that did not keep it. */
  readonly browser: string | null
  readonly address: string | null
  readonly clients: readonly string[]
}
export type Revocations = {
  /** Ends one token that has no grant (client_credentials). */
  endToken(jti: string, context: WriteContext): Promise<void>
  /** Ends the grant, its tokens, and all grants exchanged from it. May be repeated. */
  endGrant(grantId: string, context: WriteContext): Promise<void>
  /** Ends the grant of a code or refresh token that was used by two requests. A later call finds nothing to end. */
  endReused(used: { readonly kind: string; readonly key: string }, context: WriteContext): Promise<void>
  /** Ends the grants that depend on the browser session, and stores the event that the session ended. */
  endSession(session: { readonly uid: string; readonly user: string | null }, context: WriteContext): Promise<void>
  /** The open browser sessions of a person, the newest first, at most a hundred. */
  sessionsOf(user: string): Promise<readonly BrowserSession[]>
  /** Does what endSession does, and also deletes the session; false if it does not exist. */
  revokeSession(uid: string, context: WriteContext): Promise<boolean>
  /** Ends the person's grants for an organization in which the person is no active member any more. Can be repeated. */
  endMember(member: { readonly organization: string; readonly user: string }, context: WriteContext): Promise<void>
  /** Ends all sessions and grants of a person, including offline grants and unfinished sign-ins. Returns the ids of the sessions. */
  revokeUser(user: string, context: WriteContext): Promise<readonly string[]>
  /** Does what revokeUser does, inside the caller's transaction. It stores events, so it must be the last step. */
  endUser(sql: Transaction, user: string, context: WriteContext): Promise<readonly string[]>
}

const DELETE_GRANTS = `
  with recursive doomed as (
    select unnest($1::text[]) collate "C" as grant_id
    union select b.grant_id from doomed d, lateral (
      select grant_id from grant_binding where parent_grant_id = d.grant_id offset 0) b)
  delete from oidc_record where ctid = any(array(
    select r.ctid from doomed d, lateral (
      select ctid from oidc_record where grant_id = d.grant_id
      union all select ctid from oidc_record where kind = 'Grant' and id = d.grant_id offset 0) r))`

const SESSIONS = `
  select uid, (payload ->> 'loginTs')::float8 * 1000 as "signedInMs",
    ((payload ->> 'exp')::float8 - ${SESSION_SECONDS}) * 1000 as "usedMs",
    payload -> 'seen' ->> 'browser' as browser, payload -> 'seen' ->> 'address' as address,
    array(select jsonb_object_keys(payload -> 'authorizations') order by 1 limit 20) as clients from oidc_record
  where kind = 'Session' and payload ->> 'accountId' = $1 and consumed_at is null and uid is not null
    and expires_at > now()
  order by "signedInMs" desc nulls last limit 100`

type RevocationDeps = {
  readonly sql: Sql
  readonly appendEvents: AppendEvents
  readonly clock: () => number
}

export function createRevocations(deps: RevocationDeps): Revocations {
  function ending<T>(work: (sql: Transaction) => Promise<T>): Promise<T> {
    return deps.sql.transaction((sql) => {
      sql.arrived(TOKENS)
      return work(sql)
    })
  }

  return {
    endToken: (jti, context) =>
      ending(async (sql) => {
        await appendArrivals(sql, TOKENS, [{ kind: 'token', by: 'jti', id: jti }], context)
        await sql.query("delete from oidc_record where kind in ('AccessToken', 'ClientCredentials') and id = $1", [jti])
      }),
    endGrant: (grantId, context) =>
      ending((sql) => endGrants(sql, { ended: { sessions: [], grants: [grantId] }, context })),
    endReused: ({ kind, key }, context) =>
      ending(async (sql) => {
        const rows = await sql.query<{ id: string }>(
          'select grant_id as id from oidc_record where kind = $1 and id = $2 and grant_id is not null',
          [kind, key],
        )
        if (rows.length > 0)
          await endGrants(sql, { ended: { sessions: [], grants: rows.map(({ id }) => id) }, context })
      }),
    sessionsOf: (user) => deps.sql.query<BrowserSession>(SESSIONS, [user]),
    endSession: (session, context) =>
      ending(async (sql) => {
        await queueLogouts(sql, { by: 'session', id: session.uid })
        await endSession(deps, sql, { session, context })
      }),
    revokeSession: (uid, context) =>
      ending(async (sql) => {
        await queueLogouts(sql, { by: 'session', id: uid })
        const [row] = await sql.query<{ user: string | null }>(
          `with ended as (select id, payload from oidc_record where kind = 'Session' and uid = $1 for update)
           update oidc_record r set consumed_at = now(), uid = null, payload = '{}' from ended
           where r.kind = 'Session' and r.id = ended.id returning ended.payload ->> 'accountId' as "user"`,
          [uid],
        )
        if (row === undefined) return false
        await endSession(deps, sql, { session: { uid, user: row.user }, context })
        return true
      }),
    // The membership is written and its row locked, so no grant is bound to the organization after this read.
    endMember: ({ organization, user }, context) =>
      ending(async (sql) => {
        const bound = await sql.query<BoundGrant>(`${LIVE_GRANTS} and organization_id = $2`, [user, organization])
        if (bound.length > 0)
          await endGrants(sql, { ended: { sessions: [], grants: bound.map(({ id }) => id) }, context })
      }),
    revokeUser: (user, context) => deps.sql.transaction((sql) => endUser(deps, sql, { user, context })),
    endUser: (sql, user, context) => endUser(deps, sql, { user, context }),
  }
}

async function endGrants(
  sql: Transaction,
  { ended, context }: { readonly ended: Ended; readonly context: WriteContext },
): Promise<void> {
  const changes: Change[] = ended.sessions.map((id) => ({ kind: 'token', by: 'session', id }))
  for (const id of ended.grants) changes.push({ kind: 'token', by: 'grant', id })
  if (changes.length > 0) await appendArrivals(sql, TOKENS, changes, context)
  await sql.query(DELETE_GRANTS, [ended.grants])
}

async function endSession(
  deps: RevocationDeps,
  sql: Transaction,
  { session, context }: { session: { uid: string; user: string | null }; context: WriteContext },
) {
  const rows = await sql.query<BoundGrant>(`${BOUND_GRANTS} where session_uid = $1 and not offline`, [session.uid])
  await endGrants(sql, { ended: { sessions: [session.uid], grants: rows.map(({ id }) => id) }, context })
  await deps.appendEvents(sql, [
    sessionRevoked({ ...session, session: session.uid, tenants: tenantsOf(rows) }, context),
  ])
}

async function endUser(
  deps: RevocationDeps,
  sql: Transaction,
  { user, context }: { readonly user: string; readonly context: WriteContext },
): Promise<readonly string[]> {
  sql.arrived(TOKENS)
  // The same clock dates sign-ins. A user who is blocked stays blocked.
  const now = new Date(deps.clock()).toISOString()
  await sql.query('update user_account set signed_out_at = greatest(signed_out_at, $2) where user_id = $1', [user, now])
  await queueLogouts(sql, { by: 'user', id: user })
  const sessions = await sql.query<{ uid: string }>(
    "delete from oidc_record where kind = 'Session' and payload ->> 'accountId' = $1 returning uid",
    [user],
  )
  // An unfinished sign-in could become a new session, and a mailed link could set a new password.
  await sql.query(
    "delete from oidc_record where kind = 'Interaction' and payload -> 'result' -> 'login' ->> 'accountId' = $1",
    [user],
  )
  await sql.query("delete from mailed_token where user_id = $1 and kind = 'reset'", [user])
  const uids = sessions.map(({ uid }) => uid).sort()
  const grants = await sql.query<BoundGrant>(LIVE_GRANTS, [user])
  await endGrants(sql, { ended: { sessions: uids, grants: grants.map(({ id }) => id) }, context })
  await deps.appendEvents(sql, [
    ...uids.map((uid) => {
      const tenants = tenantsOf(grants.filter(({ session }) => session === uid))
      return sessionRevoked({ session: uid, user, tenants }, context)
    }),
    {
      ...sessionRevoked({ session: null, user, tenants: tenantsOf(grants) }, context),
      type: 'user.signed_out',
      tenantsOf: user,
    },
  ])
  return uids
}

type Ended = { readonly sessions: readonly string[]; readonly grants: readonly string[] }

type BoundGrant = { readonly id: string; readonly tenant: string | null; readonly session: string | null }
const BOUND_GRANTS = 'select grant_id as id, organization_id as tenant, session_uid as session from grant_binding'
/** The grants of a person that are not ended. */
const LIVE_GRANTS = `
  ${BOUND_GRANTS} b where user_id = $1 and exists (select 1 from oidc_record where kind = 'Grant' and id = b.grant_id)`

/** The organizations of the grants' clients, which may learn that the session ended. */
const tenantsOf = (rows: readonly { readonly tenant: string | null }[]): readonly string[] =>
  [...new Set(rows.flatMap(({ tenant }) => (tenant === null ? [] : [tenant])))].sort()

const sessionRevoked = (
  ended: { readonly session: string | null; readonly user: string | null; readonly tenants: readonly string[] },
  { actor }: WriteContext,
): IdentityEvent => ({
  type: 'session.revoked',
  organization: null,
  data: {
    session: ended.session,
    user: ended.user,
    tenants: ended.tenants,
    initiating_entity: initiatorOf(actor, ended.user),
  },
})
