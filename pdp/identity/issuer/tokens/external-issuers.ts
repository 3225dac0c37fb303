/** Access tokens of other issuers: verified with the issuer's keys, mapped to our subjects, and valid only for decisions. */

import type { Queries, Sql } from '../../../engine/store/directory.ts'
import { lockJournal } from '../../../engine/store/journal-lock.ts'
import { BoundedMap } from '../../../shared/base/bounded-map.ts'
import { type MasterKeys, open, seal } from '../../../shared/base/encryption.ts'
import { withTimeout } from '../../../shared/base/with-timeout.ts'
import type { WriteContext } from '../../../shared/domain/change.ts'
import { PdpError } from '../../../shared/domain/errors.ts'
import { ENVIRONMENT } from '../../../shared/domain/journal.ts'
import { EXTERNAL } from '../../../shared/domain/names.ts'
import { ISSUER_TOKEN_AGE_MAX_MS } from '../../../shared/domain/revocation.ts'
import type { Log } from '../../../shared/process/log.ts'
import type { AlgorithmName } from '../../../shared/token/algorithms.ts'
import type { AccessClaims } from '../../../shared/token/claims.ts'
import { TokenError } from '../../../shared/token/errors.ts'
import type { IssuerTerms } from '../../../shared/token/issuer-claims.ts'
import { parseJws, TOKEN_CHARS_MAX } from '../../../shared/token/jws.ts'
import { createKeySource, type KeySource, NO_KEYS } from '../../../shared/token/keys.ts'
import { createIntrospect, INTROSPECTED_MS, type Introspect } from '../../../shared/token/opaque-tokens.ts'
import { type Fetch, remoteKeys } from '../../../shared/token/remote-keys.ts'
import { createTokenVerifier, type TokenVerifier } from '../../../shared/token/verify.ts'
import {
  externalKeys,
  SILENT,
  type SignalsDocument,
  type StoredSignals,
  shownSignals,
  storedSignals,
} from '../../../signals/receiver/registration.ts'
import { type StreamState, streamStates } from '../../../signals/receiver/streams.ts'
import { isServiceScope } from '../../oauth/scopes.ts'
import type { AppendJournal } from '../append.ts'
import { INTROSPECTION_SEALED_AS } from '../keys/sealed-names.ts'
import { createReachability, type Unreachable } from './reachability.ts'
import { type ReadRecord, verified } from './token-record.ts'
import type { TokenRecord } from './token-state.ts'

const ISSUER_WAIT_MS = 300
const LOCAL_KEYS_AGE_MS = 3_600_000
const VERIFIERS_MAX = 200

/** The registration of a trusted issuer. It has exactly one of `jwks`, `jwks_uri` and `introspection`. */
export type TrustedIssuerDocument = IssuerTerms & {
  readonly jwks?: { readonly keys: readonly object[] }
  readonly jwks_uri?: string
  readonly introspection?: {
    readonly endpoint: string
    readonly client_id: string
    /** The secret for introspection; stored encrypted and never shown. */
    readonly client_secret?: string
  }
  /** Algorithms of signatures; required with keys. */
  readonly algorithms?: readonly AlgorithmName[]
  /** The audience of our app that tokens with `audience` are for; without it, `audience` is that of our app. */
  readonly resource?: string
  /** The transmitter that reports ended sessions and accounts. */
  readonly ssf?: SignalsDocument
}
type StoredDocument = Omit<TrustedIssuerDocument, 'introspection' | 'ssf'> & {
  readonly ssf?: StoredSignals
  readonly introspection?: { readonly endpoint: string; readonly client_id: string; readonly secret_sealed: string }
}
type Registration = { readonly issuer: string; readonly document: StoredDocument }
export type ExternalIssuers = {
  /** Throws TokenError `keys_unavailable` or `issuer_unavailable` when the issuer does not answer soon. */
  readonly record: ReadRecord
  list(): Promise<readonly ({ readonly issuer: string } & TrustedIssuerDocument)[]>
  /** Stores a registration; false: it is new. */
  put(issuer: string, document: TrustedIssuerDocument, context: WriteContext): Promise<boolean>
  remove(issuer: string, context: WriteContext): Promise<boolean>
  /** Streams that their transmitters send us. */
  streams(): Promise<readonly StreamState[]>
  /** Issuers that did not answer when this process had to verify their tokens. */
  unreachable(): readonly Unreachable[]
}

type IssuersDeps = {
  readonly issuer: string
  readonly sql: Sql
  readonly appendJournal: AppendJournal
  readonly masterKeys: MasterKeys
  readonly fetch: Fetch
  readonly clock: () => number
  readonly log: Log
}

