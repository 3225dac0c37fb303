/**
 * Introspection (RFC 7662) and revocation (RFC 7009) of our JWT access tokens. oidc-provider authenticates the client and
 * answers, but refuses JWTs; so it is shown the token's id instead, after we have verified the token.
 */

import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Provider } from 'oidc-provider'
import type { Queries } from '../../../engine/store/directory.ts'
import { mediaTypeOf } from '../../../shared/base/media-type.ts'
import type { Pdp } from '../../../shared/domain/decision.ts'
import { isJsonObject, type JsonObject } from '../../../shared/domain/json.ts'
import { readForm } from '../../oauth/forms.ts'
import { PATHS } from '../../oauth/paths.ts'
import { mayKnow } from './bindings.ts'
import type { Introspection } from './introspection.ts'
import type { TokenRecord } from './token-state.ts'

const FORM_BYTES_MAX = 32_768
const FORM = 'application/x-www-form-urlencoded'
/** A text that is no token, in place of one that oidc-provider must not find. */
const NO_TOKEN = 'inactive'

export type TokenEndpoints = {
  /** The request in a form that oidc-provider can answer; null when the body is too large. Throws PdpError `store_unavailable`. */
  translate(req: IncomingMessage): Promise<IncomingMessage | null>
  install(provider: Provider): void
}

export function createTokenEndpoints(deps: {
  readonly issuer: string
  readonly introspection: Pick<Introspection, 'record' | 'isRevoked'>
  readonly pdp: Pick<Pdp, 'ancestors' | 'decide'>
  readonly sql: Queries
}): TokenEndpoints {
  const records = new WeakMap<IncomingMessage, TokenRecord>()

  /** The value that oidc-provider gets instead of the token. */
  async function standIn(token: string): Promise<{ value: string; record: TokenRecord | null }> {
    if (!token.includes('.')) return { value: (await isRefreshToken(deps.sql, token)) ? token : NO_TOKEN, record: null }
    const record = await deps.introspection.record(token)
    if (record === null || (await deps.introspection.isRevoked(record)) || !(await isDelegated(deps.pdp, record))) {
      return { value: NO_TOKEN, record: null }
    }
    return { value: record.jti, record }
  }

  return {
    async translate(req) {
      if (mediaTypeOf(req.headers['content-type']) !== FORM) return req
      const form = await readForm(req, FORM_BYTES_MAX)
      if (form === null) return null
      const [token, ...more] = form.getAll('token')
      // A missing or repeated token is refused by oidc-provider.
      if (token === undefined || token === '' || more.length > 0) return withBody(req, form)
      const { value, record } = await standIn(token)
      form.set('token', value)
      const translated = withBody(req, form)
      if (record !== null) records.set(translated, record)
      return translated
    },
    install(provider) {
      provider.use(async (ctx, next) => {
        await next()
        const { body } = ctx
        if (ctx.path !== PATHS.introspect || !isActive(body)) return
        const { client } = ctx.oidc
        const record = records.get(ctx.req)
        if (record === undefined) {
          if (body.client_id !== client.clientId) ctx.body = { active: false }
          return
        }
        ctx.body = (await mayKnow(deps.pdp, client, record)) ? describe(deps.issuer, record) : { active: false }
      })
    },
  }
}

/** False if the token's client acts for a person whose delegation to it has ended. */
async function isDelegated(pdp: Pick<Pdp, 'decide'>, record: TokenRecord): Promise<boolean> {
  const { organization, subject, actors, audiences } = record
  if (organization === null || actors.length === 0) return true
  return !(await pdp.decide({ organization, subject, actors, audiences, scopes: [...record.scopes] })).tokenRevoked
}

const isActive = (body: unknown): body is { readonly active: true; readonly client_id?: unknown } =>
  typeof body === 'object' && body !== null && 'active' in body && body.active === true

/** The answer for an active token: RFC 7662 section 2.2, RFC 9449 section 6.2, RFC 9470 section 6.2, RFC 8693 section 4.1. */
function describe(issuer: string, record: TokenRecord): JsonObject {
  const act = record.act
  return {
    active: true,
    iss: issuer,
    sub: record.subject.id,
    aud: record.audiences[0] ?? '',
    client_id: record.clientId,
    ...(record.scopes.size === 0 ? {} : { scope: [...record.scopes].join(' ') }),
    token_type: record.jkt === null ? 'Bearer' : 'DPoP',
    jti: record.jti,
    iat: Math.floor(record.issuedAtMs / 1_000),
    exp: Math.floor(record.expiresAtMs / 1_000),
    ...(record.jkt === null ? {} : { cnf: { jkt: record.jkt } }),
    ...(record.organization === null ? {} : { org: record.organization }),
    ...(record.sessionUid === null ? {} : { sid: record.sessionUid }),
    ...(record.acr === null ? {} : { acr: record.acr }),
    ...(record.authTime === null ? {} : { auth_time: record.authTime }),
    ...(isJsonObject(act) ? { act } : {}),
  }
}

/** True for a refresh token. The id of an access token is no credential, although oidc-provider would find a record by it. */
async function isRefreshToken(sql: Queries, token: string): Promise<boolean> {
  const digest = createHash('sha256').update(token).digest('base64url')
  const rows = await sql.query("select 1 from oidc_record where kind = 'RefreshToken' and id = $1", [digest])
  return rows.length > 0
}

/** The same request with another body, which oidc-provider reads as if it came from the socket. */
function withBody(req: IncomingMessage, form: URLSearchParams): IncomingMessage {
  const bytes = Buffer.from(form.toString())
  req.headers['content-length'] = String(bytes.length)
  delete req.headers['transfer-encoding']
  return Object.create(req, {
    readable: { value: true },
    readableEncoding: { value: null },
    iterator: {
      value: async function* () {
        yield bytes
      },
    },
  })
}
