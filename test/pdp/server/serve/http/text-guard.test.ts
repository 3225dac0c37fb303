import { METHODS, request as send } from 'node:http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Json, type Served, serve } from '../harness.ts'

let served: Served
let token: string
let paths: Json
beforeAll(async () => {
  served = await serve()
  token = await served.manager()
  paths = (await served.send('GET', '/openapi.json')).body.paths
})
afterAll(() => served.close())

const NUL = '%00'
const operations = (): readonly { method: string; path: string; operation: Json }[] =>
  Object.entries<Json>(paths).flatMap(([path, methods]) =>
    Object.entries<Json>(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  )

describe('a character that the database cannot hold is a mistake of the request', () => {
  test('in each parameter of each path', async () => {
    const withParameters = operations().filter(({ path }) => path.includes('{'))
    expect(withParameters.length).toBeGreaterThan(30)
    for (const { method, path } of withParameters) {
      const answer = await served.send(method, path.replaceAll(/\{[^}]+\}/g, `a${NUL}b`), { token })
      expect([method, path, answer.status]).toEqual([method, path, 400])
    }
  })

  test('in each parameter of each query', async () => {
    const wanted = operations().flatMap(({ method, path, operation }) =>
      (operation.parameters ?? [])
        .filter((parameter: Json) => parameter.in === 'query')
        .map(({ name }: Json) => ({ method, path: `${path.replaceAll(/\{[^}]+\}/g, 'a')}?${name}=${NUL}`, name })),
    )
    expect(wanted.map(({ name }) => name)).toContain('subject')
    for (const { method, path, name } of wanted) {
      const answer = await served.send(method, path, { token })
      expect([path, answer.status, answer.body.errors?.[0]?.parameter]).toEqual([path, 400, name])
    }
  })

  test.each([
    ['as a text', { client_name: 'a\0b' }, '/client_name'],
    ['in a list', { redirect_uris: ['https://a.test/\0'] }, '/redirect_uris/0'],
    ['in a key set', { jwks: { keys: [{ kid: '\0' }] } }, '/jwks/keys/0/kid'],
    ['as half of a pair', { client_name: '\ud800' }, '/client_name'],
    ['as the name of a member', { jwks: { keys: [{ 'a\0': 1 }] } }, '/jwks/keys/0'],
  ])('%s of a body', async (_, body, place) => {
    const answer = await served.send('PUT', '/v1/clients/some', { token, body })
    expect(answer.status).toBe(400)
    expect(answer.body.errors).toContainEqual({
      pointer: place,
      detail: expect.stringMatching(/U\+0000|surrogate pair/),
    })
  })

  test('however deep the body is nested', async () => {
    const raw = `{"a":${'['.repeat(100_000)}"\\u0000"${']'.repeat(100_000)}}`
    expect((await served.send('PUT', '/v1/clients/some', { token, raw })).status).toBe(400)
  })
})

describe('every answer', () => {
  const answerTo = (method: string, path: string, headers = {}): Promise<{ status: number; headers: Json }> =>
    new Promise((resolve, reject) => {
      const outgoing = send(served.url + path, { method, headers }, (res) => {
        res.resume()
        resolve({ status: res.statusCode ?? 0, headers: res.headers })
      })
      outgoing.on('error', reject).end()
    })
  const PATHS = ['/oauth/decisions', '/v1/users/alice', '/oauth/token', '/nothing', '/openapi.json', '/v1/users/%zz']

  test('refuses an unknown method, with a body or without, and lets no browser guess its type', async () => {
    for (const path of PATHS) {
      for (const method of METHODS.filter((name) => name !== 'CONNECT')) {
        for (const headers of [{}, { 'content-type': 'application/json' }, { 'content-type': 'nonsense' }]) {
          const answer = await answerTo(method, path, headers)
          const { 'x-content-type-options': sniff } = answer.headers
          expect([method, path, answer.status < 500, sniff]).toEqual([method, path, true, 'nosniff'])
        }
      }
    }
  })

  test('names the methods of a known path to one that it does not have', async () => {
    const answer = await answerTo('QUERY', '/oauth/decisions')
    expect([answer.status, answer.headers.allow]).toEqual([405, 'OPTIONS, POST'])
  })
})
