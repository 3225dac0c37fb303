/**
 * Authority over people: who sets a password or an address can sign in as that person, and who removes a second factor comes
 * nearer to it. So the person must not have more management scopes than the caller.
 */
import type { LogId } from '../../../domain/log.ts'
import type { RoleGrant } from '../../../domain/role.ts'
import { MANAGEMENT_APP } from '../../../identity/oauth/management-app.ts'
import { definitionsOf, readDeclared } from '../../../writes/role-definitions.ts'
import type { ManagementClient } from '../../authentication/authenticate.ts'
import { beyondCaller } from '../../authentication/people.ts'
import { RequestProblem } from '../../problems/status.ts'
import type { Reach } from '../deps.ts'

/** The most grants of the built-in app that are read. If there are more, the write is refused. */
const GRANTS_MAX = 1_000
const NAMED_MAX = 20

/** Throws RequestProblem if the person holds management scopes that the caller lacks, in any organization. */
export async function requireAuthorityOverUser(at: Reach, caller: ManagementClient, user: string): Promise<void> {
  const filter = { apps: [MANAGEMENT_APP] }
  const grants = await at.store.roleGrants(filter, { after: null, countMax: GRANTS_MAX + 1 })
  if (grants.length > GRANTS_MAX)
    throw new RequestProblem('evaluation_limit', `more than ${GRANTS_MAX} role grants would have to be read`)
  const held = await heldOf(at, user, grants)
  if (held.length === 0) return
  const definitions = definitionsOf(await readDeclared(at.store))
  const lacking = beyondCaller(caller, [...new Set(held.flatMap((grant) => definitions(grant) ?? []))])
  if (lacking.length === 0) return
  throw new RequestProblem(
    'permission_denied',
    `${user} manages Portcullis; who changes how ${user} signs in must hold the same, and lacks ${lacking.slice(0, NAMED_MAX).join(', ')}`,
  )
}

type Grant = RoleGrant & { readonly log: LogId }

/** Grants to the person, and to groups of the organization that the person is in. A suspension may end, so none counts. */
async function heldOf({ store }: Reach, user: string, grants: readonly Grant[]): Promise<readonly Grant[]> {
  const person = `user:${user}`
  const held = grants.filter(({ subject }) => subject === person)
  const ofGroups = grants.filter(({ subject }) => subject.startsWith('group:'))
  for (const [log, granted] of Map.groupBy(ofGroups, (grant) => grant.log)) {
    const { rows } = await store.rows([log], [{ log, kind: 'groups', subject: person }])
    const groups = new Set(rows.flatMap((row) => ('groups' in row ? row.groups.map(({ subject }) => subject) : [])))
    held.push(...granted.filter(({ subject }) => groups.has(`${subject}#member`)))
  }
  return held
}
