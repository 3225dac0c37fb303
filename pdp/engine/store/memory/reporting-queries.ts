/** Questions of management across all organizations, in memory. */
import type { JournalId } from '../../../shared/domain/journal.ts'
import { isWildcard } from '../../../shared/domain/names.ts'
import type { GrantFilter, HeldRole, JournaledGrant, ReportingQueries, TupleShape } from '../contract.ts'
import type { MemoryState } from './journal.ts'

export function reportingQueries(state: MemoryState): ReportingQueries {
  return {
    async roleGrants(filter, { after, countMax }) {
      const found: JournaledGrant[] = []
      for (const log of logsFrom(state, filter.log ?? after?.log ?? '')) {
        if (found.length === countMax || (filter.log !== undefined && log !== filter.log)) break
        const left = grantsOf(state, log, filter.subject).filter(
          (g) => after === null || log > after.log || (log === after.log && g.id > after.id),
        )
        found.push(...left.filter((grant) => isAsked(filter, grant)).slice(0, countMax - found.length))
      }
      return found
    },
    async roleSets(wanted) {
      const names = new Set(wanted.map(roleName))
      return roleSets(
        logsFrom(state, '').flatMap((log) => grantsOf(state, log)),
        names,
      )
    },
    tupleShapes: async (types) => shapesOf(state, new Set(types)),
  }
}

/** Journals in ascending order, from `start` (inclusive) on. */
const logsFrom = ({ logs }: MemoryState, start: string): readonly JournalId[] =>
  [...logs.keys()].filter((log) => log >= start).sort()

/** Role grants of a journal in the order of their ids: all, or only those to `subject`. */
function grantsOf({ logs }: MemoryState, log: JournalId, subject?: string): readonly JournaledGrant[] {
  const grants = logs.get(log)?.grants
  const found = subject === undefined ? grants?.values() : grants?.to(subject)
  return [...(found ?? [])].map((grant) => ({ log, ...grant })).sort((a, b) => (a.id < b.id ? -1 : 1))
}

const isAsked = ({ id, apps, role }: GrantFilter, grant: JournaledGrant): boolean =>
  (id === undefined || grant.id === id) &&
  (apps === undefined || apps.includes(grant.app)) &&
  (role === undefined || grant.role === role)

const roleName = ({ app, role }: HeldRole): string => JSON.stringify([app, role])

function roleSets(grants: readonly JournaledGrant[], wanted: ReadonlySet<string>): readonly (readonly HeldRole[])[] {
  const held = new Map<string, Set<string>>()
  for (const grant of grants) {
    const roles = held.get(grant.subject) ?? new Set()
    held.set(grant.subject, roles.add(roleName(grant)))
  }
  const asked = [...held.values()].map((roles) => [...roles].sort()).filter((roles) => roles.some((r) => wanted.has(r)))
  const distinct = new Set(asked.map((roles) => JSON.stringify(roles)))
  return [...distinct].map((set) =>
    (JSON.parse(set) as readonly string[]).map((text) => {
      const [app, role] = JSON.parse(text) as [string | null, string]
      return { app, role }
    }),
  )
}

function shapesOf({ logs }: MemoryState, types: ReadonlySet<string>): readonly TupleShape[] {
  const shapes = new Map<string, TupleShape>()
  for (const [organization, { tuples }] of logs) {
    for (const { object, relation, subject, condition } of tuples.all()) {
      const type = object.slice(0, object.indexOf(':'))
      if (!types.has(type)) continue
      const shape = shapeOf(subject)
      const name = `${type} ${relation} ${shape} ${condition?.name ?? ''}`
      const known = shapes.get(name)
      const example = known?.example ?? { organization, tuple: { object, relation, subject } }
      const tuplesCount = (known?.tuplesCount ?? 0) + 1
      shapes.set(name, { type, relation, subject: shape, condition: condition?.name ?? null, tuplesCount, example })
    }
  }
  return [...shapes].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, shape]) => shape)
}

function shapeOf(subject: string): string {
  const type = subject.slice(0, subject.indexOf(':'))
  const hash = subject.indexOf('#')
  if (hash >= 0) return `${type}${subject.slice(hash)}`
  return isWildcard(subject) ? subject : type
}
