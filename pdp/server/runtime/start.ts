/** The composition root of the PDP: makes every part, inner before outer, and closes them in reverse order. */
import { randomUUID } from 'node:crypto'
import type { Registry } from 'prom-client'
import { createPdp } from '../../engine/decision-point/create-pdp.ts'
import type { Store } from '../../engine/store/contract.ts'
import type { Directory, Sql } from '../../engine/store/directory.ts'
import { postgresDirectory } from '../../engine/store/postgres/directory.ts'
import { appendJournal } from '../../engine/store/postgres/journal.ts'
import { appendEvents } from '../../engine/store/postgres/outbox.ts'
import { postgresProvisioning } from '../../engine/store/postgres/people/provisioning.ts'
import { postgresMoves } from '../../engine/store/postgres/tree/moves.ts'
import { createIdentity, type Identity } from '../../identity/identity.ts'
import { openMasterKeys } from '../../identity/issuer/keys/master-keys.ts'
import type { TokenState } from '../../identity/issuer/tokens/token-state.ts'
import { createNetworks, type Networks } from '../../shared/base/addresses.ts'
import { withTimeout } from '../../shared/base/with-timeout.ts'
import { PdpError } from '../../shared/domain/errors.ts'
import { ENVIRONMENT } from '../../shared/domain/journal.ts'
import { createRegistry, startOperations } from '../../shared/process/admin-listener.ts'
import { watchDescriptors } from '../../shared/process/descriptors.ts'
import { formatAddress, namedBySetting } from '../../shared/process/listen.ts'
import type { Log } from '../../shared/process/log.ts'
import { everyNth } from '../../shared/process/repeated-lines.ts'
import { startRepeated } from '../../shared/process/repeated-runs.ts'
import type { Shutdown } from '../../shared/process/shutdown.ts'
import type { Spans } from '../../shared/process/tracing/spans.ts'
import { addConsole } from '../console/console.ts'
import { createAdmission, DECISION_MS, unanswered } from '../serve/authentication/admission.ts'
import { createPeople } from '../serve/authentication/people.ts'
import { type AnswerQuestion, createAnswerQuestion } from '../serve/decisions/answer.ts'
import { createDecisionArchive } from '../serve/decisions/decision-archive.ts'
import { logDecisions } from '../serve/decisions/decision-log.ts'
import { createDecisionRing, keepDecisions } from '../serve/decisions/decision-ring.ts'
import { createQuestionChain } from '../serve/decisions/question-chain.ts'
import { createWatchedQuestions } from '../serve/decisions/watched-questions.ts'
import { createBudgets } from '../serve/grpc/budgets.ts'
import { createRouteReports } from '../serve/grpc/route-reports.ts'
import { startGrpcServer } from '../serve/grpc/server.ts'
import { createHttpServer, listenHttp } from '../serve/http-server.ts'
import { createAcceptance } from '../serve/management/invitations/acceptance.ts'
import { accountSettings } from './account-settings.ts'
import { startArrivals } from './arrivals.ts'
import type { PdpConfig } from './config.ts'
import { checkConnections, openStore } from './database.ts'
import { startDepartures } from './departures.ts'
import { loadRest } from './load-rest.ts'
import { countAnswers, hookOutcomes, logoutOutcomes, requestMetrics } from './metrics.ts'
import { nameNumberInstants } from './number-instants.ts'
import { entitlementParts, grpcGuards, openSpans, proofMemory } from './optional-parts.ts'
import { prepareConsole } from './prepare-console.ts'
import { type Receiving, receiveSignals } from './received-signals.ts'
import { startRetention } from './retention.ts'
import { loadSecrets } from './secrets.ts'
import { createCommits, startSignals } from './signals.ts'
import { stateMetrics, timedStore } from './state-metrics.ts'
import { reachAtomically } from './write-transaction.ts'

export type RunningPdp = {
  readonly issuer: string
  /** The HTTP origin with the port that was bound. */
  readonly httpUrl: string
  /** `host:port` with the port that was bound. */
  readonly grpcAddress: string
  readonly metricsUrl: string
  readonly adminSecret: string
  /** Resolves when the identity service is loaded: its requests wait until then. Rejects with StartError, after everything was closed. */
  readonly loaded: Promise<void>
  /** Drains and closes everything. Later calls wait for the first one. */
  close(): Promise<void>
}

export type StartDeps = {
  readonly log: Log
  readonly shutdown: Shutdown
  /** How many log lines were dropped; default: none. */
  readonly droppedLines?: () => number
}

/**
 * Serves until `shutdown` runs or the returned `close` is called. If a part fails to start, the earlier ones are closed.
 * Throws StartError for errors that an operator can fix, such as a port in use.
 */
export async function startPdp(config: PdpConfig, deps: StartDeps): Promise<RunningPdp> {
  try {
    return await deps.shutdown.hold(compose(config, deps))
  } catch (err) {
    await deps.shutdown.run(null)
    throw err
  }
}

