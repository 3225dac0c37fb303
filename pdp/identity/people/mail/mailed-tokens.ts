/** Tokens of mailed links: stored as digests, each for one use within a limited time. */
import { hash, randomBytes } from 'node:crypto'
import type { Queries } from '../../../engine/store/directory.ts'

export const MAILED_KINDS = ['reset', 'verification', 'invitation'] as const
export type MailedKind = (typeof MAILED_KINDS)[number]

/** `browser`: null when any browser may use it. */
export type MailedToken = {
  readonly user: string | null
  readonly email: string
  readonly browser: string | null
}
export type MailedTokens = {
  /** Makes a token; only its digest is stored. */
  create(sql: Queries, kind: Exclude<MailedKind, 'invitation'>, token: MailedToken): Promise<string>
  /** Reads a token without using it. Null: it is unknown or expired. */
  find(sql: Queries, kind: MailedKind, token: string): Promise<MailedToken | null>
  /** Binds the token to another browser. False when it has expired, or is not bound to `from`. */
  moveTo(sql: Queries, token: string, browsers: { readonly from: string; readonly to: string }): Promise<boolean>
  /** Uses the token up. Of several requests at the same time, one gets it. */
  take(sql: Queries, kind: MailedKind, token: string): Promise<MailedToken | null>
}

/** How many seconds each kind of token is valid. */
export const KEPT_SECONDS: { readonly [kind in MailedKind]: number } = {
  reset: 1_800,
  verification: 1_800,
  invitation: 7 * 86_400,
}

const COLUMNS = 'user_id as "user", email, browser'
const LIVE = 'digest = $1 and kind = $2 and expires_at > to_timestamp($3::float8)'

/** `clock`: milliseconds since the epoch. */
export function createMailedTokens({ clock }: { readonly clock: () => number }): MailedTokens {
  const now = (): number => clock() / 1_000
  return {
    async create(sql, kind, { user, email, browser }) {
      const token = newToken()
      await sql.query(
        `insert into mailed_token (digest, kind, user_id, email, browser, created_at, expires_at)
         values ($1, $2, $3, $4, $5, to_timestamp($6::float8), to_timestamp($6::float8 + $7::float8))`,
        [digestOf(token), kind, user, email, browser, now(), KEPT_SECONDS[kind]],
      )
      return token
    },
    async find(sql, kind, token) {
      const values = [digestOf(token), kind, now()]
      const [row] = await sql.query<MailedToken>(`select ${COLUMNS} from mailed_token where ${LIVE}`, values)
      return row ?? null
    },
    async moveTo(sql, token, { from, to }) {
      const values = [digestOf(token), 'reset', now(), from, to]
      const moved = await sql.query(
        `update mailed_token set browser = $5 where ${LIVE} and browser = $4 returning 1`,
        values,
      )
      return moved.length > 0
    },
    async take(sql, kind, token) {
      const values = [digestOf(token), kind, now()]
      const [row] = await sql.query<MailedToken>(`delete from mailed_token where ${LIVE} returning ${COLUMNS}`, values)
      return row ?? null
    },
  }
}

export const newToken = (): string => randomBytes(32).toString('base64url')
/** The digest of a secret. With 256 random bits it needs no salt. */
export const digestOf = (secret: string): string => hash('sha256', secret, 'base64url')
