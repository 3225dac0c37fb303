/** The composition root of the PDP: every part is made here, inner before outer, and closed in reverse. */
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import { createPdp } from '../decision-point/create-pdp.ts'
import { PdpError } from '../domain/errors.ts'
import { ENVIRONMENT } from '../domain/log.ts'
import { createIdentity } from '../identity/identity.ts'
import { rotateKeys } from '../identity/keys/key-rotation.ts'
import type { HookOutcome } from '../identity/tokens/token-hook.ts'
import type { TokenState } from '../identity/tokens/token-state.ts'
import { createNetworks } from '../process/addresses.ts'
import { watchDescriptors } from '../process/descriptors.ts'
import { StartError } from '../process/exit.ts'
import { generatedSecret } from '../process/generated-secret.ts'
import { formatAddress } from '../process/listen.ts'
import type { Log } from '../process/log.ts'
import { createRegistry, startOperations } from '../process/operations.ts'
import type { Shutdown } from '../process/shutdown.ts'
import { withTimeout } from '../process/with-timeout.ts'
import { type Admission, createAdmission, DECISION_MS } from '../serve/authentication/admission.ts'
import { createCallers } from '../serve/authentication/grpc-callers.ts'
import { createServiceAccounts } from '../serve/authentication/service-account.ts'
import { type AnswerQuestion, admitted, createAnswerQuestion, createAskAgain } from '../serve/decisions/answer.ts'
import { createWatchedQuestions } from '../serve/decisions/watched-questions.ts'
import { type GrpcDeps, startGrpcServer } from '../serve/grpc/server.ts'
import { loadTls } from '../serve/grpc/tls.ts'
import { createHttpServer, type HttpDeps, listenHttp } from '../serve/http-server.ts'
import { asRequestProblem } from '../serve/problems/status.ts'
import type { Store } from '../store/contract.ts'
import { startEmbeddedPostgres } from '../store/embedded-postgres/embedded-postgres.ts'
import { httpEntitlements } from '../store/entitlements/http-source.ts'
import { redisSharedCache } from '../store/entitlements/redis-cache.ts'
import { noSharedCache } from '../store/entitlements/shared-cache.ts'
import { storeEntitlements } from '../store/entitlements/store-source.ts'
import { postgresDirectory } from '../store/postgres/directory.ts'
import { appendLog } from '../store/postgres/log.ts'
import { postgresMoves } from '../store/postgres/moves.ts'
import { appendEvents } from '../store/postgres/outbox.ts'
import { openPostgres } from '../store/postgres/postgres.ts'
import { type RedisReplayMemory, redisReplayMemory } from '../token/replay-redis.ts'
import { type PdpConfig, parseMasterKey } from './config.ts'
import { reachAtomically } from './reach.ts'
import { startRetention } from './retention.ts'

export type RunningPdp = {
  readonly issuer: string
  /** Origin, with the port that was bound. */
  readonly httpUrl: string
  /** `host:port`, with the port that was bound. */
  readonly grpcAddress: string
  readonly metricsUrl: string
  readonly adminSecret: string
  /** Drains and closes everything; further calls wait for the first. */
  close(): Promise<void>
}

/**
 * Serves until `shutdown` runs or the returned `close` is called. What was opened is closed again when a later part fails.
 * Throws StartError for what an operator can mend, such as a port in use.
 */
export async function startPdp(
  config: PdpConfig,
  deps: { readonly log: Log; readonly shutdown: Shutdown },
): Promise<RunningPdp> {
  try {
    return await deps.shutdown.hold(compose(config, deps))
  } catch (err) {
    await deps.shutdown.run('start failed')
    throw err
  }
}

