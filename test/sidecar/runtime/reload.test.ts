import { mkdirSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { NO_CERTIFICATES } from '../../../sidecar/config/certificates.ts'
import { type LoadedConfig, loadConfig } from '../../../sidecar/config/config.ts'
import { watchConfig } from '../../../sidecar/runtime/reload.ts'
import { until } from '../../support/until.ts'
import { certificate, currentView, openRuntimeWorld, ROUTES, settings, source } from './runtime-world.ts'

const world = openRuntimeWorld()
const start = world.start.bind(world)
const write = world.write.bind(world)

describe('a reload', () => {
  test('takes a good file for requests from then on, and keeps it when a bad one follows or it vanishes', async () => {
    const harness = await start()
    const path = write('routes.yaml', source(harness, ROUTES))
    const reload = watchConfig(settings(harness, path))
    world.closers.push(reload.close)
    expect((await harness.send('GET /new')).status).toBe(404)
    writeFileSync(path, source(harness, `${ROUTES}\nGET /new: public`))
    await currentView(reload)
    expect((await harness.send('GET /new')).status).toBe(200)
    expect((await harness.send('GET /invoices/1')).status).toBe(200)
    writeFileSync(path, `${source(harness, ROUTES)}\nrelaton: x\n`)
    await currentView(reload)
    expect((await harness.send('GET /new')).status).toBe(200)
    expect(harness.log).toContainEqual(
      expect.objectContaining({ event: 'config_refused', issues: [expect.stringMatching(/relaton/)] }),
    )
    expect(await harness.registry.metrics()).toContain('config_last_reload_successful 0')
    unlinkSync(path)
    await currentView(reload)
    expect((await harness.send('GET /new')).status).toBe(200)
    writeFileSync(path, source(harness, ROUTES))
    await currentView(reload)
    expect((await harness.send('GET /new')).status).toBe(404)
    const metrics = await harness.registry.metrics()
    expect(metrics).toContain('config_last_reload_successful 1')
    expect(metrics.match(/config_info\{/g)?.length).toBe(1)
  })

  const NEXT = `${ROUTES}\nGET /new: public`
  const put = (text: string | Buffer) => (path: string) => writeFileSync(path, text)
  const replaced = (make: (path: string) => void) => (path: string) => {
    unlinkSync(path)
    make(path)
  }
  test.each<[string, (source: string) => (path: string) => void, number]>([
    ['nothing', () => put(''), 404],
    ['only comments', (text) => put(text.replaceAll(/^/gm, '# ')), 404],
    ['a byte order mark', (text) => put(`\ufeff${text}`), 200],
    ['lines that end in CR and LF', (text) => put(text.replaceAll('\n', '\r\n')), 200],
    ['two documents', (text) => put(`${text}\n---\n${text}`), 404],
    ['a second document that was begun', (text) => put(`${text}---\n`), 404],
    ['a key twice', (text) => put(`${text}\nresource: https://other.test\n`), 404],
    ['a route twice', (text) => put(`${text}  GET /new: public\n`), 404],
    ['a route twice, in other quotes', (text) => put(`${text}  "GET /new": public\n`), 404],
    ['a merge key', (text) => put(`${text}  <<: {GET /new2: public}\n`), 404],
    ['an alias of itself', (text) => put(`${text}  GET /b: &a {all: [*a, *a]}\n`), 404],
    ['an alias of nothing', (text) => put(`${text}  GET /b: *a\n`), 404],
    ['UTF-16', (text) => put(Buffer.from(text, 'utf16le')), 404],
    ['what is no YAML', () => put(Buffer.from([0, 255, 254, 10, 123])), 404],
    ['more than 2 MiB', (text) => put(`${text}#${'x'.repeat(2 * 1024 * 1024)}\n`), 404],
    [
      '10,000 keys',
      (text) => put(text + Array.from({ length: 10_000 }, (_, at) => `  GET /k${at}: public\n`).join('')),
      404,
    ],
    ['a folder', () => replaced(mkdirSync), 404],
    ['a link to nothing', () => replaced((path) => symlinkSync('nothing', path)), 404],
    ['a link to itself', () => replaced((path) => symlinkSync('routes.yaml', path)), 404],
  ])('of a file with %s applies all of it or nothing', async (_name, change, status) => {
    const harness = await start()
    const path = write('routes.yaml', source(harness, ROUTES))
    const reload = watchConfig(settings(harness, path))
    world.closers.push(reload.close)
    change(source(harness, NEXT))(path)
    await currentView(reload)
    expect((await harness.send('GET /new', { token: null })).status).toBe(status)
    expect((await harness.send('GET /invoices/1', { token: null })).status).toBe(401)
    const events = harness.log.flatMap((line) => ('event' in line ? [line.event] : []))
    expect(events).toContain(status === 200 ? 'config_loaded' : 'config_refused')
    rmSync(path, { recursive: true })
  })

  test('follows the links that Kubernetes swaps', async () => {
    const harness = await start()
    write('first', source(harness, ROUTES))
    write('second', source(harness, `${ROUTES}\nGET /new: public`))
    const path = join(world.folder, 'routes.yaml')
    symlinkSync('first', path)
    const reload = watchConfig(settings(harness, path))
    world.closers.push(reload.close)
    symlinkSync('second', join(world.folder, 'swap'))
    renameSync(join(world.folder, 'swap'), path)
    await currentView(reload)
    expect((await harness.send('GET /new')).status).toBe(200)
  })

  test('lets requests under way end by the file that they began with', async () => {
    const harness = await start()
    harness.upstream.handle = (_req, res) => void setTimeout(() => res.end('late'), 300)
    const answer = harness.send('GET /invoices/1')
    await until(() => harness.upstream.reached.length === 1)
    harness.apply('GET /other: public', 'strip_headers: [x-y]')
    expect((await answer).body).toBe('late')
    expect((await harness.send('GET /invoices/1')).status).toBe(404)
  })

  test('takes no file that is written in pieces, however good a piece is, before it is the same in two looks', async () => {
    const harness = await start()
    const path = write('routes.yaml', source(harness, ROUTES))
    const reload = watchConfig(settings(harness, path))
    world.closers.push(reload.close)
    const whole = source(harness, 'GET /**: public\nGET /invoices/{id}: viewer invoice:{id}')
    writeFileSync(path, whole.slice(0, whole.indexOf('  GET /invoices')))
    await reload.check()
    expect((await harness.send('GET /invoices/1', { token: null })).status).toBe(401)
    writeFileSync(path, whole)
    await reload.check()
    expect((await harness.send('GET /other', { token: null })).status).toBe(404)
    await reload.check()
    expect((await harness.send('GET /other', { token: null })).status).toBe(200)
    expect((await harness.send('GET /invoices/1', { token: null })).status).toBe(401)
    expect(harness.log.filter((line) => 'event' in line && line.event === 'config_refused')).toEqual([])
  })

  test('takes no sealing keys that are written in pieces before they are the same in two looks', async () => {
    const harness = await start()
    const path = write('routes.yaml', source(harness, ROUTES))
    const applied: number[] = []
    let keys: readonly [Buffer, ...Buffer[]] = [Buffer.alloc(32, 'a')]
    const load = async () => ({ ...loadConfig(path), certificates: { ...NO_CERTIFICATES, signIn: keys } })
    const apply = ({ certificates }: LoadedConfig) => void applied.push(certificates.signIn?.length ?? 0)
    const reload = watchConfig({ ...settings(harness, path), load, apply })
    world.closers.push(reload.close)
    writeFileSync(path, `${source(harness, ROUTES)}\n# changed\n`)
    await reload.check()
    keys = [...keys, Buffer.alloc(32, 'b')]
    await reload.check()
    expect(applied).toEqual([])
    await reload.check()
    expect(applied).toEqual([2])
  })

  test('says that a file never settles, and goes on by the old one', async () => {
    const harness = await start()
    const path = write('routes.yaml', source(harness, ROUTES))
    const reload = watchConfig(settings(harness, path))
    world.closers.push(reload.close)
    for (let at = 0; at < 10; at += 1) {
      writeFileSync(path, source(harness, `${ROUTES}\nGET /new${at}: public`))
      await reload.check()
    }
    expect(harness.log).toContainEqual(expect.objectContaining({ event: 'config_unsettled' }))
    expect((await harness.send('GET /new9')).status).toBe(404)
    await reload.check()
    expect((await harness.send('GET /new9')).status).toBe(200)
  })

  test('names the routes that it opens, and is silent about others', async () => {
    const harness = await start()
    const path = write('routes.yaml', source(harness, ROUTES))
    const reload = watchConfig(settings(harness, path))
    world.closers.push(reload.close)
    const opened = () => harness.log.filter((line) => 'event' in line && line.event === 'routes_opened')
    writeFileSync(path, source(harness, `${ROUTES}\nGET /new: signed_in`))
    await currentView(reload)
    expect(opened()).toEqual([])
    writeFileSync(path, source(harness, 'GET /**: public'))
    await currentView(reload)
    const routes = ['GET /invoices/{id}', 'GET /new', null].map((before) => ({
      route: 'GET /**',
      before,
      now: 'public',
    }))
    await expect.poll(opened).toEqual([expect.objectContaining({ routes: expect.arrayContaining(routes) })])
  })

  test('names what else it trusts or passes on now', async () => {
    const harness = await start()
    const path = write('routes.yaml', source(harness, ROUTES))
    const reload = watchConfig(settings(harness, path))
    world.closers.push(reload.close)
    writeFileSync(path, `${source(harness, ROUTES)}\npass_headers: [x_tenant]\n`)
    await currentView(reload)
    expect(harness.log).toContainEqual(
      expect.objectContaining({ event: 'settings_opened', settings: [expect.stringContaining('x_tenant')] }),
    )
  })

  test('cannot turn TLS on', async () => {
    const harness = await start()
    const { authority, certificate: cert, key } = await certificate()
    const pem = { ca: null, cert: Buffer.from(cert), key: Buffer.from(key) }
    const { file } = loadConfig(write('routes.yaml', source(harness, ROUTES)))
    expect(() => harness.sidecar.apply({ file, certificates: { ...NO_CERTIFICATES, tls: pem }, hash: 'x' })).toThrow(
      /restart/,
    )
    expect(authority).toContain('CERTIFICATE')
  })
})
