/** `add_path`: the verdict is about the path of the client, and the service gets it below a path of its own, out of which no reading may lead. */
import { describe, expect, test } from 'vitest'
import { load, useMovedPaths } from '../support/moved-paths.ts'

const MOVED = '{url: "http://127.0.0.1:1", strip_path: /app, add_path: /base}'
const moved = useMovedPaths()
const play = (routes: string, line: string, options = 'strip_path: /app, add_path: /base'): Promise<string> =>
  moved.play(routes, line, options)

const OPEN = `"* /app/**": {check: public, SERVICE}
"* /app": {check: public, SERVICE}
GET /app/docs/{id}: {check: "viewer doc:{id}", SERVICE}
GET /app/names/{name}: {check: public, encoded_slash: keep, semicolon: keep, SERVICE}`

describe('the service gets the path below its own', () => {
  test.each([
    ['GET /app/login', '200 /base/login'],
    ['GET /app/docs/1?a=/app', '200 /base/docs/1?a=/app'],
    ['GET /app/docs/2', '403'],
    ['GET /app', '200 /base'],
    ['GET /app?a', '200 /base?a'],
    ['GET /app/', '200 /base/'],
    ['GET /app/base/x', '200 /base/base/x'],
    ['GET /app/names/a%2Fb', '200 /base/names/a%2Fb'],
    ['GET http://app.test/app/x', '200 /base/x'],
  ])('in place of another: %s: %s', async (line, outcome) => {
    expect(await play(OPEN, line)).toBe(outcome)
  })

  const WHOLE = 'GET /**: {check: public, SERVICE}\nGET /docs/{id}: {check: "viewer doc:{id}", SERVICE}'
  test.each([
    ['GET /', '200 /api/v1/'],
    ['GET /?a=1', '200 /api/v1/?a=1'],
    ['GET /docs/1', '200 /api/v1/docs/1'],
    ['GET /docs/2', '403'],
    ['GET /Docs/1', '400'],
    ['GET /api/v1/x', '200 /api/v1/api/v1/x'],
    ['GET *', '400'],
  ])('before whole paths: %s: %s', async (line, outcome) => {
    expect(await play(WHOLE, line, 'add_path: /api/v1')).toBe(outcome)
  })
})

describe('no reading leads out of it', () => {
  test.each([
    ...['/app/../x', '/app/..', '/app/%2e%2e/x', '/app/..;/x', '/app/..%2Fx', '/app/names/..%2F..%2Fx', '//app/x'],
    ...['/app/%E2%80%A5', '/app/%E2%80%A5/admin', '/app/x/%E2%80%A5/%E2%80%A5/admin', '/app/%E2%80%A5/base/x'],
    ...['/app/%E2%80%A5%2Fadmin', '/app/names/x%2F%E2%80%A5%2F%E2%80%A5%2F%E2%80%A5%2Fadmin'],
    ...['/app/%E2%80%A5%3B/admin', '/app/%EF%BC%8E%EF%BC%8E/admin'],
    ...['/app/x%EF%BC%8F%E2%80%A5%EF%BC%8F%E2%80%A5%EF%BC%8Fadmin'],
    ...['/app/x%EF%BC%BC%E2%80%A5%EF%BC%BC%E2%80%A5%EF%BC%BCadmin', '/app/%E2%80%A4%E2%80%A4/admin'],
  ])('GET %s', async (target) => {
    expect(await play(OPEN, `GET ${target}`)).toBe('400')
  })

  test.each([
    ['dots', 'add_path: /base', '/%E2%80%A5/admin'],
    ['the data of pages of the service', 'add_path: /_next', '/data/b/admin.json'],
    ['the data of a page in two names', 'add_path: /_payload', '/json'],
    ['functions of any page', 'add_path: /_app', '/remote/x'],
    ['images', 'add_path: /_next', '/image?url=/photo'],
    ['images, whose whole path is added', 'add_path: /_next/image', '/?url=/photo'],
  ])('before whole paths: %s', async (_, options, target) => {
    const routes = 'GET /**: {check: public, SERVICE}\nGET /own: {check: scope a, SERVICE}'
    expect(await play(routes, `GET ${target}`, options)).toBe('400')
  })

  test.each(['/app/x/%E2%80%A5/y', '/app/...', '/app/..a', '/app/a..', '/app/x/%E2%80%A6'])(
    'a path stays below it: GET %s',
    async (target) => {
      expect(await play(OPEN, `GET ${target}`)).toBe(`200 ${target.replace('/app', '/base')}`)
    },
  )
})

const GUARDED = `"* /app/**": {check: public, SERVICE}
GET /app/admin: {check: scope admin, SERVICE}
GET /app/admin/{x}: {check: scope admin, SERVICE}`