async function compose(config: PdpConfig, { log, shutdown }: { log: Log; shutdown: Shutdown }): Promise<RunningPdp> {
  const secrets = await loadSecrets(config)
  const { sql, store, atomically } = await openStore(config, shutdown)
  const directory = postgresDirectory(sql)
  const { entitlements, sharedCache } = await entitlementParts(config, { store, masterKey: secrets.masterKey, log })
  shutdown.add('shared cache', async () => sharedCache.close())
  const pdp = createPdp({ store, entitlements, sharedCache })
  const registry = createRegistry()
  const identity = await createIdentity({
    issuer: config.issuer,
    trustedProxies: createNetworks(config.trustedProxies),
    sql,
    store,
    directory,
    pdp,
    appendLog,
    appendEvents,
    fetch: globalThis.fetch,
    masterKey: secrets.masterKey,
    clock: Date.now,
    log,
    ...(await proofMemory(config, { log, shutdown })),
    embedEntitlements: config.embedEntitlements,
    onHookOutcome: hookOutcomes(registry),
  })
  shutdown.add('identity', () => identity.close())
  await identity.ensureAdmin(secrets.adminSecret)

  const admission = createAdmission({ clock: () => performance.now() })
  const asked = createAnswerQuestion({ pdp, directory, log, clock: Date.now, randomId: randomUUID })
  const answer = counted(admitted(asked, admission), { registry, admission })
  const { introspect } = identity
  const recognize = (token: string): Promise<TokenState> =>
    withTimeout(identity.recognize(token), DECISION_MS, unanswered)
  const probes = { '/livez': () => null, '/readyz': () => storeProbe(store) }
  const operations = await under(
    'PORTCULLIS_METRICS_LISTEN',
    startOperations({ listen: config.metrics, registry, probes }),
  )
  shutdown.add('metrics', () => operations.close())
  const descriptors = watchDescriptors({ log })
  shutdown.add('descriptors', () => descriptors.close())
  const app = await createHttpServer({
    identity: { ...identity, recognize },
    pdp,
    store,
    entitlements,
    directory,
    moves: postgresMoves(sql),
    atomically: reachAtomically(atomically, identity.within),
    answer,
    issuer: config.issuer,
    log,
    observe: requestMetrics(registry),
  })
  const http = await under('PORTCULLIS_HTTP_LISTEN', listenHttp(app, config.http))
  shutdown.add('http', () => http.close())
  const askAgain = createAskAgain({ pdp, directory, clock: Date.now, randomId: randomUUID })
  const watched = createWatchedQuestions({ store, pdp, recognize, answer: askAgain, clock: Date.now, log })
  const guards = await grpcGuards(config, { introspect, log })
  const grpc = await under(
    'PORTCULLIS_GRPC_LISTEN',
    startGrpcServer({ recognize, answer, watched, log, ...guards }, config.grpc),
  )
  shutdown.add('grpc', () => grpc.close())
  shutdown.add('retention', startRetention({ sql, keptDays: config.changesKeptDays, log }))

  const metricsUrl = `http://${formatAddress(operations.address)}`
  log.info({ event: 'listening', issuer: config.issuer, http: http.url, grpc: grpc.address, metrics: metricsUrl })
  return {
    issuer: config.issuer,
    httpUrl: http.url,
    grpcAddress: grpc.address,
    metricsUrl,
    adminSecret: secrets.adminSecret,
    close: async () => void (await shutdown.run('close')),
  }
}

/** Names the setting that an operator changes when a listener cannot have its address. */
async function under<T>(setting: string, listener: Promise<T>): Promise<T> {
  try {
    return await listener
  } catch (err) {
    throw err instanceof StartError ? new StartError(`${setting}: ${err.message}`) : err
  }
}

async function entitlementParts(config: PdpConfig, deps: { store: Store; masterKey: Buffer; log: Log }) {
  const { store, masterKey, log } = deps
  const { entitlementSource: external, redisUrl: url } = config
  const onError = (err: Error): void => log.warn({ event: 'redis_failed', err })
  return {
    entitlements:
      external === null ? storeEntitlements(store) : httpEntitlements({ ...external, store, fetch: globalThis.fetch }),
    sharedCache: url === null ? noSharedCache() : await redisSharedCache({ url, masterKey, onError }),
  }
}

/** With a Redis, a proof that one node took is refused by the others too. */
async function proofMemory(
  { redisUrl: url }: PdpConfig,
  { log, shutdown }: { log: Log; shutdown: Shutdown },
): Promise<{ replay?: RedisReplayMemory }> {
  if (url === null) return {}
  const onError = (err: Error): void => log.warn({ event: 'redis_failed', err })
  const replay = await redisReplayMemory({ url, clock: Date.now, onError })
  shutdown.add('proof memory', async () => replay.close())
  return { replay }
}

async function grpcGuards(
  config: PdpConfig,
  { introspect, log }: { readonly introspect: (token: string) => Promise<TokenState>; readonly log: Log },
): Promise<Pick<GrpcDeps, 'tls' | 'authenticate'>> {
  const serviceAccounts =
    config.serviceAccounts &&
    createServiceAccounts(config.serviceAccounts, { fetch: globalThis.fetch, clock: Date.now })
  return {
    tls: config.grpcTls && (await loadTls(config.grpcTls, { log })),
    authenticate: createCallers({ introspect, issuer: config.issuer, serviceAccounts }),
  }
}

