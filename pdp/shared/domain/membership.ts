/** The relations on `organization:<O>` that only memberships give. */

export const TIERS = ['owner', 'admin', 'developer', 'member', 'viewer'] as const
export type Tier = (typeof TIERS)[number]
export const MEMBERSHIP_STATUSES = ['active', 'invited', 'suspended'] as const
export type MembershipStatus = (typeof MEMBERSHIP_STATUSES)[number]
export type Membership = { readonly role: Tier; readonly status: MembershipStatus }

export const MEMBERSHIP_RELATIONS: ReadonlySet<string> = new Set([...TIERS, 'active_member'])
