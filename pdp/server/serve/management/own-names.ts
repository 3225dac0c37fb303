/** Limits a client that is bound to an organization to new ids that begin with its organization's id. */
import { ENVIRONMENT } from '../../../shared/domain/journal.ts'
import { NAME_SEPARATOR } from '../../../shared/domain/names.ts'
import { type ManagementClient, requireWithin } from '../authentication/authenticate.ts'
import { RequestProblem } from '../http/status.ts'
import type { Reach } from './deps.ts'

/**
 * Requires an id of the caller's namespace. Tenants share one space of ids: else one could take an id that another is about to use, and
 * later have access to what is created under it. Throws RequestProblem.
 */
export async function requireOwnName(at: Reach, caller: ManagementClient, id: string): Promise<void> {
  if (caller.organizationScope.length === 0) return
  if (!caller.organizationScope.some((bound) => id.startsWith(bound + NAME_SEPARATOR))) {
    const forms = caller.organizationScope.map((bound) => `${bound}${NAME_SEPARATOR}<name>`).join(' or ')
    throw new RequestProblem(
      'permission_denied',
      `a client that is bound to an organization creates only ids of the form ${forms}`,
    )
  }
  // Each organization whose namespace has the id must be the caller's or below it: a moved one keeps its namespace.
  for (const owner of await ownersOf(at, id)) await requireWithin(caller, owner, at.pdp)
}

/** The organizations whose namespaces have the id. */
async function ownersOf({ store }: Reach, id: string): Promise<readonly string[]> {
  const prefixes = [...id.matchAll(new RegExp(NAME_SEPARATOR, 'g'))].map(({ index }) => id.slice(0, index))
  const keys = prefixes.map((prefix) => ({ log: ENVIRONMENT, kind: 'organization', id: prefix }) as const)
  const { rows } = await store.rows([ENVIRONMENT], keys)
  const existing = rows.flatMap((row) =>
    'organization' in row && row.organization !== null ? [row.organization.id] : [],
  )
  return prefixes.filter((prefix) => existing.includes(prefix))
}
