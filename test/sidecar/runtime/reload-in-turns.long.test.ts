/** A reload of many routes leaves requests their turns. */
import { writeFileSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { isDeepStrictEqual } from 'node:util'
import { describe, expect, test } from 'vitest'
import { ConfigError } from '../../../pdp/shared/process/exit.ts'
import { loadConfig } from '../../../sidecar/config/config.ts'
import { createReloading } from '../../../sidecar/config/reloaded-config.ts'
import { watchConfig } from '../../../sidecar/runtime/reload.ts'
import { createReportedRoutes } from '../../../sidecar/runtime/reported-routes.ts'
import { openRuntimeWorld, ROUTES, settings, source } from './runtime-world.ts'

const world = openRuntimeWorld()

const KINDS = [
  (at: number) => `GET /things${at}/{id}: viewer thing:{id}`,
  (at: number) =>
    `POST /v1/${at}/{org}/items/{id}/x.html: {check: {all: ["editor doc:{org}/{id}", "permission things:write"]}, context: {ip: {client.address}}}`,
  (at: number) => `DELETE /other/${at}/b/**: {check: admin organization:main, step_up: {max_age: 300}}`,
  (at: number) => `GET /sockets${at}: {check: signed_in, upgrade: [websocket], origins: ["https://app${at}.test"]}`,
]
const many = (count: number): string =>
  [ROUTES, ...Array.from({ length: count - 2 }, (_, at) => KINDS[at % KINDS.length]?.(at) ?? '')].join('\n')

type Watched = { readonly turns: number; readonly longestMs: number; readonly mostCpuMs: number }

/** Counts the turns of others while `work` goes on, and the longest time and the most CPU time of this thread between two. */
async function watched(work: () => Promise<unknown>): Promise<Watched> {
  let turns = 0
  let isDone = false
  let mostCpuMs = 0
  let cpu = process.threadCpuUsage()
  const counting = (): void => {
    turns += 1
    const { user, system } = process.threadCpuUsage(cpu)
    cpu = process.threadCpuUsage()
    mostCpuMs = Math.max(mostCpuMs, (user + system) / 1_000)
    if (!isDone) setImmediate(counting)
  }
  const delay = monitorEventLoopDelay({ resolution: 1 })
  delay.enable()
  setImmediate(counting)
  await work()
  isDone = true
  delay.disable()
  return { turns, longestMs: delay.max / 1e6, mostCpuMs }
}

describe('a reload of 2,000 routes', () => {
  test('gives others their turns while it parses, compiles, compares and reports', { timeout: 120_000 }, async () => {
    const harness = await world.start()
    const path = world.write('routes.yaml', source(harness, many(1_999)))
    const given = settings(harness, path)
    const reload = watchConfig({ ...given, load: createReloading(path, given.started) })
    world.closers.push(reload.close)
    writeFileSync(path, source(harness, `${many(1_998)}\nGET /opened: public`))
    const parsing = await watched(reload.check)
    const compiling = await watched(reload.check)
    const comparing = await watched(() =>
      expect
        .poll(() => harness.log, { timeout: 60_000 })
        .toContainEqual(expect.objectContaining({ event: 'routes_opened' })),
    )
    const reporting = await watched(createReportedRoutes(loadConfig(path)).table)
    expect(harness.log).toContainEqual(expect.objectContaining({ event: 'config_loaded', routes: 1_999 }))
    expect(parsing.turns).toBeGreaterThanOrEqual(20)
    for (const { turns } of [compiling, comparing, reporting]) expect(turns).toBeGreaterThanOrEqual(20)
    const longest = Object.entries({ parsing, compiling, comparing, reporting }).map(
      ([step, { longestMs, mostCpuMs }]) => `${step} ${longestMs.toFixed(1)} ms (${mostCpuMs.toFixed(1)} ms of CPU)`,
    )
    console.log(`longest pauses of a reload of 2,000 routes: ${longest.join(', ')}`)
  })
})

describe('a configuration that is loaded again', () => {
  const open = async () => {
    const harness = await world.start()
    const path = world.write('routes.yaml', source(harness, ROUTES))
    return { path, load: createReloading(path, loadConfig(path)), text: (routes: string) => source(harness, routes) }
  }

  test('is in every part what a start would make of the file', async () => {
    const { path, load, text } = await open()
    const more =
      'trusted_proxies: [10.0.0.0/8, "fd00::/8"]\nstrip_headers: [x-acme-*]\nlimits: {requests_max: 7}\nhosts: [a.test]'
    writeFileSync(
      path,
      `${text(many(40))}${more}\ntests: [{request: GET /things0/a, expect: {route: "GET /things0/{id}"}}]\n`,
    )
    const again = await load()
    expect(isDeepStrictEqual(again, loadConfig(path))).toBe(true)
    expect((await load()).file).toBe(again.file)
  })

  test.each<[string, (text: string) => string]>([
    ['an unknown key', (text) => `${text}relaton: x\n`],
    ['what is no YAML', () => '{"a'],
    ['nothing', () => ''],
    ['three mistakes', (text) => `${text}  GET a: public\n  GET /b: publik\n  GET /c:\n`],
    ['an alias of nothing', (text) => `${text}  GET /b: *a\n`],
  ])('reports the same mistakes as a start, each time: %s', async (_, change) => {
    const { path, load, text } = await open()
    writeFileSync(path, change(text(ROUTES)))
    const refused = (): unknown => {
      try {
        return loadConfig(path)
      } catch (err) {
        return err
      }
    }
    const expected = refused()
    expect(expected).toBeInstanceOf(ConfigError)
    for (let times = 0; times < 2; times += 1) await expect(load()).rejects.toEqual(expected)
  })

  test('is refused, and leaves the process alone, where its text takes more memory than a sidecar has', async () => {
    const { path, load, text } = await open()
    writeFileSync(path, `${text(ROUTES)}  x: [${'[[a]],'.repeat(250_000)}]\n`)
    await expect(load()).rejects.toMatchObject({ name: 'ConfigError', cause: expect.anything() })
    writeFileSync(path, text(ROUTES))
    expect((await load()).file.routes).toHaveLength(2)
  })
})
