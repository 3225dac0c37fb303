/** The description at /openapi.json: valid, with a name and an example for each schema, and the OAuth endpoints. */
import { Validator } from '@seriousme/openapi-schema-validator'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { PATHS } from '../../../../../pdp/identity/oauth/paths.ts'
import { withNamedSchemas } from '../../../../../pdp/server/serve/http/named-schemas.ts'
import { type Json, type Served, serve } from '../harness.ts'

let served: Served
let api: Json
beforeAll(async () => {
  served = await serve()
  api = (await served.send('GET', '/openapi.json')).body
})
afterAll(() => served.close())

const operations = (): readonly Json[] => Object.values<Json>(api.paths).flatMap((path) => Object.values<Json>(path))
const contents = (operation: Json): readonly Json[] =>
  [operation.requestBody, ...Object.values<Json>(operation.responses)].flatMap((part) =>
    Object.entries<Json>(part?.content ?? {})
      .filter(([type]) => /^application\/(?:json|problem\+json|x-www-form-urlencoded)$/.test(type))
      .map(([, content]) => content),
  )

describe('each schema', () => {
  test('of a request, an answer and a problem is named', () => {
    expect(operations().length).toBeGreaterThan(60)
    for (const operation of operations())
      for (const { schema } of contents(operation)) {
        if (schema === undefined) continue
        expect(schema, operation.operationId).toEqual({
          $ref: expect.stringMatching(/^#\/components\/schemas\/[A-Z]\w*$/),
        })
        expect(api.components.schemas).toHaveProperty(schema.$ref.split('/')[3])
      }
    expect(Object.keys(api.components.schemas)).toEqual(
      expect.arrayContaining([
        'DecideRequest',
        'DecideAnswer',
        'User',
        'PutUserRequest',
        'Problem',
        'TokenRequest',
        'TokenAnswer',
      ]),
    )
  })

  test('is a valid JSON Schema, and its example is valid by it', () => {
    const ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: false })
    ajv.addSchema({ $id: 'api', ...api })
    for (const [name, { examples }] of Object.entries<Json>(api.components.schemas)) {
      const validate = ajv.compile({ $ref: `api#/components/schemas/${name}` })
      expect(examples, name).toHaveLength(1)
      validate(examples[0])
      expect([name, validate.errors]).toEqual([name, null])
    }
  })

  test('has patterns that every reader understands alike', () => {
    const patterns: string[] = []
    JSON.stringify(api, (name, value) => {
      if (name === 'pattern' && typeof value === 'string') patterns.push(value)
      return value
    })
    expect(patterns.length).toBeGreaterThan(20)
    for (const pattern of patterns) {
      for (const flags of ['', 'u']) expect(() => new RegExp(pattern, flags), pattern).not.toThrow()
      // Readers without Unicode take these as two characters.
      expect(pattern).not.toMatch(/[\u{10000}-\u{10ffff}]/u)
    }
  })

  test('has an example that says something', () => {
    const { DecideRequest, User, Problem } = api.components.schemas
    expect(DecideRequest.examples[0]).toMatchObject({
      permissions: [{ relation: 'viewer', resource: 'invoice:42' }],
      entitlements: expect.any(Array),
    })
    expect(User.examples[0]).toMatchObject({ email: 'alice@example.com' })
    expect(Problem.examples[0]).toMatchObject({ code: 'permission_denied' })
  })

  test('that occurs in several operations has one name', () => {
    const texts = Object.values<Json>(api.components.schemas).map(({ examples, description, ...schema }) =>
      JSON.stringify(schema),
    )
    expect(new Set(texts).size).toBe(texts.length)
    expect(JSON.stringify(api.components.schemas.ListUsersAnswer)).toContain('#/components/schemas/User"')
  })
})

test('describes every endpoint of OAuth that a program calls', async () => {
  const pages = [PATHS.device, PATHS.approve, PATHS.interaction, PATHS.logout, PATHS.logoutConfirm, PATHS.logoutSuccess]
  // Providers of others call it, under the id that each has here: OpenID Connect Back-Channel Logout describes it.
  const called = PATHS.signedOutElsewhere
  const elsewhere: readonly string[] = [...pages, called, PATHS.resourceMetadata, PATHS.authzenMetadata]
  for (const path of Object.values(PATHS))
    if (!elsewhere.includes(path) && !path.startsWith(PATHS.account)) expect(Object.keys(api.paths)).toContain(path)
})

test('is valid OpenAPI 3.1 by the schema of its authors', async () => {
  const { errors, valid } = await new Validator().validate(api)
  expect([errors, valid]).toEqual([undefined, true])
})

test('has unique operation ids, parameters for each name in a path, known security schemes', () => {
  const ids = operations().map(({ operationId }) => operationId)
  expect(new Set(ids).size).toBe(ids.length)
  for (const [path, methods] of Object.entries<Json>(api.paths)) {
    const names = [...path.matchAll(/\{([^}]+)\}/g)].map(([, name]) => name)
    for (const { parameters = [], security = [], responses } of Object.values<Json>(methods)) {
      expect(parameters.filter((one: Json) => one.in === 'path').map((one: Json) => one.name)).toEqual(names)
      for (const scheme of security.flatMap((one: Json) => Object.keys(one)))
        expect(Object.keys(api.components.securitySchemes)).toContain(scheme)
      for (const response of Object.values<Json>(responses)) expect(response.description).toEqual(expect.any(String))
    }
  }
})

test('two different schemas that want one name get two', () => {
  const holder = (type: string) => ({
    post: { operationId: 'x', requestBody: { content: { json: { schema: { type } } } } },
  })
  const named: Json = withNamedSchemas({
    paths: { '/a': holder('string'), '/b': holder('integer'), '/c': holder('string') },
  })
  expect(Object.keys(named.components.schemas)).toEqual(['XRequest', 'XRequest2'])
  expect(named.paths['/c'].post.requestBody.content.json.schema).toEqual({ $ref: '#/components/schemas/XRequest' })
})
