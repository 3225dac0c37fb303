/** The purposes and names under which values are encrypted with the master key and stored. */
export const SIGNING_KEY_PURPOSE = 'signing-key'
export const RECORD_PURPOSE = 'record'
export const AUTHENTICATOR_PURPOSE = 'authenticator'
/** The purpose and also the name: there is only one hook. */
export const HOOK_SEALED_AS = 'token-hook'
/** The purpose and also the name of each such value. */
export const INTROSPECTION_SEALED_AS = 'issuer-introspection'

/** The purpose; the name is the provider's id. */
export const PROVIDER_PURPOSE = 'identity-provider'

export const nameOfRecord = (kind: string, key: string): string => `${kind} ${key}`
export const nameOfAuthenticator = (user: string): string => `authenticator ${user}`
