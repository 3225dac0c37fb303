/** Parts that the JSON Schemas of several requests share. */
import { ID as ID_FORM } from '../../../shared/token/claims.ts'

export type JsonSchema = { readonly [keyword: string]: unknown }

/** The keyword for the words that explain a pattern. They continue the sentence "must be …". */
export const FORM = 'x-form'
export const text = (pattern: string, form: string) => ({ type: 'string', pattern, [FORM]: form }) as const

/** An id (ARCHITECTURE.md section 5): 1-256 characters of visible ASCII, no `#`, not `*` alone. */
export const ID = text(ID_FORM.source, '1 to 256 visible ASCII characters, without #, and not the single character *')
const KEY = text('^[a-z][a-z0-9_.:-]{0,127}$', 'a key: a lower-case letter, then up to 127 of a-z, 0-9, _ . : and -')
export const ENTITLEMENT_KEY = KEY
export const PERMISSION_KEY = KEY
export const PERMISSION_KEYS = { type: 'array', maxItems: 1_000, uniqueItems: true, items: PERMISSION_KEY }
/** Text for people. Control characters are refused, because they cause trouble in logs and in PostgreSQL. */
export const LABEL = text('^[^\\u0000-\\u001f\\u007f]{1,256}$', '1 to 256 characters, none of them a control character')
/** A secret that the caller has chosen. */
export const SECRET = text('^[\\x21-\\x7e]{16,256}$', '16 to 256 visible ASCII characters')
/** A position in a log, as a query parameter. */
export const POSITION = text('^(0|[1-9][0-9]{0,14})$', 'a whole number of up to 15 digits')
export const TIMESTAMP = { type: 'string', format: 'date-time' } as const

/** An object without other members than these. */
export function object(
  properties: { readonly [name: string]: JsonSchema },
  required: readonly string[] = [],
): JsonSchema {
  return { type: 'object', additionalProperties: false, required, properties }
}

/** The schema of an object that has all of these members, and no others. */
export const whole = (properties: { readonly [name: string]: JsonSchema }): JsonSchema =>
  object(properties, Object.keys(properties))

/** The schema of all error answers (RFC 9457). */
export const PROBLEM_RESPONSE = {
  description: 'A problem.',
  content: {
    'application/problem+json': {
      schema: {
        type: 'object',
        required: ['type', 'title', 'status', 'code'],
        properties: {
          type: { type: 'string', description: 'urn:portcullis:problem:<code>' },
          title: { type: 'string' },
          status: { type: 'integer' },
          code: { type: 'string' },
          detail: { type: 'string' },
          request_id: { type: 'string' },
          errors: {
            type: 'array',
            description:
              'Every issue, with a JSON pointer into the body, a line of it, or the name of a path or query parameter.',
            items: {
              type: 'object',
              required: ['detail'],
              properties: {
                pointer: { type: 'string' },
                parameter: { type: 'string' },
                line: { type: 'integer' },
                column: { type: 'integer' },
                detail: { type: 'string' },
              },
            },
          },
        },
      },
    },
  },
} as const
