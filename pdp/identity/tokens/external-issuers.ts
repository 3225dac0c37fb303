/** Access tokens of other issuers: verified by that issuer's keys, mapped to our subjects, and good for decisions only. */
import type { WriteContext } from '../../domain/change.ts'
import { PdpError } from '../../domain/errors.ts'
import { ENVIRONMENT } from '../../domain/log.ts'
import { EXTERNAL, isId } from '../../domain/names.ts'
import type { Log } from '../../process/log.ts'
import type { Sql } from '../../store/directory.ts'
import type { AlgorithmName } from '../../token/algorithms.ts'
import type { AccessClaims } from '../../token/claims.ts'
import { parseJws } from '../../token/jws.ts'
import { createKeySource, type KeySource } from '../../token/keys.ts'
import { type Fetch, remoteKeys } from '../../token/remote-keys.ts'
import { createTokenVerifier, type TokenVerifier } from '../../token/verify.ts'
import { lockLog } from '../oauth/log-lock.ts'
import { isServiceScope } from '../oauth/scopes.ts'
import type { AppendLog } from './revocation.ts'
import { type ReadRecord, verified } from './token-record.ts'
import type { TokenRecord } from './token-state.ts'

const TOKEN_CHARS_MAX = 16_384
const LOCAL_KEYS_AGE_MS = 3_600_000
const VERIFIERS_MAX = 200

/** What an environment trusts another issuer with. Exactly one of `jwks` and `jwks_uri`. */
export type TrustedIssuerDocument = {
  readonly jwks?: { readonly keys: readonly object[] }
  readonly jwks_uri?: string
  readonly algorithms: readonly AlgorithmName[]
  /** One of the token's audiences. */
  readonly audience: string
  /** Claims that name the subject and the organization; default `sub`, and none. */
  readonly claims?: { readonly subject?: string; readonly organization?: string }
  /** Keeps the issuer's subjects apart from those of others; `~` before it keeps them apart from our own users. */
  readonly subject_prefix: string
  /** The only organizations in which the issuer may speak for anybody. */
  readonly organizations: readonly string[]
}
export type ExternalIssuers = {
  readonly record: ReadRecord
  list(): Promise<readonly ({ readonly issuer: string } & TrustedIssuerDocument)[]>
  /** False when it is new. */
  put(issuer: string, document: TrustedIssuerDocument, context: WriteContext): Promise<boolean>
  remove(issuer: string, context: WriteContext): Promise<boolean>
}

export function createExternalIssuers(deps: {
  readonly issuer: string
  readonly sql: Sql
  readonly appendLog: AppendLog
  readonly fetch: Fetch
  readonly clock: () => number
  readonly log: Log
}): ExternalIssuers {
  const { sql, clock } = deps
  // By the whole registration: a changed one gets new keys and an empty cache.
  const verifiers = new Map<string, TokenVerifier>()

  function verifierOf(issuer: string, document: TrustedIssuerDocument): TokenVerifier {
    const key = JSON.stringify([issuer, document])
    const known = verifiers.get(key)
    if (known !== undefined) return known
    const [oldest] = verifiers.keys()
    if (verifiers.size >= VERIFIERS_MAX && oldest !== undefined) verifiers.delete(oldest)
    const { algorithms, audience } = document
    const verifier = createTokenVerifier({
      issuers: [{ issuer, keys: keysOf(issuer, document), algorithms }],
      audience,
      clock,
    })
    verifiers.set(key, verifier)
    return verifier
  }

  function keysOf(issuer: string, { jwks, jwks_uri: jwksUri }: TrustedIssuerDocument): KeySource {
    const onError = (err: unknown): void => deps.log.warn({ event: 'issuer_keys_failed', issuer, err })
    if (jwksUri !== undefined) return remoteKeys({ issuer, jwksUri, fetch: deps.fetch, clock, onError })
    return createKeySource({
      load: () => jwks?.keys ?? [],
      clock,
      refreshAfterMs: LOCAL_KEYS_AGE_MS,
      ageMaxMs: LOCAL_KEYS_AGE_MS,
      cooldownMs: LOCAL_KEYS_AGE_MS,
      onError,
    })
  }

  return {
    async record(token) {
      const issuer = parseJws(token, TOKEN_CHARS_MAX)?.payload.iss
      if (typeof issuer !== 'string' || issuer === deps.issuer) return null
      const [row] = await sql.query<{ document: TrustedIssuerDocument }>(
        'select document from trusted_issuer where issuer = $1',
        [issuer],
      )
      if (row === undefined) return null
      const claims = await verified(verifierOf(issuer, row.document), token)
      return claims === null ? null : toRecord(claims, row.document)
    },
    async list() {
      const rows = await sql.query<{ issuer: string; document: TrustedIssuerDocument }>(
        'select issuer, document from trusted_issuer order by issuer',
      )
      return rows.map(({ issuer, document }) => ({ issuer, ...document }))
    },
    async put(issuer, document, context) {
      if (issuer === deps.issuer) throw new PdpError('conflict', 'this is our own issuer')
      return sql.transaction(async (tx) => {
        await deps.appendLog(tx, ENVIRONMENT, [{ kind: 'trusted_issuer', id: issuer, op: 'write' }], context)
        await requireOwnPrefix(tx, issuer, document.subject_prefix)
        const [row] = await tx.query<{ created: boolean }>(
          `insert into trusted_issuer as t (issuer, document) values ($1, $2::jsonb)
           on conflict (issuer) do update set document = excluded.document returning xmax = 0 as created`,
          [issuer, JSON.stringify(document)],
        )
        return row?.created !== true
      })
    },
    remove: (issuer, context) =>
      sql.transaction(async (tx) => {
        await lockLog(tx, ENVIRONMENT)
        const rows = await tx.query('delete from trusted_issuer where issuer = $1 returning 1', [issuer])
        if (rows.length === 0) return false
        await deps.appendLog(tx, ENVIRONMENT, [{ kind: 'trusted_issuer', id: issuer, op: 'delete' }], context)
        return true
      }),
  }
}

