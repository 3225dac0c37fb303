/**
 * deploy/compose without a container engine: compose-go reads the file as Docker Compose does, and its parts run as processes with
 * the file's commands, users, environment, volumes and health checks, in a network of their own where each name is loopback.
 * `node test/release/compose.ts FOLDER PROGRAM [keycloak]` as root; PROGRAM is what compose-go/ makes. Prints the statuses of the journey.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { connect, createServer } from 'node:net'
import { basename, dirname, join } from 'node:path'
import pg from 'pg'
import { parseDockerfile } from '../../bin/dev/image/dockerfile.ts'
import { startEmbeddedPostgres } from '../../pdp/engine/store/embedded-postgres/embedded-postgres.ts'
import { end, outputOf } from '../image/jail.ts'
import { keycloakHome } from '../servers/keycloak.ts'
import { until } from '../support/until.ts'

type Volume = { readonly type: string; readonly source: string; readonly target: string }
type Service = {
  readonly image: string
  readonly build?: { readonly target: string }
  readonly entrypoint: readonly string[] | null
  readonly command: readonly string[] | null
  readonly environment?: { readonly [name: string]: string }
  readonly user?: string
  readonly volumes?: readonly Volume[]
  readonly tmpfs?: readonly string[]
  readonly working_dir?: string
  readonly healthcheck?: { readonly test: readonly string[] }
}

const [folder = '', program = '', profile] = process.argv.slice(2)
const USER = 65_532
const SECRET = 'an-admin-secret-of-some-length'
const project = join(folder, 'project')
cpSync('deploy/compose', project, { recursive: true })
const routes = profile === 'keycloak' ? 'routes-keycloak.yaml' : 'routes.yaml'
const master = Buffer.alloc(32, 7).toString('base64')
writeFileSync(
  join(project, '.env'),
  `POSTGRES_PASSWORD=of-postgres\nADMIN_SECRET=${SECRET}\nMASTER_KEY=${master}\nROUTES=${routes}\n`,
)
const services: { readonly [name: string]: Service } = JSON.parse(
  execFileSync(program, [project], { encoding: 'utf8' }),
).services
const hosts = join(folder, 'hosts')
writeFileSync(hosts, `127.0.0.1 localhost ${Object.keys(services).join(' ')}\n`)
execFileSync('mount', ['--bind', hosts, '/etc/hosts'])
execFileSync('ip', ['link', 'set', 'lo', 'up'])

/** The words of the image before those of the file. */
const entrypoints = new Map(
  parseDockerfile(readFileSync('Dockerfile', 'utf8')).map(({ name, steps }): [string, readonly string[]] => [
    name,
    JSON.parse(steps.find(({ instruction }) => instruction === 'ENTRYPOINT')?.words ?? '[]'),
  ]),
)

/** Where a path of the container is here. Files are copied with the paths in them changed too. */
function placesOf(name: string): (text: string) => string {
  const { volumes = [], tmpfs = [] } = serviceOf(name)
  const places = new Map<string, string>()
  const replace = (text: string): string =>
    text.replace(/\/[\w./-]+/g, (path) => {
      const from = [...places.keys()]
        .toSorted((a, b) => b.length - a.length)
        .find((one) => `${path}/`.startsWith(`${one}/`))
      return from === undefined ? path : `${places.get(from)}${path.slice(from.length)}`
    })
  const own = join(folder, 'parts', name)
  for (const target of tmpfs) places.set(target, made(join(own, basename(target))))
  for (const { type, source, target } of volumes)
    if (type === 'volume') {
      places.set(target, made(join(folder, 'volumes', source)))
      if (dirname(target) === '/') continue
      // A folder of the container that only holds mounted ones.
      const parent = made(join(own, dirname(target)))
      symlinkSync(places.get(target) ?? '', join(parent, basename(target)))
      places.set(dirname(target), parent)
    }
  for (const { type, source, target } of volumes) {
    if (type === 'volume') continue
    const copy = join(made(join(own, 'files')), basename(target))
    writeFileSync(copy, replace(readFileSync(source, 'utf8')))
    places.set(target, copy)
  }
  return replace
}

function made(path: string): string {
  mkdirSync(path, { recursive: true })
  execFileSync('chown', [`${USER}`, path])
  return path
}

function serviceOf(name: string): Service {
  const service = services[name]
  if (service === undefined) throw new Error(`compose.yaml has no ${name}`)
  return service
}

const running: ChildProcess[] = []
function start(name: string, more: readonly string[] = []): { child: ChildProcess; output: () => string } {
  const { build, entrypoint, command, environment = {}, user, working_dir: cwd } = serviceOf(name)
  const here = placesOf(name)
  const ours = (text: string): string =>
    here(text.replace(/^\/app\/(.*)\.js$/, `${process.cwd()}/$1.ts`)).replace(/^node$/, process.execPath)
  const first = entrypoint ?? entrypoints.get(build?.target ?? '') ?? []
  const [file = '', ...words] = [...first, ...(more.length > 0 ? more : (command ?? []))].map(ours)
  const id = user === undefined ? USER : Number(user.split(':')[0])
  const child = spawn(file, words, {
    cwd: cwd === undefined ? folder : join(folder, 'parts', name, 'files'),
    env: {
      PATH: process.env.PATH,
      NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
      ...Object.fromEntries(Object.entries(environment).map(([key, value]) => [key, here(value)])),
    },
    stdio: ['ignore', 'pipe', 'pipe'],
    uid: id,
    gid: id,
  })
  running.push(child)
  return { child, output: outputOf(child) }
}

