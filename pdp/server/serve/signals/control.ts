/** A stream's status, its subjects, its verification (SSF 1.0 sections 8.1.2 to 8.1.4), and polls (RFC 8936). */
import type { FastifyInstance } from 'fastify'
import { DIRECTORY } from '../../../shared/domain/journal.ts'
import { SSF_PATHS } from '../../../signals/transmitter/configuration.ts'
import { POLL_EVENTS_MAX, type PollBody } from '../../../signals/transmitter/poll.ts'
import { STREAM_STATUSES, type StreamStatus } from '../../../signals/transmitter/streams.ts'
import type { JsonSchema } from '../http/schemas.ts'
import { addManagementRoute, done, found, ok } from '../management/route.ts'
import { COMMON, NO_STREAM, open, receiverOf, type SignalDeps, STREAM_ID, subjectIn } from './receivers.ts'

const REASON = { type: 'string', minLength: 1, maxLength: 1_024 }
const STATUS = open({ stream_id: STREAM_ID, status: { type: 'string', enum: STREAM_STATUSES }, reason: REASON }, [
  'stream_id',
  'status',
])
const SUBJECT: JsonSchema = { type: 'object', description: 'A subject identifier (RFC 9493), simple or complex.' }
const JTI = { type: 'string', minLength: 1, maxLength: 256 }
const POLL = open(
  {
    maxEvents: {
      type: 'integer',
      minimum: 0,
      description: `0: only acknowledges. At most ${POLL_EVENTS_MAX} are sent.`,
    },
    returnImmediately: {
      type: 'boolean',
      description: 'False: waits up to 20 seconds for the first one. Default: false.',
    },
    ack: { type: 'array', maxItems: 1_000, items: JTI },
    setErrs: {
      type: 'object',
      maxProperties: 1_000,
      additionalProperties: open(
        { err: { type: 'string', maxLength: 256 }, description: { type: 'string', maxLength: 4_096 } },
        ['err'],
      ),
    },
  },
  [],
)
const POLLED = open(
  { sets: { type: 'object', additionalProperties: { type: 'string' } }, moreAvailable: { type: 'boolean' } },
  ['sets'],
)

export function addStatus(app: FastifyInstance, deps: SignalDeps): void {
  const { transmitter } = deps
  const common = { ...COMMON, scope: 'ssf.manage', path: SSF_PATHS.status, answer: STATUS } as const
  addManagementRoute<{ params: never; query: { stream_id: string } }>(app, deps, {
    ...common,
    method: 'GET',
    operation: 'getStreamStatus',
    summary: 'Whether a stream is enabled, paused or disabled, and why.',
    query: { stream_id: STREAM_ID },
    queryRequired: ['stream_id'],
    async handle({ caller, query }) {
      const { id, status, statusReason } = found(
        await transmitter.stream(receiverOf(caller), query.stream_id),
        NO_STREAM,
      )
      return ok({ stream_id: id, status, ...(statusReason === null ? {} : { reason: statusReason }) })
    },
  })
  addManagementRoute<{ params: never; body: { stream_id: string; status: StreamStatus; reason?: string } }>(app, deps, {
    ...common,
    method: 'POST',
    operation: 'setStreamStatus',
    summary: 'Enables, pauses (events are held for 7 days, 100,000 at most) or disables (events are dropped) a stream.',
    body: STATUS,
    locks: () => [DIRECTORY],
    async handle({ at, caller, body: { stream_id: id, status, reason } }) {
      done(await at.streams.setStatus(receiverOf(caller), id, { status, reason: reason ?? null }), NO_STREAM)
      return ok({ stream_id: id, status, ...(reason === undefined ? {} : { reason }) })
    },
  })
}

export function addSubjects(app: FastifyInstance, deps: SignalDeps): void {
  const common = { ...COMMON, scope: 'ssf.manage', method: 'POST' } as const
  const properties = { stream_id: STREAM_ID, subject: SUBJECT }
  addManagementRoute<{ params: never; body: { readonly stream_id: string; readonly subject: object } }>(app, deps, {
    ...common,
    // Fastify reads two colons as one colon of the path.
    path: SSF_PATHS.addSubject.replace(':', '::'),
    operation: 'addStreamSubject',
    summary: 'Sends events about a subject again. A new stream is about all subjects.',
    body: open({ ...properties, verified: { type: 'boolean' } }, ['stream_id', 'subject']),
    answer: { type: 'null' },
    locks: () => [DIRECTORY],
    async handle({ at, caller, body }) {
      done(await at.streams.addSubject(receiverOf(caller), body.stream_id, subjectIn(body)), NO_STREAM)
      return { status: 'ok' }
    },
  })
  addManagementRoute<{ params: never; body: { readonly stream_id: string; readonly subject: object } }>(app, deps, {
    ...common,
    path: SSF_PATHS.removeSubject.replace(':', '::'),
    operation: 'removeStreamSubject',
    summary: 'Sends no more events about a subject.',
    body: open(properties, ['stream_id', 'subject']),
    answer: null,
    locks: () => [DIRECTORY],
    handle: async ({ at, caller, body }) =>
      done(await at.streams.removeSubject(receiverOf(caller), body.stream_id, subjectIn(body)), NO_STREAM),
  })
}

export function addVerification(app: FastifyInstance, deps: SignalDeps): void {
  addManagementRoute<{ params: never; body: { stream_id: string; state?: string } }>(app, deps, {
    ...COMMON,
    scope: 'ssf.manage',
    method: 'POST',
    path: SSF_PATHS.verify,
    operation: 'verifyStream',
    summary: 'Asks for a verification event, which follows on the stream.',
    body: open({ stream_id: STREAM_ID, state: { type: 'string', maxLength: 1_024 } }, ['stream_id']),
    answer: null,
    locks: () => [DIRECTORY],
    handle: async ({ at, caller, body }) =>
      done(await at.streams.verify(receiverOf(caller), body.stream_id, body.state ?? null), NO_STREAM),
  })
}

export function addPolls(app: FastifyInstance, deps: SignalDeps): void {
  addManagementRoute<{ params: 'stream_id'; body: PollBody }>(app, deps, {
    ...{
      ...COMMON,
      scope: 'ssf.manage',
      method: 'POST',
      path: `${SSF_PATHS.poll}/:stream_id`,
      operation: 'pollStream',
    },
    summary: 'Acknowledges events and returns the next ones (RFC 8936).',
    waits: true,
    body: POLL,
    answer: POLLED,
    async handle({ caller, params, body, recheck }) {
      const again = async () => receiverOf(await recheck())
      return ok(found(await deps.transmitter.poll(receiverOf(caller), params.stream_id, { body, again }), NO_STREAM))
    },
  })
}
