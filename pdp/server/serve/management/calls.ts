/** All calls of the management API. */
import { addApps } from './apps.ts'
import { addChanges } from './changes.ts'
import { addClients } from './clients/clients.ts'
import { addCompare } from './compare.ts'
import { addDecisionList } from './decisions.ts'
import { addEvents } from './events.ts'
import { addHooks } from './hooks.ts'
import { addInvitations } from './invitations/invitations.ts'
import { addIdentityProviders } from './issuers/identity-providers.ts'
import { addIssuers } from './issuers/issuers.ts'
import { addLists } from './lists.ts'
import { addEntitlements } from './organizations/entitlements.ts'
import { addMembers } from './organizations/members.ts'
import { addOrganizations } from './organizations/organizations.ts'
import { addRelationships } from './relationships/relationships.ts'
import { addRelationshipStreams } from './relationships/streams.ts'
import { addRoleGrants } from './roles/role-grants.ts'
import { addRoles } from './roles/roles.ts'
import { addSessions } from './sessions.ts'
import { addSidecars } from './sidecars.ts'
import { addUserImport } from './users/import.ts'
import { addOffboarding } from './users/offboarding.ts'
import { addUsers } from './users/users.ts'

export const MANAGEMENT = [
  addApps,
  addOrganizations,
  addMembers,
  addInvitations,
  addRoles,
  addRoleGrants,
  addRelationships,
  addRelationshipStreams,
  addEntitlements,
  addClients,
  addChanges,
  addDecisionList,
  addLists,
  addCompare,
  addUsers,
  addUserImport,
  addHooks,
  addIssuers,
  addIdentityProviders,
  addOffboarding,
  addSessions,
  addSidecars,
  addEvents,
] as const
