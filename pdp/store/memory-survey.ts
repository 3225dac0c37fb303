/** What management asks across all organizations, in memory. */
import type { HeldRole, LoggedGrant, Survey, TupleShape } from './contracts.ts'
import type { MemoryState } from './memory-log.ts'

export function surveyOf(state: MemoryState): Survey {
  return {
    async roleGrants(filter, { after, countMax }) {
      const { log, id, apps, role, subject } = filter
      return grantsOf(state)
        .filter((g) => after === null || g.log > after.log || (g.log === after.log && g.id > after.id))
        .filter((g) => (log === undefined || g.log === log) && (id === undefined || g.id === id))
        .filter((g) => apps === undefined || apps.includes(g.app))
        .filter((g) => (role === undefined || g.role === role) && (subject === undefined || g.subject === subject))
        .slice(0, countMax)
    },
    roleSets: async (app) => roleSets(grantsOf(state).filter((g) => g.app === app || g.app === null)),
    tupleShapes: async (types) => shapesOf(state, new Set(types)),
  }
}

function grantsOf({ logs }: MemoryState): readonly LoggedGrant[] {
  return [...logs]
    .flatMap(([log, { grants }]) => [...grants.values()].map((grant) => ({ log, ...grant })))
    .sort((a, b) => (a.log === b.log ? (a.id < b.id ? -1 : 1) : a.log < b.log ? -1 : 1))
}

function roleSets(grants: readonly LoggedGrant[]): readonly (readonly HeldRole[])[] {
  const held = new Map<string, Set<string>>()
  for (const { subject, app, role } of grants) {
    const roles = held.get(subject) ?? new Set()
    held.set(subject, roles.add(JSON.stringify([app, role])))
  }
  const distinct = new Set([...held.values()].map((roles) => JSON.stringify([...roles].sort())))
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
    for (const { object, relation, subject } of tuples.all()) {
      const type = object.slice(0, object.indexOf(':'))
      if (!types.has(type)) continue
      const shape = shapeOf(subject)
      const name = `${type} ${relation} ${shape}`
      const known = shapes.get(name)
      const example = known?.example ?? { organization, tuple: { object, relation, subject } }
      shapes.set(name, { type, relation, subject: shape, tuplesCount: (known?.tuplesCount ?? 0) + 1, example })
    }
  }
  return [...shapes].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, shape]) => shape)
}

function shapeOf(subject: string): string {
  const type = subject.slice(0, subject.indexOf(':'))
  const hash = subject.indexOf('#')
  if (hash >= 0) return `${type}${subject.slice(hash)}`
  return subject.endsWith(':*') ? subject : type
}
