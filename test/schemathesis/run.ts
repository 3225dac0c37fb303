/**
 * `npm run schemathesis [-- --short | words for schemathesis]`: the fuzzer of that name against the API description of a
 * real PDP, with an administrator's token. It is installed from PyPI into a cache folder.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { freePort } from '../support/free-port.ts'
import { makeDataFolder } from '../support/programs/data-folder.ts'
import { PROGRAM_ENV } from '../support/programs/environment.ts'

const VERSION = '4.32.5'
const ADMIN_SECRET = 'schemathesis-admin-secret-0123456789'
const SCOPES = [
  'decisions:read directory:write manifest:write roles:write relationships:read relationships:write',
  'entitlements:write clients:write hooks:write issuers:write sessions:revoke audit:read events:read streams:write ssf.manage',
].join(' ')
/** What is looked at. Whether a valid request succeeds depends on what is there, which the description does not say. */
const CHECKS = [
  ...['not_a_server_error', 'status_code_conformance', 'content_type_conformance', 'response_headers_conformance'],
  ...['response_schema_conformance', 'unsupported_method', 'allow_header_conformance', 'ignored_auth'],
]
const SHORT = ['--max-examples', '4', '--phases', 'examples,coverage,fuzzing', '--max-time', '60']
const LONG = ['--max-examples', '60', '--phases', 'examples,coverage,fuzzing,stateful']
const START_MS = 120_000
/** What is below an organization is that of one that stays. */
const CONFIG = `[[operations]]
include-path-regex = "/v1/organizations/[{]org[}]/.+"
parameters = { "path.org" = "acme" }

[[operations]]
include-path-regex = "/members/[{]user[}]"
parameters = { "path.org" = "acme", "path.user" = "alice" }
`
/** Longer than a long poll waits. */
const REQUEST_SECONDS = '60'
const MAIN = join(import.meta.dirname, '../../pdp/main.ts')

/** The program, or what is missing for it. */
function findOrInstall(): string | { readonly missing: string } {
  const folder = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), `portcullis-schemathesis-${VERSION}`)
  const found = join(folder, 'bin', 'schemathesis')
  if (existsSync(found)) return found
  if (spawnSync('python3', ['--version']).status !== 0) return { missing: 'python3 is not installed' }
  mkdirSync(folder, { recursive: true })
  const venv = spawnSync('python3', ['-m', 'venv', folder], { encoding: 'utf8' })
  if (venv.status !== 0) return { missing: `python3 -m venv: ${lastLine(venv.stdout + venv.stderr)}` }
  const pip = spawnSync(
    join(folder, 'bin', 'pip'),
    ['install', '-q', '--disable-pip-version-check', `schemathesis==${VERSION}`],
    { encoding: 'utf8' },
  )
  if (pip.status === 0) return found
  rmSync(folder, { recursive: true, force: true })
  return { missing: `it cannot be installed from PyPI: ${lastLine(pip.stderr)}` }
}

const lastLine = (text: string): string => text.trim().split('\n').at(-1) ?? ''

async function fuzz(schemathesis: string, given: readonly string[]): Promise<number> {
  const folder = makeDataFolder('portcullis-schemathesis-')
  const pdp = await startPdp(folder)
  try {
    const token = await adminToken(pdp.origin)
    await createWorld(pdp.origin, token)
    writeFileSync(join(folder, 'schemathesis.toml'), CONFIG)
    const extent = given[0] === '--short' ? SHORT : given.length > 0 ? given : LONG
    const args = [
      'run',
      `${pdp.origin}/openapi.json`,
      '-H',
      `Authorization: Bearer ${token}`,
      '--checks',
      CHECKS.join(','),
    ]
    const child = spawn(
      schemathesis,
      [...args, '--no-color', '--continue-on-failure', '--request-timeout', REQUEST_SECONDS, ...extent],
      {
        cwd: folder,
        stdio: ['ignore', 'inherit', 'inherit'],
      },
    )
    const code = await ended(child)
    if (pdp.child.exitCode !== null) return complain(`the PDP ended with ${pdp.child.exitCode}`)
    // A token that died on the way would have made all that came after it a test of 401.
    const { status } = await fetch(`${pdp.origin}/v1/clients`, { headers: { authorization: `Bearer ${token}` } })
    if (status !== 200) return complain(`the administrator's token is not good any more: ${status}`)
    return code
  } finally {
    pdp.child.kill('SIGTERM')
    await ended(pdp.child)
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Something to find, so that not every answer is 404; made-up ids come beside it where an operation has its own. */
async function createWorld(origin: string, token: string): Promise<void> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const put = async (path: string, body: object): Promise<void> => {
    const { status } = await fetch(`${origin}${path}`, { method: 'PUT', headers, body: JSON.stringify(body) })
    if (status >= 300) throw new Error(`PUT ${path}: ${status}`)
  }
  await put('/v1/organizations/acme', { name: 'Acme' })
  await put('/v1/users/alice', { name: 'Alice' })
  await put('/v1/apps/documents/manifest', { audiences: ['https://documents.test'] })
}

function complain(what: string): number {
  process.stderr.write(`${what}\n`)
  return 1
}

const ended = (child: ChildProcess): Promise<number> =>
  new Promise((resolve) => {
    if (child.exitCode !== null) resolve(child.exitCode)
    else child.once('exit', (code) => resolve(code ?? 1))
  })

async function startPdp(folder: string): Promise<{ readonly origin: string; readonly child: ChildProcess }> {
  const [http, grpc, metrics] = [await freePort(), await freePort(), await freePort()]
  const origin = `http://127.0.0.1:${http}`
  const log = openSync(join(folder, 'pdp.log'), 'w')
  const child = spawn(process.execPath, [MAIN, 'serve'], {
    stdio: ['ignore', log, log],
    env: {
      ...PROGRAM_ENV,
      PORTCULLIS_ISSUER: origin,
      PORTCULLIS_ADMIN_SECRET: ADMIN_SECRET,
      PORTCULLIS_HTTP_LISTEN: `127.0.0.1:${http}`,
      PORTCULLIS_GRPC_LISTEN: `127.0.0.1:${grpc}`,
      PORTCULLIS_METRICS_LISTEN: `127.0.0.1:${metrics}`,
      PORTCULLIS_DATA_DIR: join(folder, 'data'),
    },
  })
  const deadline = performance.now() + START_MS
  const ready = async (): Promise<boolean> => (await fetch(`http://127.0.0.1:${metrics}/readyz`)).ok
  while (!(await ready().catch(() => false))) {
    if (child.exitCode !== null || performance.now() > deadline) throw new Error('the PDP does not start')
    await delay(100)
  }
  return { origin, child }
}

async function adminToken(origin: string): Promise<string> {
  const answer = await fetch(`${origin}/oauth/token`, {
    method: 'POST',
    headers: { authorization: `Basic ${Buffer.from(`admin:${ADMIN_SECRET}`).toString('base64')}` },
    body: new URLSearchParams({ grant_type: 'client_credentials', scope: SCOPES }),
  })
  const { access_token: token } = JSON.parse(await answer.text())
  if (typeof token !== 'string') throw new Error(`the administrator gets no token: ${answer.status}`)
  return token
}

const words = process.argv.slice(2)
const program = findOrInstall()
if (typeof program !== 'string') process.stdout.write(`schemathesis is not run: ${program.missing}\n`)
else process.exitCode = await fuzz(program, words)
