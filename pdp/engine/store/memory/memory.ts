/** A Store in memory. */

import type { Entitlement } from '../../../shared/domain/entitlement.ts'
import { DIRECTORY, ENVIRONMENT, type JournalId, TOKENS } from '../../../shared/domain/journal.ts'
import type { Organization } from '../../../shared/domain/organization.ts'
import type { Tuple } from '../../../shared/domain/tuple.ts'
import { ancestors } from '../../decide/roles.ts'
import { withModels } from '../../worker/worker.ts'
import { assertChanges } from '../changes.ts'
import type { JournalEntry, OrganizationFilter, Reading, RowKey, Snapshot, Store } from '../contract.ts'
import { emptyJournal, entriesOf, type MemoryJournal, type MemoryState, START } from './journal.ts'
import { MemoryNames } from './names.ts'
import { reportingQueries } from './reporting-queries.ts'
import type { ResidentStore } from './resident.ts'
import { readRowSets } from './rows.ts'
import { type Environment, MemoryView } from './view.ts'
import { applyToMemory } from './write.ts'

export type MemoryStoreOptions = {
  /** Milliseconds since the epoch. Default: Date.now. */
  readonly clock?: () => number
  /** The random 64-bit id of a write, as text. Default: from crypto. */
  readonly randomWriteId?: () => string
}

const randomWriteId = (): string => crypto.getRandomValues(new BigInt64Array(1))[0]?.toString() ?? '0'

/**
 * A store that forgets everything when the process ends: for tests and for embedding without a database. Everything is
 * synchronous inside, so every read is of one moment; a snapshot makes writers wait until it ends.
 *
 * @example
 * ```ts
 * const inMemory = createPdp({ store: memoryStore() })
 * ```
 */
export function memoryStore(options: MemoryStoreOptions = {}): ResidentStore {
  const clock = options.clock ?? Date.now
  const state = emptyState()
  const snapshots = createSnapshots()
  const vector = (logs: readonly JournalId[]) => ({ clockMs: clock(), logs: positionsIn(state, logs) })
  let environment = environmentIn(state)
  const names = new MemoryNames(state)
  /** The view of all questions, until something is written or an answer has depended on the clock. */
  let view: MemoryView | null = null
  const currentView = (): MemoryView => {
    if (view === null || view.hasReadClock) view = new MemoryView(state.logs, environment, clock)
    return view
  }
  const read = (logs: readonly JournalId[], keys: readonly RowKey[]): Reading => ({
    vector: vector(logs),
    rows: readRowSets(state.logs, keys),
  })
  const at: Snapshot = {
    names: async (log, source, page) => names.names(log, source, page),
    rows: async (logs, keys) => read(logs, keys),
  }
  return {
    ...reportingQueries(state),
    currentView,
    positions: vector,
    vector: async (logs) => vector(logs),
    entries: async (ranges, entriesMax) => entriesIn(state, ranges, entriesMax),
    rows: async (logs, keys) => read(logs, keys),
    snapshot: (use) => snapshots.during(() => use(at)),
    async write(log, changes, { context, preconditions = [], keepsSuspension = false }) {
      await withModels(() => assertChanges(log, changes))
      while (snapshots.isAnyOpen()) await snapshots.ended()
      view = null
      const written = applyToMemory(state, {
        log,
        changes,
        context,
        preconditions,
        keepsSuspension,
        nowMs: clock(),
        writeId: options.randomWriteId ?? randomWriteId,
      })
      if (log === ENVIRONMENT) environment = environmentIn(state)
      return written
    },
    tuples: async (organization, filter, page) => tuplesOf(state.logs.get(organization), filter, page),
    async entitlements(organization, keys) {
      const all = state.logs.get(organization)?.entitlements ?? new Map<string, Entitlement>()
      const { entitlementVersion: version = 0, entitlementWriteId: writeId = '' } =
        state.positions.get(organization) ?? {}
      return { version, writeId, values: new Map([...all].filter(([key]) => keys === 'all' || keys.includes(key))) }
    },
    manifest: async (app) => state.logs.get(ENVIRONMENT)?.manifests.get(app) ?? null,
    organizations: async (filter, page) => organizationsOf(environment, names, { filter, page }),
    members: async (organization, page) =>
      names.keys(organization, 'members', page).flatMap((user) => {
        const membership = state.logs.get(organization)?.memberships.get(user)
        return membership === undefined ? [] : [{ user, ...membership }]
      }),
    close: async () => {},
  }
}

