/**
 * `npm run examples [-- --short | FILE]`: starts each of `docs/examples` with the command that it names, behind a real sidecar and a real
 * PDP, and asks it. What it needs is installed into a cache; what cannot be had is skipped, and says why. `--short` leaves out
 * what takes minutes the first time. Ends with `N passed, N failed, N skipped`.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { startEmbeddedPostgres } from '../../pdp/engine/store/embedded-postgres/embedded-postgres.ts'
import { type BenchPdp, RESOURCE, startBenchPdp } from '../bench/sidecar/pdp.ts'
import { findBinaries } from '../doors/binaries.ts'
import { freePort, isOpen } from '../support/free-port.ts'
import { readArguments } from '../support/programs/arguments.ts'
import { runs } from '../support/programs/run.ts'

const {
  values: { short },
  positionals: [only = ''],
} = readArguments(
  { options: { short: { type: 'boolean', default: false } }, allowPositionals: true },
  'npm run examples [-- --short | FILE]',
)
const EXAMPLES = resolve('docs/examples')
const CACHE = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'portcullis-examples')
const VENV = join(CACHE, 'python', 'bin')
const START_MS = 240_000
const LINES_MAX = 30

/** Why it cannot be played here. */
class Missing extends Error {}

type Ask = (at: { readonly port: number; readonly token: string }) => Promise<string>
type Example = {
  /** The file that says how it is installed and started, below `docs/examples`; its folder is the working directory. */
  readonly file: string
  readonly folder?: string
  /** Before which gateway: the service behind is Express's. */
  readonly gateway?: true
  readonly long?: true
  readonly ask: Ask
  /** Throws Missing. Words for the environment. */
  readonly need: () => NodeJS.ProcessEnv
}

const page: Ask = async ({ port, token }) => {
  const headers = { authorization: `Bearer ${token}`, 'x-auth-subject': 'root' }
  const response = await fetch(`http://localhost:${port}/invoices/5`, { headers })
  const text = await response.text()
  return `${response.status}${text.includes('invoice 5 for bench') ? ' for bench' : ''}`
}
const tool: Ask = async ({ port, token }) => {
  const headers = {
    authorization: `Bearer ${token}`,
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': '2025-06-18',
  }
  const params = { name: 'read_invoice', arguments: { id: '5' } }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })
  const response = await fetch(`http://localhost:${port}/mcp`, { method: 'POST', headers, body })
  const text = await response.text()
  const refused = /"code":(\d+)/.exec(text)?.[1]
  return refused ?? `${response.status}${text.includes('invoice 5') ? ' for bench' : ''}`
}

const nothing = (): NodeJS.ProcessEnv => ({})
const need =
  (program: string, ...words: string[]) =>
  (): NodeJS.ProcessEnv => {
    if (spawnSync(program, words).status !== 0) throw new Missing(`${program} is not there`)
    return {}
  }
function flask(): NodeJS.ProcessEnv {
  mkdirSync(CACHE, { recursive: true })
  if (!existsSync(join(VENV, 'flask'))) {
    if (!runs('python3', ['-m', 'venv', 'python'], CACHE)) throw new Missing('python3 with venv is not there')
    if (!runs(join(VENV, 'pip'), ['install', '--quiet', '--disable-pip-version-check', 'flask'], CACHE))
      throw new Missing('pip cannot install flask')
  }
  return {}
}
function traefik(): NodeJS.ProcessEnv {
  const { traefik: found } = findBinaries(process.env, { make: false, only: ['traefik'] })
  if (found === null) throw new Missing('traefik is not there: npm run test:doors makes it')
  return { PATH: dirname(found) }
}

const LIST: readonly Example[] = [
  { file: 'express-app.mjs', ask: page, need: nothing },
  { file: 'flask_app.py', ask: page, need: flask },
  { file: 'go_app.go', ask: page, need: need('go', 'version') },
  { file: 'nginx/nginx.conf', gateway: true, ask: page, need: need('nginx', '-v') },
  { file: 'traefik/traefik.yaml', gateway: true, ask: page, need: traefik },
  { file: 'mcp/server.mjs', long: true, ask: tool, need: nothing },
  {
    file: 'spring/src/main/java/app/Application.java',
    folder: 'spring',
    long: true,
    ask: page,
    need: need('mvn', '-v'),
  },
  { file: 'nextjs/app/invoices/[id]/page.js', folder: 'nextjs', long: true, ask: page, need: nothing },
]

type World = { readonly pdp: BenchPdp; readonly token: string }
type Ports = { readonly service: number; readonly gateway: number; readonly door: number }

