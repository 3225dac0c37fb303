/** Tokens per second by grant and introspections per second, beside RSA signing alone. */
import { createHash, generateKeyPairSync, sign } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createPdp } from '../../pdp/decision-point/create-pdp.ts'
import { ENVIRONMENT } from '../../pdp/domain/log.ts'
import { createIdentity, type Identity } from '../../pdp/identity/identity.ts'
import { generateSecret, hashGeneratedSecret, hashSecret } from '../../pdp/identity/passwords/password-hash.ts'
import { masterKeysOf } from '../../pdp/process/encryption.ts'
import { createLog } from '../../pdp/process/log.ts'
import type { Store } from '../../pdp/store/contract.ts'
import type { Directory } from '../../pdp/store/directory.ts'
import { startEmbeddedPostgres } from '../../pdp/store/embedded-postgres/embedded-postgres.ts'
import { postgresDirectory } from '../../pdp/store/postgres/directory.ts'
import { appendLog } from '../../pdp/store/postgres/log.ts'
import { appendEvents } from '../../pdp/store/postgres/outbox.ts'
import { openPostgres } from '../../pdp/store/postgres/postgres.ts'
import { type Browser, hiddenFields } from '../support/browser.ts'
import { signIn } from '../support/sign-in.ts'
import { patiently } from './identity-limits.ts'
import { type Latency, latencyOf, spreadOf } from './report/figures.ts'
import { show } from './suite/print.ts'
import { type Extent, type Group, type Row, USUAL } from './suite/rows.ts'

const CALLERS = 16
const SIGNATURE = 'one RS256 signature, nothing else'
const SERIAL_COUNT = 100
const CONTEXT = { actor: 'bench', requestId: 'bench' }
const REDIRECT = 'https://app.example/cb'
const PASSWORD = 'correct horse battery staple'
const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token'
const DEVICE_CODE = 'urn:ietf:params:oauth:grant-type:device_code'
const CIBA = 'urn:openid:params:grant-type:ciba'
const VERIFIER = 'v'.repeat(43)
/** Of what is used up by a call: for all callers together, and for one alone. */
const PREPARED_COUNT = 120
const PREPARED_SERIAL_COUNT = 40

/** `signatures`: RSA signatures that one call makes. */
type Subject = {
  readonly name: string
  readonly signatures: number
  readonly call: (caller: number) => Promise<void>
  /** What calls use up, made beforehand and not measured; null when they can go on for as long as one likes. */
  readonly prepare: ((count: number) => Promise<void>) | null
}

export async function bench(): Promise<void> {
  const { group } = await measureIdentity(USUAL)
  show([{ name: 'identity', groups: [group], missing: [] }])
}

export async function measureIdentity(extent: Extent): Promise<{ group: Group }> {
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
      masterKeys: masterKeysOf(Buffer.alloc(32, 1)),
      clock: Date.now,
      log: createLog({ service: 'bench', level: 'error' }),
    })
    const secret = await seed(opened.store, directory)
    const rows = await measure(await subjects({ issuer, secret, identity }), extent)
    const title = `by grant, ${CALLERS} callers; latency of one caller alone`
    return { group: { title, unit: 'tokens', reference: SIGNATURE, rows } }
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
    client_name: 'Bench',
    scope: 'openid offline_access',
    grant_types: ['authorization_code', 'refresh_token', 'client_credentials', EXCHANGE, DEVICE_CODE, CIBA],
  }
  const client = { id: 'bench', app: null, organization: 'acme', metadata, secretHash: hashGeneratedSecret(secret) }
  await directory.putClient(client, CONTEXT)
  return secret
}

type World = { readonly issuer: string; readonly secret: string; readonly identity: Identity }
type Answer = { readonly access_token: string; readonly refresh_token?: string; readonly [member: string]: unknown }

async function subjects(world: World): Promise<readonly Subject[]> {
  const { issuer, secret, identity } = world
  const authorization = `Basic ${Buffer.from(`bench:${secret}`).toString('base64')}`
  async function send(path: string, form: Record<string, string>): Promise<Answer> {
    const body = new URLSearchParams(form)
    const response = await fetch(issuer + path, { method: 'POST', headers: { authorization }, body })
    const text = await response.text()
    if (response.status !== 200) throw new Error(text)
    return JSON.parse(text)
  }
  const post = (form: Record<string, string>) => send('/oauth/token', form)
  const person = { redirectUri: REDIRECT, email: 'ann@x.example', password: PASSWORD }
  const request = { issuer, clientId: 'bench', clientSecret: secret, ...person }
  const refreshTokens: string[] = []
  for (let caller = 0; caller < CALLERS; caller += 1) {
    const { tokens } = await signIn({ ...request, scope: 'openid offline_access', parameters: { prompt: 'consent' } })
    refreshTokens.push(tokens.refresh_token ?? '')
  }
  const { tokens, browser } = await signIn(request)
  const subject = { subject_token: tokens.access_token, subject_token_type: ACCESS_TOKEN }
  const agreed = agreements(browser, send)
  return [
    {
      name: 'client_credentials',
      signatures: 1,
      prepare: null,
      call: async () => void (await post({ grant_type: 'client_credentials' })),
    },
    usedUp('authorization_code with ID token', agreed.code, (code) =>
      post({ grant_type: 'authorization_code', code, redirect_uri: REDIRECT, code_verifier: VERIFIER }),
    ),
    usedUp('device_code with ID token', agreed.device, (code) => post({ grant_type: DEVICE_CODE, device_code: code })),
    usedUp('CIBA with ID token', agreed.ciba, (id) => post({ grant_type: CIBA, auth_req_id: id })),
    {
      name: 'refresh_token with ID token',
      signatures: 2,
      prepare: null,
      async call(caller) {
        const answer = await post({ grant_type: 'refresh_token', refresh_token: refreshTokens[caller] ?? '' })
        refreshTokens[caller] = answer.refresh_token ?? ''
      },
    },
    {
      name: 'token exchange',
      signatures: 1,
      prepare: null,
      call: async () => void (await post({ grant_type: EXCHANGE, ...subject })),
    },
    {
      name: 'introspection in process',
      signatures: 0,
      prepare: null,
      call: async () => void (await identity.introspect(tokens.access_token)),
    },
  ]
}