/** Its health check, as the engine would run it. */
async function healthy(name: string, { child, output }: ReturnType<typeof start>): Promise<void> {
  const [, file = '', ...words] = serviceOf(name).healthcheck?.test ?? []
  await until(async () => {
    if (child.exitCode !== null) throw new Error(`${name} ended`)
    const [status] = await once(spawn(file === 'node' ? process.execPath : file, words), 'exit')
    return status === 0
  }).catch((err: unknown) => {
    throw new Error(`${name} did not become healthy: ${output()}`, { cause: err })
  })
}

async function succeed(name: string, more: readonly string[] = []): Promise<string> {
  const { child, output } = start(name, more)
  const [status] = await once(child, 'exit')
  if (status !== 0) throw new Error(`${name} ${more.join(' ')}: ${output()}`)
  return output()
}

/** PostgreSQL with the user, password and database of the file, at its port. */
async function startPostgres(): Promise<() => Promise<void>> {
  const { POSTGRES_DB: name = '', POSTGRES_PASSWORD: password = '' } = serviceOf('postgres').environment ?? {}
  const database = await startEmbeddedPostgres({ dataDirectory: join(folder, 'database') })
  const client = new pg.Client({ connectionString: database.connectionString })
  await client.connect()
  await client.query(`create role postgres superuser login password '${password}'`)
  await client.query(`create database ${name} owner postgres`)
  await client.end()
  const { port } = new URL(database.connectionString)
  const forward = createServer((socket) => {
    const to = connect(Number(port), '127.0.0.1')
    for (const [from, into] of [[socket, to] as const, [to, socket] as const])
      from.on('error', () => into.destroy()).pipe(into)
  })
  await new Promise<void>((listening) => forward.listen(5432, '127.0.0.1', listening))
  return async () => {
    forward.close()
    await database.stop()
  }
}

function post(
  url: string,
  ca: string,
  fields: Record<string, string>,
  auth?: string,
): Promise<{ access_token?: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ access_token?: string }>()
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  const req = request(url, { method: 'POST', ca, headers, ...(auth !== undefined && { auth }) }, async (res) =>
    resolve(JSON.parse((await res.setEncoding('utf8').toArray()).join(''))),
  )
  req.on('error', reject)
  req.end(new URLSearchParams(fields).toString())
  return promise
}

async function ask(token: string): Promise<number> {
  const answer = await fetch('http://localhost:15080/invoices/42', { headers: { authorization: `Bearer ${token}` } })
  await answer.arrayBuffer()
  return answer.status
}

async function play(): Promise<readonly number[]> {
  await succeed('certificates')
  const ca = readFileSync(join(folder, 'volumes/tls-pdp/ca.pem'), 'utf8')
  const pdp = start('pdp')
  await healthy('pdp', pdp)
  const [nginx] = [placesOf('tls')('/etc/nginx/nginx.conf')]
  running.push(
    spawn('nginx', ['-c', nginx, '-g', 'daemon off; pid nginx.pid;', '-p', folder, '-e', 'stderr'], {
      stdio: 'ignore',
    }),
  )
  if (profile === 'keycloak') await startKeycloak()
  const sidecar = start('sidecar')
  start('service')
  await succeed('portcullis', ['setup', 'acme'])
  await healthy('sidecar', sidecar)
  const [token, holder] = profile === 'keycloak' ? await tokenOfKeycloak(ca) : await tokenOfPdp(ca)
  const before = await ask(token)
  await succeed('portcullis', ['tuple', 'write', `invoice:42#viewer@${holder}`, '-o', 'acme'])
  const granted = await ask(token)
  await succeed('portcullis', ['tuple', 'delete', `invoice:42#viewer@${holder}`, '-o', 'acme'])
  return [before, granted, await ask(token)]
}

async function tokenOfPdp(ca: string): Promise<readonly [string, string]> {
  const made: { client_secret: string } = JSON.parse(
    await succeed('portcullis', ['client', 'put', 'reporter', '-o', 'acme', '--scope', '', '--json']),
  )
  const fields = { grant_type: 'client_credentials', resource: 'https://app.example.com' }
  const { access_token: token } = await post(
    'https://localhost:8443/oauth/token',
    ca,
    fields,
    `reporter:${made.client_secret}`,
  )
  return [token ?? '', 'service:reporter']
}

async function tokenOfKeycloak(ca: string): Promise<readonly [string, string]> {
  const fields = {
    grant_type: 'password',
    client_id: 'web',
    username: 'alice',
    password: 'change-me-first',
    scope: 'openid',
  }
  const { access_token: token } = await post(
    'https://localhost:8444/realms/acme/protocol/openid-connect/token',
    ca,
    fields,
  )
  return [token ?? '', 'group:~kc:group:sales#member']
}

async function startKeycloak(): Promise<void> {
  const found = keycloakHome()
  if (typeof found === 'string') throw new Error(found)
  const { command, environment = {} } = serviceOf('keycloak')
  const here = placesOf('keycloak')
  const imports = made(join(found.home, 'data/import'))
  cpSync(here('/opt/keycloak/data/import/acme-realm.json'), join(imports, 'acme-realm.json'))
  const env = Object.fromEntries(Object.entries(environment).map(([key, value]) => [key, here(value)]))
  const child = spawn(join(found.home, 'bin/kc.sh'), [...(command ?? []), '--db=dev-mem', '--http-port=8079'], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  running.push(child)
  const output = outputOf(child)
  // The first start builds the server.
  for (let tries = 0; !output().includes('Listening on'); tries += 1) {
    if (child.exitCode !== null || tries > 300) throw new Error(`Keycloak: ${output().slice(-2_000)}`)
    await new Promise((resolve) => setTimeout(resolve, 1_000))
  }
}

const stopPostgres = await startPostgres()
try {
  console.log((await play()).join(','))
} finally {
  for (const child of running.toReversed()) await end(child)
  await stopPostgres()
}