/** The example in a folder of its own, with the addresses of this world instead of the book's. */
function copyOf(example: Example, { pdp }: World, ports: Ports): string {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-example-'))
  const own = example.folder ?? dirname(example.file)
  const names = own === '.' ? [example.file] : readdirSync(join(EXAMPLES, own), { recursive: true, encoding: 'utf8' })
  for (const name of [...names, ...(example.gateway ? ['../express-app.mjs'] : [])]) {
    const from = join(EXAMPLES, own, name)
    if (!statSync(from).isFile()) continue
    const to = join(folder, name.replace('../', ''))
    mkdirSync(dirname(to), { recursive: true })
    writeFileSync(to, placed(readFileSync(from, 'utf8'), pdp, { ports, folder }))
  }
  const routes = join(folder, 'portcullis.yaml')
  if (!existsSync(routes))
    writeFileSync(routes, placed(readFileSync(join(EXAMPLES, 'portcullis.yaml'), 'utf8'), pdp, { ports, folder }))
  return folder
}

const placed = (
  text: string,
  pdp: BenchPdp,
  { ports, folder }: { readonly ports: Ports; readonly folder: string },
): string =>
  text
    .replaceAll('https://app.example.com', RESOURCE)
    .replaceAll('http://127.0.0.1:8080', pdp.issuer)
    .replaceAll('127.0.0.1:9090', pdp.grpcAddress)
    .replaceAll('127.0.0.1:8000', `127.0.0.1:${ports.gateway}`)
    .replaceAll('15084', `${ports.door}`)
    .replaceAll('/run/portcullis', folder)
    // Started by root, nginx would become somebody who may not open the door.
    .replaceAll('daemon off;', process.getuid?.() === 0 ? 'daemon off; user root;' : 'daemon off;')
    .replaceAll('3000', `${ports.service}`)

const lineOf = (text: string, word: string): string => new RegExp(`^(?://|#) ${word}: (.+)$`, 'm').exec(text)?.[1] ?? ''

/** Installs what the line names, once for all runs, or does what it says. */
function install(line: string, folder: string, env: NodeJS.ProcessEnv): void {
  const npm = line.startsWith('npm install ') ? line.split(' ').slice(2) : []
  if (npm.length > 0) {
    const here = npm.every((name) => existsSync(resolve('node_modules', name)))
    const at = here ? process.cwd() : join(CACHE, basename(folder).replace(/.*/, npm[0]?.replace(/\W/g, '') ?? ''))
    mkdirSync(at, { recursive: true })
    const ready = npm.every((name) => existsSync(join(at, 'node_modules', name)))
    if (!ready && !runs('npm', ['install', '--silent', '--no-audit', '--no-fund', '--prefix', at, ...npm], at))
      throw new Missing(`npm cannot install ${npm.join(' ')}`)
    // Next.js refuses packages from outside of the folder.
    if (here) symlinkSync(join(at, 'node_modules'), join(folder, 'node_modules'))
    else cpSync(join(at, 'node_modules'), join(folder, 'node_modules'), { recursive: true, verbatimSymlinks: true })
  } else if (line.startsWith('portcullis-sidecar ')) {
    const { status, stderr } = spawnSync('bash', ['-c', line], { cwd: folder, env, encoding: 'utf8' })
    if (status !== 0) throw new Error(`${line}: ${stderr}`)
  }
}

type Running = { readonly child: ChildProcess; readonly said: () => string }
function start(command: string, cwd: string, env: NodeJS.ProcessEnv): Running {
  const child = spawn('bash', ['-c', command], { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  let said = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk) => {
      said = `${said}${chunk}`.slice(-4_000)
    })
  return { child, said: () => said }
}

async function listening({ child, said }: Running, port: number): Promise<void> {
  for (const startedMs = performance.now(); !(await isOpen(port)); ) {
    if (child.exitCode !== null || performance.now() - startedMs > START_MS)
      throw new Error(`it does not listen: ${said()}`)
    await new Promise((tick) => setTimeout(tick, 50))
  }
}

/** With all that it started. */
async function end({ child }: Running): Promise<void> {
  if (child.exitCode !== null || child.pid === undefined) return
  const ended = new Promise((done) => child.once('exit', done))
  process.kill(-child.pid, 'SIGTERM')
  await ended
}

const environment = (more: NodeJS.ProcessEnv): NodeJS.ProcessEnv => ({
  HOME: homedir(),
  ...more,
  PATH: [more.PATH, VENV, resolve('bin'), dirname(process.execPath), process.env.PATH]
    .filter((path) => path !== undefined)
    .join(':'),
})

