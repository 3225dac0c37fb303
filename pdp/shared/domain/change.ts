/** The changes of a write, their conditions, and their author. */
import type { Entitlement } from './entitlement.ts'
import type { Manifest } from './manifest.ts'
import type { Membership } from './membership.ts'
import type { Organization } from './organization.ts'
import type { RevocationCause } from './revocation.ts'
import type { OrganizationRole, RoleGrant } from './role.ts'
import type { Tuple } from './tuple.ts'

/**
 * `id`: of the user, client, issuer, identity provider or invitation; of a token hook its URL without query; of an
 * authenticator, passkey, recovery code or identity elsewhere its user.
 */
export type AdministeredKind =
  | 'user'
  | 'client'
  | 'authenticator'
  | 'passkey'
  | 'recovery_code'
  | 'trusted_issuer'
  | 'token_hook'
  | 'invitation'
  | 'identity_provider'
  | 'foreign_identity'
/** One change of a write, in the form of the journal. `null` deletes. */
export type Change =
  | { readonly kind: 'tuple'; readonly op: 'write' | 'delete'; readonly tuple: Tuple }
  | { readonly kind: 'membership'; readonly user: string; readonly membership: Membership | null }
  | { readonly kind: 'role_grant'; readonly op: 'write' | 'delete'; readonly grant: RoleGrant }
  | { readonly kind: 'entitlement'; readonly key: string; readonly entitlement: Entitlement | null }
  /** An external entitlement source announced changes: a new entitlement version, whatever was cached of the old one. */
  | { readonly kind: 'entitlements' }
  | { readonly kind: 'organization'; readonly id: string; readonly organization: Organization | null }
  | { readonly kind: 'manifest'; readonly manifest: Manifest }
  | { readonly kind: 'role'; readonly key: string; readonly role: OrganizationRole | null }
  /** Entries that no decision reads, in the journal of the directory, the environment or an organization. */
  | { readonly kind: AdministeredKind; readonly id: string; readonly op: 'write' | 'delete' }
  /** Revokes every token of the jti, grant, session, user or client; with `issuedUntilMs` only those issued until then. */
  | { readonly kind: 'token'; readonly by: RevocationCause; readonly id: string; readonly issuedUntilMs?: number }
  /** Too much changed to be listed: caches discard this journal. */
  | { readonly kind: 'clear' }
/** The write fails with `precondition_failed` unless an unexpired tuple exists (`exists`), or does not exist. */
export type Precondition = { readonly tuple: Omit<Tuple, 'expiresAtMs'>; readonly exists: boolean }
/** The author of a write and the request's id, for the journal. */
export type WriteContext = { readonly actor: string; readonly requestId: string }
