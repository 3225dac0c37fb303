/** Reads the data for a token's claims about its subject when the token is minted. */

import type { RowKey, Store } from '../../../engine/store/contract.ts'
import type { Pdp, Subject } from '../../../shared/domain/decision.ts'
import { ENVIRONMENT } from '../../../shared/domain/journal.ts'
import { type ClaimSources, UNBOUND } from './claims.ts'

/** `off`: tokens carry no entitlements. */
export type EmbedEntitlements = 'off' | 'claims-mode'
/** Throws PdpError `store_unavailable`. If the organization was deleted, the claims are those without an organization. */
export type ReadClaimSources = (request: {
  readonly subject: Subject
  readonly organization: string | null
  readonly app: string | null
}) => Promise<ClaimSources>

export function createClaimSources(deps: {
  readonly store: Pick<Store, 'rows'>
  readonly pdp: Pick<Pdp, 'held' | 'claimsEntitlements'>
  readonly embedEntitlements: EmbedEntitlements
}): ReadClaimSources {
  return async ({ subject, organization, app }) => {
    if (organization === null) return UNBOUND
    const place = await readPlace(deps.store, organization, subject)
    if (place.organization === null) return UNBOUND
    const [held, entitlements] = await Promise.all([
      deps.pdp.held({ organization, subject, app }),
      deps.embedEntitlements === 'off' ? null : deps.pdp.claimsEntitlements(organization),
    ])
    return { ...place, held, entitlements }
  }
}

async function readPlace(
  store: Pick<Store, 'rows'>,
  organization: string,
  subject: Subject,
): Promise<Pick<ClaimSources, 'organization' | 'tier'>> {
  const keys: RowKey[] = [{ log: ENVIRONMENT, kind: 'organization', id: organization }]
  // A service has no membership, whatever its id (RFC 9068).
  if (subject.type === 'user') keys.push({ log: organization, kind: 'membership', user: subject.id })
  const { rows } = await store.rows([ENVIRONMENT, organization], keys)
  let place: ClaimSources['organization'] = null
  let tier: ClaimSources['tier'] = null
  for (const row of rows) {
    // The rows also have the organization's ancestors.
    if ('organization' in row && row.organization?.id === organization) place = row.organization
    if ('membership' in row && row.membership?.status === 'active') tier = row.membership.role
  }
  return { organization: place === null ? null : { id: place.id, name: place.name }, tier }
}
