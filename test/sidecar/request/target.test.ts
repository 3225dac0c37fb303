import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { sendRaw } from '../../support/peers/raw-http.ts'
import { tuples } from '../../support/peers/scripted-pdp.ts'
import { type Harness, startHarness } from '../support/harness.ts'
import { PATH_GRANTS, PATH_ROUTES } from '../support/routes.ts'

let h: Harness
let token: string
beforeAll(async () => {
  h = await startHarness({ routes: PATH_ROUTES, script: tuples(PATH_GRANTS) })
  token = await h.issuer.token()
})
afterAll(() => h.close())
beforeEach(() => {
  h.upstream.reached.length = 0
  h.upstream.handle = null
})

describe('a request target', () => {
  test.each([
    '/public/../admin/x',
    '/public/./x',
    '/public/..',
    '/public/%2e%2e/admin',
    '/public/.%2E/admin',
    '/public/..;a=b/admin',
    '/public/;x',
    '/public//x',
    '//evil.test/x',
    '/public\\..\\admin',
    '/public/%5cx',
    '/public/a%2fb',
    '/public/%2F..%2Fadmin',
    '/public/%61',
    '/public/%7e',
    '/public/x%00y',
    '/public/x%0d%0ay',
    '/public/x%7f',
    '/public/%c2%85',
    '/public/%c0%ae%c0%ae',
    '/public/%ff',
    '/public/%zz',
    '/public/%',
    '/public/%u002e',
    // Compatibility characters: a two dot leader, full-width dots, solidus and backslash, and a dot beside what cannot be seen.
    '/public/%E2%80%A5/admin/x',
    '/public/%EF%BC%8E%EF%BC%8E/admin/x',
    '/public/a%EF%BC%8F%EF%BC%8E%EF%BC%8E%EF%BC%8F..%EF%BC%8Fadmin%EF%BC%8Fx',
    '/public/%EF%BC%BC..%EF%BC%BCadmin%EF%BC%BCx',
    '/public/.%E2%80%8B./admin/x',
    '/public/%E2%80%A4%E2%80%A4/invoices/1',
    '/public/%252e%252e',
    '/public/x#y',
    '/public/x?y#z',
    '/public/x?y=%',
    '/public/x?y=%zz',
    '/public/x?y=%00',
    '/public/x"y',
    '/public/x<y',
    '/public/caf\u00e9',
    '/PUBLIC/../public/x',
    '/registry/..%2Fx',
    '/registry/a%2F%2Fb',
    '/registry/a%5Cb',
    '*',
    'public/x',
    'http://evil.test/public/x',
    'ftp://app.test/public/x',
    'http://app.test',
    'http://user@app.test/public/x',
  ])('%s is 400 and reaches nobody', async (target) => {
    const bytes = Buffer.from(
      `GET ${target} HTTP/1.1\r\nHost: app.test\r\nAuthorization: Bearer ${token}\r\n\r\n`,
      'latin1',
    )
    expect((await sendRaw(h.port, bytes)).status).toBe(400)
    expect(h.upstream.reached).toEqual([])
  })

  test.each([
    ['/public/X', 'a parameter is compared as it is', 403],
    ['/public/x/', 'trimming its slash leads to a checked route', 400],
    ['/public/a/b', 'only the public route has it', 200],
    ['/public/...', 'three dots are a name', 403],
    ['/public/a/caf%C3%A9%20au%20lait', 'it is UTF-8', 200],
    ["/public/a/b:b@c!$&'()*+,=~", 'all of these are allowed in a path', 200],
    ['/public/a/%E4%BD%95%EF%BC%9F', 'a full-width question mark is part of a name', 200],
    ['/public/a/%E2%80%A6', 'an ellipsis is a name', 200],
    ['/public/a/b/%E2%80%A5/c', 'two dots alike lead to the same route', 200],
    ['/%EF%BC%8E%EF%BC%8E/admin', 'no route has it', 404],
    ['/public/', 'some servers read an empty parameter there, which has another rule', 400],
    ['/public', 'the slash before the rest is missing', 404],
    ['/registry/%40scope%2Fpkg', 'its route keeps encoded slashes', 200],
    ['/matrix/a;v=1', 'its route keeps semicolons', 200],
    ['http://app.test/public/a/b', 'the absolute form names our host', 200],
  ])('%s: %s, so it is %i', async (target, _why, status) => {
    const answer = await h.send(`GET ${target}`, { token })
    expect(answer.status).toBe(status)
    if (status === 200) expect(h.upstream.reached[0]?.target).toBe(target.replace('http://app.test', ''))
  })

  test('over 8 KiB is refused, and at 8 KiB is judged', async () => {
    expect((await h.send(`GET /public/a/${'x'.repeat(8_192 - 10)}`, { token })).status).toBe(200)
    expect((await h.send(`GET /public/a/${'x'.repeat(8_193 - 10)}`, { token })).status).toBe(414)
  })
})

test('a target may have a quarter of header_bytes_max', async () => {
  const wide = await startHarness({ routes: PATH_ROUTES, extra: 'limits: {header_bytes_max: 65536}' })
  const statusOf = async (length: number): Promise<number> =>
    (await wide.send(`GET /admin/${'x'.repeat(length - 7)}`, { token: null })).status
  expect(await statusOf(16_384)).toBe(401)
  expect(await statusOf(16_385)).toBe(414)
  await wide.close()
})

describe('a path of many segments', () => {
  test.each([
    [256, 200],
    [257, 400],
  ])('%i, is %i', async (count, status) => {
    const answer = await h.send(`GET /public${'/a'.repeat(count - 1)}`, { token })
    expect(answer.status).toBe(status)
  })
})

describe('a host', () => {
  test.each([
    ['app.test', 200],
    ['APP.test:15080', 200],
    ['app.test.', 421],
    ['app.test@evil.test', 400],
    ['app.test, evil.test', 400],
    ['app.test:', 400],
    ['adminxapp.test', 421],
    ['ADMIN.App.Test', 403],
    ['admin.app.test:15080', 403],
  ])('%s is %i', async (host, status) => {
    expect((await h.send('GET /public/a/b', { token, host })).status).toBe(status)
  })

  test.each([
    ['no Host', 'GET /public/a/b HTTP/1.1\r\n\r\n'],
    ['two Hosts', 'GET /public/a/b HTTP/1.1\r\nHost: app.test\r\nHost: app.test\r\n\r\n'],
    ['HTTP/0.9', 'GET /public/a/b HTTP/0.9\r\nHost: app.test\r\n\r\n'],
    ['HTTP/0.9 without a version', 'GET /public/a/b\r\nHost: app.test\r\n\r\n'],
    ['HTTP/2.0', 'GET /public/a/b HTTP/2.0\r\nHost: app.test\r\n\r\n'],
    ['HTTP/1.0 without Host', 'GET /public/a/b HTTP/1.0\r\n\r\n'],
  ])('%s is 400', async (_name, bytes) => {
    expect((await sendRaw(h.port, bytes)).status).toBe(400)
    expect(h.upstream.reached).toEqual([])
  })
})
