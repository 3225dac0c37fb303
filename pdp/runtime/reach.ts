/** Gives a management write everything that it reads and writes, in one transaction. */
import { createPdp } from '../decision-point/create-pdp.ts'
import type { IdentityControl, Reach, ReachAtomically } from '../serve/management/deps.ts'
import type { Directory, Sql } from '../store/directory.ts'
import { postgresDirectory } from '../store/postgres/directory.ts'
import { postgresMoves } from '../store/postgres/moves.ts'
import { postgresProvisioning } from '../store/postgres/people/provisioning.ts'
import type { Atomically } from '../store/postgres/unit-of-work.ts'

/** The identity service inside a transaction. */
type Within = (at: { readonly sql: Sql; readonly directory: Directory }) => IdentityControl & Pick<Reach, 'introspect'>

export function reachAtomically(atomically: Atomically, identity: Within): ReachAtomically {
  return (locks, work) =>
    atomically(locks, ({ sql, store }) => {
      const directory = postgresDirectory(sql)
      return work({
        ...identity({ sql, directory }),
        store,
        directory,
        pdp: createPdp({ store }),
        moves: postgresMoves(sql),
        provisioning: postgresProvisioning(sql),
      })
    })
}
