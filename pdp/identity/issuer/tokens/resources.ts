/** The resources for tokens (RFC 8707): audiences that app manifests declare, each by one app only. */

import type { Store } from '../../../engine/store/contract.ts'
import { ENVIRONMENT, type JournalPosition } from '../../../shared/domain/journal.ts'
import type { Manifest } from '../../../shared/domain/manifest.ts'

export type Resources = {
  /** The app that currently declares the audience; null: no app. Throws PdpError `store_unavailable`. */
  owner(audience: string): Promise<string | null>
  /** True if the app says `actors: both`: a client then needs a delegation to act for a person there. */
  needsDelegation(audience: string): Promise<boolean>
}

export function createResources(store: Pick<Store, 'vector' | 'rows'>): Resources {
  let held: { position: JournalPosition; owners: ReadonlyMap<string, Manifest> } | null = null

  /** The owners of audiences, read again whenever the environment's log has changed. */
  async function owners(): Promise<ReadonlyMap<string, Manifest>> {
    const now = (await store.vector([ENVIRONMENT])).logs.get(ENVIRONMENT)
    if (held !== null && now?.revision === held.position.revision && now.writeId === held.position.writeId) {
      return held.owners
    }
    const { vector, rows } = await store.rows([ENVIRONMENT], [{ log: ENVIRONMENT, kind: 'manifests' }])
    const read = new Map<string, Manifest>()
    for (const row of rows) {
      if (row.key.kind !== 'manifests' || !('manifests' in row)) continue
      for (const manifest of row.manifests) for (const audience of manifest.audiences) read.set(audience, manifest)
    }
    const position = vector.logs.get(ENVIRONMENT)
    if (position !== undefined) held = { position, owners: read }
    return read
  }

  return {
    async owner(audience) {
      return (await owners()).get(audience)?.app ?? null
    },
    async needsDelegation(audience) {
      return (await owners()).get(audience)?.actors === 'both'
    },
  }
}
