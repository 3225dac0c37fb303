/** The URIs of security events: those of CAEP 1.0, the control events of SSF 1.0, RISC, and our own. */
import type { JsonMembers } from '../../shared/base/json-text.ts'

const CAEP = 'https://schemas.openid.net/secevent/caep/event-type'
const SSF = 'https://schemas.openid.net/secevent/ssf/event-type'
const RISC = 'https://schemas.openid.net/secevent/risc/event-type'

/** CAEP 1.0 section 3. */
export const CAEP_EVENTS = {
  sessionRevoked: `${CAEP}/session-revoked`,
  tokenClaimsChange: `${CAEP}/token-claims-change`,
  credentialChange: `${CAEP}/credential-change`,
  assuranceLevelChange: `${CAEP}/assurance-level-change`,
  deviceComplianceChange: `${CAEP}/device-compliance-change`,
  sessionEstablished: `${CAEP}/session-established`,
  sessionPresented: `${CAEP}/session-presented`,
  riskLevelChange: `${CAEP}/risk-level-change`,
} as const

/** Events about the stream itself (SSF 1.0 sections 8.1.4 and 8.1.5). They are sent even if the receiver did not request them. */
export const STREAM_EVENTS = {
  verification: `${SSF}/verification`,
  streamUpdated: `${SSF}/stream-updated`,
} as const

/** Events of RISC 1.0 about whole accounts. */
export const RISC_EVENTS = {
  accountPurged: `${RISC}/account-purged`,
  accountDisabled: `${RISC}/account-disabled`,
  accountEnabled: `${RISC}/account-enabled`,
  accountCredentialChangeRequired: `${RISC}/account-credential-change-required`,
  credentialCompromise: `${RISC}/credential-compromise`,
  sessionsRevoked: `${RISC}/sessions-revoked`,
} as const

const own = (issuer: string, name: string): string => `${issuer.replace(/\/$/, '')}/events/${name}`
/** Our own event for changed entitlements of an organization, which CAEP lacks. */
export const entitlementUpdated = (issuer: string): string => own(issuer, 'entitlement-updated')
/** Our own event for a client that may no longer act for a person, which CAEP lacks. */
export const delegationEnded = (issuer: string): string => own(issuer, 'delegation-ended')

/** The one event of a SET: its type, and the members that its type defines. */
export type SecurityEvent = { readonly type: string; readonly members: JsonMembers }
