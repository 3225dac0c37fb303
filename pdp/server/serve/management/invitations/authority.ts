/** The right to invite: checked when an invitation is made, and again when it is accepted. */

import type { HeldRole } from '../../../../engine/store/contract.ts'
import { readDeclared } from '../../../../engine/writes/role-definitions.ts'
import { requireRole } from '../../../../engine/writes/role-grants.ts'
import { holdsScope, scopesOf } from '../../../../identity/oauth/scopes.ts'
import { type ManagementClient, requireWithin } from '../../authentication/authenticate.ts'
import { tokenOfSubject } from '../../authentication/credentials.ts'
import { authorizePerson } from '../../authentication/people.ts'
import { RequestProblem } from '../../http/status.ts'
import type { Reach } from '../deps.ts'
import { requireHolding } from '../roles/role-grants.ts'

export const INVITING = 'directory:write'
const GRANTING = 'roles:write'

/**
 * Requires that the caller may give the roles' permissions. Throws RequestProblem, and PdpError `request_invalid` for a role that
 * does not exist.
 */
export async function requireGivable(
  at: Pick<Reach, 'store' | 'pdp'>,
  caller: ManagementClient,
  { organization, roles }: { readonly organization: string; readonly roles: readonly HeldRole[] },
): Promise<void> {
  if (roles.length === 0) return
  if (!holdsScope(caller.token.scopes, GRANTING))
    throw new RequestProblem('permission_denied', `the invitation gives roles; this also needs the scope ${GRANTING}`)
  const declared = await readDeclared(at.store)
  for (const role of roles) {
    const permissions = requireRole(declared, role)
    await requireHolding(at, { caller, log: organization, app: role.app, permissions })
  }
}

/** The inviter as a caller, with their rights in the organization now. Throws RequestProblem if they may not invite any more. */
export async function inviterOf(at: Reach, by: string, organization: string): Promise<ManagementClient> {
  const [type, id] = [by.slice(0, by.indexOf(':')), by.slice(by.indexOf(':') + 1)]
  if (type === 'user') {
    if ((await at.directory.user(id)) === null) throw gone()
    return authorizePerson(at, { user: id, requestId: '' }, { scope: INVITING, organization })
  }
  const client = type === 'service' ? await at.directory.client(id) : null
  if (client === null) throw gone()
  const scopes = new Set(scopesOf(client.metadata))
  if (!holdsScope(scopes, INVITING)) throw gone()
  const token = tokenOfSubject({ type: 'service', id }, { clientId: id, scopes })
  const caller = { token, organizationScope: client.organization === null ? [] : [client.organization] }
  await requireWithin(caller, organization, at.pdp)
  return caller
}
const gone = (): RequestProblem =>
  new RequestProblem('permission_denied', 'the person who sent the invitation may no longer invite')
