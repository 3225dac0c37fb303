import { connect } from 'node:net'
import Fastify from 'fastify'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createAdmin } from '../../../../../pdp/identity/admin.ts'
import { listenHttp } from '../../../../../pdp/server/serve/http-server.ts'
import { createLog } from '../../../../../pdp/shared/process/log.ts'
import { type Json, type Served, serve } from '../harness.ts'
import { CALLS } from './described-calls.ts'

let served: Served
beforeAll(async () => {
  served = await serve()
})
afterAll(() => served.close())

function raw(bytes: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(served.url).port), '127.0.0.1', () => socket.write(bytes))
    let text = ''
    socket.on('data', (chunk) => {
      text += chunk
    })
    socket.on('end', () => resolve(text))
    socket.on('error', reject)
  })
}

describe('the HTTP server answers with problem details', () => {
  const token = 'x'
  test.each([
    ['an unknown path', 'GET', '/nothing', {}, 404, 'route_unknown'],
    ['a path of the identity service that it does not answer', 'GET', '/oauth/nothing', {}, 404, 'route_unknown'],
    ['a trailing slash', 'POST', '/oauth/decisions/', {}, 404, 'route_unknown'],
    ['another case', 'POST', '/OAuth/decisions', {}, 404, 'route_unknown'],
    ['a method that the path lacks', 'GET', '/oauth/decisions', {}, 405, 'method_unsupported'],
    ['a method that a path with an id lacks', 'POST', '/v1/users/alice', { body: {} }, 405, 'method_unsupported'],
    ['bad percent-encoding', 'GET', '/v1/users/%zz', {}, 400, 'request_invalid'],
    ['a body that is not JSON', 'POST', '/oauth/decisions', { token, raw: '{"a":' }, 400, 'request_invalid'],
    [
      'an empty JSON body',
      'POST',
      '/oauth/decisions',
      { token, headers: { 'content-type': 'application/json' } },
      400,
      'request_invalid',
    ],
    [
      'a body that names a member twice',
      'POST',
      '/oauth/decisions',
      { token, raw: '{"explain":true,"explain":false}' },
      400,
      'request_invalid',
    ],
    ['a poisoned body', 'POST', '/oauth/decisions', { token, raw: '{"__proto__":{"a":1}}' }, 400, 'request_invalid'],
    [
      'another content type',
      'POST',
      '/oauth/decisions',
      { token, raw: 'a=b', headers: { 'content-type': 'application/x-www-form-urlencoded' } },
      415,
      'media_type_unsupported',
    ],
    [
      'plain text',
      'POST',
      '/oauth/decisions',
      { token, raw: '{}', headers: { 'content-type': 'text/plain' } },
      415,
      'media_type_unsupported',
    ],
    [
      'a body over 256 KiB',
      'POST',
      '/oauth/decisions',
      { token, raw: `"${'a'.repeat(262_143)}"` },
      413,
      'request_too_large',
    ],
  ])('%s', async (_, method, path, options, status, code) => {
    const answer = await served.send(method, path, options)
    expect([answer.status, answer.body.code]).toEqual([status, code])
    expect(answer.headers.get('content-type')).toBe('application/problem+json; charset=utf-8')
    expect(answer.body).toMatchObject({
      type: `urn:portcullis:problem:${code}`,
      status,
      request_id: answer.headers.get('x-request-id'),
    })
  })

  test('reads a body of exactly 256 KiB', async () => {
    const answer = await served.send('POST', '/oauth/decisions', { token, raw: `"${'a'.repeat(262_142)}"` })
    expect(answer.body.errors).toEqual([{ pointer: '', detail: 'must be object' }])
  })

  test('names the methods that a path has', async () => {
    const answer = await served.send('DELETE', '/oauth/decisions')
    expect(answer.headers.get('allow')).toBe('OPTIONS, POST')
  })

  test.each([
    ['what is not HTTP', 'hello\r\n\r\n', '400', 'request_invalid'],
    [
      'header fields over 16 KiB',
      `GET / HTTP/1.1\r\nHost: a\r\nX: ${'a'.repeat(20_000)}\r\n\r\n`,
      '431',
      'headers_too_large',
    ],
    [
      'both Content-Length and Transfer-Encoding',
      'POST /oauth/decisions HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      '400',
      'request_invalid',
    ],
  ])('%s', async (_, bytes, status, code) => {
    const text = await raw(bytes)
    expect(text.startsWith(`HTTP/1.1 ${status} `)).toBe(true)
    expect(text.toLowerCase()).toContain('x-content-type-options: nosniff')
    expect(text).toContain(`"urn:portcullis:problem:${code}"`)
  })

  test('header fields over 16 KiB from a browser, as a page that says what to do', async () => {
    const text = await raw(
      `GET /console HTTP/1.1\r\nHost: a\r\nAccept: text/html,*/*\r\nAccept-Language: de\r\nCookie: ${'a'.repeat(20_000)}\r\n\r\n`,
    )
    expect(text).toMatch(
      /^HTTP\/1\.1 431 [\s\S]*content-security-policy: default-src 'none'[\s\S]*\r\n\r\n<!doctype html>/,
    )
    expect(text).toContain('löschen Sie die Cookies dieser Website')
  })

  test('keeps the cause of an unexpected error to itself', async () => {
    const token = served.token({ clientId: 'web' })
    const broken = served.token({})
    served.setState(
      broken,
      new Proxy({ active: true } as never, {
        get: () => {
          throw new Error('the secret cause')
        },
      }),
    )
    expect((await served.send('POST', '/oauth/decisions', { token, body: {} })).status).toBe(200)
    const answer = await served.send('POST', '/oauth/decisions', { token: broken, body: {} })
    expect([answer.status, answer.body.code]).toEqual([500, 'internal'])
    expect(JSON.stringify(answer.body)).not.toContain('secret cause')
    expect(JSON.stringify(served.logged)).toContain('the secret cause')
  })
})

