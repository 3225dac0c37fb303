import { unlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { ConfigError } from '../../../pdp/shared/process/exit.ts'
import { readCertificates } from '../../../sidecar/config/certificates.ts'
import { type LoadedConfig, loadConfig } from '../../../sidecar/config/config.ts'
import { watchConfig } from '../../../sidecar/runtime/reload.ts'
import { certificate, currentView, openRuntimeWorld, ROUTES, settings, source } from './runtime-world.ts'

const world = openRuntimeWorld()
const start = world.start.bind(world)
const write = world.write.bind(world)

describe('a look at the files', () => {
  test('takes what was written between the start and the first look', async () => {
    const harness = await start()
    const path = write('routes.yaml', source(harness, ROUTES))
    const given = settings(harness, path)
    writeFileSync(path, source(harness, `${ROUTES}\nGET /new: public`))
    const reload = watchConfig(given)
    world.closers.push(reload.close)
    await currentView(reload)
    expect((await harness.send('GET /new')).status).toBe(200)
  })

  test('takes what was written while it put another file into force', async () => {
    const harness = await start()
    const path = write('routes.yaml', source(harness, ROUTES))
    const given = settings(harness, path)
    const apply: typeof given.apply = (config, routing) => {
      given.apply(config, routing)
      if (config.file.routes.length === 3) writeFileSync(path, source(harness, ROUTES))
    }
    const reload = watchConfig({ ...given, apply })
    world.closers.push(reload.close)
    writeFileSync(path, source(harness, `${ROUTES}\nGET /new: public`))
    await currentView(reload)
    expect((await harness.send('GET /new')).status).toBe(200)
    await currentView(reload)
    expect((await harness.send('GET /new')).status).toBe(404)
  })

  test('takes a file of the same length whose time was put back', async () => {
    const harness = await start()
    const path = write('routes.yaml', source(harness, ROUTES))
    utimesSync(path, 1_000, 1_000)
    const reload = watchConfig(settings(harness, path))
    world.closers.push(reload.close)
    await reload.check()
    writeFileSync(path, source(harness, ROUTES.replace('/public/', '/opened/')))
    utimesSync(path, 1_000, 1_000)
    await currentView(reload)
    expect((await harness.send('GET /opened/x', { token: null })).status).toBe(200)
  })

  test('tries a file again that could not be read, and says so once', async () => {
    const harness = await start()
    const path = write('routes.yaml', source(harness, ROUTES))
    let failure: Error | null = null
    const load = async (): Promise<LoadedConfig> => {
      if (failure !== null) throw new ConfigError(['the file cannot be read'], { cause: failure })
      return loadConfig(path)
    }
    const reload = watchConfig({ ...settings(harness, path), load })
    world.closers.push(reload.close)
    await reload.check()
    writeFileSync(path, source(harness, `${ROUTES}\nGET /new: public`))
    failure = new Error('too many open files')
    for (let at = 0; at < 5; at += 1) await reload.check()
    failure = null
    await currentView(reload)
    expect((await harness.send('GET /new')).status).toBe(200)
    expect(harness.log.filter((line) => 'event' in line && line.event === 'config_refused')).toHaveLength(1)
  })

  test('does nothing for a file that was written again as it is', async () => {
    const harness = await start()
    const path = write('routes.yaml', source(harness, ROUTES))
    const reload = watchConfig(settings(harness, path))
    world.closers.push(reload.close)
    unlinkSync(path)
    write('routes.yaml', source(harness, ROUTES))
    await currentView(reload)
    expect(harness.log.filter((line) => 'event' in line && line.event === 'config_loaded')).toEqual([])
  })

  test('says that other authorities in the same file make certificates valid', async () => {
    const harness = await start()
    const [first, second] = [await certificate(), await certificate()]
    const path = write('routes.yaml', source(harness, ROUTES))
    const ca = write('ca.pem', first.authority)
    const pem = write('cert.pem', first.certificate)
    const key = write('key.pem', first.key)
    const tls = `tls: {cert_file: ${pem}, key_file: ${key}, client_ca_file: ${ca}}`
    writeFileSync(path, `${source(harness, ROUTES)}\n${tls}\n`)
    const reload = watchConfig({ ...settings(harness, path), apply: () => undefined })
    world.closers.push(reload.close)
    writeFileSync(ca, `${first.authority}\n${second.authority}`)
    await currentView(reload)
    const said = () =>
      harness.log.flatMap((line) => ('event' in line && line.event === 'settings_opened' ? [line] : []))
    expect(said()).toEqual([
      expect.objectContaining({ settings: [expect.stringContaining(`${ca} makes client certificates valid`)] }),
    ])
    writeFileSync(ca, second.authority)
    await currentView(reload)
    expect(said()).toHaveLength(1)
  })

  test('says that a secret of a door counts only after a restart', async () => {
    const secretPath = write('secret', 'a'.repeat(32))
    const extra = `doors: [{profile: nginx, listen: "127.0.0.1:15091", secret_file: ${secretPath}}]`
    const harness = await start({ extra, certificatesOf: readCertificates })
    const path = write('routes.yaml', `${source(harness, ROUTES)}\n${extra}\n`)
    const reload = watchConfig(settings(harness, path))
    world.closers.push(reload.close)
    writeFileSync(secretPath, 'b'.repeat(32))
    await currentView(reload)
    const said = (): readonly object[] =>
      harness.log.filter((line) => 'event' in line && line.event === 'restart_needed')
    expect(said()).toHaveLength(1)
    writeFileSync(path, `${source(harness, ROUTES)}\n${extra}\n# another change\n`)
    await currentView(reload)
    expect(said()).toHaveLength(1)
    writeFileSync(secretPath, 'c'.repeat(32))
    await currentView(reload)
    expect(said()).toHaveLength(2)
  })
})

test('a key that a ConfigMap does not have is named as such, with those that it has', () => {
  write('..data', '')
  write('web.yaml', '')
  expect(() => loadConfig(join(world.folder, 'http.yaml'))).toThrow(
    /^The route file .* does not exist: the ConfigMap in .* has no key http.yaml; its keys are web.yaml$/,
  )
})
