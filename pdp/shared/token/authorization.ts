/** Reads the Authorization field of a request (RFC 6750 section 2.1, RFC 9449 section 7.1). */
import { TokenError } from './errors.ts'

export type Credentials = { readonly scheme: 'bearer' | 'dpop'; readonly token: string }

// RFC 9110 section 11.2: a token68, after one or more spaces.
const CREDENTIALS = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+)(?: +([A-Za-z0-9._~+/-]+=*))?/

/**
 * `fields`: every Authorization field of the request, in order. Throws TokenError `token_missing` without one or
 * its scheme is not Bearer or DPoP, `authorization_invalid` when there are several fields or no credentials, and
 * `token_invalid` when the credentials are not one token68.
 */
export function parseAuthorization(fields: readonly string[]): Credentials {
  const [field] = fields
  if (field === undefined) throw new TokenError('token_missing', 'no Authorization field')
  if (fields.length > 1) throw new TokenError('authorization_invalid', 'more than one Authorization field')
  const match = CREDENTIALS.exec(field)
  const scheme = match?.[1]?.toLowerCase()
  if (scheme !== 'bearer' && scheme !== 'dpop') throw new TokenError('token_missing', 'no Bearer or DPoP credentials')
  if (/^\S+ *$/.test(field))
    throw new TokenError('authorization_invalid', 'the Authorization field has a scheme and no token after it')
  const token = match?.[2]
  if (token === undefined || match?.[0] !== field)
    throw new TokenError(
      'token_invalid',
      'the Authorization field holds more than one token, or a character that no token has (RFC 9110 section 11.2)',
    )
  return { scheme, token }
}
