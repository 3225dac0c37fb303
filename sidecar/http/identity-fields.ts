/** Fields in which a service learns the bearer by names and claims of its own choice, such as `Remote-Groups`. */
import type { JsonMembers } from '../../pdp/shared/base/json-text.ts'
import { claimAt } from '../../pdp/shared/token/issuer-claims.ts'

export type IdentityField = {
  /** The name of the field, in lower case. */
  readonly name: string
  /** The value: texts, and claims by name, where a dot leads into an object. Null: the value is the signed assertion. */
  readonly parts: readonly (string | { readonly claim: string })[] | null
}

/** The bound of one value in characters. Servers bound the sum of all fields. */
export const FIELD_CHARS_MAX = 8_192
/** Matches every spelling of an email claim, also behind a namespace such as `https://acme.example/email`. */
const EMAIL = /(?:^|[^a-z])e-?mails?$/i
const VERIFIED: readonly unknown[] = [true, 'true']

/** Names and values, alternating, in bytes of UTF-8. A field is left out if its value lacks a part or could be misread. */
export function identityFields(fields: readonly IdentityField[], claims: JsonMembers): string[] {
  const list: string[] = []
  for (const { name, parts } of fields) {
    const value = parts === null ? null : fieldValue(parts, claims)
    if (value !== null) list.push(name, Buffer.from(value).toString('latin1'))
  }
  return list
}

function fieldValue(parts: NonNullable<IdentityField['parts']>, claims: JsonMembers): string | null {
  let value = ''
  for (const part of parts) {
    const text = typeof part === 'string' ? part : claimText(part.claim, claims)
    if (text === null) return null
    value += text
  }
  return value.length <= FIELD_CHARS_MAX && !BLANK_END.test(value) ? value : null
}

/** The claim's value; undefined: the token lacks it, or it is an email address that the issuer has not verified. */
export function verifiedClaim(claims: JsonMembers, name: string): unknown {
  const isAssumed = EMAIL.test(name) && !VERIFIED.includes(claimAt(claims, `${name}_verified`))
  return isAssumed ? undefined : claimAt(claims, name)
}

function claimText(name: string, claims: JsonMembers): string | null {
  const value = verifiedClaim(claims, name)
  if (!Array.isArray(value)) return itemText(value)
  const items = value.map(itemText)
  // An item with a comma would be read as two items.
  const isList = items.length > 0 && items.every((item) => item !== null && !item.includes(','))
  return isList ? items.join(',') : null
}

/** Matches a blank at either end. A value with one, or with a control character, is left out: servers could cut it there. */
const BLANK_END = /^\s|\s$/
const UNFIT = /[\p{Cc}\p{Zl}\p{Zp}]/u

function itemText(value: unknown): string | null {
  if (typeof value === 'boolean' || Number.isSafeInteger(value)) return String(value)
  if (typeof value !== 'string' || value === '' || BLANK_END.test(value)) return null
  return value.isWellFormed() && !UNFIT.test(value) ? value : null
}
