/** Ends sign-ins by a provider that reports a sign-out (OpenID Connect Back-Channel Logout 1.0). */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Queries } from '../../../engine/store/directory.ts'
import { BoundedMap } from '../../../shared/base/bounded-map.ts'
import { PdpError } from '../../../shared/domain/errors.ts'
import type { Log } from '../../../shared/process/log.ts'
import { ALGORITHM_NAMES } from '../../../shared/token/algorithms.ts'
import { TokenError } from '../../../shared/token/errors.ts'
import type { KeySource } from '../../../shared/token/keys.ts'
import { type LogoutMemory, takeLogoutToken } from '../../../shared/token/logout-token.ts'
import { type Fetch, remoteKeys } from '../../../shared/token/remote-keys.ts'
import type { Revocations } from '../../issuer/tokens/revocation.ts'
import type { SharedAttempts } from '../../limits/shared-attempts.ts'
import { readForm } from '../../oauth/forms.ts'
import { STATUS } from '../../oauth/status.ts'
import { BY_PROVIDER } from './enter.ts'
import type { Links } from './links.ts'
import type { IdentityProvider, IdentityProviders } from './providers.ts'

/** Answers a message to the provider `id`. Throws PdpError `store_unavailable`. */
export type SignedOutElsewhere = (req: IncomingMessage, res: ServerResponse, id: string) => Promise<void>

type Deps = {
  readonly providers: Pick<IdentityProviders, 'find'>
  readonly links: Pick<Links, 'userOf'>
  readonly revocations: Pick<Revocations, 'revokeSession'>
  readonly sql: Queries
  readonly marks: Pick<SharedAttempts, 'mark' | 'isMarked'>
  readonly keysOf: (issuer: string) => KeySource
  readonly clock: () => number
  readonly log: Log
}

const FORM_BYTES_MAX = 16_384
const ISSUERS_MAX = 100
const CONTEXT = { actor: 'identity', requestId: '' }
const SESSIONS = `
  select uid from oidc_record
  where kind = 'Session' and payload ->> 'accountId' = $1 and payload -> 'amr' ? $2 and consumed_at is null and uid is not null`

export function createSignedOutElsewhere(deps: Deps): SignedOutElsewhere {
  const { providers, links, revocations, sql, marks, keysOf, clock, log } = deps
  const nameOf = (key: string): string => `signed out ${key}`
  const memory: LogoutMemory = {
    has: (key) => marks.isMarked(nameOf(key)),
    keep: (key, forMs) => marks.mark(nameOf(key), forMs),
  }

  async function end(token: string, { id, issuer, client_id: clientId }: IdentityProvider): Promise<void> {
    const expected = { issuer, clientId, keys: keysOf(issuer), algorithms: ALGORITHM_NAMES }
    await takeLogoutToken(token, expected, { memory, clock }, async ({ subject }) => {
      // The session is found by its subject only: providers' session ids are not stored.
      if (subject === null) throw new TokenError('token_invalid', 'it names no subject')
      // The linked account here; null: there is none, so no sign-in ends.
      const user = await links.userOf({ issuer, subject })
      const sessions = user === null ? [] : await sql.query<{ uid: string }>(SESSIONS, [user, BY_PROVIDER.amr[0]])
      for (const { uid } of sessions) await revocations.revokeSession(uid, CONTEXT)
      log.info({ event: 'foreign_sign_out', provider: id, user, sessions: sessions.length })
    })
  }

  return async (req, res, id) => {
    const form = await readForm(req, FORM_BYTES_MAX)
    if (form === null) return refuse(res, STATUS.tooLarge, 'the form is too large')
    const [token = '', ...more] = form.getAll('logout_token')
    const provider = await providers.find(id)
    if (provider === null || token === '' || more.length > 0)
      return refuse(res, STATUS.invalid, 'there must be one logout_token, for a provider that is registered')
    try {
      await end(token, provider)
    } catch (err) {
      if (!(err instanceof TokenError)) throw err
      log.warn({ event: 'foreign_sign_out_refused', provider: id, reason: err.message })
      if (err.code !== 'token_invalid') throw new PdpError('store_unavailable', 'the keys of the provider are missing')
      return refuse(res, STATUS.invalid, 'the logout_token is refused')
    }
    res.writeHead(STATUS.shown, { 'cache-control': 'no-store' }).end()
  }
}

/** The provider's keys, read at most every few seconds for each issuer, whatever strangers send. */
export function createProviderKeys({ fetch, clock }: Pick<Deps, 'clock'> & { readonly fetch: Fetch }): Deps['keysOf'] {
  const known = new BoundedMap<string, KeySource>(ISSUERS_MAX)
  return (issuer) => known.getOrMake(issuer, () => remoteKeys({ issuer, fetch, clock }))
}

/** An error of section 2.8. */
function refuse(res: ServerResponse, status: number, description: string): void {
  res.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' })
  res.end(JSON.stringify({ error: 'invalid_request', error_description: description }))
}
