/** Makes answers about unknown clients take as long: a wrong secret is hashed against a decoy, as for a known client. */
import { createHmac } from 'node:crypto'
import type { Provider } from 'oidc-provider'
import type { MasterKeys } from '../../shared/base/encryption.ts'
import type { Semaphore } from '../limits/attempts.ts'
import type { ClientOf } from '../limits/limit-address.ts'
import { type Context, contextOf, paramsOf } from '../oauth/request.ts'
import { isSlowHash, verifySecret } from '../people/passwords/password-hash.ts'

/** Hashes that fit no secret, in the two stored forms: of secrets that we generate, and of those that callers choose. */
export type DecoyHashes = { readonly generated: string; readonly chosen: string }

export function installClientDecoy(
  provider: Provider,
  deps: {
    readonly masterKeys: MasterKeys
    readonly secretSemaphore: Semaphore
    readonly clientOf: ClientOf
    readonly decoys: DecoyHashes
  },
): void {
  const [key] = deps.masterKeys.derive('client-decoy')

  /** The decoy of an id is always the same, so the time of an answer does not tell whether the client exists. */
  function decoyFor(id: string): string {
    const [first = 0] = createHmac('sha256', key).update(id).digest()
    return first % 2 === 0 ? deps.decoys.generated : deps.decoys.chosen
  }

  provider.use(async (ctx, next) => {
    await next()
    if (!failedBeforeSecretCheck(contextOf(ctx))) return
    const [id, secret] = presentedSecret(contextOf(ctx))
    if (secret === '') return
    const stored = decoyFor(id)
    const verify = (): Promise<boolean> => verifySecret(secret, stored)
    // Fails like the check of a real client when too many checks wait. Only one full queue of two can reveal whether a client exists, which
    // is no secret (RFC 6749 section 2.2).
    await (isSlowHash(stored) ? deps.secretSemaphore(verify, deps.clientOf(ctx.req)) : verify())
  })
}

/** True if client authentication failed before any secret was compared. */
function failedBeforeSecretCheck({ body, oidc }: Context): boolean {
  if (typeof body !== 'object' || body === null || !('error' in body) || body.error !== 'invalid_client') return false
  return oidc.client?.clientAuthMethod?.startsWith('client_secret_') !== true
}

function presentedSecret({ req, oidc }: Context): readonly [string, string] {
  const { client_id: id = '', client_secret: secret } = paramsOf(oidc)
  if (secret !== undefined) return [id, secret]
  const [, basic] = /^basic +(\S+)$/i.exec(req.headers.authorization ?? '') ?? []
  if (basic === undefined) return ['', '']
  const text = Buffer.from(basic, 'base64').toString()
  const colon = text.indexOf(':')
  return colon === -1 ? ['', ''] : [text.slice(0, colon), text.slice(colon + 1)]
}
