/** Gives the schemas of requests and answers in the API's description names and examples. */

import { isJsonObject } from '../../../shared/domain/json.ts'
import { exampleOf } from './schema-examples.ts'

type Node = { [member: string]: unknown }
const PREFIX = '#/components/schemas/'

const isNode = (value: unknown): value is Node => isJsonObject(value)
const nodes = (value: unknown): readonly Node[] => (isNode(value) ? Object.values(value).filter(isNode) : [])

/** The text that decides whether two schemas are the same. A description does not change the form, so it is left out. */
const textOf = (schema: Node): string => JSON.stringify({ ...schema, description: undefined })

/** A copy of the description with `components.schemas`, to which its operations refer. */
export function withNamedSchemas(document: object): object {
  const copy: unknown = structuredClone(document)
  if (!isNode(copy)) throw new TypeError('the description is no object')
  const schemas = new Map<string, Node>()
  const names = new Map<string, string>()

  /** Gives a schema a name, the same for the same schema everywhere. */
  function name(holder: Node, wanted: string): void {
    const { schema } = holder
    if (!isNode(schema) || schema.$ref !== undefined) return
    refer(schema)
    const text = textOf(schema)
    const known = names.get(text) ?? unused(wanted)
    names.set(text, known)
    schemas.set(known, schema)
    holder.schema = { $ref: PREFIX + known }
  }

  function unused(wanted: string): string {
    for (let i = 2, found = wanted; ; i++) {
      if (!schemas.has(found)) return found
      found = `${wanted}${i}`
    }
  }

  /** Objects within a schema that have a name already become references. */
  function refer(schema: Node): void {
    for (const [member, value] of Object.entries(schema)) {
      if (Array.isArray(value)) for (const item of value.filter(isNode)) refer(item)
      if (!isNode(value)) continue
      refer(value)
      const known = value.properties === undefined ? undefined : names.get(textOf(value))
      if (known !== undefined) schema[member] = { $ref: PREFIX + known }
    }
  }

  for (const { id, contents } of operationsOf(copy)) {
    const title = id.replace(/^get(?=[A-Z])/, '').replace(/^./, (letter) => letter.toUpperCase())
    const isGet = id.startsWith('get')
    for (const { holder, kind } of contents) name(holder, kind === 'Problem' ? kind : isGet ? title : title + kind)
  }
  const described = [...schemas].map(([key, schema]) => [key, { ...schema, examples: [exampleOf(schema, schemas)] }])
  copy.components = { ...(isNode(copy.components) ? copy.components : {}), schemas: Object.fromEntries(described) }
  return copy
}

type Content = { readonly holder: Node; readonly kind: 'Problem' | 'Request' | 'Answer' }

/** Operations that read one object come first, so that its schema gets the object's name everywhere. */
function operationsOf(document: Node): readonly { readonly id: string; readonly contents: readonly Content[] }[] {
  const found = nodes(document.paths).flatMap((path) =>
    nodes(path).flatMap((operation) =>
      typeof operation.operationId === 'string' ? [{ id: operation.operationId, contents: contentsOf(operation) }] : [],
    ),
  )
  return found.toSorted((a, b) => Number(b.id.startsWith('get')) - Number(a.id.startsWith('get')))
}

/** True for a stream of lines: its schema describes one line, not one JSON text. */
const isStream = (type: string): boolean => !/json$|form-urlencoded$/.test(type) || type.endsWith('ndjson')

function contentsOf({ requestBody, responses }: Node): readonly Content[] {
  const requests = isNode(requestBody) && isNode(requestBody.content) ? Object.entries(requestBody.content) : []
  const answers = nodes(responses).flatMap(({ content }) => (isNode(content) ? Object.entries(content) : []))
  return [
    ...requests.flatMap(([type, holder]) =>
      isNode(holder) && !isStream(type) ? [{ holder, kind: 'Request' } as const] : [],
    ),
    ...answers.flatMap(([type, holder]) =>
      isNode(holder) && !isStream(type)
        ? [{ holder, kind: type === 'application/problem+json' ? 'Problem' : 'Answer' } as const]
        : [],
    ),
  ]
}
