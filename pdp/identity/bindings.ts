/** What each grant is bound to: an organization, a person, a client, a browser session, and the grant it came from. */
import type { Sql } from '../store/directory.ts'

/** `sessionUid`: the browser session that it ends with, unless `offline`. `parentGrantId`: the exchanged token's. */
export type Binding = {
  readonly grantId: string
  readonly organization: string | null
  readonly user: string
  readonly client: string
  readonly sessionUid: string | null
  readonly parentGrantId: string | null
  readonly offline: boolean
  /** Its first token was bound to a DPoP key. */
  readonly senderConstrained: boolean
}

export type Bindings = {
  bind(binding: Omit<Binding, 'senderConstrained'>): Promise<void>
  find(grantId: string): Promise<Binding | null>
  /** From now on, every refresh needs a DPoP proof. */
  constrain(grantId: string): Promise<void>
  /** Deletes what has been dead for an hour, a bounded number of rows at a time. */
  collect(): Promise<void>
}

const COLLECTED_ROWS_MAX = 10_000
const COLUMNS = `grant_id as "grantId", organization_id as organization, user_id as "user", client_id as client,
  session_uid as "sessionUid", parent_grant_id as "parentGrantId", offline, sender_constrained as "senderConstrained"`
const COLLECTIONS = [
  `delete from oidc_record where (kind, id) in (
     select kind, id from oidc_record where expires_at < now() - interval '1 hour' limit ${COLLECTED_ROWS_MAX})`,
  `delete from grant_binding where grant_id in (
     select grant_id from grant_binding b where created_at < now() - interval '1 hour'
     and not exists (select 1 from oidc_record where kind = 'Grant' and id = b.grant_id) limit ${COLLECTED_ROWS_MAX})`,
  `delete from outbox where seq in (
     select seq from outbox where created_at < now() - interval '30 days' order by seq limit ${COLLECTED_ROWS_MAX})`,
]

export function createBindings({ sql }: { readonly sql: Pick<Sql, 'query'> }): Bindings {
  return {
    async bind(b) {
      await sql.query(
        `insert into grant_binding (grant_id, organization_id, user_id, client_id, session_uid, parent_grant_id, offline)
         values ($1, $2, $3, $4, $5, $6, $7)`,
        [b.grantId, b.organization, b.user, b.client, b.sessionUid, b.parentGrantId, b.offline],
      )
    },
    async find(grantId) {
      const [row] = await sql.query<Binding>(`select ${COLUMNS} from grant_binding where grant_id = $1`, [grantId])
      return row ?? null
    },
    async constrain(grantId) {
      await sql.query('update grant_binding set sender_constrained = true where grant_id = $1', [grantId])
    },
    async collect() {
      for (const statement of COLLECTIONS) await sql.query(statement)
    },
  }
}
