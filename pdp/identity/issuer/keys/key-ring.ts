/** The signing keys of this process, reloaded after another node changes them. */

import type { Sql } from '../../../engine/store/directory.ts'
import type { MasterKeys } from '../../../shared/base/encryption.ts'
import type { Log } from '../../../shared/process/log.ts'
import { KEYS_POLL_MS, keysVersion } from './key-rotation.ts'
import { loadSigningKeys, type SigningKeys } from './signing-keys.ts'

type KeyRingDeps = { readonly sql: Sql; readonly masterKeys: MasterKeys; readonly log: Log }

// The version of the keys. It contains the master key, from which the key for cookies is derived.
const versionOf = async ({ sql, masterKeys }: Pick<KeyRingDeps, 'sql' | 'masterKeys'>): Promise<string> =>
  `${await keysVersion(sql)}\n${masterKeys.derive('key-ring')[0].toString('hex')}`

export type KeyRing = { current(): SigningKeys; reload(): Promise<void>; close(): void }

/** Loads the signing keys, and again after another node has changed them. */
export async function createKeyRing(deps: KeyRingDeps): Promise<KeyRing> {
  // Read first, so that the next poll finds a change that happens in between.
  let version = await versionOf(deps)
  let current = await loadSigningKeys(deps)
  async function reload(): Promise<void> {
    const now = await versionOf(deps)
    if (now === version) return
    current = await loadSigningKeys(deps)
    version = now
    deps.log.info({ event: 'signing_keys_changed', active: current.activeKid })
  }
  const poll = setInterval(() => {
    reload().catch((err: unknown) => deps.log.warn({ event: 'signing_keys_unread', err }))
  }, KEYS_POLL_MS)
  poll.unref()
  return { current: () => current, reload, close: () => clearInterval(poll) }
}
