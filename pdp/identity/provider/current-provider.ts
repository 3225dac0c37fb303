/** The provider of the current signing keys. */
import { errors, type Provider } from 'oidc-provider'
import type { Client } from '../../engine/store/directory.ts'
import { PdpError } from '../../shared/domain/errors.ts'
import type { KeyRing } from '../issuer/keys/key-ring.ts'
import type { SigningKeys } from '../issuer/keys/signing-keys.ts'
import { providerMetadata } from './client-metadata.ts'

type Built = {
  readonly keys: SigningKeys
  readonly provider: Provider
  readonly callback: ReturnType<Provider['callback']>
}

/** The provider of the current signing keys: another one after they changed. All work on the same store. */
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

/** Throws PdpError `request_invalid`. */
export async function validateClient(
  provider: Provider,
  client: Client & { readonly secretHash: string | null },
): Promise<void> {
  try {
    await provider.Client.validate(providerMetadata(client))
  } catch (err) {
    if (!(err instanceof errors.OIDCProviderError)) throw err
    const message = err.error_description ?? 'the client metadata is not valid'
    throw new PdpError('request_invalid', message, { cause: err, issues: [{ place: '', message }] })
  }
}
