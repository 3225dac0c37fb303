/** The audit trail: who changed what, in order. */
import type { FastifyInstance } from 'fastify'
import type { JournalEntry } from '../../../engine/store/contract.ts'
import type { Change } from '../../../shared/domain/change.ts'
import { DIRECTORY, ENVIRONMENT, type JournalId } from '../../../shared/domain/journal.ts'
import { POSITION, whole } from '../http/schemas.ts'
import type { ManagementDeps } from './deps.ts'
import { addManagementRoute, ok } from './route.ts'

type Query = { readonly after?: string }

// A revision is never split, so the first limit is large enough for the largest revision that this API writes.
const ENTRIES_MAX = [1_002, 20_000, 200_000] as const
const ENTRY = whole({
  revision: { type: 'integer' },
  change: { type: 'object', description: 'The change by its kind: what was written; null: it was deleted.' },
  actor: { type: 'string' },
  request_id: { type: 'string' },
  at: { type: 'string', format: 'date-time' },
})
const PAGE = whole({
  items: { type: 'array', items: ENTRY },
  after: { type: 'integer', description: 'The value of `after` for the next request.' },
  more: { type: 'boolean', description: 'True: there are later changes.' },
  gap: {
    type: 'boolean',
    description:
      'True: changes before the first item were deleted, or `after` is ahead of the log, which was restored from a backup.',
  },
})
const LOGS: { readonly [name: string]: JournalId } = { environment: ENVIRONMENT, directory: DIRECTORY }
const COMMON = {
  tag: 'Audit',
  scope: 'audit:read',
  method: 'GET',
  answer: PAGE,
} as const
const AFTER = { ...POSITION, description: 'Return changes after this revision; 0 by default.' }

export function addChanges(app: FastifyInstance, deps: ManagementDeps): void {
  addManagementRoute<{ params: 'org'; query: Query }>(app, deps, {
    ...COMMON,
    path: '/v1/organizations/:org/changes',
    operation: 'listChanges',
    summary: 'Changes in an organization after a revision, each with its author and time.',
    organizationScope: 'organization',
    query: { after: AFTER },
    handle: async ({ params, query }) => ok(await readChanges(deps, params.org, query)),
  })
  addManagementRoute<{ params: never; query: Query & { log?: string } }>(app, deps, {
    ...COMMON,
    path: '/v1/changes',
    operation: 'listEnvironmentChanges',
    summary: 'Changes in the environment (organizations, manifests, roles) or in the directory (users and clients).',
    organizationScope: 'environment',
    query: { after: AFTER, log: { type: 'string', enum: Object.keys(LOGS) } },
    handle: async ({ query: { log = 'environment', ...query } }) =>
      ok(await readChanges(deps, LOGS[log] ?? ENVIRONMENT, query)),
  })
}

async function readChanges({ store }: ManagementDeps, log: JournalId, { after = '0' }: Query): Promise<object> {
  const to = (await store.vector([log])).logs.get(log)?.revision ?? 0
  const from = Math.min(Number(after), to)
  let entries: readonly JournalEntry[] = []
  for (const entriesMax of ENTRIES_MAX) {
    entries = await store.entries([{ log, from, to }], entriesMax)
    if (entries.some(({ revision }) => revision > from) || from >= to) break
  }
  const later = entries.filter(({ revision }) => revision > from)
  const first = later[0]?.revision
  const last = later.at(-1)?.revision ?? from
  return {
    items: later.map(present),
    after: last,
    more: last < to,
    gap: Number(after) > to || (first !== undefined && first > from + 1),
  }
}

function present({ revision, change, actor, requestId, atMs }: JournalEntry): object {
  const at = new Date(atMs).toISOString()
  return { revision, change: presentChange(change), actor, request_id: requestId, at }
}

function presentChange(change: Change): object {
  if (change.kind !== 'tuple') return change
  const { expiresAtMs, ...tuple } = change.tuple
  const expiry = expiresAtMs === null ? {} : { expires_at: new Date(expiresAtMs).toISOString() }
  return { ...change, tuple: { ...tuple, ...expiry } }
}
