/** Plays each rule of the real files as a request that passes and one that does not, at the data port and at the door of Envoy. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { NO_CERTIFICATES } from '../../../sidecar/config/certificates.ts'
import type { Route } from '../../../sidecar/routes/route.ts'
import { tuples } from '../../support/peers/scripted-pdp.ts'
import { type DoorHarness, startDoors } from '../doors/door-harness.ts'
import { type Harness, loadFile, routeFile, startHarness } from '../support/harness.ts'
import { fieldOf, startUpstream, type Upstream } from '../support/upstream.ts'
import { type Played, REAL_FILES, type RealFile } from './real-rules.ts'

/** With the places of services of routes. */
const filled = (routes: string, origins?: ReadonlyMap<string, Upstream>): string =>
  routes.replace(/AT_(\w+)/g, (_, name) => `"${origins?.get(name)?.origin ?? `http://${name.toLowerCase()}.test`}"`)
const certificates = { ...NO_CERTIFICATES, assertion: [Buffer.alloc(32, 'k')] as const }
const routesOf = ({ routes, extra = '' }: RealFile): readonly Route[] =>
  loadFile(routeFile(filled(routes), { extra }).replace('UPSTREAM', 'http://127.0.0.1:1').replace('PDP', '127.0.0.1:1'))
    .routes

/** One that passes, and others. Of a rule over one object of the path, the one with the id 1 is alice's, and a guest gets what everybody gets. */
function playedOf({ id, check, guests }: Route): readonly [Played, ...Played[]] {
  const lineFor = (uid: string): string => id.replace('{uid}', uid).replaceAll(/\{\w+\}/g, '7')
  if (check === null)
    return [
      { line: lineFor('1'), status: 200 },
      { line: lineFor('1'), status: 200, as: null },
      { line: lineFor('1').replace(/^\w+/, 'PATCH'), status: 405 },
    ]
  if (check?.kind === 'signed_in')
    return [
      { line: lineFor('1'), status: 200 },
      { line: lineFor('1'), status: 401, as: null },
    ]
  return [
    { line: lineFor('1'), status: 200 },
    { line: lineFor('2'), status: 403 },
    ...(guests
      ? ([
          { line: lineFor('3'), status: 200, as: null },
          { line: lineFor('1'), status: 401, as: null },
        ] as const)
      : []),
  ]
}

function tuplesOf(routes: readonly Route[]): string[] {
  return routes.flatMap(({ check }) =>
    check?.kind === 'relation'
      ? [`alice ${check.relation} ${check.type}:1`, `* ${check.relation} ${check.type}:3`]
      : [],
  )
}

describe.each(REAL_FILES)('the rules of $from', (file) => {
  const routes = routesOf(file)
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-rules-'))
  let h: Harness
  let doors: DoorHarness
  const services = new Map<string, Upstream>()
  beforeAll(async () => {
    for (const name of file.services ?? []) services.set(name, await startUpstream())
    const script = tuples([...tuplesOf(routes), ...(file.tuples ?? [])])
    const { extra = '' } = file
    h = await startHarness({ routes: filled(file.routes, services), extra, script, certificates })
    const keysFile = join(folder, 'keys')
    writeFileSync(keysFile, 'k'.repeat(32))
    // A door cannot end a WebSocket connection, nor choose the service, so that a file with one is refused there.
    const held = file.routes
      .replaceAll(/^.*upgrade: \[websocket\].*$/gm, '')
      .replaceAll(/, upstream: (?:\{[^}]*\}|AT_\w+)/g, '')
    const opening = { body: true, profiles: ['envoy'], extra: extra.replace('a.keys', keysFile) } as const
    doors = await startDoors({ routes: held, script, ...opening })
  })
  afterAll(async () => {
    await h.close()
    await doors.close()
    for (const service of services.values()) await service.close()
    rmSync(folder, { recursive: true })
  })

  async function playAtDoor({ line, as = {}, fields = [], body, host = 'app.test', status, tokenIn }: Played) {
    const [method = '', target = ''] = line.split(' ')
    const bearer = await doors.inner.issuer.token({ ...as })
    const named =
      tokenIn === undefined
        ? (['authorization', `Bearer ${bearer}`] as const)
        : ([tokenIn.toLowerCase(), bearer] as const)
    const token = as === null ? [] : [named]
    const sent = fields.map((field) => [field.split(': ')[0]?.toLowerCase() ?? '', field.split(': ')[1] ?? ''] as const)
    // Envoy says whether it holds the whole body.
    const whole = { 'content-length': String(body?.length), 'x-envoy-auth-partial-body': 'false' }
    const length = body === undefined ? [] : Object.entries(whole)
    const asked = { method, target, host, fields: [...token, ...length, ...sent], ...(body !== undefined && { body }) }
    expect((await doors.ask('envoy', asked)).status, line).toBe(status)
  }

  async function play(played: Played) {
    const { line, as = {}, fields = [], body, host = 'app.test', status, gets = {}, tokenIn, at } = played
    const all = [h.upstream, ...services.values()]
    for (const one of all) one.reached.length = 0
    const bearer = as === null ? null : await h.issuer.token({ ...as })
    const sent = tokenIn === undefined || bearer === null ? fields : [...fields, `${tokenIn}: ${bearer}`]
    const token = tokenIn === undefined ? bearer : null
    const answer = await h.send(line, { token, fields: sent, host, ...(body !== undefined && { body }) })
    expect(answer.status, answer.body).toBe(status)
    const reached = all.flatMap((one) => one.reached)
    expect(reached.length).toBe(status === 200 ? 1 : 0)
    if (at !== undefined) expect(services.get(at[0])?.reached.map(({ target }) => target)).toEqual([at[1]])
    for (const [name, value] of Object.entries(gets)) {
      const found = fieldOf(reached[0], name)
      if (value instanceof RegExp) expect(found).toMatch(value)
      else expect(found).toBe(value)
    }
    return h.log.findLast((entry) => 'decision' in entry)
  }

  test.each(routes.map((route) => [route.id, route] as const))('%s', async (id, route) => {
    const [passes, ...others] = file.played[id] ?? playedOf(route)
    expect(await play(passes)).toMatchObject({ decision: 'allow', route: id })
    for (const other of others) await play(other)
    const isGuarded = route.check !== null && file.extra?.includes('X-Jwt-Assertion') === true
    if (isGuarded) await play({ ...passes, gets: { 'x-jwt-assertion': /^ey/ } })
    if (route.websocket) return
    for (const one of [passes, ...others]) await playAtDoor(one)
  })

  test('are each played', () => {
    expect(Object.keys(file.played).filter((id) => !routes.some((route) => route.id === id))).toEqual([])
  })
})
