/** The provider of the current signing keys. */
import type { Provider } from 'oidc-provider'
import type { KeyRing } from './keys/key-ring.ts'
import type { SigningKeys } from './keys/signing-keys.ts'

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