/** Redeems what a person agreed to, once each. */
function usedUp(name: string, make: () => Promise<string>, redeem: (text: string) => Promise<unknown>): Subject {
  const ready: string[] = []
  return {
    name,
    signatures: 2,
    async prepare(count) {
      while (ready.length < count) ready.push(await patiently(make))
    },
    async call() {
      const text = ready.pop()
      if (text === undefined) throw new Error(`${name}: nothing is left to redeem`)
      await redeem(text)
    },
  }
}

/** What a signed-in person agrees to in the browser, up to what the client redeems. */
function agreements(browser: Browser, send: (path: string, form: Record<string, string>) => Promise<Answer>) {
  const challenge = createHash('sha256').update(VERIFIER).digest('base64url')
  const query = new URLSearchParams({
    ...{ client_id: 'bench', response_type: 'code', redirect_uri: REDIRECT, scope: 'openid' },
    ...{ code_challenge: challenge, code_challenge_method: 'S256' },
  })
  return {
    async code(): Promise<string> {
      const location = (await browser.send(`/oauth/authorize?${query}`)).headers.get('location') ?? ''
      const code = URL.parse(location)?.searchParams.get('code')
      if (code == null) throw new Error(`no code: ${location}`)
      return code
    },
    async device(): Promise<string> {
      const started = await send('/oauth/device_authorization', { scope: 'openid' })
      const answers: { readonly [step: string]: { readonly [field: string]: string } } = {
        code: { user_code: String(started.user_code) },
        confirm: { confirm: 'yes' },
      }
      // The last page has no form, which ends the walk with its text.
      const end = await browser
        .follow('/oauth/device', ({ step }) => answers[step] ?? { action: 'continue' })
        .catch((err: unknown) => err)
      if (!String(end).includes('is connected')) throw new Error(`not connected: ${end}`)
      return String(started.device_code)
    },
    async ciba(): Promise<string> {
      const started = await send('/oauth/bc-authorize', { scope: 'openid', login_hint: 'ann@x.example' })
      const page = await (await browser.send('/oauth/approve')).text()
      const form = { ...hiddenFields(page), action: 'approve' }
      if (!(await (await browser.send('/oauth/approve', { form })).text()).includes('You approved')) {
        throw new Error('not approved')
      }
      return String(started.auth_req_id)
    },
  }
}

async function measure(all: readonly Subject[], { rounds, roundMs }: Extent): Promise<readonly Row[]> {
  const signatures = Array.from({ length: rounds }, signingMs)
  const plain = { ours: true, unchecked: '', stale: null }
  const rows: Row[] = [
    {
      ...plain,
      ours: false,
      name: SIGNATURE,
      perSecond: signatures.map((ms) => 1_000 / ms),
      p50Ms: spreadOf(signatures).median,
      p99Ms: spreadOf(signatures).most,
      p999Ms: spreadOf(signatures).most,
      unchecked: 'it only signs',
    },
  ]
  for (const subject of all) {
    const perSecond: number[] = []
    for (let round = 0; round < rounds; round++) perSecond.push(await throughput(subject, roundMs))
    const { p50: p50Ms, p99: p99Ms, p999: p999Ms } = await alone(subject)
    rows.push({ ...plain, name: `${subject.name}, ${subject.signatures} signed`, perSecond, p50Ms, p99Ms, p999Ms })
  }
  return rows
}

async function alone(subject: Subject): Promise<Latency> {
  const count = subject.prepare === null ? SERIAL_COUNT : PREPARED_SERIAL_COUNT
  await subject.prepare?.(count)
  const timesMs: number[] = []
  for (let i = 0; i < count; i += 1) {
    const startedMs = performance.now()
    await subject.call(0)
    timesMs.push(performance.now() - startedMs)
  }
  return latencyOf(timesMs)
}

/** Calls per second by all callers at once: for a while, or until what was prepared is used up. */
async function throughput(subject: Subject, runMs: number): Promise<number> {
  await subject.prepare?.(PREPARED_COUNT)
  const startedMs = performance.now()
  const countMax = subject.prepare === null ? Number.POSITIVE_INFINITY : PREPARED_COUNT
  let begun = 0
  await Promise.all(
    Array.from({ length: CALLERS }, async (_, caller) => {
      while (begun < countMax && performance.now() - startedMs < runMs) {
        begun += 1
        await subject.call(caller)
      }
    }),
  )
  return (1_000 * begun) / (performance.now() - startedMs)
}

function signingMs(): number {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 })
  const text = Buffer.alloc(700, 'x')
  for (let i = 0; i < 50; i += 1) sign('sha256', text, privateKey)
  const started = performance.now()
  for (let i = 0; i < 500; i += 1) sign('sha256', text, privateKey)
  return (performance.now() - started) / 500
}
