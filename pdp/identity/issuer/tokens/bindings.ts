/** The bindings of each grant: organization, person, client, browser session, and the grant that it was exchanged from. */

import type { Queries } from '../../../engine/store/directory.ts'
import type { Pdp } from '../../../shared/domain/decision.ts'

/** `sessionUid`: the grant ends with this browser session, unless `offline`. `parentGrantId`: the grant of the exchanged token. */
export type Binding = {
  readonly grantId: string
  readonly organization: string | null
  readonly user: string
  readonly client: string
  readonly sessionUid: string | null
  readonly parentGrantId: string | null
  readonly offline: boolean
  /** The first token of the grant was bound to a DPoP key. */
  readonly senderConstrained: boolean
  /** The person is an active member of the organization now; also true without an organization. */
  readonly isMember: boolean
}
type NewBinding = Omit<Binding, 'senderConstrained' | 'isMember'>

export type Bindings = {
  bind(binding: NewBinding): Promise<void>
  /** Does what `bind` does if the person is an active member of the organization; else returns false. */
  bindMember(binding: NewBinding): Promise<boolean>
  find(grantId: string): Promise<Binding | null>
  /** Requires a DPoP proof for every later refresh. */
  constrain(grantId: string): Promise<void>
  /** Deletes bindings that ended more than an hour ago, in batches. */
  collect(): Promise<void>
}

/** A batch takes some tens of milliseconds. One call deletes up to ten million rows. */
const PIECE_ROWS = 5_000
const PIECES_MAX = 2_000
const MEMBER = `from membership where organization_id = grant_binding.organization_id and user_id = grant_binding.user_id and status = 'active'`
const COLUMNS = `grant_id as "grantId", organization_id as organization, user_id as "user", client_id as client,
  session_uid as "sessionUid", parent_grant_id as "parentGrantId", offline, sender_constrained as "senderConstrained",
  organization_id is null or exists (select 1 ${MEMBER}) as "isMember"`
const BIND = `
  insert into grant_binding (grant_id, organization_id, user_id, client_id, session_uid, parent_grant_id, offline)
  select $1, $2::text, $3, $4, $5, $6, $7::boolean`
// A transaction that ends the membership waits for this lock and then finds the binding; if it came first, no active member is found.
const BIND_MEMBER = `
  with member as (
    select 1 from membership where organization_id = $2 and user_id = $3 and status = 'active' for share)
  ${BIND} where $2::text is null or exists (select 1 from member) returning 1`
const valuesOf = (b: NewBinding) => [
  ...[b.grantId, b.organization, b.user, b.client, b.sessionUid, b.parentGrantId, b.offline],
]
// Rows that another node is deleting are skipped.
const deletion = (table: string, isOver: string): string => `
  delete from ${table} where ctid = any(array(
    select ctid from ${table} t where ${isOver} limit ${PIECE_ROWS} for update skip locked)) returning 1`
const COLLECTIONS = [
  deletion('oidc_record', "expires_at < now() - interval '1 hour'"),
  deletion(
    'grant_binding',
    `created_at < now() - interval '1 hour'
     and not exists (select 1 from oidc_record where kind = 'Grant' and id = t.grant_id)`,
  ),
  deletion('attempt', "ends_at < now() - interval '1 hour'"),
  deletion('passkey_challenge', "expires_at < now() - interval '1 hour'"),
  deletion('mailed_token', "expires_at < now() - interval '1 hour'"),
  // Rows of PDPs that were killed: all others delete their own.
  deletion('pdp_process', "seen_at < now() - interval '1 hour'"),
  `delete from outbox where seq in (
     select seq from outbox where created_at < now() - interval '30 days' order by seq limit ${PIECE_ROWS}
     for update skip locked) returning 1`,
]

export function createBindings({ sql }: { readonly sql: Queries }): Bindings {
  return {
    async bind(b) {
      await sql.query(BIND, valuesOf(b))
    },
    bindMember: async (b) => (await sql.query(BIND_MEMBER, valuesOf(b))).length > 0,
    async find(grantId) {
      const [row] = await sql.query<Binding>(`select ${COLUMNS} from grant_binding where grant_id = $1`, [grantId])
      return row ?? null
    },
    async constrain(grantId) {
      await sql.query('update grant_binding set sender_constrained = true where grant_id = $1', [grantId])
    },
    async collect() {
      for (const statement of COLLECTIONS) {
        for (let pieces = 0; pieces < PIECES_MAX; pieces++) {
          const gone = await sql.query(statement)
          if (gone.length < PIECE_ROWS) break
        }
      }
    },
  }
}

/** False for a token of another tenant: a tenant's client may neither use it nor learn about it. */
export async function mayKnow(
  pdp: Pick<Pdp, 'ancestors'>,
  client: { readonly clientId: string; readonly portcullis_organization: string | null },
  token: { readonly clientId: string; readonly organization: string | null },
): Promise<boolean> {
  const own = client.portcullis_organization
  return own === null || token.clientId === client.clientId || mayActIn(pdp, own, token.organization)
}

/** `own`: the client's organization; null for a client of the environment. False for a deleted organization. */
export async function mayActIn(
  pdp: Pick<Pdp, 'ancestors'>,
  own: string | null,
  organization: string | null,
): Promise<boolean> {
  if (organization === null) return own === null
  const ancestors = await pdp.ancestors(organization)
  return ancestors !== null && (own === null || ancestors.includes(own))
}
