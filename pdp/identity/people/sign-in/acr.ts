/** The strength of sign-ins: authentication context classes (acr) and methods (amr, RFC 8176). */

import type { Client } from 'oidc-provider'

export type Assurance = { readonly acr: string; readonly amr: readonly string[] }
export const BY_PASSWORD: Assurance = { acr: 'pwd', amr: ['pwd'] }
export const BY_PASSWORD_AND_CODE: Assurance = { acr: 'mfa', amr: ['pwd', 'otp', 'mfa'] }

/** `before`: the methods of the sign-in before the code was given. */
export const withCode = (before: readonly string[] = BY_PASSWORD.amr): Assurance => ({
  acr: BY_PASSWORD_AND_CODE.acr,
  amr: [...new Set([...before, 'otp', 'mfa'])],
})

/**
 * A passkey that verified the person counts as two factors, and so does one after the password. `synced`: a service copies its key,
 * so the key is not only in hardware. `user` (RFC 8176): the person was present and touched it.
 */
export const byPasskey = (of: { readonly synced: boolean; readonly afterPassword: boolean }): Assurance => ({
  acr: BY_PASSWORD_AND_CODE.acr,
  amr: [...(of.afterPassword ? ['pwd'] : []), of.synced ? 'swk' : 'hwk', 'user', 'mfa'],
})

export const ACR_VALUES = [BY_PASSWORD_AND_CODE.acr, BY_PASSWORD.acr] as const

/** True if the operator or the client's registration demands two factors. Undefined: no client is known. */
export type Demands = (client: Pick<Client, 'portcullis_second_factor'> | undefined) => boolean
export const demandsOf =
  (always: boolean): Demands =>
  (client) =>
    always || client?.portcullis_second_factor === true

export const hasTwoFactors = (acr: string | undefined): boolean => acr === BY_PASSWORD_AND_CODE.acr

/** True if the sign-in has one of the `wanted` values of `acr_values`, or none is wanted. Two factors include a password. */
export function meets(acr: string | undefined, wanted: readonly string[]): boolean {
  if (wanted.length === 0 || (acr !== undefined && wanted.includes(acr))) return true
  return acr === BY_PASSWORD_AND_CODE.acr && wanted.includes(BY_PASSWORD.acr)
}

/** True if some sign-in here can reach one of the values. */
export const isAttainable = (wanted: readonly string[]): boolean =>
  wanted.length === 0 || ACR_VALUES.some((acr) => wanted.includes(acr))
