/** Who may ask at a door, and what a door may hold: decided when the file is read and when the door opens. */
import { expect, test } from 'vitest'
import { openDoors } from '../../../sidecar/doors/open-doors.ts'
import { GRPC_PROFILES, HTTP_PROFILES } from '../../../sidecar/http/door-fields.ts'
import { parseRouteFile } from '../../../sidecar/route-file/route-file.ts'
import { tuples } from '../../support/peers/scripted-pdp.ts'
import { routeFile } from '../support/harness.ts'
import {
  checkOf,
  type DoorHarness,
  linesOf,
  openAndClose,
  ROUTES,
  readCheckResponse,
  SECRET,
  WITHOUT_BODIES,
} from './door-harness.ts'

const ALICE = tuples(['alice viewer doc:1'])
let doors: DoorHarness
const open = openAndClose()

const UNDECIDED = { status: 503 }

test('believes no method, path or host of a caller without the secret, whatever it says (CVE-2026-40575)', async () => {
  doors = await open({ routes: WITHOUT_BODIES, script: ALICE })
  const without = (lines: readonly string[]): string[] =>
    lines.filter((line) => !line.startsWith('X-Portcullis-Caller'))
  const wrong = `X-Portcullis-Caller: ${SECRET.toUpperCase()}`
  const right = `X-Portcullis-Caller: ${SECRET}`
  for (const profile of HTTP_PROFILES) {
    const lines = linesOf(profile, { target: '/public' })
    for (const more of [
      [],
      [wrong],
      [right, right],
      [`${right}x`],
      ['X-Portcullis-Caller:'],
      [`X_Portcullis_Caller: ${SECRET}`],
    ])
      expect(await doors.raw(profile, [...without(lines), ...more])).toMatchObject(UNDECIDED)
  }
  for (const profile of GRPC_PROFILES)
    for (const values of [[], ['wrong'], [SECRET, SECRET], [''], [SECRET.slice(1)]]) {
      const response = await doors.check(profile, checkOf({ target: '/public' }, true), values)
      expect(readCheckResponse(response)).toMatchObject(UNDECIDED)
    }
  expect(doors.inner.log).toContainEqual(expect.objectContaining({ event: 'door_caller_refused', door: 'nginx' }))
})

test('trusts nobody by default: a door that nothing authenticates is refused when the file is read (CVE-2026-76835)', () => {
  const issuesOf = (door: string): string =>
    parseRouteFile(
      routeFile(WITHOUT_BODIES, { extra: `doors: [${door}]` })
        .replace('UPSTREAM', 'http://a.test')
        .replace('PDP', '127.0.0.1:1'),
    )
      .issues.map(({ message }) => message)
      .join('\n')
  const tls = 'cert_file: a, key_file: b'
  expect(issuesOf('{profile: envoy, listen: "127.0.0.1:1"}')).toMatch('anybody could ask at this door')
  expect(issuesOf('{profile: nginx, listen: ":1"}')).toMatch('anybody could ask at this door')
  expect(issuesOf(`{profile: caddy, listen: ":1", tls: {${tls}}}`)).toMatch('anybody could ask at this door')
  expect(issuesOf('{profile: caddy, listen: "10.0.0.1:1", secret_file: s}')).toMatch('secret_file needs tls')
  expect(issuesOf('{profile: apache, listen: "unix:/a"}')).toMatch('profile must be one of')
  expect(issuesOf('{profile: nginx, listen: "unix:a"}')).toMatch('listen must be host:port')
  expect(issuesOf('{profile: nginx, listen: "unix:/a", body: true}')).toMatch('body is for ext_authz')
  expect(issuesOf('{profile: nginx, listen: "unix:/a"}, {profile: caddy, listen: "unix:/a"}')).toMatch(
    'the same address',
  )
  expect(issuesOf('{profile: nginx, listen: "unix:/a"}')).toBe('')
  expect(issuesOf(`{profile: envoy, listen: ":1", tls: {${tls}, client_ca_file: c}}`)).toBe('')
  expect(issuesOf('{profile: envoy, listen: "127.0.0.1:1", secret_file: s}')).toBe('')
})

