/** How strongly a person signed in: authentication context classes (acr) and methods (amr, RFC 8176). */

import type { Client } from 'oidc-provider'

export type Assurance = { readonly acr: string; readonly amr: readonly string[] }
export const BY_PASSWORD: Assurance = { acr: 'pwd', amr: ['pwd'] }
export const BY_PASSWORD_AND_CODE: Assurance = { acr: 'mfa', amr: ['pwd', 'otp', 'mfa'] }

/** `before`: how they signed in before they gave the code. */
export const withCode = (before: readonly string[] = BY_PASSWORD.amr): Assurance => ({
  acr: BY_PASSWORD_AND_CODE.acr,
  amr: [...new Set([...before, 'otp', 'mfa'])],
})

/**
 * A passkey that verified the person is two factors, as is one after the password. `synced`: a service copies its key, so no
 * hardware holds it alone. `user`: the person was there and touched it.
 */
export const byPasskey = (of: { readonly synced: boolean; readonly afterPassword: boolean }): Assurance => ({
  acr: BY_PASSWORD_AND_CODE.acr,
  amr: [...(of.afterPassword ? ['pwd'] : []), of.synced ? 'swk' : 'hwk', 'user', 'mfa'],
})

export const ACR_VALUES = [BY_PASSWORD_AND_CODE.acr, BY_PASSWORD.acr] as const

/** People whom the operator, or the registration of the client, lets in with two factors only. Undefined: no client asks. */
export type Demands = (client: Pick<Client, 'portcullis_second_factor'> | undefined) => boolean
export const demandsOf =
  (always: boolean): Demands =>
  (client) =>
    always || client?.portcullis_second_factor === true

export const hasTwoFactors = (acr: string | undefined): boolean => acr === BY_PASSWORD_AND_CODE.acr

/** `wanted`: the values of `acr_values`, of which one is enough; none: anything is. Two factors count where a password was asked for. */
export function meets(acr: string | undefined, wanted: readonly string[]): boolean {
  if (wanted.length === 0 || (acr !== undefined && wanted.includes(acr))) return true
  return acr === BY_PASSWORD_AND_CODE.acr && wanted.includes(BY_PASSWORD.acr)
}

/** False when no sign-in here can give any of them. */
export const isAttainable = (wanted: readonly string[]): boolean =>
  wanted.length === 0 || ACR_VALUES.some((acr) => wanted.includes(acr))
