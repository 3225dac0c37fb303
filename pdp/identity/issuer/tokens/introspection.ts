/** Tells whether a token is active. Parts that never change are read once (token-record.ts), all others in each call. */
import type { JWK } from 'jose'
import type { Directory, Queries } from '../../../engine/store/directory.ts'
import { joinedRead } from '../../../engine/store/joined-read.ts'
import { originKeys } from '../../../engine/store/token-origin.ts'
import type { Pdp } from '../../../shared/domain/decision.ts'
import { revocationKey } from '../../../shared/domain/revocation.ts'
import { createKeySource } from '../../../shared/token/keys.ts'
import { createTokenVerifier } from '../../../shared/token/verify.ts'
import type { Resources } from './resources.ts'
import { createReadRecord, type ReadRecord } from './token-record.ts'
import { INACTIVE, type TokenRecord, type TokenState } from './token-state.ts'

const KEYS_REFRESH_MS = 1_000
const KEYS_AGE_MAX_MS = 60_000

// A token is active only while its record, its grants and their bindings, its client and its person all exist,
// and the client's tokens have not ended since the request for it was authenticated.
const LIVE = `
  select q.name, c.client_id is not null
    and (select count(*) from oidc_record where kind = 'Grant' and id = any(g.ids)) = cardinality(g.ids)
    and (select count(*) from grant_binding where grant_id = any(g.ids)) = cardinality(g.ids)
    and exists (select 1 from oidc_record where kind = q.name::json ->> 1 and id = q.name::json ->> 0
      and coalesce((payload ->> 'clientEpoch')::int, 0) = c.token_epoch)
    and (q.name::json ->> 3 is null or exists (select 1 from user_account where user_id = q.name::json ->> 3)) as alive, c.app
  from unnest($1::text[]) q(name)
    cross join lateral (select array(select json_array_elements_text(q.name::json -> 4))) g(ids)
    left join client c on c.client_id = q.name::json ->> 2`
type Live = { readonly name: string; readonly alive: boolean; readonly app: string | null }

/** Reads the parts of tokens that may change. `names`: from `nameOf`. */
async function readLive(sql: Queries, names: readonly string[]): Promise<ReadonlyMap<string, Live>> {
  const rows = await sql.query<Live>(LIVE, [names])
  return new Map(rows.map((row) => [row.name, row]))
}

/** The token's name in the statement `LIVE`, as a JSON array. */
function nameOf({ jti, subject, clientId, userId, grants }: TokenRecord): string {
  const kind = subject.type === 'service' ? 'ClientCredentials' : 'AccessToken'
  return JSON.stringify([jti, kind, clientId, userId, grants])
}

export type Introspection = {
  /** Reads our own tokens only. Null for a token that is not valid. Throws PdpError `store_unavailable` if that cannot be found out. */
  readonly record: ReadRecord
  /** Read on every call: true if the token was revoked, or a grant of it, its person or its client was deleted. */
  isRevoked(record: TokenRecord): Promise<boolean>
  /** The app whose roles apply to the token, read in each call. */
  appOf(record: TokenRecord): Promise<string | null>
  /** Does all three in one call. A bad token is inactive, never an error. `at`: the connection for the live parts. */
  introspect(token: string, at?: { readonly sql: Queries }): Promise<TokenState>
  /** Like introspect, without the check for revocation: the decision makes it, by `revocationKeys`. */
  recognize(token: string): Promise<TokenState>
}
export type IntrospectionDeps = {
  readonly issuer: string
  readonly publicJwks: () => readonly JWK[]
  readonly sql: Queries
  readonly directory: Pick<Directory, 'client'>
  readonly resources: Resources
  readonly external: ReadRecord
  /** Reads revocations from the token log. */
  readonly pdp: Pick<Pdp, 'isRevoked'>
  /** Milliseconds since the epoch. */
  readonly clock: () => number
}

