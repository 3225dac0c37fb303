/** Reads the outbox by long polling: events in the order of their commits. */
import type { FastifyInstance } from 'fastify'
import { PUBLISHED_EVENTS } from '../../../shared/domain/outbox/events.ts'
import type { ManagementClient } from '../authentication/authenticate.ts'
import { ID, object, POSITION, TIMESTAMP, text } from '../http/schemas.ts'
import type { ManagementDeps, OutboxEvent } from './deps.ts'
import { addManagementRoute, ok } from './route.ts'

type Query = { readonly after?: string; readonly wait?: string }

// The longest wait: shorter than the timeouts of proxies and of our own server.
const WAIT_SECONDS_MAX = 20
const EVENT = object(
  {
    id: { type: 'string' },
    type: { type: 'string', enum: PUBLISHED_EVENTS },
    organization: { ...ID, type: ['string', 'null'] },
    at: TIMESTAMP,
    data: { type: 'object' },
  },
  ['id', 'type', 'organization', 'at', 'data'],
)

export function addEvents(app: FastifyInstance, deps: ManagementDeps): void {
  addManagementRoute<{ params: never; query: Query }>(app, deps, {
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
    answer: object({ items: { type: 'array', items: EVENT }, next: { type: 'string' } }, ['items', 'next']),
    async handle({ caller, query }) {
      const after = Number(query.after ?? 0)
      const waitMs = Number(query.wait ?? 0) * 1_000
      const { rows, next } = await deps.events.after(after, { waitMs, signal: AbortSignal.timeout(waitMs + 1_000) })
      const visible = await Promise.all(rows.map((row) => isVisible(deps, caller, row)))
      const items = rows.filter((_, i) => visible[i]).map(({ seq: _seq, ...event }) => event)
      return ok({ items, next: String(next) })
    },
  })
}

async function isVisible(
  deps: ManagementDeps,
  caller: ManagementClient,
  { organization }: OutboxEvent,
): Promise<boolean> {
  if (caller.organizationScope.length === 0) return true
  const ancestors = organization === null ? null : await deps.pdp.ancestors(organization)
  return caller.organizationScope.every((bound) => ancestors?.includes(bound) === true)
}
