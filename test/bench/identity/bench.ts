/** Tokens per second by grant and introspections per second, beside RSA signing alone. */
import { generateKeyPairSync, sign } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createPdp } from '../../../pdp/engine/decision-point/create-pdp.ts'
import type { Store } from '../../../pdp/engine/store/contract.ts'
import type { Directory } from '../../../pdp/engine/store/directory.ts'
import { startEmbeddedPostgres } from '../../../pdp/engine/store/embedded-postgres/embedded-postgres.ts'
import { postgresDirectory } from '../../../pdp/engine/store/postgres/directory.ts'
import { appendJournal } from '../../../pdp/engine/store/postgres/journal.ts'
import { appendEvents } from '../../../pdp/engine/store/postgres/outbox.ts'
import { openPostgres } from '../../../pdp/engine/store/postgres/postgres.ts'
import { createIdentity, type Identity, type IssuerRoutes } from '../../../pdp/identity/identity.ts'
import {
  generateSecret,
  hashGeneratedSecret,
  hashSecret,
} from '../../../pdp/identity/people/passwords/password-hash.ts'
import { masterKeysOf } from '../../../pdp/shared/base/encryption.ts'
import { ENVIRONMENT } from '../../../pdp/shared/domain/journal.ts'
import { createLog } from '../../../pdp/shared/process/log.ts'
import { type Latency, latencyOf, spreadOf } from '../report/figures.ts'
import type { CpuByRole } from '../report/process-use.ts'
import { show } from '../suite/print.ts'
import { type Extent, type Group, medianCpu, type Row, USUAL, withCpu } from '../suite/rows.ts'
import { CALLERS, CIBA, DEVICE_CODE, EXCHANGE, PASSWORD, REDIRECT, type Subject, subjects } from './subjects.ts'

const SIGNATURE = 'one RS256 signature, nothing else'
const SERIAL_COUNT = 100
const CONTEXT = { actor: 'bench', requestId: 'bench' }
/** Of what is used up by a call: for all callers together, and for one alone. */
const PREPARED_COUNT = 120
const PREPARED_SERIAL_COUNT = 40

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
  let routes: IssuerRoutes | undefined
  const server = createServer((req, res) => void routes?.handle(req, res))
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
      appendJournal,
      appendEvents,
      fetch: globalThis.fetch,
      masterKeys: masterKeysOf(Buffer.alloc(32, 1)),
      clock: Date.now,
      log: createLog({ service: 'bench', level: 'error' }),
    })
    routes = identity.routes(null)
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
      cpuUs: null,
    },
  ]
  for (const subject of all) {
    const perSecond: number[] = []
    const cpu: CpuByRole[] = []
    for (let round = 0; round < rounds; round++) {
      await subject.prepare?.(PREPARED_COUNT)
      const { found, cpuUs } = await withCpu(
        () => throughput(subject, roundMs),
        ({ count }) => count,
      )
      perSecond.push(found.perSecond)
      cpu.push(cpuUs)
    }
    const { p50: p50Ms, p99: p99Ms, p999: p999Ms } = await alone(subject)
    const name = `${subject.name}, ${subject.signatures} signed`
    rows.push({ ...plain, name, perSecond, p50Ms, p99Ms, p999Ms, cpuUs: medianCpu(cpu) })
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

/** Calls by all callers at once: for a while, or until what was prepared is used up. */
async function throughput(
  subject: Subject,
  runMs: number,
): Promise<{ readonly perSecond: number; readonly count: number }> {
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
  return { perSecond: (1_000 * begun) / (performance.now() - startedMs), count: begun }
}

function signingMs(): number {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 })
  const text = Buffer.alloc(700, 'x')
  for (let i = 0; i < 50; i += 1) sign('sha256', text, privateKey)
  const started = performance.now()
  for (let i = 0; i < 500; i += 1) sign('sha256', text, privateKey)
  return (performance.now() - started) / 500
}
