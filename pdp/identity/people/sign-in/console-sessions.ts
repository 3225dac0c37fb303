/** The console's part of the identity service: its OAuth client, and the sessions that a sign-in with it begins. */
import { hash, randomBytes } from 'node:crypto'
import type { Directory, Sql } from '../../../engine/store/directory.ts'
import { PdpError } from '../../../shared/domain/errors.ts'
import type { JsonObject } from '../../../shared/domain/json.ts'
import type { Log } from '../../../shared/process/log.ts'
import type { ExternalIssuers } from '../../issuer/tokens/external-issuers.ts'
import type { Unreachable } from '../../issuer/tokens/reachability.ts'
import type { BrowserSession } from '../../issuer/tokens/revocation.ts'
import type { ReadRecord } from '../../issuer/tokens/token-record.ts'
import { urlOf } from '../../oauth/paths.ts'

export const CONSOLE_CLIENT = 'portcullis-console'
export const CONSOLE_CALLBACK = '/console/callback'
/** How long a session may be unused. It ends earlier if its sign-in ends. */
const IDLE_SECONDS = 3_600
const NAME = 'Portcullis console'
const CONTEXT = { actor: 'system', requestId: 'start' }

export type ConsoleSession = {
  readonly user: string
  /** The browser session at the identity service: the console's session ends with it. */
  readonly sessionUid: string
  readonly acr: string | null
  /** The sign-in in milliseconds since the epoch. */
  readonly signedInMs: number
}
export type ConsoleIdentity = {
  /** Registers the client, or renews its registration. False when another client or a user has its id. */
  ensureClient(): Promise<boolean>
  /** Begins a session and returns the value of its cookie; null unless a person signed in to the console by this token. */
  begin(accessToken: string): Promise<string | null>
  /** The session, read at each call; null once the person was signed out or deleted, on any node. */
  session(cookie: string): Promise<ConsoleSession | null>
  end(cookie: string): Promise<void>
  /** Browser sessions of a person at the identity service, the latest first. */
  sessionsOf(user: string): Promise<readonly BrowserSession[]>
  hasSecondFactor(user: string): Promise<boolean>
  /** Facts that need an operator's attention. */
  state(): Promise<{
    /** The making of the signing key, in milliseconds since the epoch. */
    readonly signingKeyMadeMs: number
    readonly unreachableIssuers: readonly Unreachable[]
    /** Trusted issuers with silent transmitters, with the latest error. */
    readonly silentIssuers: readonly { readonly issuer: string; readonly error: string | null }[]
  }>
}

const KIND = 'ConsoleSession'
const BEGIN = `insert into oidc_record (kind, id, payload, expires_at)
  values ('${KIND}', $1, $2::jsonb, now() + make_interval(secs => ${IDLE_SECONDS}))`
// Finds a session that is still valid: it ends with the browser's session at the identity service, by sign-out or any revocation.
const FIND = `
  update oidc_record r set expires_at = now() + make_interval(secs => ${IDLE_SECONDS})
  where kind = '${KIND}' and id = $1 and expires_at > now()
    and exists (select 1 from oidc_record s where s.kind = 'Session' and s.uid = r.payload ->> 'sessionUid'
      and s.consumed_at is null and s.expires_at > now() and s.payload ->> 'accountId' = r.payload ->> 'user')
    and exists (select 1 from user_account u where u.user_id = r.payload ->> 'user'
      and (u.signed_out_at is null or u.signed_out_at < to_timestamp((r.payload ->> 'authTime')::float8 + 1)))
  returning payload`

type Payload = {
  readonly user: string
  readonly sessionUid: string
  readonly acr: string | null
  readonly authTime: number
}
const keyOf = (cookie: string): string => hash('sha256', cookie, 'base64url')

export function createConsoleIdentity(deps: {
  readonly issuer: string
  readonly sql: Sql
  readonly directory: Directory
  readonly log: Log
  readonly record: ReadRecord
  readonly sessionsOf: ConsoleIdentity['sessionsOf']
  readonly secondFactor: { has(user: string): Promise<boolean> }
  readonly issuers: Pick<ExternalIssuers, 'streams' | 'unreachable'>
}): ConsoleIdentity {
  const { issuer, sql } = deps
  return {
    ensureClient: () => ensureClient(deps),
    async begin(accessToken) {
      const record = await deps.record(accessToken)
      if (record === null || record.clientId !== CONSOLE_CLIENT || !record.audiences.includes(issuer)) return null
      const { userId: user, sessionUid, acr, authTime } = record
      if (user === null || sessionUid === null || authTime === null) return null
      const cookie = randomBytes(32).toString('base64url')
      const payload: Payload = { user, sessionUid, acr, authTime }
      await sql.query(BEGIN, [keyOf(cookie), JSON.stringify(payload)])
      return cookie
    },
    async session(cookie) {
      const [row] = await sql.query<{ payload: Payload }>(FIND, [keyOf(cookie)])
      if (row === undefined) return null
      const { user, sessionUid, acr, authTime } = row.payload
      return { user, sessionUid, acr, signedInMs: authTime * 1_000 }
    },
    async end(cookie) {
      await sql.query(`delete from oidc_record where kind = '${KIND}' and id = $1`, [keyOf(cookie)])
    },
    sessionsOf: deps.sessionsOf,
    hasSecondFactor: (user) => deps.secondFactor.has(user),
    async state() {
      const [key] = await sql.query<{ madeMs: number }>(
        `select (extract(epoch from created_at) * 1000)::float8 as "madeMs" from signing_key where state = 'active'`,
      )
      const streams = await deps.issuers.streams()
      return {
        signingKeyMadeMs: key?.madeMs ?? 0,
        unreachableIssuers: deps.issuers.unreachable(),
        silentIssuers: streams.filter(({ silent }) => silent),
      }
    },
  }
}

/** Registers a public client with PKCE: only the browser that began a sign-in can redeem its code, so a secret would add no protection. */
async function ensureClient({
  issuer,
  directory,
  log,
}: {
  readonly issuer: string
  readonly directory: Directory
  readonly log: Log
}): Promise<boolean> {
  const metadata: JsonObject = {
    client_name: NAME,
    redirect_uris: [urlOf(issuer, CONSOLE_CALLBACK)],
    grant_types: ['authorization_code'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
    scope: 'openid',
  }
  const stored = await directory.client(CONSOLE_CLIENT)
  const isOurs = stored === null || (stored.secretHash === null && stored.metadata.client_name === NAME)
  if (!isOurs) log.error({ event: 'console_client_taken', client_id: CONSOLE_CLIENT })
  if (!isOurs) return false
  if (stored !== null && textOf(stored.metadata) === textOf(metadata)) return true
  try {
    await directory.putClient({ id: CONSOLE_CLIENT, app: null, organization: null, metadata }, CONTEXT)
    return true
  } catch (err) {
    if (!(err instanceof PdpError && err.code === 'conflict')) throw err
    log.error({ event: 'console_client_taken', client_id: CONSOLE_CLIENT, reason: err.message })
    return false
  }
}

/** A text to compare: stored objects may have their members in another order. */
const textOf = (metadata: JsonObject): string => JSON.stringify(Object.entries(metadata).sort())