async function compose(config: PdpConfig, { log, shutdown, droppedLines }: StartDeps): Promise<RunningPdp> {
  const secrets = await loadSecrets(config)
  const registry = createRegistry(droppedLines)
  const spans = openSpans(config, { log, shutdown })
  const data = await openData(config, { secrets, registry, spans, log, shutdown })
  const { sql, store, directory, masterKeys, entitlements, pdp } = data
  const trustedProxies = createNetworks(config.trustedProxies)
  const identity = await openIdentity(config, { data, trustedProxies, registry, log, shutdown })
  const receiver = receiveSignals(config, { sql, masterKeys, registry, log })
  shutdown.add('signals', () => receiver.close())
  const { issuer, internalHosts, proxy } = config
  const { commits } = data
  const transmitter = startSignals({
    ...{ issuer, internalHosts, proxy, sql, identity, masterKeys, commits, registry, log },
  })
  shutdown.add('signal streams', () => transmitter.close())
  const atomically = reachAtomically(data.atomically, { identity: identity.within, transmitter })
  const routes = identity.routes(createAcceptance({ atomically, find: identity.invitations.find }))

  const ask = createAnswerQuestion({ pdp, directory, randomId: randomUUID })
  const { answer, decisions, archive } = createQuestions(config, { ask, sql, registry, spans, log, shutdown })
  const people = createPeople()
  const reports = createRouteReports({ clock: Date.now })
  const recognize = (token: string): Promise<TokenState> =>
    withTimeout(identity.recognize(token), DECISION_MS, unanswered)
  const readiness = createReadiness({ store, receiver })
  const probes = { '/livez': () => null, '/readyz': readiness.probe }
  const operations = await namedBySetting(
    'PORTCULLIS_METRICS_LISTEN',
    startOperations({ listen: config.metrics, registry, probes }),
  )
  shutdown.add('metrics', () => operations.close())
  const descriptors = watchDescriptors({ log })
  shutdown.add('descriptors', () => descriptors.close())
  const app = await createHttpServer({
    identity: { ...identity, ...routes, recognize },
    ...{ pdp, store, entitlements, directory, atomically, answer, archive, transmitter, people, receiver },
    moves: postgresMoves(sql),
    provisioning: postgresProvisioning(sql),
    sidecars: reports,
    trustedProxies,
    issuer,
    log,
    spans,
    observe: requestMetrics(registry),
  })
  const { console } = identity
  if (config.console && (await prepareConsole({ store, identity: console, log }))) {
    const management = { store, directory, pdp }
    const kept = { decisions, archive, routes: reports, branding: config.branding }
    await addConsole(app, { issuer, identity: console, people, management, ...kept, log, masterKeys, clock: Date.now })
  }
  // Creating the client takes a slow hash, in another thread. Requests to the identity service wait for it.
  const admin = routes.ensureAdmin(secrets.adminSecret)
  admin.catch(() => undefined)
  const http = await namedBySetting('PORTCULLIS_HTTP_LISTEN', listenHttp(app, config.http))
  shutdown.add('http', () => http.close())
  // Closed before HTTP, which waits for the polls of receivers.
  shutdown.add('polls of signal streams', () => transmitter.close())
  const watched = createWatchedQuestions({ store, pdp, recognize, answer: ask, clock: Date.now, log })
  const guards = await grpcGuards(config, { introspect: identity.introspect, log })
  const budgets = createBudgets()
  const certificateEndMs = (): number | null => guards.tls?.endMs() ?? null
  stateMetrics(registry, { sql, connections: data.connections, budgets, certificateEndMs })
  const questions = { recognize, answer, watched, routes: reports }
  const grpc = await namedBySetting(
    'PORTCULLIS_GRPC_LISTEN',
    startGrpcServer({ ...questions, log, budgets, ...guards }, config.grpc),
  )
  shutdown.add('grpc', () => grpc.close())
  // Answers end their connections from now on, so that clients move to another PDP before this one stops listening.
  shutdown.add('http connections', () => http.drain())
  shutdown.add('departures', startDepartures({ sql, log }))
  shutdown.add('arrivals', startArrivals({ sql, log }))
  shutdown.add('retention', startRetention({ sql, keptDays: config.changesKeptDays, log }))

  readiness.waitFor('the identity service is still loading')
  const rest = loadRest(shutdown, [() => admin, routes.load, () => nameNumberInstants({ store, log })])
  const loaded = rest.then(() => readiness.waitFor(null))
  // The error also closes the PDP, which was never ready, so callers may ignore this promise.
  loaded.catch(() => undefined)
  const metricsUrl = `http://${formatAddress(operations.address)}`
  if (!shutdown.begun())
    log.info({ event: 'listening', issuer, http: http.url, grpc: grpc.address, metrics: metricsUrl })
  return {
    issuer,
    httpUrl: http.url,
    grpcAddress: grpc.address,
    metricsUrl,
    adminSecret: secrets.adminSecret,
    loaded,
    close: async () => void (await shutdown.run('close')),
  }
}