test('does not open a door whose keys are missing, and then opens no other', async () => {
  const entry = {
    profile: 'nginx',
    listen: { host: '127.0.0.1', port: 0 },
    tls: null,
    secretFile: null,
    body: false,
  } as const
  const log = { warn: () => undefined, error: () => undefined }
  const notAsked = (): never => {
    throw new Error('is not asked')
  }
  for (const keys of [[], [{ tls: null, secret: null }], [{ tls: { ca: null, cert: null, key: null }, secret: null }]])
    await expect(
      openDoors([{ ...entry, profile: 'envoy' }], keys, { enter: notAsked, limits: notAsked, log }),
    ).rejects.toThrow(/door/)
})

test('refuses routes that a door cannot hold when the file is read', () => {
  const issuesOf = (routes: string, door: string): string =>
    parseRouteFile(
      routeFile(routes, { extra: `doors: [${door}]` })
        .replace('UPSTREAM', 'http://a.test')
        .replace('PDP', '127.0.0.1:1'),
    )
      .issues.map(({ message }) => message)
      .join('\n')
  const socket = 'GET /live: {check: signed_in, upgrade: [websocket]}'
  expect(issuesOf(socket, '{profile: envoy, listen: "unix:/a"}')).toMatch('the route GET /live accepts WebSocket')
  expect(issuesOf(ROUTES, '{profile: traefik, listen: "unix:/a"}')).toMatch('traefik sends no body to a door')
  expect(issuesOf(ROUTES, '{profile: envoy, listen: "unix:/a"}')).toMatch('set body: true here')
  expect(issuesOf(ROUTES, '{profile: envoy, listen: "unix:/a", body: true}')).toBe('')
})

test('gives nginx only 403, and the real answer back to it alone', async () => {
  doors = await open({ routes: WITHOUT_BODIES, script: ALICE, profiles: ['nginx', 'caddy'] })
  for (const target of ['/docs/1', '/nothing', '/a/../b'])
    expect((await doors.raw('nginx', linesOf('nginx', { target }))).status).toBe(403)
  expect(await doors.ask('nginx', { target: '/docs/1' })).toMatchObject({ status: 401, code: 'token_missing' })
  expect(await doors.ask('nginx', { target: '/nothing' })).toMatchObject({ status: 404, code: 'route_unknown' })
  const caller = `X-Portcullis-Caller: ${SECRET}`
  const packed = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  for (const value of [
    packed([200, [], 'ok']),
    packed([403, [1], '']),
    packed({}),
    'nonsense',
    '',
    packed([403, [], 'x'.repeat(9_000)]),
  ]) {
    const answer = await doors.raw('nginx', [
      'GET /refused HTTP/1.1',
      'Host: d',
      caller,
      `X-Portcullis-Refusal: ${value}`,
    ])
    expect(answer.status).toBe(503)
  }
  const refusal = `X-Portcullis-Refusal: ${packed([404, [], ''])}`
  expect((await doors.raw('caddy', ['GET /refused HTTP/1.1', 'Host: d', caller, refusal])).status).toBe(503)
  expect((await doors.raw('nginx', ['GET /refused HTTP/1.1', 'Host: d', refusal])).status).toBe(503)
})

test('goes on with the rules of a changed file, and keeps its doors until a restart', async () => {
  doors = await open({ routes: WITHOUT_BODIES, script: ALICE, profiles: ['envoy'] })
  expect(() => doors.inner.apply('GET /public: public', '')).toThrow('doors can only be changed with a restart')
  doors.inner.apply('GET /open: public')
  expect(await doors.ask('envoy', { target: '/open' })).toMatchObject({ status: 200 })
  expect(await doors.ask('envoy', { target: '/public' })).toMatchObject({ status: 404 })
})
