/** Pieces that the JSON Schemas of several requests share, and the checks that a schema cannot say. */
import type { JsonValue } from '../store/contracts.ts'

export type JsonSchema = { readonly [keyword: string]: unknown }

/** DESIGN section 3: 1-256 characters of visible ASCII, no `#`, not `*` alone. */
export const ID = {
  type: 'string',
  pattern: '^(?!\\*$)[\\x21\\x22\\x24-\\x7e]{1,256}$',
  description: '1 to 256 visible ASCII characters without #, and not * alone.',
} as const
export const ENTITLEMENT_KEY = { type: 'string', pattern: '^[a-z][a-z0-9_.:-]{0,127}$' } as const
export const PERMISSION_KEY = { type: 'string', pattern: '^[a-z][a-z0-9_.:-]{0,127}$' } as const
/** Text for people: no control characters, which neither logs nor PostgreSQL take well. */
export const LABEL = { type: 'string', pattern: '^[^\\u0000-\\u001f\\u007f]{1,256}$' } as const
export const TIMESTAMP = { type: 'string', format: 'date-time' } as const
const JSON_DEPTH_MAX = 32

/** An object schema that refuses members it does not name. */
export function object(
  properties: { readonly [name: string]: JsonSchema },
  required: readonly string[] = [],
): JsonSchema {
  return { type: 'object', additionalProperties: false, required, properties }
}

/** RFC 9457, as every refusal is answered. */
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
            description: 'Every mistake: a JSON pointer into the body, or a parameter of the path or the query.',
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

/** What keeps a JSON value from being stored as jsonb, or null: NUL, half a surrogate pair, too deep nesting. */
export function storageMistake(value: JsonValue, depth = 0): string | null {
  if (typeof value === 'string') return textMistake(value)
  if (value === null || typeof value !== 'object') return null
  if (depth >= JSON_DEPTH_MAX) return `is nested deeper than ${JSON_DEPTH_MAX} levels`
  for (const [name, member] of Object.entries(value)) {
    const mistake = textMistake(name) ?? storageMistake(member, depth + 1)
    if (mistake !== null) return mistake
  }
  return null
}

function textMistake(text: string): string | null {
  if (text.includes('\0')) return 'contains the character U+0000'
  return text.isWellFormed() ? null : 'contains half of a surrogate pair'
}

/** RFC 6901: one more step of a JSON pointer. */
export function pointer(base: string, ...steps: readonly (string | number)[]): string {
  return steps.reduce<string>(
    (path, step) => `${path}/${String(step).replaceAll('~', '~0').replaceAll('/', '~1')}`,
    base,
  )
}