type Process = { readonly log: Log; readonly shutdown: Shutdown; readonly registry: Registry }

/** The store, its readers, and the keys that encrypt its secrets. */
async function openData(
  config: PdpConfig,
  of: Process & { readonly secrets: Awaited<ReturnType<typeof loadSecrets>>; readonly spans: Spans | null },
) {
  const { secrets, registry, spans, log, shutdown } = of
  const commits = createCommits()
  const {
    sql,
    atomically,
    connections,
    store: opened,
  } = commits.watch(await openStore(config, { shutdown, registry, spans, log }))
  const store = timedStore(opened, registry)
  const masterKeys = await openMasterKeys(sql, secrets.masterKeys)
  shutdown.add('master keys', await masterKeys.announce({ log }))
  await checkConnections(config, { sql, log })
  const directory = postgresDirectory(sql)
  const masterKey = secrets.masterKeys.current
  const { entitlements, sharedCache } = await entitlementParts(config, { store, masterKey, log })
  shutdown.add('shared cache', async () => sharedCache.close())
  const exists: Directory['exists'] = (subject, organization) => directory.exists(subject, organization)
  const pdp = createPdp({ store, entitlements, sharedCache, tuplesPerCheckMax: config.checkTuplesMax, exists })
  return { sql, atomically, connections, commits, store, masterKeys, directory, entitlements, pdp }
}

async function openIdentity(
  config: PdpConfig,
  of: Process & { readonly data: Awaited<ReturnType<typeof openData>>; readonly trustedProxies: Networks },
): Promise<Identity> {
  const { data, trustedProxies, registry, log, shutdown } = of
  const { sql, store, directory, pdp, masterKeys } = data
  const identity = await createIdentity({
    issuer: config.issuer,
    trustedProxies,
    sql,
    store,
    directory,
    pdp,
    appendJournal,
    appendEvents,
    fetch: globalThis.fetch,
    masterKeys,
    clock: Date.now,
    log,
    ...(await proofMemory(config, { log, shutdown })),
    embedEntitlements: config.embedEntitlements,
    requireSecondFactor: config.secondFactor === 'required',
    account: await accountSettings(config, { log }),
    internalHosts: config.internalHosts,
    proxy: config.proxy,
    branding: config.branding,
    ...(config.clientDocuments === null ? {} : { clientDocuments: config.clientDocuments }),
    onHookOutcome: hookOutcomes(registry),
    onLogoutOutcome: logoutOutcomes(registry),
  })
  shutdown.add('identity', () => identity.close())
  return identity
}

/** Times of the decision archive: how often batches are written, and how often old rows are deleted. */
const ARCHIVE_FLUSH_MS = 1_000
const ARCHIVE_TRIM_MS = 600_000

/** The function that answers questions over HTTP and gRPC, and the latest answers for the console. */
function createQuestions(
  config: PdpConfig,
  of: Process & { readonly ask: AnswerQuestion; readonly sql: Sql; readonly spans: Spans | null },
) {
  const { ask, sql, registry, spans, log, shutdown } = of
  const admission = createAdmission({ clock: () => performance.now() })
  const decisions = createDecisionRing(config.console ? config.decisionsKept : 0)
  const observers = [logDecisions(log, everyNth(config.logAllowedOneIn)), countAnswers(registry, admission)]
  if (decisions.countMax > 0) observers.push(keepDecisions(decisions))
  const { decisionsKeptDays: keptDays } = config
  const archive = keptDays === 0 ? null : createDecisionArchive({ sql, log })
  if (archive !== null) {
    observers.push(archive.observer)
    const failed = (err: unknown): void => log.warn({ event: 'decisions_not_trimmed', err })
    const stopFlushing = startRepeated(() => archive.flush(), { intervalMs: ARCHIVE_FLUSH_MS, failed })
    const stopTrimming = startRepeated(() => archive.trim(keptDays), { intervalMs: ARCHIVE_TRIM_MS, failed })
    shutdown.add('kept decisions', async () => {
      await Promise.all([stopFlushing(), stopTrimming()])
      await archive.flush()
    })
  }
  const clocks = { clock: Date.now, monotonic: () => performance.now() }
  return { decisions, archive, answer: createQuestionChain(ask, { admission, observers, clocks, spans }) }
}

/** Reports what the PDP still waits for; null: it is ready. */
function createReadiness(parts: { readonly store: Store; readonly receiver: Pick<Receiving, 'note'> }) {
  let waitsFor: string | null = 'HTTP and gRPC do not listen yet'
  return {
    waitFor(what: string | null): void {
      waitsFor = what
    },
    probe: async () => waitsFor ?? (await storeProbe(parts.store)) ?? parts.receiver.note(),
  }
}

/** The reason why the store is not ready; null: it is. */
async function storeProbe(store: Store): Promise<string | null> {
  try {
    await store.vector([ENVIRONMENT])
    return null
  } catch (err) {
    return `waiting for the database: ${err instanceof PdpError ? err.message : 'its answer is not understood'}`
  }
}
