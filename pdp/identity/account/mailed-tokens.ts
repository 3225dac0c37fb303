/** Tokens in mails: stored as digests, good for one use, and gone after a while. */
import { hash, randomBytes } from 'node:crypto'
import type { Tier } from '../../domain/membership.ts'
import type { Sql } from '../../store/directory.ts'

type Queries = Pick<Sql, 'query'>
export const MAILED_KINDS = ['reset', 'verification', 'invitation'] as const
export type MailedKind = (typeof MAILED_KINDS)[number]

/** `browser`: null when any browser may use it. */
export type MailedToken = {
  readonly user: string | null
  readonly email: string
  readonly browser: string | null
  readonly invitation: Invitation | null
}
export type Invitation = {
  readonly id: string
  readonly organization: string
  readonly role: Tier
  readonly by: string
}
export type MailedTokens = {
  /** The token, of which only the digest is stored. */
  create(sql: Queries, kind: MailedKind, token: MailedToken): Promise<string>
  /** Reads without using. Null: no token of this kind, or no longer. */
  find(sql: Queries, kind: MailedKind, token: string): Promise<MailedToken | null>
  /** Uses it up. Of several that try at the same time, one gets it. */
  take(sql: Queries, kind: MailedKind, token: string): Promise<MailedToken | null>
}

/** Seconds for which each is good. */
export const KEPT_SECONDS: { readonly [kind in MailedKind]: number } = {
  reset: 1_800,
  verification: 1_800,
  invitation: 7 * 86_400,
}

type Row = {
  readonly user: string | null
  readonly email: string
  readonly browser: string | null
  readonly id: string | null
  readonly organization: string | null
  readonly role: Tier | null
  readonly by: string | null
}
const COLUMNS = `user_id as "user", email, browser, invitation_id as id, organization_id as organization, role, invited_by as by`
const LIVE = 'digest = $1 and kind = $2 and expires_at > to_timestamp($3::float8)'

/** `clock`: milliseconds since the epoch. */
export function createMailedTokens({ clock }: { readonly clock: () => number }): MailedTokens {
  const now = (): number => clock() / 1_000
  return {
    async create(sql, kind, { user, email, browser, invitation }) {
      const token = randomBytes(32).toString('base64url')
      await sql.query(
        `insert into mailed_token
           (digest, kind, user_id, email, browser, invitation_id, organization_id, role, invited_by, created_at, expires_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, to_timestamp($10::float8), to_timestamp($10::float8 + $11::float8))`,
        [
          ...[digestOf(token), kind, user, email, browser],
          ...[invitation?.id ?? null, invitation?.organization ?? null, invitation?.role ?? null],
          ...[invitation?.by ?? null, now(), KEPT_SECONDS[kind]],
        ],
      )
      return token
    },
    async find(sql, kind, token) {
      const [row] = await sql.query<Row>(`select ${COLUMNS} from mailed_token where ${LIVE}`, [
        ...[digestOf(token), kind, now()],
      ])
      return row === undefined ? null : fromRow(row)
    },
    async take(sql, kind, token) {
      const [row] = await sql.query<Row>(`delete from mailed_token where ${LIVE} returning ${COLUMNS}`, [
        ...[digestOf(token), kind, now()],
      ])
      return row === undefined ? null : fromRow(row)
    },
  }
}

/** 256 random bits need no salt. */
export const digestOf = (secret: string): string => hash('sha256', secret, 'base64url')

function fromRow({ user, email, browser, id, organization, role, by }: Row): MailedToken {
  const isInvitation = id !== null && organization !== null && role !== null
  return { user, email, browser, invitation: isInvitation ? { id, organization, role, by: by ?? '' } : null }
}
