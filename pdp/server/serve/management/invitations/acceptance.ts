/** Accepts an invitation: checks the present state, then grants all that it gives, or nothing. */

import type { User } from '../../../../engine/store/directory.ts'
import type { Lock } from '../../../../engine/store/journal-lock.ts'
import { withModels } from '../../../../engine/worker/worker.ts'
import { membershipOf } from '../../../../engine/writes/memberships.ts'
import { definitionsOf, readDeclared } from '../../../../engine/writes/role-definitions.ts'
import { grantOf, requireFitting } from '../../../../engine/writes/role-grants.ts'
import type { AcceptInvitation, NewPerson, NotJoined } from '../../../../identity/people/invitations/invitation-link.ts'
import type { Invitation } from '../../../../identity/people/invitations/invitations.ts'
import { PdpError } from '../../../../shared/domain/errors.ts'
import { ENVIRONMENT } from '../../../../shared/domain/journal.ts'
import type { MembershipStatus } from '../../../../shared/domain/membership.ts'
import { RequestProblem } from '../../http/status.ts'
import type { Reach, ReachAtomically } from '../deps.ts'
import { requireGivenByReturn } from '../roles/given-roles.ts'
import { inviterOf, requireGivable } from './authority.ts'

/** Thrown inside the transaction, so that everything is undone. */
class NotAccepted extends Error {
  override readonly name = 'NotAccepted'
  readonly why: NotJoined
  constructor(why: NotJoined) {
    super(why)
    this.why = why
  }
}

/** `find`: the invitation of a link, before anything is locked. */
export function createAcceptance(deps: {
  readonly atomically: ReachAtomically
  readonly find: (token: string) => Promise<Invitation | null>
}): AcceptInvitation {
  return async (token, { user, person }) => {
    const organization = (await deps.find(token))?.organization
    if (organization === undefined) return 'gone'
    // The locks keep roles, members and the person unchanged.
    const logs: readonly Lock[] = [{ person: user }, { beside: ENVIRONMENT }, organization]
    try {
      await withModels(() =>
        deps.atomically({ logs }, async (at) => {
          const invitation = await at.invitations.take(token, { change: 'accepted', user })
          if (invitation === null || invitation.organization !== organization) throw new NotAccepted('gone')
          await join(at, invitation, { user, person })
        }),
      )
      return 'joined'
    } catch (err) {
      if (err instanceof NotAccepted) return err.why
      throw err
    }
  }
}

async function join(
  at: Reach,
  invitation: Invitation,
  { user, person }: { readonly user: string; readonly person: NewPerson | null },
): Promise<void> {
  const { organization, role } = invitation
  const before = await membershipOf(at.store, organization, user)
  await requireBacked(at, invitation, { user, before: before?.status ?? null })
  if (person === null) await requireOwnAddress(at, user, invitation)
  else await createPerson(at, { id: user, person, email: invitation.email })
  // An invitation does not bring back a person whom the organization suspended, and does not change the tier of a member.
  if (before?.status === 'active') throw new NotAccepted('member')
  if (before?.status === 'suspended') throw new NotAccepted('suspended')
  const membership = { role, status: 'active' } as const
  await at.store.write(organization, [{ kind: 'membership', user, membership }], { context: contextOf(user) })
  await grant(at, invitation, user)
}

/** Requires that the inviter may still invite, and may still give all that the person holds here and gets with the membership. */
async function requireBacked(
  at: Reach,
  { organization, roles, by }: Invitation,
  { user, before }: { readonly user: string; readonly before: MembershipStatus | null },
): Promise<void> {
  try {
    const inviter = await inviterOf(at, by, organization)
    await requireGivable(at, inviter, { organization, roles })
    if (before !== 'suspended') {
      const blocked = (await at.provisioning.isBlocked(user)) === true
      await requireGivenByReturn(at, inviter, { log: organization, user, blocked, before, after: 'active' })
    }
  } catch (err) {
    if (err instanceof RequestProblem) throw new NotAccepted('unbacked')
    throw asChanged(err)
  }
}

async function requireOwnAddress(at: Reach, id: string, { email }: Invitation): Promise<void> {
  const owner = await at.directory.userByEmail(email)
  if (owner === null || owner.id !== id) throw new NotAccepted('gone')
  if (owner.emailVerified) return
  // The invitation was mailed to this address, and its owner is signed in: the address is verified.
  const { name } = owner
  await at.directory.putUser({ id, email: owner.email, emailVerified: true, name }, contextOf(id))
}

async function createPerson(
  at: Reach,
  { id, person, email }: { readonly id: string; readonly person: NewPerson; readonly email: string },
): Promise<void> {
  // Checked under the lock: meanwhile another account may have got this address, or its account may have been opened.
  const owner = await at.directory.userByEmail(email)
  if (owner !== null && !(owner.id === id && owner.isUnopened)) throw new NotAccepted('taken')
  const user: User = { id, email, emailVerified: true, name: owner?.name ?? person.name }
  await at.directory.putUser({ ...user, passwordHash: person.passwordHash }, contextOf(id))
}

async function grant(at: Reach, { organization, roles }: Invitation, user: string): Promise<void> {
  const definitions = definitionsOf(await readDeclared(at.store))
  const subject = `user:${user}`
  for (const role of roles) {
    try {
      await requireFitting(at, { log: organization, subject, role, definitions })
    } catch (err) {
      throw asChanged(err)
    }
    const change = { kind: 'role_grant', op: 'write', grant: grantOf({ ...role, subject }) } as const
    await at.store.write(organization, [change], { context: contextOf(user) })
  }
}

/** The error of a role that was deleted or became too large means: the invitation is outdated. */
const asChanged = (error: unknown): unknown =>
  error instanceof PdpError && (error.code === 'request_invalid' || error.code === 'conflict')
    ? new NotAccepted('changed')
    : error
const contextOf = (user: string) => ({ actor: `user:${user}`, requestId: '' })
