/** Makes an example of a JSON Schema: a value that a caller might send or get. */

import { isJsonObject } from '../../../shared/domain/json.ts'

type Node = { readonly [member: string]: unknown }

const isNode = (value: unknown): value is Node => isJsonObject(value)

/** Example texts by the name of their member; the pattern of a schema decides which one is used. */
const TEXTS: { readonly [name: string]: readonly string[] } = {
  app: ['billing'],
  action: ['viewer'],
  audience: ['https://api.example.com/'],
  client_id: ['billing-service'],
  client_secret: ['an-example-of-a-secret'],
  secret: ['an-example-of-a-secret'],
  code: ['permission_denied'],
  detail: ['the subject does not have this permission'],
  email: ['alice@example.com'],
  etag: ['"3"'],
  issuer: ['https://login.example.com'],
  key: ['seats', 'billing:editor'],
  name: ['Acme', 'acme'],
  object: ['invoice:42'],
  organization: ['acme'],
  parent: ['acme-group'],
  relation: ['viewer'],
  resource: ['invoice:42'],
  role: ['editor'],
  subject: ['user:alice'],
  subject_prefix: ['partner:'],
  title: ['The subject does not have this permission'],
  tuple: ['invoice:42#viewer@user:alice'],
  type: ['user', 'urn:portcullis:problem:permission_denied'],
  url: ['https://hooks.example.com/claims'],
  user: ['alice'],
}
const ANY = [
  ...[
    'acme',
    'alice',
    'viewer',
    'invoice:42',
    'invoice:42#viewer@user:alice',
    'https://app.example.com/',
    'https://app.example.com',
  ],
  ...['1', 'an-example-of-a-secret-with-32-characters', '0123456789abcdef', 'partner:', 'read', '*'],
]

export function exampleOf(schema: Node, schemas: ReadonlyMap<string, Node>, name = ''): unknown {
  if (typeof schema.$ref === 'string')
    return exampleOf(schemas.get(schema.$ref.split('/').at(-1) ?? '') ?? {}, schemas, name)
  if ('const' in schema) return schema.const
  if (Array.isArray(schema.examples)) return schema.examples[0]
  if (Array.isArray(schema.enum)) return schema.enum[0]
  for (const choice of [schema.oneOf, schema.anyOf]) {
    if (!Array.isArray(choice)) continue
    const [first] = choice.filter(isNode)
    return first === undefined
      ? null
      : exampleOf({ ...schema, oneOf: undefined, anyOf: undefined, ...first }, schemas, name)
  }
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type
  if (type === 'string') return textFor(schema, name)
  if (type === 'integer' || type === 'number')
    return typeof schema.minimum === 'number' ? Math.max(schema.minimum, 1) : 1
  if (type === 'boolean') return true
  if (type === 'array') return isNode(schema.items) ? [exampleOf(schema.items, schemas, singular(name))] : []
  if (type === 'object' || isNode(schema.properties)) return objectFor(schema, schemas)
  return type === 'null' ? null : {}
}

function objectFor(
  { properties, additionalProperties, maxProperties }: Node,
  schemas: ReadonlyMap<string, Node>,
): Node {
  const members = isNode(properties) ? Object.entries(properties) : []
  const named = members.flatMap(([name, value]) => (isNode(value) ? [[name, exampleOf(value, schemas, name)]] : []))
  if (named.length > 0 || !isNode(additionalProperties))
    return Object.fromEntries(named.slice(0, Number(maxProperties ?? 100)))
  return { seats: exampleOf(additionalProperties, schemas) }
}

const singular = (name: string): string => name.replace(/s$/, '')

function textFor({ pattern, format, minLength = 0, maxLength = 10_000 }: Node, name: string): string {
  if (format === 'date-time') return '2026-01-31T12:00:00.000Z'
  const fits = (text: string): boolean =>
    (typeof pattern !== 'string' || new RegExp(pattern, 'u').test(text)) &&
    text.length >= Number(minLength) &&
    text.length <= Number(maxLength)
  return [...(TEXTS[name] ?? []), ...ANY].find(fits) ?? 'text'
}
