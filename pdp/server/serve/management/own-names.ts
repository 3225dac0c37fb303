/** A client that is bound to an organization may create only ids that begin with that organization's id. */
import { ENVIRONMENT } from '../../../shared/domain/journal.ts'
import { NAME_SEPARATOR } from '../../../shared/domain/names.ts'
import { type ManagementClient, requireWithin } from '../authentication/authenticate.ts'
import { RequestProblem } from '../http/status.ts'
import type { Reach } from './deps.ts'

/**
 * All tenants share one space of ids. Without a namespace a tenant could take an id that another tenant or the operator is
 * about to use, and would then have access to what they create under it. Throws RequestProblem.
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
  // An organization that was moved away, or that the operator named so, keeps its namespace, although it is outside the caller's.
  for (const owner of await ownersOf(at, id)) await requireWithin(caller, owner, at.pdp)
}

/** The organizations whose namespaces contain the id. */
async function ownersOf({ store }: Reach, id: string): Promise<readonly string[]> {
  const prefixes = [...id.matchAll(new RegExp(NAME_SEPARATOR, 'g'))].map(({ index }) => id.slice(0, index))
  const keys = prefixes.map((prefix) => ({ log: ENVIRONMENT, kind: 'organization', id: prefix }) as const)
  const { rows } = await store.rows([ENVIRONMENT], keys)
  const existing = rows.flatMap((row) =>
    'organization' in row && row.organization !== null ? [row.organization.id] : [],
  )
  return prefixes.filter((prefix) => existing.includes(prefix))
}
