/** Names that a client bound to an organization may give to what it makes: only those that begin with its organization's. */
import { ENVIRONMENT } from '../../domain/log.ts'
import { type ManagementClient, requireWithin } from '../authentication/authenticate.ts'
import { RequestProblem } from '../problems/status.ts'
import type { Reach } from './deps.ts'

/** Stands between an organization's id and the rest. RFC 3986 section 2.3: it is never encoded in a URL. */
export const NAME_SEPARATOR = '~'

/**
 * Ids are the environment's: without a namespace a tenant could take the one that another, or the operator, means to use,
 * and whoever uses it next would find the tenant in it. Throws RequestProblem.
 */
export async function requireOwnName(at: Reach, caller: ManagementClient, id: string): Promise<void> {
  if (caller.organizationScope.length === 0) return
  if (!caller.organizationScope.some((bound) => id.startsWith(bound + NAME_SEPARATOR))) {
    const forms = caller.organizationScope.map((bound) => `${bound}${NAME_SEPARATOR}<name>`).join(' or ')
    throw new RequestProblem(
      'permission_denied',
      `a client that is bound to an organization makes only what is called ${forms}`,
    )
  }
  // An organization that was moved away, or that the operator called so, has its names for itself.
  for (const owner of await ownersOf(at, id)) await requireWithin(caller, owner, at.pdp)
}

/** Organizations in whose namespaces the id lies. */
async function ownersOf({ store }: Reach, id: string): Promise<readonly string[]> {
  const prefixes = [...id.matchAll(new RegExp(NAME_SEPARATOR, 'g'))].map(({ index }) => id.slice(0, index))
  const keys = prefixes.map((prefix) => ({ log: ENVIRONMENT, kind: 'organization', id: prefix }) as const)
  const { rows } = await store.rows([ENVIRONMENT], keys)
  const existing = rows.flatMap((row) =>
    'organization' in row && row.organization !== null ? [row.organization.id] : [],
  )
  return prefixes.filter((prefix) => existing.includes(prefix))
}
