import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { ConfigError } from '../../../pdp/shared/process/exit.ts'
import { firstRouteFile } from '../../../sidecar/commands/init.ts'
import { readOpenApi } from '../../../sidecar/commands/openapi.ts'
import { runRouteTests } from '../../../sidecar/commands/route-report.ts'
import { loadFile } from '../support/harness.ts'

const api = (document: object) => readOpenApi(JSON.stringify(document), 'api.json')
const written = (document: object | null) =>
  firstRouteFile(document === null ? null : api(document), './portcullis.schema.json')
const routesOf = (document: object) =>
  Object.fromEntries(loadFile(written(document).text).routes.map(({ id, check }) => [id, check?.kind ?? 'public']))

const ORDERS = {
  openapi: '3.1.0',
  servers: [{ url: 'https://api.example.com/v2/' }],
  paths: {
    '/health': { get: { security: [] } },
    '/orders/{order-id}': { get: {}, delete: {}, parameters: [], summary: 'One order' },
    '/orders': { post: { security: [{ bearer: [] }] }, get: { security: [{}] } },
  },
}

/** A line of `github-operations.txt` is a path and its methods, as version 23.0.2 of the npm package `@octokit/openapi` describes them. */
const githubPaths = () =>
  Object.fromEntries(
    readFileSync(new URL('github-operations.txt', import.meta.url), 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => {
        const [methods = '', path] = line.split(' ')
        return [path, Object.fromEntries(methods.split(',').map((method) => [method, {}]))]
      }),
  )

describe('a first route file', () => {
  test('of the description of GitHub keeps each of its 1,223 operations, and takes a request for each', async () => {
    const document = { openapi: '3.0.3', servers: [{ url: 'https://api.github.com' }], paths: githubPaths() }
    const { operations, origin } = readOpenApi(JSON.stringify(document), 'api.github.com.json')
    const { text, leftOut } = firstRouteFile({ operations, origin }, './portcullis.schema.json')
    const file = loadFile(text)
    // Two of them are the same path in other words.
    expect([operations.length, leftOut, file.routes.length]).toEqual([1_223, [], 1_222])
    const { failed, failures, untested } = await runRouteTests(file, 'github.yaml')
    expect({ failed, failures, untested }).toEqual({ failed: 0, failures: [], untested: [] })
  })

  test.each([
    ['without a document', null],
    ['of an OpenAPI document', ORDERS],
  ])('%s is valid, names its schema, and passes its own tests, which reach every route', async (_, document) => {
    const { text, leftOut } = written(document)
    expect(leftOut).toEqual([])
    expect(text.split('\n')[0]).toBe('# yaml-language-server: $schema=./portcullis.schema.json')
    expect(await runRouteTests(loadFile(text), 'routes.yaml')).toMatchObject({ failed: 0, failures: [], untested: [] })
  })

  test('has a route for each operation: public only where the document says so', () => {
    expect(routesOf(ORDERS)).toEqual({
      'GET /v2/health': 'public',
      'GET /v2/orders/{order_id}': 'signed_in',
      'DELETE /v2/orders/{order_id}': 'signed_in',
      'POST /v2/orders': 'signed_in',
      'GET /v2/orders': 'signed_in',
    })
    const open = { swagger: '2.0', host: 'a.test', basePath: '/b', security: [], paths: { '/x': { get: {} } } }
    expect(routesOf(open)).toEqual({ 'GET /b/x': 'public' })
    expect(loadFile(written(open).text)).toMatchObject({ resource: 'https://a.test', hosts: ['a.test', 'localhost'] })
  })

  test('has paths below the server of each: of the operation, else of the path, else of the document', () => {
    const servers = [{ url: 'https://a.test/{base}', variables: { base: { default: 'v3' } } }]
    const paths = {
      '/x': { get: {} },
      '/y': { servers: [{ url: '/path' }], get: {}, put: { servers: [{ url: '/operation/' }] } },
    }
    const document = { openapi: '3.1.0', servers, paths }
    expect(Object.keys(routesOf(document))).toEqual(['GET /v3/x', 'GET /path/y', 'PUT /operation/y'])
    expect(loadFile(written(document).text).resource).toBe('https://a.test')
  })

  test('is none when no operation can be a route', () => {
    const document = { openapi: '3.1.0', servers: [{ url: 'https://a.test/{base}' }], paths: { '/x': { get: {} } } }
    expect(() => written(document)).toThrow(ConfigError)
  })

  test('says which operations have no route, and why', () => {
    const paths = {
      '/files/{name}.json': { get: {} },
      '/a/{x}/c': { get: {} },
      '/a/b/{y}': { get: {} },
      '/a/{z}/c': { get: { security: [] }, put: {} },
      '/a/{w}/c': { get: {} },
      '/compare/{base}...{head}': { get: {} },
      '/%2e%2e': { get: {} },
    }
    const { text, leftOut } = written({ openapi: '3.0.0', paths })
    expect(loadFile(text).routes.map(({ id }) => id)).toEqual([
      'GET /files/{name}.json',
      'GET /a/{x}/c',
      'GET /a/b/{y}',
      'PUT /a/{z}/c',
      'GET /compare/{base_head}',
    ])
    expect(leftOut).toEqual([
      'GET /a/{z}/c, because it is the same route as GET /a/{x}/c, with another check',
      expect.stringContaining('GET /%2e%2e, because the path has %2e%2e'),
    ])
    for (const reason of leftOut) expect(text).toContain(`# Without a route: ${reason}`)
  })

  test('is not led astray by what a document says', () => {
    const paths = { '/a\nroutes: {}': { get: {} }, '/{}': { get: {} }, '/ok': { get: {}, trace: {}, evil: {} } }
    const { text } = written({ openapi: '3.0.0', servers: [{ url: 'javascript:alert(1)' }], paths })
    expect(loadFile(text).routes.map(({ id }) => id)).toEqual(['GET /{p}', 'GET /ok'])
    expect(loadFile(text).resource).toBe('https://app.example.com')
  })
})

describe('a document is refused', () => {
  test.each([
    ['that is not one', '{"paths": {"/a": {"get": {}}}}', /neither openapi nor swagger/],
    ['without paths', '{"openapi": "3.1.0"}', /has no paths/],
    ['without operations', '{"openapi": "3.1.0", "paths": {"/a": {"trace": {}}}}', /has no operations/],
    ['that is a list', '[]', /neither openapi nor swagger/],
    ['that is no YAML', 'openapi: [', /neither JSON nor YAML/],
  ])('%s', (_, source, message) => {
    expect(() => readOpenApi(source, 'api.yaml')).toThrow(ConfigError)
    expect(() => readOpenApi(source, 'api.yaml')).toThrow(message)
  })
})
