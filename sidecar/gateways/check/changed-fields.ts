/** Fields of a request that a gateway changes after the decision. */
import { IDENTITY_FIELDS } from '../../http/door-fields.ts'
import type { FindingCode } from './finding.ts'

/** Many services read them as the method, or as the target. */
const OBEYED = [
  'x-http-method-override',
  'x-http-method',
  'x-method-override',
  'x-original-url',
  'x-original-uri',
  'x-rewrite-url',
]

/** As services read a name that is not spelled with dashes. */
export const spelled = (name: string): string => name.toLowerCase().replaceAll(/[_.]/g, '-')
export const isIdentity = (name: string): boolean => IDENTITY_FIELDS.includes(spelled(name))

/** What a finding says about it. */
export type ChangedField = readonly [code: FindingCode, message: string, fix: string]

/** What the client sent, in the words of Caddy, nginx and Envoy. */
const OF_REQUEST =
  /^\{(http\.request\.)?(uri|orig_uri|method|orig_method)\}$|^(\$scheme:\/\/\$(http_)?host)?\$request_uri$|^\$request_method$|^%REQ\(:(PATH|METHOD)\)%$/i

/** Null for a field that decides nothing. `value`: empty where the field is removed; null where it is not known. */
export function setAfterDecision(name: string, value: string | null = null): ChangedField | null {
  if (isIdentity(name)) return ['forgeable', `${name} is set after the decision`, 'leave identity fields to the door']
  const honest = value !== null && (value === '' || OF_REQUEST.test(value))
  if (OBEYED.includes(spelled(name)) && !honest)
    return ['other_bytes', `${name} names another method or target after the decision`, `remove ${name}`]
  return null
}

/** `pattern`: a name, which may begin or end with `*`. Null for one that leaves what the door said. */
export function removedAfterDecision(pattern: string): ChangedField | null {
  const [inner, starts, ends] = [
    pattern.toLowerCase().replaceAll('*', ''),
    pattern.startsWith('*'),
    pattern.endsWith('*'),
  ]
  const hit = IDENTITY_FIELDS.some((name) =>
    starts && ends
      ? name.includes(inner)
      : starts
        ? name.endsWith(inner)
        : ends
          ? name.startsWith(inner)
          : name === inner,
  )
  return hit
    ? ['other_bytes', `${pattern} removes what the door said about the bearer`, 'remove it before the question']
    : null
}
