/** `strip_path`: the verdict is about the path of the client, and the service gets the rest, which it must read as that path. */
import { describe, expect, test } from 'vitest'
import { load, useMovedPaths } from '../support/moved-paths.ts'

const STRIPPED = '{url: "http://127.0.0.1:1", strip_path: /app}'
const moved = useMovedPaths()
const play = (routes: string, line: string): Promise<string> => moved.play(routes, line, 'strip_path: /app')

const OPEN = `"* /app/**": {check: public, SERVICE}
"* /app": {check: public, SERVICE}
GET /app/docs/{id}: {check: "viewer doc:{id}", SERVICE}
GET /app/names/{name}: {check: public, encoded_slash: keep, SERVICE}`

describe('the service gets the rest of the path', () => {
  test.each([
    ['GET /app/login', '200 /login'],
    ['POST /app/login?next=/app/x', '200 /login?next=/app/x'],
    ['GET /app/docs/1', '200 /docs/1'],
    ['GET /app/docs/2', '403'],
    ['GET /app', '200 /'],
    ['GET /app?a=1', '200 /?a=1'],
    ['GET /app?/b', '200 /?/b'],
    ['GET /app/', '200 /'],
    ['GET /app/?a', '200 /?a'],
    ['GET /app/app', '200 /app'],
    ['GET /app/app/x', '200 /app/x'],
    ['GET /app/%E2%82%AC', '200 /%E2%82%AC'],
    ['GET /app/names/a%2Fb', '200 /names/a%2Fb'],
    ['GET http://app.test/app/x', '200 /x'],
  ])('%s: %s', async (line, outcome) => {
    expect(await play(OPEN, line)).toBe(outcome)
  })
})

describe('no other spelling leads there', () => {
  test.each([
    ...['//app/x', '/app//x', '/app//evil.test/x', '/app//', '/app/..//x'],
    ...['/app/../x', '/app/x/../../y', '/app/..', '/app/.', '/app/./x', '/app/%2e%2e/x', '/app/%2E/x', '/app/..;/x'],
    ...['/app%2Fx', '/app%2F%2Fx', '/app/%2Fx', '/app/%2F%2Fevil.test', '/app/names/%2F', '/app/names/..%2Fx'],
    ...['/app/names/%2F%2Fevil.test', '/app\\x', '/app/\\evil.test', '/app/%5Cevil.test', '/app;a/x', '/app/;/x'],
    ...['/%61pp/x', '/ap%70/x', '/APP/x', '/app%20/x', '/app.', '/appx', '/ap', '/app%00', '/app#/x', 'app/x'],
    ...['/app/%EF%BC%8F%EF%BC%8Fevil.test%00', 'http://app.test', 'http://app.test//app/x', '*'],
  ])('GET %s', async (target) => {
    const outcome = await play(OPEN, `GET ${target}`)
    expect(outcome).toMatch(/^4\d\d$/)
  })
})

const GUARDED = `"* /app/**": {check: public, SERVICE}
GET /app/admin: {check: scope admin, SERVICE}
GET /app/admin/{x}: {check: scope admin, SERVICE}`

describe('another reading of the rest counts as one of the path', () => {
  test.each([
    ['a slash at the end', '/app/admin/'],
    ['capitals', '/app/Admin'],
    ['a format', '/app/admin.json'],
    ['dots of compatibility characters that lead to the root of the service', '/app/x/%E2%80%A5/%E2%80%A5/admin'],
    ['more dots than names', '/app/%E2%80%A5/%E2%80%A5/%E2%80%A5/admin'],
    ['a full-width slash', '/app/x%EF%BC%8F%E2%80%A5%EF%BC%8Fadmin'],
    ['a front controller', '/app/index.php/admin'],
    ['a front controller below a folder, of which rules of a server make the path', '/app/x/index.php/admin'],
    ['a script', '/app/admin/x.php/more'],
    ['a session of ASP.NET', '/app/(S(a))/admin'],
    ['the data of a page', '/app/_next/data/b/admin.json'],
    ['functions of any page', '/app/_server/x'],
    ['an image that the service fetches from itself', '/app/_next/image?url=/admin'],
    ['an image in an image', '/app/_next/image?url=%2F_next%2Fimage%3Furl%3D%2Fadmin'],
  ])('%s', async (_, target) => {
    expect(await play(GUARDED, `GET ${target}`)).toBe('400')
  })

  test.each([
    ['/app/_next/image?url=/photo', '200 /_next/image?url=/photo'],
    // To the service, this is another path than its /admin.
    ['/app/_next/image?url=/app/admin', '200 /_next/image?url=/app/admin'],
    ['/app/app/admin', '200 /app/admin'],
    ['/app/admin2', '200 /admin2'],
  ])('%s is no other reading', async (target, outcome) => {
    expect(await play(GUARDED, `GET ${target}`)).toBe(outcome)
  })

  test('a prefix that is named like the functions of a framework hides none of the service', async () => {
    const routes = GUARDED.replaceAll('/app', '/_server').replaceAll('SERVICE', 'SERVED')
    const strip = `upstream: {url: "${moved.origin()}", strip_path: /_server}`
    expect(await play(routes.replaceAll('SERVED', strip), 'GET /_server/_server/x')).toBe('400')
  })
})