export function createExternalIssuers(deps: IssuersDeps): ExternalIssuers {
  const { sql, clock } = deps
  const reachability = createReachability(clock)
  const verifierOf = createVerifiers(deps)

  return {
    async record(token) {
      const found = token.length > TOKEN_CHARS_MAX ? null : await registrationOf(deps, token)
      if (found === null) return null
      const { issuer, document } = found
      // A caller waits half a second at most; an answer that the issuer gives later serves the next question.
      const claims = await reachability.watch(
        issuer,
        withTimeout(
          verified(verifierOf(issuer, document), token),
          ISSUER_WAIT_MS,
          () =>
            new TokenError(
              document.introspection ? 'issuer_unavailable' : 'keys_unavailable',
              `${issuer} does not answer`,
            ),
        ),
      )
      if (claims === null) return null
      const record = toRecord(claims, document)
      // Other expiries were compared by the verifier. This one is earlier: the entry that revoked so old a token may be forgotten.
      if (record.expiresAtMs < claims.expiresAtMs && record.expiresAtMs <= clock()) return null
      const recheck = document.introspection === undefined ? {} : { recheckAtMs: clock() + INTROSPECTED_MS }
      return { ...record, ...recheck }
    },
    async list() {
      const rows = await sql.query<{ issuer: string; document: StoredDocument }>(
        'select issuer, document from trusted_issuer order by issuer',
      )
      return rows.map(({ issuer, document }) => ({ issuer, ...shown(document) }))
    },
    async put(issuer, document, context) {
      if (issuer === deps.issuer) throw new PdpError('conflict', 'this is our own issuer')
      return sql.transaction(async (tx) => {
        await deps.appendJournal(tx, ENVIRONMENT, [{ kind: 'trusted_issuer', id: issuer, op: 'write' }], context)
        await requireOwnPrefix(tx, issuer, document)
        if (document.introspection !== undefined) await requireOnlyIntrospection(tx, issuer)
        const [former] = await tx.query<{ document: StoredDocument }>(
          'select document from trusted_issuer where issuer = $1',
          [issuer],
        )
        await tx.query(
          `insert into trusted_issuer as t (issuer, document) values ($1, $2::jsonb)
           on conflict (issuer) do update set document = excluded.document`,
          [issuer, JSON.stringify(stored(deps.masterKeys, document, former?.document))],
        )
        return former !== undefined
      })
    },
    streams: () => streamStates(sql),
    unreachable: reachability.unreachable,
    remove: (issuer, context) =>
      sql.transaction(async (tx) => {
        await lockJournal(tx, ENVIRONMENT)
        const rows = await tx.query('delete from trusted_issuer where issuer = $1 returning 1', [issuer])
        if (rows.length === 0) return false
        await deps.appendJournal(tx, ENVIRONMENT, [{ kind: 'trusted_issuer', id: issuer, op: 'delete' }], context)
        return true
      }),
  }
}

/** A changed registration gets new keys and an empty cache. */
function createVerifiers({ masterKeys, fetch, clock, log }: IssuersDeps) {
  // The key is the text of the whole registration.
  const verifiers = new BoundedMap<string, TokenVerifier>(VERIFIERS_MAX)

  function introspectOf(issuer: string, { introspection }: StoredDocument): Introspect | null {
    if (introspection === undefined) return null
    const { endpoint, client_id: clientId, secret_sealed: sealed } = introspection
    return createIntrospect({
      issuer,
      endpoint,
      clientId,
      clientSecret: () => open(masterKeys.derive(INTROSPECTION_SEALED_AS), INTROSPECTION_SEALED_AS, sealed),
      fetch,
      clock,
      onError: (err) => log.warn({ event: 'issuer_introspection_failed', issuer, err }),
    })
  }

  function keysOf(issuer: string, { jwks, jwks_uri: jwksUri }: StoredDocument): KeySource {
    const onError = (err: unknown): void => log.warn({ event: 'issuer_keys_failed', issuer, err })
    if (jwksUri !== undefined) return remoteKeys({ issuer, jwksUri, fetch, clock, onError })
    return createKeySource({
      load: () => jwks?.keys ?? [],
      clock,
      refreshAfterMs: LOCAL_KEYS_AGE_MS,
      ageMaxMs: LOCAL_KEYS_AGE_MS,
      cooldownMs: LOCAL_KEYS_AGE_MS,
      onError,
    })
  }

  return (issuer: string, document: StoredDocument): TokenVerifier =>
    verifiers.getOrMake(JSON.stringify([issuer, document]), () => {
      const { algorithms = [], audience } = document
      const introspect = introspectOf(issuer, document)
      const keys = introspect === null ? keysOf(issuer, document) : NO_KEYS
      const trusted = { issuer, keys, algorithms, external: document, ...(introspect !== null && { introspect }) }
      return createTokenVerifier({ issuers: [trusted], audience, clock })
    })
}

/**
 * The issuer in the token, or the only one with opaque tokens. Throws TokenError `issuer_unavailable` while the issuer's transmitter is
 * silent, if its tokens must not count then.
 */
