/** A receiver of others, easyssf for Rust, fed by our transmitter: by poll and by push, it makes its own stream and takes our events. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startPdp } from '../../pdp/server/runtime/start.ts'
import { createLog } from '../../pdp/shared/process/log.ts'
import { createShutdown } from '../../pdp/shared/process/shutdown.ts'
import { choosePorts } from '../e2e/demo-stack.ts'
import { pdpSettings } from '../e2e/pdp-settings.ts'
import { freePort } from '../support/free-port.ts'
import { clientToken } from '../support/sign-in.ts'
import { CACHE } from './runtimes.ts'
import { ADMIN_SECRET, managerOf, type Send, type Told, until } from './signals.ts'

const SOURCE = join(import.meta.dirname, 'easyssf')
const FOLDER = join(CACHE, 'easyssf')
const BUILD_MS = 1_800_000
const EMAIL = 'alice@example.com'
const SECRET = 'the-secret-of-the-receiver'
const PUSH_AUTHORIZATION = 'Bearer the-token-of-the-pushes'
const CAEP = 'https://schemas.openid.net/secevent/caep/event-type'

/** The program, or why it cannot be had. `mayBuild`: it is built where it is missing, which takes minutes. */
function program(mayBuild: boolean): { readonly path: string } | string {
  const path = join(FOLDER, 'target', 'release', 'easyssf-peer')
  if (existsSync(path)) return { path }
  if (!mayBuild) return 'it has not been built: run this without --short'
  if (spawnSync('cargo', ['--version']).status !== 0) return 'cargo is not there'
  // A copy, because cargo writes the versions that it chose beside the sources.
  cpSync(SOURCE, FOLDER, { recursive: true })
  const words = ['build', '--release', '--quiet']
  const built = spawnSync('cargo', words, { cwd: FOLDER, timeout: BUILD_MS, encoding: 'utf8' })
  return built.status === 0 ? { path } : `cargo cannot build it: ${built.stderr.split('\n').at(0)}`
}

/** One outcome for each delivery and event. */
export async function testReceiver(mayBuild: boolean): Promise<readonly Told[]> {
  const found = program(mayBuild)
  if (typeof found === 'string') return [{ outcome: 'skipped', what: 'easyssf, a receiver of others', why: found }]
  const ports = await choosePorts({})
  const issuer = `http://127.0.0.1:${ports.http}`
  const log = createLog({ service: 'servers', level: 'silent' })
  const shutdown = createShutdown({ log, timeoutMs: 20_000 })
  const folder = await mkdtemp(join(tmpdir(), 'portcullis-servers-'))
  const dataDirectory = join(folder, 'data')
  try {
    const given = { issuer, adminSecret: ADMIN_SECRET, host: '127.0.0.1', ports, databaseUrl: null, dataDirectory }
    await startPdp({ ...pdpSettings(given), internalHosts: ['127.0.0.1'] }, { log, shutdown })
    const send = await managerOf(issuer, 'directory:write clients:write sessions:revoke ssf.manage')
    await send('PUT', '/v1/organizations/acme', { name: 'Acme' })
    await send('PUT', '/v1/users/alice', { email: EMAIL })
    const told: Told[] = []
    for (const delivery of ['poll', 'push'] as const) {
      const file = join(folder, `${delivery}.json`)
      told.push(...(await feed({ send, issuer, delivery, path: found.path, file })))
    }
    return told
  } finally {
    await shutdown.run('servers')
    await rm(folder, { recursive: true, force: true })
  }
}

type Feeding = {
  readonly send: Send
  readonly issuer: string
  readonly delivery: 'poll' | 'push'
  readonly path: string
  readonly file: string
}

async function feed({ send, issuer, delivery, path, file }: Feeding): Promise<readonly Told[]> {
  const id = `receiver-${delivery}`
  await send('PUT', `/v1/clients/${id}`, {
    grant_types: ['client_credentials'],
    scope: 'ssf.manage',
    organization: 'acme',
    client_secret: SECRET,
  })
  const listen = `127.0.0.1:${await freePort()}`
  const events = ['session-revoked', 'credential-change', 'token-claims-change'].map((name) => `${CAEP}/${name}`)
  await writeFile(
    file,
    JSON.stringify({
      'transmitter-issuer': issuer,
      'delivery-method': delivery,
      oauth2: {
        'token-uri': `${issuer}/oauth/token`,
        'client-id': id,
        'client-secret': SECRET,
        scopes: ['ssf.manage'],
      },
      stream: { management: 'receiver', 'events-requested': events },
      poll: { 'long-polling': true, 'long-polling-hold': '20s', 'initial-delay': '0s' },
      push: { 'expected-auth-header': PUSH_AUTHORIZATION, 'delivery-endpoint-url': `http://${listen}/ssf/push` },
    }),
  )
  const peer = spawn(path, [file, listen], { stdio: ['ignore', 'pipe', 'pipe'] })
  const taken = linesOf(peer)
  try {
    const what = (event: string): string => `easyssf, ${event} by ${delivery}`
    const hasStream = await until(async () => (await streams(issuer, id)).length === 1)
    if (!hasStream) return [{ outcome: 'failed', what: what('a stream'), why: taken.said() }]
    const told: Told[] = [{ outcome: 'passed', what: what('its own stream'), why: '' }]
    const role = delivery === 'poll' ? 'developer' : 'viewer'
    const changes = [
      ['token-claims-change', () => send('PUT', '/v1/organizations/acme/members/alice', { role, status: 'active' })],
      [
        'credential-change',
        () => send('PUT', '/v1/users/alice', { email: EMAIL, password: `a new password by ${delivery}` }),
      ],
      ['session-revoked', () => send('POST', '/v1/users/alice/sessions:revoke')],
    ] as const
    for (const [event, change] of changes) {
      const startMs = performance.now()
      await change()
      const isTaken = await until(async () => taken.has(`${CAEP}/${event}`))
      const why = isTaken ? `${Math.round(performance.now() - startMs)} ms from the call to its handler` : taken.said()
      told.push({ outcome: isTaken ? 'passed' : 'failed', what: what(event), why })
    }
    return told
  } finally {
    const ended = once(peer, 'exit')
    peer.kill()
    await ended
  }
}

type Taken = {
  has(event: string): boolean
  /** What it wrote, for a failure. */
  said(): string
}

function linesOf(peer: ChildProcess): Taken {
  let text = ''
  let errors = ''
  peer.stdout?.on('data', (chunk: Buffer) => {
    text += chunk.toString()
  })
  peer.stderr?.on('data', (chunk: Buffer) => {
    errors += chunk.toString()
  })
  return {
    has: (event) => text.includes(`"${event}"`),
    said: () => `${text}${errors}`.trim().slice(-500) || 'it wrote nothing',
  }
}

async function streams(issuer: string, clientId: string): Promise<readonly unknown[]> {
  const { access_token: token } = await clientToken({ issuer, clientId, clientSecret: SECRET, scope: 'ssf.manage' })
  const response = await fetch(`${issuer}/ssf/stream`, { headers: { authorization: `Bearer ${token}` } })
  const read: unknown = await response.json()
  return Array.isArray(read) ? read : []
}
