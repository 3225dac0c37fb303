/** Describes this SCIM server's abilities (RFC 7644 section 4, RFC 7643 sections 5 to 7), which are public. */
import type { FastifyInstance, FastifyReply } from 'fastify'
import type { JsonObject } from '../../../shared/domain/json.ts'
import { constantAnswer } from '../../../shared/process/http/constant-answer.ts'
import { sendConstant } from '../http/conditions.ts'
import { RequestProblem } from '../http/status.ts'
import { type Attribute, ENTERPRISE_SCHEMA, GROUP, type ResourceType, USER } from './attributes.ts'
import { SCIM_PATH, SCIM_TYPE, sendNotSupported } from './errors.ts'
import { PAGE_MAX } from './listing.ts'

/**
 * Optional operations that are not offered (RFC 7644 section 3.12: 501): a search over all types, bulk changes, and the caller's
 * own user.
 */
const NOT_SUPPORTED = ['/.search', '/Bulk', '/Me']
const LIST_SCHEMA = 'urn:ietf:params:scim:api:messages:2.0:ListResponse'
const CORE = 'urn:ietf:params:scim:schemas:core:2.0'

export function addDiscovery(app: FastifyInstance, issuer: string): void {
  const base = `${issuer.replace(/\/$/, '')}${SCIM_PATH}`
  const get = (path: string, document: JsonObject): void => {
    const answer = constantAnswer(document)
    app.get<{ Querystring: { filter?: unknown } }>(`${SCIM_PATH}${path}`, {
      schema: { hide: true },
      handler: async (request, reply: FastifyReply) => {
        // RFC 7644 section 4 requires this error for a filter.
        if (request.query.filter !== undefined)
          throw new RequestProblem('permission_denied', 'the resources that describe this service cannot be filtered')
        return sendConstant(request, reply, { answer, type: SCIM_TYPE })
      },
    })
  }
  get('/ServiceProviderConfig', configuration(base))
  for (const path of NOT_SUPPORTED) {
    app.all(`${SCIM_PATH}${path}`, {
      schema: { hide: true },
      // Runs before the body is read.
      onRequest: async (request, reply) => sendNotSupported(request, reply, path),
      handler: async () => undefined,
    })
  }
  for (const [path, resources] of [
    ['/ResourceTypes', [USER, GROUP].map((type) => resourceType(base, type))],
    ['/Schemas', schemasAt(base)],
  ] as const) {
    get(path, { ...listOf(resources) })
    // Fastify reads two colons as one colon of the path.
    for (const resource of resources) get(`${path}/${String(resource.id).replaceAll(':', '::')}`, resource)
  }
}

const listOf = (resources: readonly JsonObject[]): JsonObject => ({
  schemas: [LIST_SCHEMA],
  totalResults: resources.length,
  startIndex: 1,
  itemsPerPage: resources.length,
  Resources: resources,
})

function configuration(base: string): JsonObject {
  const no = { supported: false }
  return {
    schemas: [`${CORE}:ServiceProviderConfig`],
    patch: { supported: true },
    bulk: { ...no, maxOperations: 0, maxPayloadSize: 0 },
    filter: { supported: true, maxResults: PAGE_MAX },
    changePassword: no,
    sort: no,
    etag: { supported: true },
    authenticationSchemes: [
      {
        type: 'oauthbearertoken',
        name: 'OAuth 2.0',
        description: 'An access token of a client that is bound to one organization, with the scope scim.',
        specUri: 'https://www.rfc-editor.org/rfc/rfc6750',
        primary: true,
      },
    ],
    meta: { resourceType: 'ServiceProviderConfig', location: `${base}/ServiceProviderConfig` },
  }
}

function resourceType(base: string, { name, schema, extension }: ResourceType): JsonObject {
  return {
    schemas: [`${CORE}:ResourceType`],
    id: name,
    name,
    endpoint: `/${name}s`,
    schema,
    ...(extension === null ? {} : { schemaExtensions: [{ schema: extension.schema, required: false }] }),
    meta: { resourceType: 'ResourceType', location: `${base}/ResourceTypes/${name}` },
  }
}

function schemasAt(base: string): readonly JsonObject[] {
  const all = [
    { id: USER.schema, name: 'User', attributes: USER.attributes },
    { id: ENTERPRISE_SCHEMA, name: 'EnterpriseUser', attributes: USER.extension?.attributes ?? [] },
    { id: GROUP.schema, name: 'Group', attributes: GROUP.attributes },
  ]
  return all.map(({ id, name, attributes }) => ({
    schemas: [`${CORE}:Schema`],
    id,
    name,
    description: name,
    attributes: attributes.map(presentAttribute),
    meta: { resourceType: 'Schema', location: `${base}/Schemas/${id}` },
  }))
}

const presentAttribute = ({ subAttributes, canonicalValues, referenceTypes, ...rest }: Attribute): JsonObject => ({
  ...rest,
  ...(canonicalValues === undefined || canonicalValues.length === 0 ? {} : { canonicalValues }),
  ...(referenceTypes === undefined ? {} : { referenceTypes }),
  ...(subAttributes === undefined ? {} : { subAttributes: subAttributes.map(presentAttribute) }),
})
