/** Verifies Kubernetes ServiceAccount tokens that were issued for the PDP. They identify the caller, not the subject of a question. */
import { readFile } from 'node:fs/promises'
import type { JsonMembers } from '../../../shared/base/json-text.ts'
import { ALGORITHM_NAMES } from '../../../shared/token/algorithms.ts'
import { TokenError } from '../../../shared/token/errors.ts'
import { members, parseJws, TOKEN_CHARS_MAX } from '../../../shared/token/jws.ts'
import { createKeySource, type KeySource } from '../../../shared/token/keys.ts'
import { type Fetch, remoteKeys } from '../../../shared/token/remote-keys.ts'
import { findSigner } from '../../../shared/token/signature.ts'
import { RequestProblem } from '../http/status.ts'

/** The audience of projected tokens for the PDP. */
export const SERVICE_ACCOUNT_AUDIENCE = 'portcullis-pdp'
const KEYS_REFRESH_MS = 60_000
const KEYS_AGE_MAX_MS = 24 * 3_600_000
const KEYS_COOLDOWN_MS = 5_000
const SUBJECT = /^system:serviceaccount:([a-z0-9-]{1,63}):([a-z0-9.-]{1,253})$/
const CALLER = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\/(?:\*|[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?)$/

export type ServiceAccountSettings = {
  /** The cluster's issuer, as in the `iss` claim of its tokens. */
  readonly issuer: string
  /** URL or path of the cluster's key set; null: the one that the issuer's metadata names. */
  readonly jwks: string | null
  /** The accounts that may call: `namespace/name`, or `namespace/*` for every account of a namespace. */
  readonly callers: readonly string[]
  /** A file with more callers, one per line, which is read again during operation; null: no file. */
  readonly callersFile: string | null
}
/** Returns the account as `namespace/name`. Throws TokenError, and RequestProblem `permission_denied` for an account that is not listed. */
export type VerifyServiceAccount = (token: string) => Promise<string>

/** True for `namespace/name` and `namespace/*`. */
export const isCaller = (text: string): boolean => CALLER.test(text)

export function createServiceAccounts(
  { issuer, jwks, callers, callersFile }: ServiceAccountSettings,
  deps: { readonly fetch: Fetch; readonly clock: () => number },
): VerifyServiceAccount {
  const keys = keysOf({ issuer, jwks }, deps)
  const admitted = new Set(callers)
  const listed = callersFile === null ? null : listedCallers(callersFile, deps.clock)
  return async (token) => {
    const jws = parseJws(token, TOKEN_CHARS_MAX)
    if (jws === null || jws.payload.iss !== issuer) throw invalid('not a token of the cluster')
    if (jws.header.kid === undefined) throw invalid('header kid is missing')
    await findSigner(token, jws.header, { keys, algorithms: ALGORITHM_NAMES })
    const { namespace, name } = requireCurrent(jws.payload, deps.clock() / 1_000)
    const account = `${namespace}/${name}`
    // The operator must list an account, because all workloads of the cluster can get such a token.
    const isIn = (names: ReadonlySet<string>): boolean => names.has(account) || names.has(`${namespace}/*`)
    if (isIn(admitted) || (listed !== null && isIn(await listed()))) return account
    throw new RequestProblem(
      'permission_denied',
      `service account ${account} is not in PORTCULLIS_SERVICE_ACCOUNTS or its file`,
    )
  }
}

const LISTED_MS = 1_000
const LISTED_CHARACTERS_MAX = 2 * 1024 * 1024

/** The callers in the file at present; empty while it cannot be read. Other lines are ignored. */
function listedCallers(path: string, clock: () => number): () => Promise<ReadonlySet<string>> {
  let last: { readonly atMs: number; readonly names: Promise<ReadonlySet<string>> } | null = null
  const read = async (): Promise<ReadonlySet<string>> => {
    const text = await readFile(path, 'utf8').catch(() => '')
    return new Set(text.length > LISTED_CHARACTERS_MAX ? [] : text.split('\n').filter(isCaller))
  }
  return () => {
    const nowMs = clock()
    if (last === null || nowMs - last.atMs >= LISTED_MS || nowMs < last.atMs) last = { atMs: nowMs, names: read() }
    return last.names
  }
}

function requireCurrent(
  { aud, exp, nbf = 0, sub }: JsonMembers,
  nowS: number,
): { readonly namespace: string; readonly name: string } {
  const audiences: readonly unknown[] = Array.isArray(aud) ? aud : [aud]
  if (!audiences.includes(SERVICE_ACCOUNT_AUDIENCE)) throw invalid(`aud is not ${SERVICE_ACCOUNT_AUDIENCE}`)
  if (typeof exp !== 'number' || typeof nbf !== 'number' || nbf > nowS) throw invalid('exp or nbf is malformed')
  if (exp <= nowS) throw new TokenError('token_expired', 'the token has expired')
  const [, namespace, name] = SUBJECT.exec(typeof sub === 'string' ? sub : '') ?? []
  if (namespace === undefined || name === undefined) throw invalid('sub is not a service account')
  return { namespace, name }
}

function keysOf(
  { issuer, jwks }: Pick<ServiceAccountSettings, 'issuer' | 'jwks'>,
  { fetch, clock }: { readonly fetch: Fetch; readonly clock: () => number },
): KeySource {
  const times = { refreshAfterMs: KEYS_REFRESH_MS, ageMaxMs: KEYS_AGE_MAX_MS, cooldownMs: KEYS_COOLDOWN_MS }
  if (jwks === null) return remoteKeys({ issuer, fetch, clock, ...times })
  if (/^https?:/.test(jwks)) return remoteKeys({ issuer, jwksUri: jwks, fetch, clock, ...times })
  return createKeySource({ load: () => readKeys(jwks), clock, ...times })
}

async function readKeys(path: string): Promise<readonly unknown[]> {
  const keys = members(JSON.parse(await readFile(path, 'utf8')))?.keys
  if (!Array.isArray(keys)) throw new Error(`${path} is not a JWK Set`)
  return keys
}

const invalid = (message: string): TokenError => new TokenError('token_invalid', message)
