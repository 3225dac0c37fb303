/** The webhook server: TLS 1.3, bounded bodies, time and memory, and no answer that allows by mistake. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import { serveInTurns } from '../../../pdp/shared/process/http/request-queue.ts'
import type { KeyPair } from '../../../pdp/shared/process/key-pair-files.ts'
import { type ListenAddress, listenOn } from '../../../pdp/shared/process/listen.ts'
import type { Log } from '../../../pdp/shared/process/log.ts'
import type { InjectorConfig } from '../pod/config.ts'
import type { Mode } from '../pod/injection.ts'
import { type Asked, askedAt, type Checked, check, type RouteFileReport } from './checks.ts'
import { API_VERSION, answerReview, modeOf, type Reviewed, requestOf } from './review.ts'
import { STATUS } from './status.ts'

/** The API server accepts objects of up to 1.5 MiB, and a review may hold two. */
export const REVIEW_BYTES_MAX = 3 * 1024 * 1024
export const REVIEW_TIMEOUT_MS = 4_000
const LIMITS = {
  /** The total bytes of all bodies that are being read. */
  pendingBytesMax: 48 * 1024 * 1024,
  connectionsMax: 512,
  headerBytesMax: 16 * 1024,
  keepAliveMs: 60_000,
  checkMs: 250,
  /** How many route files are checked at once, each in its own thread. */
  checksMax: 4,
} as const

type CertAndKey = Pick<KeyPair, 'cert' | 'key'>
type Deps = {
  readonly config: InjectorConfig
  readonly log: Log
  /** Called for each review; null: the body was not an AdmissionReview. */
  readonly onReview: (mode: Mode, reviewed: Reviewed | null) => void
  readonly onCheck: (kind: Asked['kind'], checked: Checked | null) => void
  readonly checkRoutes: (text: string) => Promise<RouteFileReport>
}
type Rejection = Exclude<keyof typeof STATUS, 'ok'>

/** Throws StartError when it cannot listen on the address. */
export async function startWebhook(
  listen: ListenAddress,
  { cert, key }: CertAndKey,
  deps: Deps,
): Promise<{
  readonly address: ListenAddress
  /** Uses the pair for new connections. Throws when key and certificate do not match. */
  renew(pair: CertAndKey): void
  close(): Promise<void>
}> {
  const budget = { pendingBytes: 0, checks: 0 }
  const server = createServer(
    {
      cert,
      key,
      minVersion: 'TLSv1.3',
      handshakeTimeout: REVIEW_TIMEOUT_MS,
      headersTimeout: REVIEW_TIMEOUT_MS,
      requestTimeout: REVIEW_TIMEOUT_MS,
      connectionsCheckingInterval: LIMITS.checkMs,
      keepAliveTimeout: LIMITS.keepAliveMs,
      maxHeaderSize: LIMITS.headerBytesMax,
    },
    (req, res) => void serve(req, res, { deps, budget }),
  )
  serveInTurns(server)
  server.maxConnections = LIMITS.connectionsMax
  const address = await listenOn(server, 'The injector', listen)
  return {
    address,
    renew: (pair) => server.setSecureContext({ cert: pair.cert, key: pair.key, minVersion: 'TLSv1.3' }),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeIdleConnections()
        setTimeout(() => server.closeAllConnections(), REVIEW_TIMEOUT_MS).unref()
      }),
  }
}

async function serve(
  req: IncomingMessage,
  res: ServerResponse,
  { deps, budget }: { readonly deps: Deps; readonly budget: { pendingBytes: number; checks: number } },
): Promise<void> {
  const path = (req.url ?? '').split('?', 1)[0] ?? ''
  const [mode, asked] = [modeOf(path), askedAt(path)]
  if (mode === null && asked === null) return refuse(res, 'pathUnknown')
  if (req.method !== 'POST') return refuse(res, 'methodUnsupported')
  const body = await readBody(req, budget)
  if ('rejection' in body) return refuse(res, body.rejection)
  try {
    if (asked !== null) return await answerCheck(body.text, asked, { res, deps, budget })
    if (mode === null) return
    const answered = answerReview(body.text, { config: deps.config, mode })
    deps.onReview(mode, answered)
    if (answered === null) return refuse(res, 'bodyInvalid')
    res.writeHead(STATUS.ok, { 'content-type': 'application/json' }).end(JSON.stringify(answered.body))
  } catch (err) {
    deps.log.error({ event: 'review_failed', err })
    refuse(res, 'failed')
  }
}

/** A check that cannot be answered lets the object pass: sidecars keep their last good file, and Pods are reviewed by themselves. */
async function answerCheck(
  text: string,
  asked: Asked,
  { res, deps, budget }: { readonly res: ServerResponse; readonly deps: Deps; readonly budget: { checks: number } },
): Promise<void> {
  const request = requestOf(text)
  if (request === null) return refuse(res, 'bodyInvalid')
  if (budget.checks >= LIMITS.checksMax) return refuse(res, 'overloaded')
  budget.checks += 1
  try {
    const checked = await check(request, asked, deps)
    deps.onCheck(asked.kind, checked)
    if (checked === null) return refuse(res, 'bodyInvalid')
    const review = { apiVersion: API_VERSION, kind: 'AdmissionReview', response: checked.response }
    res.writeHead(STATUS.ok, { 'content-type': 'application/json' }).end(JSON.stringify(review))
  } finally {
    budget.checks -= 1
  }
}

/** Refuses a review. To the API server, any status except 200 is a failed call, so with failurePolicy Fail it refuses the Pod. */
function refuse(res: ServerResponse, rejection: Rejection): void {
  if (res.headersSent || res.destroyed) return
  res
    .writeHead(STATUS[rejection], { 'content-type': 'text/plain; charset=utf-8', connection: 'close' })
    .end(`${rejection}\n`)
}

async function readBody(
  req: IncomingMessage,
  budget: { pendingBytes: number },
): Promise<{ readonly text: string } | { readonly rejection: Rejection }> {
  if (Number(req.headers['content-length'] ?? 0) > REVIEW_BYTES_MAX) return { rejection: 'bodyTooLarge' }
  const chunks: Buffer[] = []
  let bytes = 0
  try {
    for await (const chunk of req.iterator({ destroyOnReturn: false })) {
      if (!Buffer.isBuffer(chunk)) return { rejection: 'bodyInvalid' }
      bytes += chunk.length
      budget.pendingBytes += chunk.length
      if (bytes > REVIEW_BYTES_MAX) return { rejection: 'bodyTooLarge' }
      if (budget.pendingBytes > LIMITS.pendingBytesMax) return { rejection: 'overloaded' }
      chunks.push(chunk)
    }
    return { text: Buffer.concat(chunks).toString('utf8') }
  } catch {
    return { rejection: 'bodyLate' }
  } finally {
    budget.pendingBytes -= bytes
  }
}