describe('another reading of the rest counts as one of the path', () => {
  test.each([
    ['a slash at the end', '/app/admin/'],
    ['capitals', '/app/Admin'],
    ['a format', '/app/admin.json'],
    ['dots of compatibility characters', '/app/x/%E2%80%A5/admin'],
    ['a front controller', '/app/index.php/admin'],
    ['a front controller below a folder', '/app/x/index.php/admin'],
    ['a script', '/app/admin/x.php/more'],
    ['the data of a page', '/app/_next/data/b/admin.json'],
    ['functions of any page', '/app/_server/x'],
    ['an image that the service fetches from itself', '/app/_next/image?url=/base/admin'],
    ['an image out of it', '/app/_next/image?url=/photo'],
    ['an image beside it', '/app/_next/image?url=/basement'],
    ['an image out of it by dots', '/app/_next/image?url=/base/%25E2%2580%25A5/photo'],
    ['an image in an image', '/app/_next/image?url=%2Fbase%2F_next%2Fimage%3Furl%3D%2Fbase%2Fadmin'],
  ])('%s', async (_, target) => {
    expect(await play(GUARDED, `GET ${target}`)).toBe('400')
  })

  test.each([
    ['/app/_next/image?url=/base/photo', '200 /base/_next/image?url=/base/photo'],
    ['/app/base/admin', '200 /base/base/admin'],
    ['/app/admin2', '200 /base/admin2'],
  ])('%s is no other reading', async (target, outcome) => {
    expect(await play(GUARDED, `GET ${target}`)).toBe(outcome)
  })

  test.each([
    ['public', 'scope a', 'GET /app', '400'],
    ['scope a', 'public', 'GET /app/', '400'],
    ['scope a', 'public', 'GET /app/x', '200 /base/x'],
    ['public', 'public', 'GET /app/', '200 /base/'],
  ])('the bare prefix with %s and the rest with %s: %s', async (bare, rest, line, outcome) => {
    const routes = `GET /app: {check: ${bare}, SERVICE}\n"* /app/**": {check: ${rest}, SERVICE}`
    expect(await play(routes, line)).toBe(outcome)
  })
})

test('the file may do it for every route, and a WebSocket, a preflight and an open path follow', async () => {
  expect(await moved.playKinds('strip_path: /app, add_path: /base')).toEqual([
    ...['GET /base/ws?a', 'OPTIONS /base/x', 'GET /base/metrics', 'POST /base/mcp'],
  ])
})

test('in shadow mode a path that no route has passes below it, or as it is where it lacks what is left out', async () => {
  const seen: string[] = []
  for (const options of ['strip_path: /app, add_path: /base', 'add_path: /base'])
    seen.push(...(await moved.playInShadow(options, ['/app/x', '/app?a', '/other'])))
  expect(seen).toEqual(['/base/x', '/base?a', '/other', '/base/app/x', '/base/app?a', '/base/other'])
})

describe('check refuses', () => {
  test.each(['app', '/', '/app/', '/a//b', '/a/..', '/{x}', '/a%20b', '/a/**', '/a?b', '/a;b', '""'])(
    'add_path: %s',
    (path) => {
      const routes = `GET /x: {check: public, upstream: {url: "http://a.test", add_path: ${JSON.stringify(path).replace('"\\"\\""', '""')}}}`
      expect(() => load(routes)).toThrow(/add_path must be a path such as \/auth/)
    },
  )

  test.each(['/cgi-bin', '/x/CGI-BIN', '/fcgi-bin'])('a folder of scripts, %s, whose next name is one', (path) => {
    expect(() => load(`GET /x: {check: public, upstream: {url: "http://a.test", add_path: ${path}}}`)).toThrow(
      /add_path cannot end in a folder of scripts/,
    )
  })

  test.each([
    [
      'GET /x: {check: public, upstream: "http://a.test/graphql"}',
      /without a path; the service gets .*add_path: \/graphql/,
    ],
    ['GET /x: {check: public, upstream: {url: "http://a.test/a/b"}}', /add_path: \/a\/b/],
    ['GET /x: {check: public, upstream: {url: "http://a.test", rewrite: /x}}', /did you mean add_path\?/],
    ['GET /x: {check: public, upstream: {url: "http://a.test", regex_rewrite: /x}}', /did you mean add_path\?/],
    ['GET /x: {check: public, upstream: {url: "http://a.test", base_path: /x}}', /did you mean add_path\?/],
    ['GET /x: {check: public, rewrite: /x}', /did you mean upstream\?/],
  ])('words of other proxies, and names ours: %s', (routes, says) => {
    expect(() => load(routes)).toThrow(says)
  })

  test.each(['http://a.test/a%2Fb', 'http://a.test/a?b', 'http://u@a.test/a', 'ftp://a.test/a', 'http://a.test/a/'])(
    '%s, for which it has no such advice',
    (url) => {
      expect(() => load(`GET /x: {check: public, upstream: "${url}"}`)).toThrow(/URL without a path(?!; the service)/)
    },
  )

  test.each([
    ['http://127.0.0.1:1', '{url: "http://127.0.0.1:1", add_path: /a}'],
    ['{url: "http://127.0.0.1:1", add_path: /b}', '{url: "http://127.0.0.1:1", add_path: /a}'],
    ['{url: "http://127.0.0.1:1", strip_path: /app}', MOVED],
  ])('one service by two names of its paths: %s and %s', (upstream, other) => {
    expect(() => load(`GET /app/x: {check: public, upstream: ${other}}`, { upstream })).toThrow(
      /is reached with another strip_path or add_path, or none, elsewhere/,
    )
  })

  test('what no door can do', () => {
    const extra = 'doors: [{profile: nginx, listen: "unix:/run/door"}]'
    const upstream = '{url: "http://127.0.0.1:1", add_path: /base}'
    expect(() => load('GET /app/x: signed_in', { upstream, extra })).toThrow(
      /add_path, but the gateway sends paths to the service as they came/,
    )
  })
})
