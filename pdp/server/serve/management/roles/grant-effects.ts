/** Computes from the current grants who gains and who loses permissions when the permissions of roles change. */

import type { HeldRole, Store } from '../../../../engine/store/contract.ts'
import type { Definitions } from '../../../../engine/writes/role-definitions.ts'
import { ENVIRONMENT, type LogId } from '../../../../shared/domain/change-log.ts'
import type { Pdp } from '../../../../shared/domain/decision.ts'

const GRANTS_MAX = 10_000
const GRANTS_PAGE = 1_000
const EFFECTS_MAX = 1_000

/** `organization` null: environment-wide. The permission also rolls down to descendants. */
export type Effect = {
  readonly permission: string
  readonly subject: string
  readonly organization: string | null
}
export type Effects = {
  readonly gains: readonly Effect[]
  readonly loses: readonly Effect[]
  /** False: there are more grants or effects than the limits. */
  readonly complete: boolean
}
type Holdings = ReadonlyMap<LogId, ReadonlyMap<string, readonly HeldRole[]>>

/** Reads grants of `app` and of organization-wide roles. A permission that another grant also gives is not an effect. */
export async function grantEffects(
  deps: { readonly store: Pick<Store, 'roleGrants'>; readonly pdp: Pick<Pdp, 'ancestors'> },
  change: { readonly app: string; readonly before: Definitions; readonly after: Definitions },
): Promise<Effects> {
  const { holdings, complete } = await readHoldings(deps.store, change.app)
  const gains: Effect[] = []
  const loses: Effect[] = []
  for (const [log, subjects] of holdings) {
    const above = await logsAbove(deps.pdp, log)
    for (const [subject, roles] of subjects) {
      const keys = (logs: readonly LogId[], definitions: Definitions): ReadonlySet<string> =>
        new Set(logs.flatMap((at) => permissionsOf(holdings.get(at)?.get(subject) ?? [], definitions)))
      const before = keys([log, ...above], change.before)
      const after = keys([log, ...above], change.after)
      const effect = (permission: string): Effect => ({
        permission,
        subject,
        organization: log === ENVIRONMENT ? null : log,
      })
      // Only the effects of grants in this log; other logs report their own.
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
): Promise<{ holdings: Holdings; complete: boolean }> {
  const holdings = new Map<LogId, Map<string, HeldRole[]>>()
  let after: { log: LogId; id: string } | null = null
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

/** The other logs whose grants also apply in this log. */
async function logsAbove(pdp: Pick<Pdp, 'ancestors'>, log: LogId): Promise<readonly LogId[]> {
  if (log === ENVIRONMENT) return []
  const [, ...ancestors] = (await pdp.ancestors(log)) ?? []
  return [...ancestors, ENVIRONMENT]
}

function permissionsOf(roles: readonly HeldRole[], definitions: Definitions): readonly string[] {
  return roles.flatMap((role) => definitions(role) ?? [])
}
