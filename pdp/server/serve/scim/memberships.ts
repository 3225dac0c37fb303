/** The membership of a directory's user in the directory's organization. */

import type { Holdings, Provisioned } from '../../../engine/store/directory.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../../../shared/domain/json.ts'
import type { Membership, MembershipStatus, Tier } from '../../../shared/domain/membership.ts'
import { GIVEN_TIERS } from './attributes.ts'
import { ScimError } from './errors.ts'
import type { ScimCall } from './route.ts'

export const TIER_DEFAULT: Tier = 'member'

/**
 * The new membership; null: no change. `active` and `roles` are those of the request; `active` null: it was not sent. Only `active: true` brings back a person who left.
 * Throws ScimError `invalidValue`.
 */
export function membershipAfter(
  before: Membership | null,
  { active, roles }: { readonly active: boolean | null; readonly roles: JsonValue | undefined },
  held: Pick<Holdings, 'activeElsewhere'>,
): Membership | null {
  const had = before?.role ?? null
  const given = tierIn(roles, had) ?? TIER_DEFAULT
  const role = had === 'owner' ? had : given
  const status = statusAfter(before?.status ?? null, active, held)
  if (status === null || (role === had && status === before?.status)) return null
  return { role, status }
}

/** An organization cannot make a person who is active elsewhere its active member: the person must agree, or have agreed before. */
function statusAfter(
  before: MembershipStatus | null,
  active: boolean | null,
  { activeElsewhere }: Pick<Holdings, 'activeElsewhere'>,
): MembershipStatus | null {
  if (active === null) return before
  // A membership without the person's agreement is never suspended: a suspended one counts as agreed to.
  if (!active) return before === 'active' ? 'suspended' : before
  if (before === 'active' || before === 'suspended') return 'active'
  return activeElsewhere ? 'invited' : 'active'
}

export async function writeMembership({ at, organization, context }: ScimCall, user: string, membership: Membership) {
  await at.store.write(organization, [{ kind: 'membership', user, membership }], { context })
  if (membership.status !== 'active') await at.sessions.endMember({ organization, user }, context)
}

export async function membershipOf(call: ScimCall, id: string): Promise<Membership | null> {
  return (await membershipsOf(call, [{ id }])).get(id) ?? null
}

export async function membershipsOf(
  { at, organization }: ScimCall,
  users: readonly Pick<Provisioned, 'id'>[],
): Promise<ReadonlyMap<string, Membership>> {
  const keys = users.map(({ id }) => ({ log: organization, kind: 'membership', user: id }) as const)
  if (keys.length === 0) return new Map()
  const { rows } = await at.store.rows([organization], keys)
  return new Map(
    rows.flatMap((row) =>
      'membership' in row && row.membership !== null ? [[row.key.user, row.membership] as const] : [],
    ),
  )
}

/** The tier in the roles; null: none. A new role wins: Entra ID adds one without removing the old one. Throws ScimError `invalidValue`. */
export function tierIn(roles: JsonValue | undefined, had: Tier | null): Tier | null {
  const values = (Array.isArray(roles) ? roles : []).filter(isJsonObject)
  if (values.length === 0) return null
  const others = values.filter(({ value }) => String(value).toLowerCase() !== had)
  if (others.length === 0) return had
  const chosen = others.length === 1 ? others[0] : others.find(({ primary }) => primary === true)
  if (chosen === undefined) throw new ScimError('invalidValue', 'roles has several values, of which none is primary')
  const tier = GIVEN_TIERS.find((known) => known === String(chosen.value).toLowerCase())
  if (tier === undefined)
    throw new ScimError('invalidValue', `a directory gives one of the roles ${GIVEN_TIERS.join(', ')}`)
  return tier
}

/** The membership's role in the words of the directory. */
export function roleOf({ document }: Pick<Provisioned, 'document'>, { role }: Membership): JsonObject {
  const kept = (Array.isArray(document.roles) ? document.roles : []).filter(isJsonObject)
  const said = kept.find(({ value }) => String(value).toLowerCase() === role)
  return { primary: true, ...said, value: role }
}
