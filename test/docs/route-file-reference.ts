/** The reference of route files: each key where it stands, with its form and meaning, from the schema that editors use. */
import { routeFileSchema } from '../../sidecar/route-file/format.ts'
import type { Form } from '../../sidecar/route-file/words/schema.ts'

const WIDTH = 140
const HEAD = `# Every key of a route file: the meaning above it, its form beside it. docs/routes.md is the guide.
# Generated from the table that the sidecar reads files by.
`
const SCHEMA = routeFileSchema()

export const routeFileReference = (): string => `${HEAD}\n${keysOf(SCHEMA, '').join('\n')}\n`

/** Each line begins with `indent`. */
function keysOf(map: Form, indent: string): readonly string[] {
  const needed = Array.isArray(map.required) ? map.required : []
  return Object.entries(formsOf(map.properties)).flatMap(([name, form]) => {
    const key = `${indent}${name}: # ${describe(form)}${needed.includes(name) ? ', required' : ''}`
    return [...wrapped(String(form.description ?? ''), indent), key, ...below(form, `${indent}  `)]
  })
}

/** The keys of the map that the value is, or that it lists; none for other values. */
function below(form: Form, indent: string): readonly string[] {
  const map = mapIn(form)
  if (map !== null) return keysOf(map, indent)
  const item = isForm(form.items) ? mapIn(form.items) : null
  if (item !== null) return [`${indent}-`, ...keysOf(item, `${indent}  `)]
  return Object.entries(formsOf(form.patternProperties)).flatMap(([pattern, one]) => {
    const route = mapIn(one)
    const kind = pattern.startsWith('^MCP') ? 'MCP' : 'METHOD'
    return route === null ? [] : [`${indent}"${kind} [host]/path":`, ...keysOf(route, `${indent}  `)]
  })
}

function mapIn(form: Form): Form | null {
  const { properties, oneOf } = resolved(form)
  if (properties !== undefined) return resolved(form)
  return Array.isArray(oneOf) && form.$ref === undefined
    ? (oneOf.filter(isForm).map(mapIn).find(Boolean) ?? null)
    : null
}

function resolved(form: Form): Form {
  const name =
    String(form.$ref ?? '')
      .split('/')
      .at(-1) ?? ''
  return formsOf(SCHEMA.definitions)[name] ?? form
}

function describe(form: Form): string {
  const { type, items, enum: choices, const: only, default: usual } = form
  if (typeof only === 'string') return only
  if (Array.isArray(choices)) return choices.join(', ')
  if (type === 'integer')
    return `${form.minimum} to ${form.maximum}${usual === undefined ? '' : `, by default ${usual}`}`
  if (type === 'boolean') return 'true, false'
  if (type === 'array') return `list of ${describe(isForm(items) ? items : {})}`
  if (type === 'string') return 'text'
  if (type === 'object') return 'map'
  if (Array.isArray(form.oneOf)) return form.oneOf.filter(isForm).map(describe).join(', or ')
  return String(form.$ref).endsWith('check') ? 'check' : 'map'
}

function wrapped(text: string, indent: string): readonly string[] {
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const line = lines.at(-1)
    if (line !== undefined && `${line} ${word}`.length <= WIDTH) lines[lines.length - 1] = `${line} ${word}`
    else lines.push(`${indent}# ${word}`)
  }
  return lines
}

const isForm = (value: unknown): value is Form => typeof value === 'object' && value !== null
const formsOf = (value: unknown): { readonly [name: string]: Form } =>
  isForm(value)
    ? Object.fromEntries(Object.entries(value).filter((entry): entry is [string, Form] => isForm(entry[1])))
    : {}
