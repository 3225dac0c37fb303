/** The words in which the format of a route file is written: members with their forms. A form is JSON Schema (draft 7). */
export type Form = { readonly [keyword: string]: unknown }
export type Member = { readonly need: 'required' | 'optional'; readonly form: Form }
export type Members = { readonly [name: string]: Member }

const described = (form: Form, description: string | undefined): Form =>
  description === undefined ? form : { ...form, description }

export const required = (form: Form, description?: string): Member => ({
  need: 'required',
  form: described(form, description),
})
export const optional = (form: Form, description?: string): Member => ({
  need: 'optional',
  form: described(form, description),
})

export const TEXT: Form = { type: 'string', minLength: 1 }
/** RFC 9110 section 5.6.2: the characters of a token. */
export const HEADER = /^[!#$%&'*+.^_`|~A-Za-z0-9-]+$/
export const FLAG: Form = { type: 'boolean' }
export const textLike = ({ source }: RegExp): Form => ({ type: 'string', pattern: source.replaceAll('\\/', '/') })
export const oneOf = (options: readonly string[]): Form => ({ enum: options })
export const listOf = (items: Form): Form => ({ type: 'array', minItems: 1, items })
/** How many names a member may have at once: during a change, an old name and a new name are both valid. */
export const NAMES_MAX = 8
export const oneOrMore = (form: Form): Form => ({ oneOf: [form, { ...listOf(form), maxItems: NAMES_MAX }] })
export const mapOf = (members: Members, more: Form = {}): Form => ({
  type: 'object',
  additionalProperties: false,
  required: Object.keys(members).filter((name) => members[name]?.need === 'required'),
  properties: Object.fromEntries(Object.entries(members).map(([name, { form }]) => [name, form])),
  ...more,
})
/** The least and the greatest allowed value. */
export type Bounds = { readonly min: number; readonly max: number }
export const count = ({ min, max }: Bounds, more: Form = {}): Form => ({
  type: 'integer',
  minimum: min,
  maximum: max,
  ...more,
})
/** A form with a name of its own in the schema, because it occurs twice or contains itself. */
export const definition = (name: string): Form => ({ $ref: `#/definitions/${name}` })