/** Brings the schema up to date; the names of what was applied. Throws StartError and PdpError. */
export async function migrateStore(config: PdpConfig): Promise<readonly string[]> {
  const embedded = config.databaseUrl === null ? await startEmbeddedPostgres(config) : null
  try {
    const connectionString = config.databaseUrl ?? embedded?.connectionString ?? ''
    const { migrated, close } = await openPostgres({ connectionString }).catch(explainDatabase)
    await close()
    return migrated
  } finally {
    await embedded?.stop()
  }
}

async function openStore(config: PdpConfig, shutdown: Shutdown) {
  let connectionString = config.databaseUrl
  if (connectionString === null) {
    const embedded = await startEmbeddedPostgres(config)
    shutdown.add('embedded PostgreSQL', () => embedded.stop())
    connectionString = embedded.connectionString
  }
  const opened = await openPostgres({ connectionString }).catch(explainDatabase)
  shutdown.add('store', () => opened.close())
  return opened
}

// Neither the URL nor the driver's error text is repeated where it could hold a password.
function explainDatabase(err: unknown): never {
  if (!(err instanceof PdpError)) throw err
  const reason = err.cause instanceof Error && 'code' in err.cause ? ` (${err.cause.code})` : ''
  throw new StartError(`PostgreSQL: ${err.message}${reason}`, { cause: err })
}

async function loadSecrets(config: PdpConfig): Promise<{ adminSecret: string; masterKey: Buffer }> {
  const path = join(config.dataDirectory, 'master-key')
  const masterKey = config.masterKey ?? parseMasterKey(await generatedSecret(path))
  if (masterKey === null) throw new StartError(`${path} does not hold 32 bytes in base64`)
  return {
    masterKey,
    adminSecret: config.adminSecret ?? (await generatedSecret(join(config.dataDirectory, 'admin-secret'))),
  }
}

/**
 * Changes the signing key of a running deployment; its nodes notice within half a minute.
 * Throws StartError while the next key is not known long enough, and PdpError `store_unavailable`.
 */
export async function rotateSigningKeys(config: PdpConfig): Promise<{ activeKid: string; nextKid: string }> {
  const { masterKey } = await loadSecrets(config)
  const embedded = config.databaseUrl === null ? await startEmbeddedPostgres(config) : null
  try {
    const connectionString = config.databaseUrl ?? embedded?.connectionString ?? ''
    const { sql, close } = await openPostgres({ connectionString })
    try {
      return await rotateKeys({ sql, masterKey })
    } catch (err) {
      if (err instanceof PdpError && err.code === 'conflict') throw new StartError(err.message)
      throw err
    } finally {
      await close()
    }
  } finally {
    await embedded?.stop()
  }
}

const unanswered = (): PdpError => new PdpError('store_unavailable', 'there was no answer in time')

async function storeProbe(store: Store): Promise<string | null> {
  await store.vector([ENVIRONMENT])
  return null
}

function counted(
  answer: AnswerQuestion,
  { registry, admission }: { readonly registry: Registry; readonly admission: Admission },
): AnswerQuestion {
  const shed = new Counter({
    name: 'portcullis_questions_shed_total',
    help: 'Questions refused because too many waited already.',
    registers: [registry],
  })
  new Gauge({
    name: 'portcullis_questions_waiting',
    help: 'Questions that wait for their turn.',
    registers: [registry],
    collect() {
      this.set(admission.waitingCount)
    },
  })
  const checks = new Counter({
    name: 'portcullis_checks_total',
    help: 'Permission checks answered, by outcome.',
    labelNames: ['outcome'],
    registers: [registry],
  })
  // Found once: finding a counter by its labels takes as long as a decision.
  const outcomes = {
    allowed: checks.labels('allowed'),
    denied: checks.labels('denied'),
    evaluation_limit: checks.labels('evaluation_limit'),
  }
  return async (token, question) => {
    const result = await answer(token, question).catch((err: unknown) => {
      if (asRequestProblem(err).code === 'overloaded') shed.inc()
      throw err
    })
    for (const { allowed, error } of result.permissions) outcomes[error ?? (allowed ? 'allowed' : 'denied')].inc()
    return result
  }
}

function hookOutcomes(registry: Registry): (outcome: HookOutcome) => void {
  const outcomes = new Counter({
    name: 'portcullis_token_hook_total',
    help: 'Tokens for which the token hook was asked, by what came of it.',
    labelNames: ['outcome'],
    registers: [registry],
  })
  return (outcome) => outcomes.inc({ outcome })
}

function requestMetrics(registry: Registry): HttpDeps['observe'] {
  const durations = new Histogram({
    name: 'portcullis_http_request_duration_seconds',
    help: 'HTTP requests by route.',
    labelNames: ['route', 'method', 'status'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
    registers: [registry],
  })
  return ({ route, method, status, durationMs }) => durations.observe({ route, method, status }, durationMs / 1_000)
}