/** Throws PdpError `conflict` for a prefix by which two issuers, or an issuer and a user of before, could be one subject. */
async function requireOwnPrefix(tx: Pick<Sql, 'query'>, issuer: string, prefix: string): Promise<void> {
  const [other] = await tx.query<{ issuer: string; prefix: string }>(
    `select issuer, document ->> 'subject_prefix' as prefix from trusted_issuer where issuer <> $1
     and (starts_with(document ->> 'subject_prefix', $2) or starts_with($2, document ->> 'subject_prefix')) limit 1`,
    [issuer, prefix],
  )
  if (other !== undefined) {
    throw new PdpError('conflict', `subject_prefix: ${other.issuer} has ${other.prefix}, and one begins with the other`)
  }
  const [user] = await tx.query<{ id: string }>(
    'select user_id as id from user_account where starts_with(user_id, $1) limit 1',
    [EXTERNAL + prefix],
  )
  if (user !== undefined) throw new PdpError('conflict', `subject_prefix: user ${user.id} would be one of its subjects`)
}

/** Null when the token does not name a subject as the registration says. */
function toRecord(claims: AccessClaims, document: TrustedIssuerDocument): TokenRecord | null {
  const name = claims.all[document.claims?.subject ?? 'sub']
  const id = typeof name === 'string' ? EXTERNAL + document.subject_prefix + name : ''
  if (name === '' || !isId(id)) return null
  return {
    subject: { type: 'user', id },
    organization: organizationOf(claims, document),
    clientId: claims.clientId,
    scopes: new Set([...claims.scopes].filter((scope) => !isServiceScope(scope))),
    audiences: claims.audiences,
    jkt: claims.jkt,
    jti: claims.jti,
    grantId: null,
    issuedAtMs: claims.issuedAtMs,
    expiresAtMs: claims.expiresAtMs,
    acr: text(claims.all.acr),
    authTime: seconds(claims.all.auth_time),
    grants: [],
    sessionUid: null,
    userId: id,
    digest: claims.digest,
    act: undefined,
    externalIssuer: claims.issuer,
  }
}

/** The one that the token names; without a claim for it, the only one there is. */
function organizationOf(claims: AccessClaims, { claims: map, organizations }: TrustedIssuerDocument): string | null {
  const [only, ...more] = organizations
  if (map?.organization === undefined) return more.length === 0 ? (only ?? null) : null
  const named = claims.all[map.organization]
  return organizations.find((organization) => organization === named) ?? null
}

const text = (value: unknown): string | null => (typeof value === 'string' ? value : null)

/** RFC 7519 allows a fraction. One that answers over gRPC cannot hold would break the stream of all who ask by it. */
const seconds = (value: unknown): number | null =>
  typeof value === 'number' && value >= 0 && value <= 0xffff_ffff ? Math.floor(value) : null
