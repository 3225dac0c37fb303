/** Live views as server-sent events: an answer that follows the writes, and the latest decisions. */
import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { DIRECTORY, ENVIRONMENT } from '../../shared/domain/journal.ts'
import type { KeptDecision } from '../serve/decisions/decision-ring.ts'
import { asRequestProblem, SUCCESS } from '../serve/http/status.ts'
import { askedAgain, supposedOf } from './question.ts'
import { answerAsked, askedOf } from './screens/ask.ts'
import { filterOf, isShown, logView, rowTexts } from './screens/decisions.ts'
import { suggestionsFor } from './sections/suggestions.ts'
import type { ConsoleDeps, ConsoleVisit } from './visit.ts'

const POLL_MS = 500
/** How long a stream lives: then the browser asks again, and the person's session and rights are read again. */
const STREAM_MS = 30_000
const STREAMS_PER_PERSON_MAX = 20
const STREAMS_MAX = 200
/** How often a stream reads the session and the rights again. */
const RECHECK_MS = 2_000
/** How many rows one poll of the decisions sends at most: the newest. */
const ROWS_PER_LOOK_MAX = 20
/** How many bytes may wait for a browser that does not read. */
const BUFFERED_BYTES_MAX = 262_144

/** `send` ends the stream if the person may not see it any more. */
type Stream = { readonly closed: AbortSignal; send(event: object): Promise<void> }

export function addLive(
  scope: FastifyInstance,
  { deps, visitOf }: { deps: ConsoleDeps; visitOf: (request: FastifyRequest) => Promise<ConsoleVisit | null> },
): void {
  const open = new Map<string, number>()

  async function stillMay(request: FastifyRequest): Promise<boolean> {
    const visit = await visitOf(request)
    await visit?.requireScope('decisions:read')
    return visit !== null
  }

  function stream(
    request: FastifyRequest,
    reply: FastifyReply,
    serve: (visit: ConsoleVisit, to: Stream) => Promise<void>,
  ) {
    return async (): Promise<FastifyReply | undefined> => {
      const visit = await visitOf(request)
      if (visit === null) return reply.code(SUCCESS.empty).send()
      await visit.requireScope('decisions:read')
      const count = open.get(visit.person.id) ?? 0
      const all = open.values().reduce((sum, one) => sum + one, 0)
      // A browser's EventSource does not connect again after an answer without content.
      if (count >= STREAMS_PER_PERSON_MAX || all >= STREAMS_MAX) return reply.code(SUCCESS.empty).send()
      open.set(visit.person.id, count + 1)
      const ended = new AbortController()
      reply.hijack()
      const { raw } = reply
      raw.writeHead(SUCCESS.ok, {
        ...reply.getHeaders(),
        'content-type': 'text/event-stream; charset=utf-8',
        'cache-control': 'no-store',
      } as Record<string, string>)
      raw.write('retry: 1000\n\n')
      raw.once('close', () => ended.abort())
      const timer = setTimeout(() => ended.abort(), STREAM_MS)
      timer.unref()
      const recheck = (): Promise<unknown> =>
        stillMay(request).then(
          (may) => may || ended.abort(),
          () => ended.abort(),
        )
      const rechecking = setInterval(recheck, RECHECK_MS)
      const send = async (event: object): Promise<void> => {
        await recheck()
        if (ended.signal.aborted) return
        if (raw.writableLength > BUFFERED_BYTES_MAX) ended.abort()
        else raw.write(`data: ${JSON.stringify(event)}\n\n`)
      }
      await serve(visit, { closed: ended.signal, send }).catch((err: unknown) =>
        deps.log.warn({ event: 'console_stream_failed', request_id: request.id, err }),
      )
      clearTimeout(timer)
      clearInterval(rechecking)
      raw.end()
      const left = (open.get(visit.person.id) ?? 1) - 1
      if (left === 0) open.delete(visit.person.id)
      else open.set(visit.person.id, left)
    }
  }
  const only = { exposeHeadRoute: false }
  scope.get('/console/suggestions', only, async (request, reply) => {
    const visit = await visitOf(request)
    if (visit === null) return reply.code(SUCCESS.empty).send()
    return suggestionsFor(visit, visit.query('for'), visit.query('text'))
  })
  scope.get('/console/ask/watch', only, (request, reply) => stream(request, reply, watch)())
  scope.get('/console/decisions/tail', only, (request, reply) => stream(request, reply, tail)())
}

