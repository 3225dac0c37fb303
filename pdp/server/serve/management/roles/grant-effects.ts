/** Computes from the current grants who gains and who loses permissions when the permissions of roles change. */

import { ancestors } from '../../../../engine/decide/roles.ts'
import type { HeldRole, Store } from '../../../../engine/store/contract.ts'
import type { Definitions } from '../../../../engine/writes/role-definitions.ts'
import { ENVIRONMENT, type JournalId } from '../../../../shared/domain/journal.ts'

const GRANTS_MAX = 10_000
const GRANTS_PAGE = 1_000
const EFFECTS_MAX = 1_000

/** `organization` null: in the whole environment. The permission also applies in organizations below. */
export type Effect = {
  readonly permission: string
  readonly subject: string
  readonly organization: string | null
}
export type Effects = {
  readonly gains: readonly Effect[]
  readonly loses: readonly Effect[]
  /** True if all effects are here; false: there are more grants or effects than the limits allow. */
  readonly complete: boolean
}

/**
 * The effects of changed roles: reads grants only if a changed role is held. A permission that another grant also gives is no effect.
 * `roles`: the app's roles before and after.
 */
export async function grantEffects(
  store: Pick<Store, 'roleGrants' | 'rows'>,
  change: {
    readonly app: string
    readonly roles: readonly string[]
    readonly before: Definitions
    readonly after: Definitions
  },
): Promise<Effects> {
  if (!(await isAnyHeld(store, change))) return { gains: [], loses: [], complete: true }
  const { holdings, complete } = await readHoldings(store, change.app)
  const journalsAbove = await readJournalsAbove(store, [...holdings.keys()])
  const gains: Effect[] = []
  const loses: Effect[] = []
  for (const [log, subjects] of holdings) {
    const above = journalsAbove(log)
    for (const [subject, roles] of subjects) {
      const keys = (logs: readonly JournalId[], definitions: Definitions): ReadonlySet<string> =>
        new Set(logs.flatMap((at) => permissionsOf(holdings.get(at)?.get(subject) ?? [], definitions)))
      const before = keys([log, ...above], change.before)
      const after = keys([log, ...above], change.after)
      const effect = (permission: string): Effect => ({
        permission,
        subject,
        organization: log === ENVIRONMENT ? null : log,
      })
      // Other logs report the effects of their own grants.
      for (const key of new Set(permissionsOf(roles, change.after))) if (!before.has(key)) gains.push(effect(key))
      for (const key of new Set(permissionsOf(roles, change.before))) if (!after.has(key)) loses.push(effect(key))
    }
    if (gains.length + loses.length > EFFECTS_MAX) return truncated({ gains, loses, complete: false })
  }
  return { gains, loses, complete }
}

function truncated({ gains, loses, complete }: Effects): Effects {
  return { gains: gains.slice(0, EFFECTS_MAX), loses: loses.slice(0, EFFECTS_MAX), complete }
}

async function readHoldings(
  store: Pick<Store, 'roleGrants'>,
  app: string,
): Promise<{ holdings: ReadonlyMap<JournalId, ReadonlyMap<string, readonly HeldRole[]>>; complete: boolean }> {
  const holdings = new Map<JournalId, Map<string, HeldRole[]>>()
  let after: { log: JournalId; id: string } | null = null
  for (let count = 0; count < GRANTS_MAX; count += GRANTS_PAGE) {
    const page = await store.roleGrants({ apps: [app, null] }, { after, countMax: GRANTS_PAGE })
    for (const grant of page) {
      const subjects = holdings.get(grant.log) ?? new Map<string, HeldRole[]>()
      holdings.set(grant.log, subjects)
      subjects.set(grant.subject, [...(subjects.get(grant.subject) ?? []), { app: grant.app, role: grant.role }])
    }
    const last = page.at(-1)
    if (page.length < GRANTS_PAGE || last === undefined) return { holdings, complete: true }
    after = { log: last.log, id: last.id }
  }
  return { holdings, complete: false }
}

/** True if a changed role is held. */
async function isAnyHeld(
  store: Pick<Store, 'roleGrants'>,
  { app, roles, before, after }: Parameters<typeof grantEffects>[1],
): Promise<boolean> {
  for (const role of roles) {
    const [had, has] = [new Set(before({ app, role })), new Set(after({ app, role }))]
    if (had.symmetricDifference(has).size === 0) continue
    const [grant] = await store.roleGrants({ apps: [app], role }, { after: null, countMax: 1 })
    if (grant !== undefined) return true
  }
  return false
}

/** The other logs whose grants apply in a log. The tree above all logs is read together. */
async function readJournalsAbove(
  store: Pick<Store, 'rows'>,
  logs: readonly JournalId[],
): Promise<(log: JournalId) => readonly JournalId[]> {
  const asked = logs.filter((log) => log !== ENVIRONMENT)
  const { rows } = await store.rows(
    [],
    asked.map((id) => ({ log: ENVIRONMENT, kind: 'organization', id }) as const),
  )
  const found = rows.flatMap((row) => ('organization' in row && row.organization !== null ? [row.organization] : []))
  const tree = new Map(found.map((one) => [one.id, one]))
  const view = { organization: (id: string) => tree.get(id) ?? null }
  return (log) => (log === ENVIRONMENT ? [] : [...(ancestors(view, log) ?? []).slice(1), ENVIRONMENT])
}

function permissionsOf(roles: readonly HeldRole[], definitions: Definitions): readonly string[] {
  return roles.flatMap((role) => definitions(role) ?? [])
}
