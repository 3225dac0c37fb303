/** The resources that a token can be for (RFC 8707): audiences that app manifests declare, each owned by one app. */

import type { Store } from '../../../engine/store/contract.ts'
import { ENVIRONMENT, type JournalPosition } from '../../../shared/domain/journal.ts'
import type { Manifest } from '../../../shared/domain/manifest.ts'

export type Resources = {
  /** The app that currently declares the audience; null: no app. Throws PdpError `store_unavailable`. */
  owner(audience: string): Promise<string | null>
  /** Whether the app says `actors: both`: then a client may act there for a person only by a delegation. */
  needsDelegation(audience: string): Promise<boolean>
}

export function createResources(store: Pick<Store, 'vector' | 'rows'>): Resources {
  let held: { position: JournalPosition; owners: ReadonlyMap<string, Manifest> } | null = null

  /** The owners, read again when the environment's log has changed, so that they are always those of the log's position. */
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