describe('a request that does not arrive whole in time', () => {
  test.each([
    ['a body of ours', 'POST /oauth/decisions'],
    ['a body for the identity service', 'POST /oauth/token'],
  ])('is cut off: %s', async (_, line) => {
    const slow = await serve({ bodyTimeoutMs: 100 })
    const port = Number(new URL(slow.url).port)
    const startedMs = Date.now()
    const text = await new Promise<string>((resolve, reject) => {
      let received = ''
      const socket = connect(port, '127.0.0.1', () =>
        socket.write(
          `${line} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{`,
        ),
      )
      socket.on('data', (chunk) => {
        received += chunk
      })
      socket.on('close', () => resolve(received))
      socket.on('error', reject)
    })
    expect(Date.now() - startedMs).toBeLessThan(15_000)
    if (line.includes('decisions')) expect(text).toMatch(/^HTTP\/1.1 408 .*urn:portcullis:problem:request_timeout/s)
    await slow.close()
  })
})

describe('request ids', () => {
  test('takes a well-formed one over, and makes one otherwise', async () => {
    const id = async (given: string) =>
      (await served.send('GET', '/x', { headers: { 'x-request-id': given } })).headers.get('x-request-id')
    expect(await id('abcdef12-3456')).toBe('abcdef12-3456')
    expect(await id('a b"c')).toMatch(/^[0-9a-f-]{36}$/)
    expect(await id('a'.repeat(129))).toMatch(/^[0-9a-f-]{36}$/)
  })
})

describe('/openapi.json', () => {
  type Operation = {
    readonly operationId: string
    readonly tags: readonly string[]
    readonly security: Json
    readonly description?: string
  }
  const operations = async (): Promise<readonly (readonly [method: string, path: string, Operation])[]> => {
    const { status, body } = await served.send('GET', '/openapi.json')
    expect([status, body.openapi]).toEqual([200, '3.1.0'])
    return Object.entries(body.paths as { [path: string]: { [method: string]: Operation } }).flatMap(
      ([path, methods]) =>
        Object.entries(methods)
          .filter(([, { tags }]) => !tags.includes('OAuth'))
          .map(([method, operation]) => [method.toUpperCase(), path, operation] as const),
    )
  }

  test('describes every call, once and by its own name, with the scope that it needs', async () => {
    const found = await operations()
    expect(found.map(([method, path]) => `${method} ${path}`).toSorted()).toEqual(CALLS.toSorted())
    expect(new Set(found.map(([, , { operationId }]) => operationId)).size).toBe(found.length)
    for (const [, path, { security, description }] of found) {
      if (path === '/oauth/decisions' || path.startsWith('/access/v1/')) continue
      expect(description).toBe(`Needs scope \`${security[0].bearer[0]}\`.`)
    }
  })

  test('says in words what every pattern says', async () => {
    const { body } = await served.send('GET', '/openapi.json')
    const bare: unknown[] = []
    JSON.stringify(body, (_, value) => {
      if (typeof value?.pattern === 'string' && typeof value['x-form'] !== 'string') bare.push(value)
      return value
    })
    expect(bare).toEqual([])
    expect(JSON.stringify(body)).toContain('x-form')
  })

  test('describes every member of the client that the first start creates', async () => {
    const { body: description } = await served.send('GET', '/openapi.json')
    const described =
      description.components.schemas[
        description.paths['/v1/clients/{client_id}'].get.responses['200'].content['application/json'].schema.$ref.split(
          '/',
        )[3]
      ]
    const log = createLog({ service: 'test', level: 'silent' })
    await createAdmin({ directory: served.directory, log })('secret-of-the-administrator')
    const token = await served.manager({ client: 'reader' })
    const { status, body } = await served.send('GET', '/v1/clients/admin', { token })
    expect(status).toBe(200)
    expect(Object.keys(body).filter((name) => !Object.hasOwn(described.properties, name))).toEqual([])
  })

  test('describes only what is there: each call asks for a token, and for nothing else first', async () => {
    for (const [method, path] of await operations()) {
      const { status, body } = await served.send(method, path.replaceAll(/\{[a-z_]+\}/g, 'x'))
      expect([method, path, status, body.code]).toEqual([method, path, 401, 'token_missing'])
    }
  })
})

/** Every call of the API, listed by hand: a call that is missing or superfluous fails this test. */

describe('listenHttp', () => {
  test('says in one line that the port is taken', async () => {
    const port = Number(new URL(served.url).port)
    await expect(listenHttp(Fastify(), { host: '127.0.0.1', port })).rejects.toThrow(
      `The HTTP listener cannot listen on 127.0.0.1:${port}: another process uses this port`,
    )
  })
})
