/** `openapi`: the routes of a route file as an OpenAPI document with AuthZEN mappings. */
import { stringify } from 'yaml'
import type { RouteFile } from '../route-file/route-file.ts'
import type { Pattern, Segment } from '../routes/patterns.ts'
import type { Route } from '../routes/route.ts'
import { MAPPING_KEY, MappingError, mappingOfCheck } from './coaz.ts'

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']
const CREDENTIALS = 'access_token'

export function openApiDocument({ resource, publicUrl, routes }: RouteFile): {
  readonly text: string
  /** Routes that an OpenAPI document cannot express, each with its reason. */
  readonly leftOut: readonly string[]
} {
  const paths: { [path: string]: { [method: string]: object } } = {}
  const leftOut: string[] = []
  for (const route of routes) {
    try {
      const operation = operationOf(route)
      const path = pathOf(route.pattern)
      paths[path] = { ...paths[path], [route.method.toLowerCase()]: operation }
    } catch (err) {
      if (!(err instanceof MappingError)) throw err
      leftOut.push(`${route.id}, because ${err.message}`)
    }
  }
  const document = {
    openapi: '3.1.0',
    info: { title: resource, version: '1' },
    servers: [{ url: new URL(publicUrl).origin }],
    security: [{ [CREDENTIALS]: [] }],
    components: { securitySchemes: { [CREDENTIALS]: { type: 'http', scheme: 'bearer' } } },
    paths,
  }
  return { text: stringify(document, { lineWidth: 0, aliasDuplicateObjects: false }), leftOut }
}

function operationOf(route: Route): object {
  const { check, method, host, stepUp, guests, pattern, shadow, forwardToken, context } = route
  if (!METHODS.includes(method)) throw new MappingError(`a document has no operation for the method ${method}`)
  if (host !== null) throw new MappingError('it is of one host')
  if (pattern.rest) throw new MappingError('its path ends in **')
  if (shadow) throw new MappingError('its denials are only counted')
  if (forwardToken) throw new MappingError('it forwards the token')
  if (Object.keys(context).length > 0) throw new MappingError('it gives values to conditions')
  if (guests !== null) throw new MappingError('it admits guests')
  if (stepUp !== null) throw new MappingError('it demands a strong sign-in')
  const names = pattern.segments.flatMap((segment) => (segment.kind === 'literal' ? [] : [segment.name]))
  const parameters = names.map((name) => ({ name, in: 'path', required: true, schema: { type: 'string' } }))
  return {
    ...(parameters.length > 0 && { parameters }),
    ...(check === null && { security: [] }),
    ...(check !== null && check.kind !== 'signed_in' && { [MAPPING_KEY]: mappingOfCheck(check) }),
    responses: { default: { description: 'The answer of the service.' } },
  }
}

const pathOf = ({ segments }: Pattern): string => `/${segments.map(templateOf).join('/')}`

const templateOf = (segment: Segment): string =>
  segment.kind === 'literal'
    ? encodeURIComponent(segment.text)
    : `${encodeURI(segment.before)}{${segment.name}}${encodeURI(segment.after)}`
