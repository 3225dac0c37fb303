/** Reads the outbox by long polling: events in the order of their commits. */
import type { FastifyInstance } from 'fastify'
import { PUBLISHED_EVENTS } from '../../../shared/domain/outbox/events.ts'
import { isWithin } from '../authentication/authenticate.ts'
import { ID, POSITION, TIMESTAMP, text, whole } from '../http/schemas.ts'
import type { ManagementDeps } from './deps.ts'
import { addManagementRoute, ok } from './route.ts'

// The longest wait: shorter than the timeouts of proxies and of our own server.
const WAIT_SECONDS_MAX = 20
const EVENT = whole({
  id: { type: 'string' },
  type: { type: 'string', enum: PUBLISHED_EVENTS },
  organization: { ...ID, type: ['string', 'null'] },
  at: TIMESTAMP,
  data: { type: 'object' },
})

export function addEvents(app: FastifyInstance, deps: ManagementDeps): void {
  addManagementRoute<{ params: never; query: { after?: string; wait?: string } }>(app, deps, {
    tag: 'Events',
    scope: 'events:read',
    organizationScope: 'call',
    method: 'GET',
    path: '/v1/events',
    waits: true,
    operation: 'listEvents',
    summary:
      'At most 100 events after a position. Waits for the first one. A bound client sees only its organizations.',
    query: {
      after: {
        ...POSITION,
        description:
          '`next` of the previous answer; absent: from the start. It is smaller than `after` when the database was restored.',
      },
      wait: {
        ...text('^(0|1?[0-9]|20)$', `a whole number from 0 to ${WAIT_SECONDS_MAX}`),
        description: `Seconds to wait, up to ${WAIT_SECONDS_MAX}; 0 by default.`,
      },
    },
    answer: whole({ items: { type: 'array', items: EVENT }, next: { type: 'string' } }),
    async handle({ caller, query }) {
      const after = Number(query.after ?? 0)
      const waitMs = Number(query.wait ?? 0) * 1_000
      const { rows, next } = await deps.events.after(after, { waitMs, signal: AbortSignal.timeout(waitMs + 1_000) })
      const visible = await Promise.all(rows.map(({ organization }) => isWithin(caller, organization, deps.pdp)))
      const items = rows.filter((_, i) => visible[i]).map(({ seq: _seq, ...event }) => event)
      return ok({ items, next: String(next) })
    },
  })
}