async function play(example: Example, world: World): Promise<string> {
  const env = environment(example.need())
  const ports = { service: await freePort(), gateway: await freePort(), door: await freePort() }
  const [data, admin] = [await freePort(), await freePort()]
  const folder = copyOf(example, world, ports)
  const text = readFileSync(
    join(folder, example.folder === undefined ? basename(example.file) : example.file.slice(example.folder.length + 1)),
    'utf8',
  )
  const running: Running[] = []
  try {
    install(lineOf(text, 'Install'), folder, env)
    if (example.gateway) {
      symlinkSync(resolve('node_modules'), join(folder, 'node_modules'))
      running.push(start('node express-app.mjs', folder, env))
    }
    const sidecar = start(
      `portcullis-sidecar run --listen 127.0.0.1:${data} --admin-listen 127.0.0.1:${admin}`,
      folder,
      env,
    )
    running.push(sidecar)
    await listening(sidecar, data)
    const service = start(lineOf(text, 'Start'), folder, env)
    running.push(service)
    for (const at of running)
      await listening(at, ports.service).catch((err) => Promise.reject(new Error(`${err.message}\n${service.said()}`)))
    const asked = example.gateway ? ports.gateway : data
    await listening(service, asked)
    const grant = (op: 'write' | 'delete') =>
      world.pdp.manage('POST', '/v1/organizations/acme/relationships', { [op]: ['invoice:5#viewer@service:bench'] })
    const seen = [
      await example.ask({ port: asked, token: 'none' }),
      await example.ask({ port: asked, token: world.token }),
    ]
    await grant('write')
    seen.push(await example.ask({ port: asked, token: world.token }))
    await grant('delete')
    seen.push(await example.ask({ port: asked, token: world.token }))
    if (`${seen}` !== '401,403,200 for bench,403') throw new Error(`it answered ${seen.join(', ')}\n${service.said()}`)
    return seen.join(', ')
  } finally {
    for (const one of running.toReversed()) await end(one)
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Its packages are those of this tree. */
async function transaction(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-example-'))
  const database = await startEmbeddedPostgres({ dataDirectory: join(folder, 'data') })
  try {
    cpSync(join(EXAMPLES, 'transaction.mjs'), join(folder, 'transaction.mjs'))
    symlinkSync(resolve('node_modules'), join(folder, 'node_modules'))
    const hook = `import{registerHooks}from'node:module';registerHooks({resolve:(name,context,next)=>next(name==='portcullis'?'${pathToFileURL(resolve('pdp/index.ts'))}':name,context)})`
    const words = [
      '--preserve-symlinks',
      '--import',
      `data:text/javascript,${encodeURIComponent(hook)}`,
      'transaction.mjs',
    ]
    const env = environment({ DATABASE_URL: database.connectionString })
    const { stdout, stderr } = spawnSync(process.execPath, words, { cwd: folder, env, encoding: 'utf8' })
    if (!/^invoice 43 was not added: .*\n42 true\n43 false\n$/.test(stdout)) throw new Error(stdout + stderr)
    return '42 true, 43 false'
  } finally {
    await database.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

const counts = { passed: 0, failed: 0, skipped: 0 }
async function step(name: string, run: () => Promise<string>): Promise<void> {
  const said = (outcome: keyof typeof counts, text: string): void => {
    counts[outcome] += 1
    console.log(`${outcome} ${name}: ${text}`)
  }
  await run().then(
    (text) => said('passed', text),
    (err) => (err instanceof Missing ? said('skipped', err.message) : said('failed', String(err.stack ?? err))),
  )
}

const files = readdirSync(EXAMPLES, { recursive: true, encoding: 'utf8' }).filter((name) =>
  statSync(join(EXAMPLES, name)).isFile(),
)
await step('lengths', async () => {
  const long = files.filter(
    (name) => name !== 'README.md' && readFileSync(join(EXAMPLES, name), 'utf8').trim().split('\n').length > LINES_MAX,
  )
  if (long.length > 0) throw new Error(`more than ${LINES_MAX} lines: ${long.join(', ')}`)
  return `${files.length} files of at most ${LINES_MAX} lines`
})
await step('transaction.mjs', transaction)
const pdp = await startBenchPdp()
try {
  const world = { pdp, token: await pdp.token() }
  const played = LIST.filter(({ file, long }) => file.includes(only) && !(short && long === true))
  for (const example of played) await step(example.file, () => play(example, world))
} finally {
  await pdp.stop()
}
console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`)
process.exit(counts.failed > 0 ? 1 : 0)
