/** The parts that the identity service is made from. */

import type { Store } from '../engine/store/contract.ts'
import type { Directory, Sql } from '../engine/store/directory.ts'
import type { Networks } from '../shared/base/addresses.ts'
import type { MasterKeys } from '../shared/base/encryption.ts'
import type { PostFetch } from '../shared/base/http-json.ts'
import type { Pdp } from '../shared/domain/decision.ts'
import type { Branding } from '../shared/pages/brand.ts'
import type { ProxySettings } from '../shared/process/egress.ts'
import type { Log } from '../shared/process/log.ts'
import type { Fetch } from '../shared/token/remote-keys.ts'
import type { ReplayMemory } from '../shared/token/replay.ts'
import type { AppendEvents, AppendJournal } from './issuer/append.ts'
import type { LogoutOutcome } from './issuer/logouts.ts'
import type { EmbedEntitlements } from './issuer/tokens/claim-sources.ts'
import type { HookOutcome } from './issuer/tokens/token-hook.ts'
import type { AccountSettings } from './people/account/deps.ts'
import type { ClientDocumentSettings } from './provider/client-documents.ts'

export type IdentityDeps = {
  /** The URL with which every URL in an answer begins; the Host field of a request does not count. */
  readonly issuer: string
  /** Proxies whose X-Forwarded-For or Forwarded field is trusted; default: none. */
  readonly trustedProxies?: Networks
  readonly sql: Sql
  readonly store: Store
  readonly directory: Directory
  readonly pdp: Pdp
  /** Logs revocations in the transaction that causes them. */
  readonly appendJournal: AppendJournal
  /** Stores events in the transaction of the change that they report. */
  readonly appendEvents: AppendEvents
  /** Calls the token hook and fetches the keys of other issuers. */
  readonly fetch: Fetch & PostFetch
  readonly masterKeys: MasterKeys
  /** Milliseconds since the epoch. */
  readonly clock: () => number
  readonly log: Log
  /** Remembers used DPoP proofs; default: in this process. */
  readonly replay?: ReplayMemory
  /** Whether tokens carry entitlements; default `claims-mode`. */
  readonly embedEntitlements?: EmbedEntitlements
  /** True: everybody needs a second factor to sign in. Default: only people who sign in to clients that demand it. */
  readonly requireSecondFactor?: boolean
  /** A slow hash that no secret matches, to check for people and clients that do not exist. Default: a new one. */
  readonly decoyHash?: string
  /** Settings of people's accounts; default: no mail, and only the built-in list of known passwords. */
  readonly account?: AccountSettings
  /** `host` or `host:port` of identity providers that may have internal addresses. Default: none. */
  readonly internalHosts?: readonly string[]
  /** The proxy for calls by https to all other hosts. Default: none. */
  readonly proxy?: ProxySettings | null
  /** Settings for clients that nobody registered; absent: there are none. */
  readonly clientDocuments?: ClientDocumentSettings
  /** Called after each call of the token hook, for a counter. */
  readonly onHookOutcome?: (outcome: HookOutcome) => void
  /** Called after each attempt to send a logout token, for a counter. */
  readonly onLogoutOutcome?: (outcome: LogoutOutcome) => void
  /** The look of the pages; default: none. */
  readonly branding?: Branding
}
