/**
 * Authority over people: a caller that sets a person's password or address can sign in as that person, and one that removes a
 * second factor comes closer to it. So the person must not have more management scopes than the caller.
 */

import { definitionsOf, readDeclared } from '../../../../engine/writes/role-definitions.ts'
import { MANAGEMENT_APP, scopesIn } from '../../../../identity/oauth/management-app.ts'
import { lacksScopes, type ManagementClient } from '../../authentication/authenticate.ts'
import { beyondCaller, managesAll } from '../../authentication/people.ts'
import type { Reach } from '../deps.ts'
import { rolesOfUser } from '../roles/given-roles.ts'

const NAMED_MAX = 20

/** Throws RequestProblem if the person holds management scopes that the caller lacks, in any organization. */
export async function requireAuthorityOverUser(at: Reach, caller: ManagementClient, user: string): Promise<void> {
  if (managesAll(caller)) return
  const held = await rolesOfUser(at, user, MANAGEMENT_APP)
  if (held.length === 0) return
  const definitions = definitionsOf(await readDeclared(at.store))
  const lacking = beyondCaller(caller, [...new Set(held.flatMap((role) => definitions(role) ?? []))])
  if (lacking.length === 0) return
  throw lacksScopes(
    `${user} manages Portcullis; who changes how ${user} signs in must hold the same, and lacks ${lacking.slice(0, NAMED_MAX).join(', ')}`,
    [...scopesIn(lacking)],
  )
}
