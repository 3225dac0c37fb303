/** What management writes reach in one transaction, for tests of the identity service: streams are changed, and nobody sends on them. */

import type { Atomically } from '../../../pdp/engine/store/postgres/unit-of-work.ts'
import { reachAtomically } from '../../../pdp/server/runtime/write-transaction.ts'
import type { ReachAtomically } from '../../../pdp/server/serve/management/deps.ts'
import { masterKeysOf } from '../../../pdp/shared/base/encryption.ts'
import { createGuardedPost } from '../../../pdp/shared/base/guarded-post.ts'
import { createStreamWrites } from '../../../pdp/signals/transmitter/stream-writes.ts'
import { MASTER_KEY } from '../../support/master-key.ts'

type Identity = Parameters<typeof reachAtomically>[1]['identity']

export function reachOf(atomically: Atomically, identity: Identity): ReachAtomically {
  const deps = { issuer: 'https://id.example', masterKeys: masterKeysOf(MASTER_KEY), clock: Date.now }
  const signSet = async () => ({ token: 'none', kid: 'none' })
  const queue = { ...deps, signSet, publishedKids: () => new Set(['none']) }
  const post = createGuardedPost({ internalHosts: [] })
  return reachAtomically(atomically, {
    identity,
    transmitter: {
      within: (sql, onWritten) => createStreamWrites({ ...deps, post, queue, sql, onWritten }),
      wake: () => undefined,
    },
  })
}