async function registrationOf({ issuer, sql }: IssuersDeps, token: string): Promise<Registration | null> {
  const iss = parseJws(token, TOKEN_CHARS_MAX)?.payload.iss
  if (iss === issuer || (iss !== undefined && typeof iss !== 'string')) return null
  const [row] = await sql.query<Registration & { heard: boolean | null }>(
    `select t.issuer, t.document, r.heard_at is not null and not ${SILENT} as heard
     from trusted_issuer t left join received_stream r using (issuer)
     where ${iss === undefined ? "t.document ? 'introspection'" : 't.issuer = $1'}`,
    iss === undefined ? [] : [iss],
  )
  if (row?.document.ssf?.on_silence === 'refuse' && row.heard !== true)
    throw new TokenError('issuer_unavailable', `the transmitter of ${row.issuer} is silent`)
  return row ?? null
}

function shown({ introspection, ssf, ...document }: StoredDocument): TrustedIssuerDocument {
  return {
    ...document,
    ...(ssf && { ssf: shownSignals(ssf) }),
    ...(introspection && { introspection: { endpoint: introspection.endpoint, client_id: introspection.client_id } }),
  }
}

function stored(
  masterKeys: MasterKeys,
  { introspection, ssf, ...given }: TrustedIssuerDocument,
  former?: StoredDocument,
): StoredDocument {
  const document = { ...given, ...(ssf && { ssf: storedSignals(ssf, former?.ssf, masterKeys) }) }
  if (introspection === undefined) return document
  const { client_secret: secret = '', ...open } = introspection
  return {
    ...document,
    introspection: {
      ...open,
      secret_sealed: seal(masterKeys.derive(INTROSPECTION_SEALED_AS), INTROSPECTION_SEALED_AS, secret),
    },
  }
}

/** Throws PdpError `conflict`: an opaque token does not say which of two issuers it is from, and must not be sent to both. */
async function requireOnlyIntrospection(tx: Queries, issuer: string): Promise<void> {
  const [other] = await tx.query<{ issuer: string }>(
    "select issuer from trusted_issuer where issuer <> $1 and document ? 'introspection' limit 1",
    [issuer],
  )
  if (other !== undefined)
    throw new PdpError('conflict', `introspection: ${other.issuer} has it already, and one issuer may`)
}

/** Throws PdpError `conflict` for a prefix by which users of two issuers, or one and a user from before, could be the same subject. */
async function requireOwnPrefix(
  tx: Queries,
  issuer: string,
  { subject_prefix: prefix, renamed_from: former = '' }: TrustedIssuerDocument,
): Promise<void> {
  const [other] = await tx.query<{ issuer: string; prefix: string }>(
    `select issuer, document ->> 'subject_prefix' as prefix from trusted_issuer where issuer <> $1
     and (starts_with(document ->> 'subject_prefix', $2) or starts_with($2, document ->> 'subject_prefix'))
     and not (document ->> 'subject_prefix' = $2 and (issuer = $3 or coalesce(document ->> 'renamed_from', '') = $1)) limit 1`,
    [issuer, prefix, former],
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

function toRecord(claims: AccessClaims, { audience, resource, organizations, ssf }: StoredDocument): TokenRecord {
  return {
    subject: { type: 'user', id: claims.subject },
    organization: claims.organization,
    clientId: claims.clientId,
    scopes: new Set([...claims.scopes].filter((scope) => !isServiceScope(scope))),
    // Only the audience for which the issuer is trusted: the token's other audiences may be other apps here.
    audiences: [resource ?? audience].flat().slice(0, 1),
    jkt: claims.jkt,
    jti: claims.jti,
    actors: [],
    grantId: null,
    issuedAtMs: claims.issuedAtMs,
    // The token counts only up to this age: the revocation of an older one may be forgotten.
    expiresAtMs: ssf ? Math.min(claims.expiresAtMs, claims.issuedAtMs + ISSUER_TOKEN_AGE_MAX_MS) : claims.expiresAtMs,
    acr: text(claims.all.acr),
    authTime: seconds(claims.all.auth_time),
    grants: [],
    clients: [],
    sessionUid: null,
    userId: claims.subject,
    digest: claims.digest,
    act: undefined,
    externalIssuer: claims.issuer,
    externalKeys: externalKeys(claims),
    ...(claims.groups.length > 0 && { memberships: { groups: claims.groups, organizations } }),
  }
}

const text = (value: unknown): string | null => (typeof value === 'string' ? value : null)

/** RFC 7519 allows fractions. An instant that gRPC cannot represent would break the stream of every caller. */
const seconds = (value: unknown): number | null =>
  typeof value === 'number' && value >= 0 && value <= 0xffff_ffff ? Math.floor(value) : null
