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
  /** Proxies whose Forwarded and X-Forwarded-For fields are trusted; default: none. */
  readonly trustedProxies?: Networks
  readonly sql: Sql
  readonly store: Store
  readonly directory: Directory
  readonly pdp: Pdp
  /** Writes revocations into the journal, in the transaction that causes them. */
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
  /** The mode of entitlements in tokens; default `claims-mode`. */
  readonly embedEntitlements?: EmbedEntitlements
  /** True: everybody needs a second factor to sign in. Default: only people who sign in to clients that demand it. */
  readonly requireSecondFactor?: boolean
  /** A slow hash that no secret has, for checks of unknown people and clients. Default: a new one. */
  readonly decoyHash?: string
  /** Settings of people's accounts; default: no mail, and only the built-in list of known passwords. */
  readonly account?: AccountSettings
  /** Identity providers that may have internal addresses, as `host` or `host:port`. Default: none. */
  readonly internalHosts?: readonly string[]
  /** The proxy for https calls to all other hosts; default: no proxy. */
  readonly proxy?: ProxySettings | null
  /** Settings for clients that are not registered but have a document; absent: there are no such clients. */
  readonly clientDocuments?: ClientDocumentSettings
  /** Called after each call of the token hook, for a counter. */
  readonly onHookOutcome?: (outcome: HookOutcome) => void
  /** Called after each attempt to send a logout token, for a counter. */
  readonly onLogoutOutcome?: (outcome: LogoutOutcome) => void
  /** The look of the pages; default: no brand. */
  readonly branding?: Branding
}
