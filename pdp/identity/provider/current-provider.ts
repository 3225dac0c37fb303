/** Makes the provider for the current signing keys. */
import { errors, type Provider } from 'oidc-provider'
import type { Client } from '../../engine/store/directory.ts'
import { type GuardedPost, TargetRefused } from '../../shared/base/guarded-post.ts'
import { PdpError } from '../../shared/domain/errors.ts'
import type { KeyRing } from '../issuer/keys/key-ring.ts'
import type { SigningKeys } from '../issuer/keys/signing-keys.ts'
import { providerMetadata } from './client-metadata.ts'

type Built = {
  readonly keys: SigningKeys
  readonly provider: Provider
  readonly callback: ReturnType<Provider['callback']>
}

/** Returns the provider for the current signing keys, a new one after they changed. All providers use the same store. */
export function createProviders(
  ring: Pick<KeyRing, 'current'>,
  build: (keys: SigningKeys) => Provider,
): { current(): Built } {
  function make(keys: SigningKeys): Built {
    const provider = build(keys)
    return { keys, provider, callback: provider.callback() }
  }
  let built = make(ring.current())
  return {
    current() {
      if (built.keys !== ring.current()) built = make(ring.current())
      return built
    },
  }
}

/** Members of a registration with URLs that this server calls. */
const CALLED = ['backchannel_logout_uri', 'jwks_uri'] as const

/** Checks a registration. Throws PdpError `request_invalid`. */
export async function validateClient(
  { provider, guard }: { readonly provider: Provider; readonly guard: Pick<GuardedPost, 'check'> },
  client: Client & { readonly secretHash: string | null },
): Promise<void> {
  for (const name of CALLED) {
    const url = client.metadata[name]
    if (typeof url === 'string') requireCallable(guard, { place: `/${name}`, url })
  }
  try {
    await provider.Client.validate(providerMetadata(client))
  } catch (err) {
    if (!(err instanceof errors.OIDCProviderError)) throw err
    const message = err.error_description ?? 'the client metadata is not valid'
    throw new PdpError('request_invalid', message, { cause: err, issues: [{ place: '', message }] })
  }
}

function requireCallable(
  guard: Pick<GuardedPost, 'check'>,
  { place, url }: { readonly place: string; readonly url: string },
): void {
  try {
    guard.check(url)
  } catch (err) {
    if (!(err instanceof TargetRefused)) throw err
    const message = `${err.message}; hosts of your own network are allowed by PORTCULLIS_SIGNAL_INTERNAL_HOSTS`
    throw new PdpError('request_invalid', `${place} ${message}`, { issues: [{ place, message }] })
  }
}