export function createIntrospection(deps: IntrospectionDeps): Introspection {
  const { issuer, clock, sql } = deps
  const keys = createKeySource({
    load: () => deps.publicJwks(),
    clock,
    refreshAfterMs: KEYS_REFRESH_MS,
    ageMaxMs: KEYS_AGE_MAX_MS,
    cooldownMs: 0,
  })
  // There is no leeway, since our own clock set `exp`. Any audience is accepted: resource servers ask about tokens sent to them.
  const verifier = createTokenVerifier({
    issuers: [{ issuer, keys, algorithms: ['RS256'] }],
    audience: null,
    clock,
    expiryLeewayMs: 0,
  })
  const record = createReadRecord({ issuer, sql, verifier })
  const joined = joinedRead((names) => readLive(deps.sql, names))
  const recordOfAny: ReadRecord = async (token) => (await record(token)) ?? deps.external(token)

  /** The live parts of a token; null: it is revoked. */
  async function liveOf(r: TokenRecord, at: { readonly sql: Queries } = deps): Promise<Pick<Live, 'app'> | null> {
    const isExchanged = r.clients.length > 1
    if (r.externalIssuer !== null || isExchanged) {
      const question = { revocationKeys: revocationKeysOf(r), issuedAtMs: r.issuedAtMs }
      if (await deps.pdp.isRevoked(question)) return null
    }
    if (r.externalIssuer !== null) return { app: null }
    const name = nameOf(r)
    const live = at === deps ? await joined(name) : ((await readLive(at.sql, [name])).get(name) ?? null)
    return live?.alive === true ? live : null
  }
  const isRevoked = async (r: TokenRecord): Promise<boolean> => (await liveOf(r)) === null

  async function ownerOf(r: TokenRecord): Promise<string | null> {
    const [audience] = r.audiences // our tokens have exactly one
    return audience === undefined || audience === issuer ? null : await deps.resources.owner(audience)
  }

  async function appOf(r: TokenRecord): Promise<string | null> {
    const owner = await ownerOf(r)
    if (owner !== null || r.externalIssuer !== null) return owner
    return (await deps.directory.client(r.clientId))?.app ?? null
  }

  async function introspect(token: string, at?: { readonly sql: Queries }): Promise<TokenState> {
    // An opaque token serves only for decisions, so it is sent to another issuer for nothing else.
    const found = await (token.includes('.') ? recordOfAny : record)(token)
    if (found === null) return INACTIVE
    const [live, owner] = await Promise.all([liveOf(found, at), ownerOf(found)])
    return live === null ? INACTIVE : stateOf(found, owner ?? live.app)
  }

  async function recognize(token: string): Promise<TokenState> {
    const found = await recordOfAny(token)
    if (found === null) return INACTIVE
    // The decision finds the app that owns the audience. Only a token for the issuer itself uses its client's app.
    const own = found.externalIssuer === null && found.audiences.includes(issuer)
    return stateOf(found, own ? await appOf(found) : null)
  }

  return { record, isRevoked, appOf, introspect, recognize }
}

/** The keys in the token log of which each revokes this token. */
function revocationKeysOf(record: TokenRecord): readonly string[] {
  if (record.externalIssuer !== null) return record.externalKeys ?? []
  const keys = [revocationKey('jti', record.jti), ...originKeys(record)]
  if (record.userId !== null) keys.push(revocationKey('user', record.userId))
  return keys
}

/** Sets each member by itself: a spread of the rest of a record would take longer than the decision. */
function stateOf(record: TokenRecord, app: string | null): TokenState {
  const { memberships, recheckAtMs } = record
  return {
    active: true,
    subject: record.subject,
    organization: record.organization,
    clientId: record.clientId,
    scopes: record.scopes,
    audiences: record.audiences,
    jkt: record.jkt,
    jti: record.jti,
    grantId: record.grantId,
    issuedAtMs: record.issuedAtMs,
    expiresAtMs: record.expiresAtMs,
    acr: record.acr,
    authTime: record.authTime,
    app,
    revocationKeys: revocationKeysOf(record),
    actors: record.actors,
    ...(memberships !== undefined && { memberships }),
    ...(recheckAtMs !== undefined && { recheckAtMs }),
  }
}