describe('the bare prefix and the prefix with a slash are one path to the service', () => {
  const two = (bare: string, slashed: string) =>
    `GET /app: {check: ${bare}, SERVICE}\nGET /app/: {check: ${slashed}, SERVICE}\nGET /app/x: {check: public, SERVICE}`
  const wide = (bare: string, rest: string) =>
    `GET /app: {check: ${bare}, SERVICE}\n"* /app/**": {check: ${rest}, SERVICE}`
  test.each([
    [two('public', 'scope a'), 'GET /app', '400'],
    [two('scope a', 'public'), 'GET /app/', '400'],
    [two('scope a', 'public'), 'GET /app', '403'],
    [two('signed_in', 'signed_in'), 'GET /app', '200 /'],
    [two('signed_in', 'signed_in'), 'GET /app/', '200 /'],
    [wide('public', 'scope a'), 'GET /app', '400'],
    [wide('scope a', 'public'), 'GET /app/', '400'],
    [wide('scope a', 'public'), 'GET /app/x', '200 /x'],
    [wide('public', 'public'), 'GET /app/', '200 /'],
    ['GET /app: {check: public, SERVICE}\nGET /app/index.html: {check: scope a, SERVICE}', 'GET /app', '400'],
    ['GET /app/: {check: public, SERVICE}\nGET /app/index.html: {check: scope a, SERVICE}', 'GET /app/', '400'],
    ['GET /app: {check: public, SERVICE}\nGET /app/{x}: {check: scope a, SERVICE}', 'GET /app', '200 /'],
  ])('%s; %s: %s', async (routes, line, outcome) => {
    expect(await play(routes, line)).toBe(outcome)
  })
})

test('the file may strip for every route, and a WebSocket, a preflight and an open path follow', async () => {
  expect(await moved.playKinds('strip_path: /app')).toEqual([
    ...['GET /ws?a', 'OPTIONS /x', 'GET /metrics', 'POST /mcp'],
  ])
})

test('in shadow mode a path that no route has passes, without the prefix where it has it', async () => {
  const sent = ['/app/x', '/app/y?a', '/other', '/apple']
  expect(await moved.playInShadow('strip_path: /app', sent)).toEqual(['/x', '/y?a', '/other', '/apple'])
})

describe('check refuses', () => {
  test.each(['app', '/', '/app/', '/a//b', '/a/..', '/./a', '/{x}', '/a%20b', '/a/**', '/a?b', '/a;b', '""'])(
    'strip_path: %s',
    (path) => {
      const routes = `GET /x: {check: public, upstream: {url: "http://a.test", strip_path: ${JSON.stringify(path).replace('"\\"\\""', '""')}}}`
      expect(() => load(routes)).toThrow(/strip_path must be a path such as \/auth/)
    },
  )

  test.each(['GET /x', 'GET /ap', 'GET /apps', '"* /**"', 'GET /{app}/x', 'GET /a{x}/y', 'GET /App/x', 'GET b.test/x'])(
    'the route %s to a service that strips /app',
    (key) => {
      expect(() => load(`${key}: {check: public, upstream: ${STRIPPED}}`)).toThrow(
        /does not begin with \/app, which strip_path of its service removes/,
      )
      expect(() => load(`${key}: public`, { upstream: STRIPPED })).toThrow(/does not begin with \/app/)
    },
  )

  test.each([
    ['GET /app/x: {check: public, strip_path: /app}', /unknown key "strip_path"; did you mean upstream\?/],
    ['GET /app/x: {check: public, upstream: {url: "http://a.test", strip_prefix: /app}}', /did you mean strip_path\?/],
  ])('words of other proxies, and names ours: %s', (routes, says) => {
    expect(() => load(routes)).toThrow(says)
  })

  test('a path that is open to some peers and does not begin with it', () => {
    const extra = 'open_paths: {/metrics: [10.0.0.0/8]}'
    expect(() => load('GET /app/x: public', { upstream: STRIPPED, extra })).toThrow(
      /\/metrics does not begin with \/app/,
    )
  })

  test.each([
    ['http://127.0.0.1:1', STRIPPED],
    ['{url: "http://127.0.0.1:1", strip_path: /other}', STRIPPED],
    ['http://127.0.0.1:1', '{url: "http://127.0.0.1:1", strip_path: /app, host: b.test}'],
    ['{url: "http://a.test", socket: /run/x}', '{url: "http://b.test", socket: /run/x, strip_path: /app}'],
  ])('one service by two names of its paths: %s and %s', (upstream, other) => {
    expect(() => load(`GET /app/x: {check: public, upstream: ${other}}`, { upstream })).toThrow(
      /is reached with another strip_path or add_path, or none, elsewhere/,
    )
  })

  test.each([
    [
      `GET /app/x: {check: signed_in, upstream: ${STRIPPED}}`,
      'http://127.0.0.1:2',
      /has upstream, but the gateway chooses/,
    ],
    ['GET /app/x: signed_in', STRIPPED, /strip_path, but the gateway sends paths to the service as they came/],
  ])('what no door can do: %s', (routes, upstream, says) => {
    expect(() => load(routes, { upstream, extra: 'doors: [{profile: nginx, listen: "unix:/run/door"}]' })).toThrow(says)
  })
})
