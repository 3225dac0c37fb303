/** Short words for writing what a test needs. */

import type { Store } from '../../pdp/engine/store/contract.ts'
import type { Change } from '../../pdp/shared/domain/change.ts'
import { ENVIRONMENT } from '../../pdp/shared/domain/journal.ts'
import type { JsonObject } from '../../pdp/shared/domain/json.ts'
import type { MembershipStatus, Tier } from '../../pdp/shared/domain/membership.ts'
import { parseTuple } from '../../pdp/shared/domain/names.ts'
import type { Tuple } from '../../pdp/shared/domain/tuple.ts'

export const context = { actor: 'client:test', requestId: 'r1' }
export const tuple = (text: string, expiresAtMs: number | null = null): Tuple => ({ ...parseTuple(text), expiresAtMs })
export const put = (text: string, expiresAtMs: number | null = null): Change => ({
  kind: 'tuple',
  op: 'write',
  tuple: tuple(text, expiresAtMs),
})
/** With a condition and what the tuple stores for it. */
export const putIf = (text: string, name: string, context: JsonObject = {}): Change => ({
  kind: 'tuple',
  op: 'write',
  tuple: { ...tuple(text), condition: { name, context } },
})
export const drop = (text: string): Change => ({ kind: 'tuple', op: 'delete', tuple: tuple(text) })
export const organization = (id: string, parent: string | null = null): Change => ({
  kind: 'organization',
  id,
  organization: { id, name: id.toUpperCase(), parent },
})
export const renamed = (id: string, name: string): Change => ({
  kind: 'organization',
  id,
  organization: { id, name, parent: null },
})
export const member = (user: string, role: Tier, status: MembershipStatus = 'active'): Change => ({
  kind: 'membership',
  user,
  membership: { role, status },
})
export const grant = (id: string, role: string, subject: string, app: string | null = null): Change => ({
  kind: 'role_grant',
  op: 'write',
  grant: { id, app, role, subject },
})
export const gate = (key: string, enabled: boolean): Change => ({
  kind: 'entitlement',
  key,
  entitlement: { value: { enabled }, enforcement: 'DecisionApi' },
})

/** Writes to an organization, which is made first if need be. */
export async function given(store: Store, log: string, ...changes: Change[]): Promise<void> {
  if (log !== ENVIRONMENT && (await store.vector([log])).logs.size === 0) {
    await store.write(ENVIRONMENT, [organization(log)], { context })
  }
  if (changes.length > 0) await store.write(log, changes, { context })
}

/** A model in which `honest` of `liar:0` has no answer once `liar:0#next@liar:0` and `liar:0#named@user:…` are written. */
export const PARADOX = {
  app: 'paradox',
  audiences: [],
  permissions: {},
  roles: {},
  model: `model
  schema 1.1
type liar
  relations
    define next: [liar]
    define named: [user]
    define caught: [user] or honest from next
    define honest: named but not caught
`,
}