/** Asks again when a log changed that the answer may depend on, and when something in the answer expires. */
async function watch(visit: ConsoleVisit, { closed, send }: Stream): Promise<void> {
  // Later writes do not change a past answer, and each answer about the past replays a log.
  if (supposedOf(visit).asOf !== '') return
  const { clock, management } = visit.deps
  const { store, pdp } = management
  const { organization } = visit
  const logs = [ENVIRONMENT, DIRECTORY, ...(organization === null ? [] : ((await pdp.ancestors(organization)) ?? []))]
  let [seen, validUntilMs]: [string, number | null] = ['', null]
  while (!closed.aborted) {
    const { logs: positions } = await store.vector(logs)
    const now = [...positions].map(([log, { revision }]) => `${log} ${revision}`).join(',')
    if (now !== seen || (validUntilMs !== null && clock() >= validUntilMs)) {
      seen = now
      const { validUntilMs: until, ...shown } = await verdictNow(visit)
      validUntilMs = until
      await send(shown)
    }
    await delay(POLL_MS, undefined, { signal: closed }).catch(() => undefined)
  }
}

type Shown = { readonly verdict: string; readonly state: 'allowed' | 'denied'; readonly validUntilMs: number | null }

async function verdictNow(visit: ConsoleVisit): Promise<Shown> {
  try {
    const { result, validUntilMs } = await answerAsked(visit, askedOf(visit), supposedOf(visit))
    if (result.error !== undefined) return { verdict: '? cannot be decided', state: 'denied', validUntilMs }
    return result.allowed
      ? { verdict: '✓ allowed', state: 'allowed', validUntilMs }
      : { verdict: '✗ denied', state: 'denied', validUntilMs }
  } catch (err) {
    return { verdict: `? ${asRequestProblem(err).message}`, state: 'denied', validUntilMs: null }
  }
}

async function tail(visit: ConsoleVisit, { closed, send }: Stream): Promise<void> {
  const { deps, organization: org } = visit
  const filter = filterOf(visit)
  logView(visit, filter, 'live')
  let seen = newestOf(deps.decisions)
  while (!closed.aborted) {
    const from = seen
    seen = newestOf(deps.decisions)
    const { newest, leftOut } = since(deps.decisions.latest(), {
      from,
      isWanted: (one) => isShown(visit, filter, one),
    })
    const rows = newest.map((decision) => ({ cells: rowTexts(decision), ask: askOf(org, decision) }))
    if (rows.length > 0) await send({ rows, leftOut })
    await delay(POLL_MS, undefined, { signal: closed }).catch(() => undefined)
  }
}

/** The newest decisions after number `from`, the oldest first, and how many others there were. */
export function since(
  latest: Iterable<KeptDecision>,
  { from, isWanted }: { readonly from: number; readonly isWanted: (decision: KeptDecision) => boolean },
): { readonly newest: readonly KeptDecision[]; readonly leftOut: number } {
  const found: KeptDecision[] = []
  for (const decision of latest) {
    if (decision.number <= from) break
    if (isWanted(decision)) found.push(decision)
  }
  const newest = found.slice(0, ROWS_PER_LOOK_MAX).toReversed()
  return { newest, leftOut: found.length - newest.length }
}

const newestOf = (decisions: ConsoleVisit['deps']['decisions']): number => decisions.latest().next().value?.number ?? -1

function askOf(org: string | null, { subject, permissions, app, acting }: KeptDecision): string | null {
  const [check] = permissions
  if (subject === null || check === undefined) return null
  return askedAgain(org, { subject, ...check }, { app, ...acting })
}
