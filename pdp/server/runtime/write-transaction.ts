/** Everything that a management write reads and writes through, in one transaction. */
import { ancestors } from '../../engine/decide/roles.ts'
import { createPdp } from '../../engine/decision-point/create-pdp.ts'
import type { Store } from '../../engine/store/contract.ts'
import { postgresDirectory } from '../../engine/store/postgres/directory.ts'
import { postgresProvisioning } from '../../engine/store/postgres/people/provisioning.ts'
import { postgresMoves } from '../../engine/store/postgres/tree/moves.ts'
import type { Atomically } from '../../engine/store/postgres/unit-of-work.ts'
import type { Identity } from '../../identity/identity.ts'
import { ENVIRONMENT } from '../../shared/domain/journal.ts'
import { isId } from '../../shared/domain/names.ts'
import type { Transmitter } from '../../signals/transmitter/transmitter.ts'
import type { ReachAtomically } from '../serve/management/deps.ts'

export function reachAtomically(
  atomically: Atomically,
  parts: { readonly identity: Identity['within']; readonly transmitter: Pick<Transmitter, 'within' | 'wake'> },
): ReachAtomically {
  return async (locks, work) => {
    let changedStreams = new Set<string>()
    const result = await atomically(locks, ({ sql, store }) => {
      const directory = postgresDirectory(sql)
      const pdp = createPdp({ store })
      changedStreams = new Set()
      return work({
        ...parts.identity({ sql, directory }),
        store,
        directory,
        pdp: { ...pdp, ancestors: async (id) => (isId(id) ? ancestorsIn(store, id) : pdp.ancestors(id)) },
        moves: postgresMoves(sql),
        provisioning: postgresProvisioning(sql),
        streams: parts.transmitter.within(sql, (id) => void changedStreams.add(id)),
      })
    })
    for (const id of changedStreams) parts.transmitter.wake(id)
    return result
  }
}

/** The ancestors, by one statement: each write needs the tree, and a transaction has no cache. */
async function ancestorsIn(store: Pick<Store, 'rows'>, organization: string): Promise<readonly string[] | null> {
  const { rows } = await store.rows([], [{ log: ENVIRONMENT, kind: 'organization', id: organization }])
  const found = rows.flatMap((row) => ('organization' in row && row.organization !== null ? [row.organization] : []))
  const tree = new Map(found.map((one) => [one.id, one]))
  const path = ancestors({ organization: (id) => tree.get(id) ?? null }, organization) ?? []
  return path.length === 0 ? null : path
}
