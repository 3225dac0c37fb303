/** The streams of all receivers, for operators: their state, pause and resume, and a verification event. */
import type { FastifyInstance } from 'fastify'
import { DIRECTORY } from '../../../shared/domain/journal.ts'
import type { StreamState } from '../../../signals/transmitter/streams.ts'
import { ID, LABEL, object, TIMESTAMP, whole } from '../http/schemas.ts'
import { addManagementRoute, done, found, ok } from '../management/route.ts'
import { NO_STREAM, type SignalDeps, STREAM_ID } from './receivers.ts'

const PAGE_MAX = 100
const STATE = object(
  {
    stream_id: STREAM_ID,
    client_id: ID,
    organization: { ...ID, type: ['string', 'null'] },
    delivery: { type: 'string', enum: ['push', 'poll'] },
    endpoint_url: { type: ['string', 'null'] },
    status: { type: 'string' },
    reason: { type: ['string', 'null'] },
    lag_seconds: { type: 'number', description: 'Age of the oldest event that is not delivered.' },
    pending: { type: 'integer', description: 'Events that were tried or handed out, and not acknowledged.' },
    attempts: { type: 'integer', description: 'Failed ones since the last success.' },
    last_error: { type: ['string', 'null'] },
    last_error_at: { ...TIMESTAMP, type: ['string', 'null'] },
    last_delivered_at: { ...TIMESTAMP, type: ['string', 'null'] },
    dead_letters: { type: 'integer', description: 'Events that the receiver refused.' },
    dropped: { type: 'integer', description: 'Events that were held for too long.' },
  },
  ['stream_id', 'client_id', 'organization', 'delivery', 'status', 'lag_seconds'],
)
const COMMON = { tag: 'Shared Signals', organizationScope: 'environment' } as const

export function addOperator(app: FastifyInstance, deps: SignalDeps): void {
  const { operator } = deps.transmitter
  addManagementRoute<{ params: never; query: { after?: string } }>(app, deps, {
    ...COMMON,
    scope: 'streams:write',
    method: 'GET',
    path: '/v1/streams',
    operation: 'listStreams',
    summary: `The streams of all receivers, ${PAGE_MAX} at most, in the order of their ids.`,
    query: { after: { ...STREAM_ID, description: '`next` of the previous answer.' } },
    answer: whole({ items: { type: 'array', items: STATE }, next: { type: ['string', 'null'] } }),
    async handle({ query }) {
      const states = await operator.states({ after: query.after ?? null, countMax: PAGE_MAX })
      return ok({ items: states.map(present), next: states.length < PAGE_MAX ? null : states.at(-1)?.id })
    },
  })
  addManagementRoute<{ params: 'stream_id' }>(app, deps, {
    ...{
      ...COMMON,
      scope: 'streams:write',
      method: 'GET',
      path: '/v1/streams/:stream_id',
      operation: 'getStreamState',
    },
    summary: 'The state of one stream.',
    answer: STATE,
    handle: async ({ params }) => ok(present(found(await operator.state(params.stream_id), NO_STREAM))),
  })
  for (const [action, status] of [['pause', 'paused'] as const, ['resume', 'enabled'] as const])
    addManagementRoute<{ params: 'stream_id'; body: { reason?: string } }>(app, deps, {
      ...COMMON,
      scope: 'streams:write',
      method: 'POST',
      operation: `${action}Stream`,
      path: `/v1/streams/:stream_id/${action}`,
      summary:
        action === 'pause'
          ? 'Holds the events of a stream, and tells the receiver first.'
          : 'Sends again what a stream held.',
      body: object({ reason: LABEL }),
      answer: null,
      locks: () => [DIRECTORY],
      handle: async ({ at, params, body }) =>
        done(await at.streams.operator.setStatus(params.stream_id, { status, reason: body.reason ?? null }), NO_STREAM),
    })
  addManagementRoute<{ params: 'stream_id' }>(app, deps, {
    ...COMMON,
    scope: 'streams:write',
    method: 'POST',
    operation: 'sendVerification',
    path: '/v1/streams/:stream_id/verify',
    summary: 'Sends a verification event, for which the receiver did not ask.',
    answer: null,
    locks: () => [DIRECTORY],
    handle: async ({ at, params }) => done(await at.streams.operator.verify(params.stream_id), NO_STREAM),
  })
}

function present(state: StreamState): object {
  return {
    stream_id: state.id,
    client_id: state.client,
    organization: state.organization,
    delivery: state.endpointUrl === null ? 'poll' : 'push',
    endpoint_url: state.endpointUrl,
    status: state.status,
    reason: state.statusReason,
    lag_seconds: Math.round(state.lagSeconds * 1_000) / 1_000,
    pending: state.pendingCount,
    attempts: state.attemptsCount,
    last_error: state.lastError,
    last_error_at: state.lastErrorAt,
    last_delivered_at: state.lastDeliveredAt,
    dead_letters: state.deadCount,
    dropped: state.gapCount,
  }
}
