/** The parts that the pages of the account are made from. */
import type { Provider } from 'oidc-provider'
import type { Directory, Sql } from '../../../engine/store/directory.ts'
import type { MasterKeys } from '../../../shared/base/encryption.ts'
import type { Pdp } from '../../../shared/domain/decision.ts'
import type { Log } from '../../../shared/process/log.ts'
import type { FrameOf } from '../../html/frame.ts'
import type { AppendEvents } from '../../issuer/append.ts'
import type { IsSignedIn } from '../../issuer/sign-in-validity.ts'
import type { Delegations } from '../../issuer/tokens/delegations.ts'
import type { Revocations } from '../../issuer/tokens/revocation.ts'
import type { Semaphore } from '../../limits/attempts.ts'
import type { Devices } from '../../limits/devices.ts'
import type { SharedAttempts } from '../../limits/shared-attempts.ts'
import type { Passkeys } from '../factors/passkeys.ts'
import type { SecondFactor } from '../factors/second-factor.ts'
import type { Deliveries } from '../mail/deliveries.ts'
import type { Mailer } from '../mail/mail.ts'
import type { MailedTokens } from '../mail/mailed-tokens.ts'
import type { Notices } from '../mail/notices.ts'
import type { Passwords } from '../passwords/new-password.ts'
import type { KnownPasswords, PasswordRules } from '../passwords/password-rules.ts'
import type { Consent } from '../sign-in/consent.ts'
import type { PasskeySteps } from '../sign-in/passkey-steps.ts'
import type { Elsewhere, SignIn } from '../sign-in/sign-in.ts'
import type { BrowserCookies } from './browser-cookies.ts'

/** The operator's settings of people's accounts. */
export type AccountSettings = {
  /** Sends mail; null: no mail can be sent. */
  readonly mailer: Mailer | null
  /** Passwords to refuse besides the built-in list; null: no others. */
  readonly knownPasswords: KnownPasswords | null
  /** Hashes new passwords; default: hashSecret. */
  readonly hashPassword?: (password: string) => Promise<string>
}
export type AccountDeps = Required<AccountSettings> & {
  readonly elsewhere: Elsewhere
  readonly deliveries: Deliveries
  readonly issuer: string
  readonly sql: Sql
  readonly directory: Directory
  readonly pdp: Pdp
  readonly devices: Devices
  readonly frameOf: FrameOf
  /** The provider of the current signing keys. */
  readonly provider: () => Provider
  readonly signIn: SignIn
  readonly isSignedIn: IsSignedIn
  readonly secondFactor: SecondFactor
  readonly passkeys: Passkeys
  readonly passkeySteps: PasskeySteps
  readonly masterKeys: MasterKeys
  readonly secretSemaphore: Semaphore
  readonly revocations: Revocations
  readonly delegations: Delegations
  readonly consent: Pick<Consent, 'choose'>
  readonly appendEvents: AppendEvents
  /** Milliseconds since the epoch. */
  readonly clock: () => number
  readonly log: Log
}
export type AccountParts = Omit<AccountDeps, 'knownPasswords'> & {
  readonly tokens: MailedTokens
  readonly cookies: BrowserCookies
  /** Counts for all nodes together, in windows of an hour. */
  readonly attempts: SharedAttempts
  readonly notices: Notices
  readonly rules: PasswordRules
  readonly passwords: Passwords
}
