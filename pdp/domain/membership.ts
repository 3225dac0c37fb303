/** Relations on `organization:<O>` that come from memberships and from nothing else. */
import { TIERS } from '../store/contract.ts'

export const MEMBERSHIP_RELATIONS: ReadonlySet<string> = new Set([...TIERS, 'active_member'])