/** Counts open snapshots: writers wait for the end of all. */
function createSnapshots() {
  let openCount = 0
  let waiting: (() => void)[] = []
  return {
    async during<T>(use: () => Promise<T>): Promise<T> {
      openCount++
      try {
        return await use()
      } finally {
        openCount--
        if (openCount === 0) {
          const ready = waiting
          waiting = []
          for (const run of ready) run()
        }
      }
    },
    isAnyOpen: () => openCount > 0,
    ended: () => new Promise<void>((resolve) => waiting.push(resolve)),
  }
}

function emptyState(): MemoryState {
  return {
    positions: new Map([ENVIRONMENT, TOKENS, DIRECTORY].map((log) => [log, START])),
    logs: new Map([[ENVIRONMENT, emptyJournal()]]),
    writes: new Map(),
    claims: new Map(),
  }
}

function environmentIn({ logs }: MemoryState): Environment {
  const { organizations, manifests, roles } = logs.get(ENVIRONMENT) ?? emptyJournal()
  return { organizations, manifests: [...manifests.values()], roles: [...roles.values()] }
}

const positionsIn = ({ positions }: MemoryState, logs: readonly JournalId[]) =>
  new Map(
    logs.flatMap((log) => {
      const position = positions.get(log)
      return position === undefined ? [] : [[log, position] as const]
    }),
  )

function organizationsOf(
  { organizations }: Environment,
  names: MemoryNames,
  { filter, page }: { filter: OrganizationFilter; page: { after: string | null; countMax: number } },
): readonly Organization[] {
  const tree = { organization: (id: string) => organizations.get(id) ?? null }
  const isAsked = ({ id, parent }: Organization): boolean => {
    if ('within' in filter) return ancestors(tree, id)?.includes(filter.within) === true
    return !('parent' in filter) || parent === filter.parent
  }
  const found: Organization[] = []
  for (const id of names.keys(ENVIRONMENT, 'organizations', { ...page, countMax: organizations.size })) {
    if (found.length === page.countMax) break
    const one = organizations.get(id)
    if (one !== undefined && isAsked(one)) found.push(one)
  }
  return found
}

function entriesIn(
  { writes }: MemoryState,
  ranges: Parameters<Store['entries']>[0],
  entriesMax: number,
): readonly JournalEntry[] {
  const found = ranges.flatMap(({ log, from, to }) =>
    (writes.get(log) ?? [])
      .filter(({ revision }) => revision >= from && revision <= to)
      .flatMap((write) => entriesOf(log, write).slice(0, write.revision === from ? 1 : undefined)),
  )
  const last = found[entriesMax]
  if (last === undefined) return found
  return found.slice(0, entriesMax).filter((e) => e.log !== last.log || e.revision !== last.revision)
}

/** A page of tuples. Reading begins at the object of the filter or of `after`; tuples of smaller objects are not read. */
function tuplesOf(
  log: MemoryJournal | undefined,
  filter: { object?: string; relation?: string; subject?: string },
  page: { after: Tuple | null; countMax: number },
): readonly Tuple[] {
  const { object, relation, subject } = filter
  const { after, countMax } = page
  const found: Tuple[] = []
  const from = object === undefined ? log?.tuples.tuplesFrom(after?.object ?? '') : log?.tuples.tuplesOf(object)
  for (const tuple of from ?? []) {
    if (found.length === countMax) break
    if (after !== null && compareTuples(tuple, after) <= 0) continue
    if (relation !== undefined && tuple.relation !== relation) continue
    if (subject === undefined || tuple.subject === subject) found.push(tuple)
  }
  return found
}

function compareTuples(a: Tuple, b: Tuple): number {
  for (const field of ['object', 'relation', 'subject'] as const) {
    if (a[field] !== b[field]) return a[field] < b[field] ? -1 : 1
  }
  return 0
}
