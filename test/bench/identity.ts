/** Tokens per second by grant, introspections per second, and how much of a request is RSA signing. */

import { generateKeyPairSync, sign } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createPdp } from '../../pdp/create-pdp.ts'
import { createIdentity, type Identity } from '../../pdp/identity/identity.ts'
import { generateSecret, hashGeneratedSecret, hashSecret } from '../../pdp/identity/secrets.ts'
import { createLog } from '../../pdp/process/log.ts'
import { type Directory, ENVIRONMENT, type Store } from '../../pdp/store/contracts.ts'
import { openPostgres } from '../../pdp/store/postgres.ts'
import { postgresDirectory } from '../../pdp/store/postgres-directory.ts'
import { startEmbeddedPostgres } from '../../pdp/store/postgres-embedded.ts'
import { appendLog } from '../../pdp/store/postgres-log.ts'
import { appendEvents } from '../../pdp/store/postgres-outbox.ts'
import { signIn } from '../support/sign-in.ts'

const CALLERS = 16
const RUN_MS = 3_000
const SERIAL_COUNT = 100
const CONTEXT = { actor: 'bench', requestId: 'bench' }
const REDIRECT = 'https://app.example/cb'
const PASSWORD = 'correct horse battery staple'
const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token'

/** `signatures`: RSA signatures that one call makes. */
type Subject = { readonly name: string; readonly signatures: number; readonly call: (caller: number) => Promise<void> }

export async function bench(): Promise<void> {
  const dataDirectory = await mkdtemp(join(tmpdir(), 'portcullis-bench-'))
  const postgres = await startEmbeddedPostgres({ dataDirectory })
  const opened = await openPostgres({ connectionString: postgres.connectionString })
  const directory = postgresDirectory(opened.sql)
  let identity: Identity | undefined
  const server = createServer((req, res) => void identity?.handle(req, res))
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const address = server.address()
  const issuer = `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`
  try {
    identity = await createIdentity({
      issuer,
      sql: opened.sql,
      store: opened.store,
      directory,
      pdp: createPdp({ store: opened.store }),
      appendLog,
      appendEvents,
      fetch: globalThis.fetch,
      masterKey: Buffer.alloc(32, 1),
      clock: Date.now,
      log: createLog({ service: 'bench', level: 'error' }),
    })
    const secret = await seed(opened.store, directory)
    await report(await subjects({ issuer, secret, identity }))
  } finally {
    await identity?.close()
    server.closeAllConnections()
    await new Promise((done) => server.close(done))
    await opened.close()
    await postgres.stop()
    await rm(dataDirectory, { recursive: true, force: true })
  }
}

async function seed(store: Store, directory: Directory): Promise<string> {
  const organization = { id: 'acme', name: 'Acme', parent: null }
  await store.write(ENVIRONMENT, [{ kind: 'organization', id: 'acme', organization }], { context: CONTEXT })
  const user = { id: 'ann', email: 'ann@x.example', emailVerified: true, name: 'Ann' }
  await directory.putUser({ ...user, passwordHash: await hashSecret(PASSWORD) }, CONTEXT)
  const membership = { role: 'owner', status: 'active' } as const
  await store.write('acme', [{ kind: 'membership', user: 'ann', membership }], { context: CONTEXT })
  const secret = generateSecret()
  const metadata = {
    redirect_uris: [REDIRECT],
    scope: 'openid offline_access',
    grant_types: ['authorization_code', 'refresh_token', 'client_credentials', EXCHANGE],
  }
  const client = { id: 'bench', app: null, organization: 'acme', metadata, secretHash: hashGeneratedSecret(secret) }
  await directory.putClient(client, CONTEXT)
  return secret
}

async function subjects(world: { issuer: string; secret: string; identity: Identity }): Promise<readonly Subject[]> {
  const { issuer, secret, identity } = world
  const authorization = `Basic ${Buffer.from(`bench:${secret}`).toString('base64')}`
  async function post(form: Record<string, string>): Promise<{ access_token: string; refresh_token?: string }> {
    const body = new URLSearchParams(form)
    const response = await fetch(`${issuer}/oauth/token`, { method: 'POST', headers: { authorization }, body })
    const text = await response.text()
    if (response.status !== 200) throw new Error(text)
    return JSON.parse(text)
  }
  const person = { redirectUri: REDIRECT, email: 'ann@x.example', password: PASSWORD }
  const request = { issuer, clientId: 'bench', clientSecret: secret, ...person }
  const refreshTokens: string[] = []
  for (let caller = 0; caller < CALLERS; caller += 1) {
    const { tokens } = await signIn({ ...request, scope: 'openid offline_access', parameters: { prompt: 'consent' } })
    refreshTokens.push(tokens.refresh_token ?? '')
  }
  const { tokens } = await signIn(request)
  const subject = { subject_token: tokens.access_token, subject_token_type: ACCESS_TOKEN }
  return [
    {
      name: 'client_credentials',
      signatures: 1,
      call: async () => void (await post({ grant_type: 'client_credentials' })),
    },
    {
      name: 'refresh_token with ID token',
      signatures: 2,
      async call(caller) {
        const answer = await post({ grant_type: 'refresh_token', refresh_token: refreshTokens[caller] ?? '' })
        refreshTokens[caller] = answer.refresh_token ?? ''
      },
    },
    {
      name: 'token exchange',
      signatures: 1,
      call: async () => void (await post({ grant_type: EXCHANGE, ...subject })),
    },
    {
      name: 'introspection in process',
      signatures: 0,
      call: async () => void (await identity.introspect(tokens.access_token)),
    },
  ]
}

async function report(all: readonly Subject[]): Promise<void> {
  const signMs = signingMs()
  console.log(`one RS256 signature: ${signMs.toFixed(3)} ms; ${CALLERS} callers, then one alone`)
  for (const subject of all) {
    const perSecond = await throughput(subject)
    const started = performance.now()
    for (let i = 0; i < SERIAL_COUNT; i += 1) await subject.call(0)
    const aloneMs = (performance.now() - started) / SERIAL_COUNT
    const share = (100 * subject.signatures * signMs) / aloneMs
    console.log(
      `${subject.name.padEnd(28)} ${perSecond.toFixed(0).padStart(6)}/s   alone ${aloneMs.toFixed(2)} ms, of which RSA signing ${share.toFixed(0)} %`,
    )
  }
}

async function throughput(subject: Subject): Promise<number> {
  const untilMs = performance.now() + RUN_MS
  let count = 0
  await Promise.all(
    Array.from({ length: CALLERS }, async (_, caller) => {
      while (performance.now() < untilMs) {
        await subject.call(caller)
        count += 1
      }
    }),
  )
  return (1_000 * count) / RUN_MS
}

function signingMs(): number {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 })
  const text = Buffer.alloc(700, 'x')
  for (let i = 0; i < 50; i += 1) sign('sha256', text, privateKey)
  const started = performance.now()
  for (let i = 0; i < 500; i += 1) sign('sha256', text, privateKey)
  return (performance.now() - started) / 500
}
