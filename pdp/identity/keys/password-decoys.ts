/** What is checked for somebody who is not there, so that the answer takes as long as for somebody who is. */
import { createHmac } from 'node:crypto'
import type { MasterKeys } from '../../process/encryption.ts'
import type { Log } from '../../process/log.ts'
import type { Sql } from '../../store/directory.ts'
import { costOf, hashOfCost } from './foreign-hash.ts'

const KEPT_MS = 60_000
const DRAW = 2 ** 48

/** `account`: an address that nobody has, folded, or the id of a person without a password. */
export type PasswordDecoys = { of(account: string): Promise<string> }

// The first part answers from the index of hashes that are not ours, and where there are none nothing else is read.
const FORMS = `
  select case when password_hash like '$2_$%' then left(password_hash, 7)
    else regexp_replace(password_hash, '\\$[^$]*\\$[^$]*$', '') || ' ' || length(substring(password_hash from '[^$]*$')) end as cost,
    count(*)::integer as count
  from user_account where password_hash is not null
    and exists (select 1 from user_account where password_hash not like '$scrypt$ln=15,r=8,p=3$%')
  group by 1 order by 1`

/**
 * People whose hashes came from another system take another time. So an unknown address costs what one of the stored hashes
 * costs: always the same for one address, and each cost as often as people have it. `own`: a hash as they are made now.
 */
export function createPasswordDecoys(deps: {
  readonly sql: Pick<Sql, 'query'>
  readonly own: string
  readonly masterKeys: MasterKeys
  readonly clock: () => number
  readonly log: Log
}): PasswordDecoys {
  let costs: readonly Cost[] = []
  let readAtMs = Number.NEGATIVE_INFINITY

  async function read(): Promise<void> {
    if (deps.clock() - readAtMs < KEPT_MS) return
    readAtMs = deps.clock()
    try {
      costs = await deps.sql.query<Cost>(FORMS)
    } catch (err) {
      // The sign-in itself finds out whether the database answers.
      deps.log.warn({ event: 'password_costs_unread', err })
    }
  }

  return {
    async of(account) {
      await read()
      const cost = drawn(costs, shareOf(deps.masterKeys, account))
      return cost === null || cost === costOf(deps.own) ? deps.own : hashOfCost(cost)
    },
  }
}

type Cost = { readonly cost: string; readonly count: number }

/** From 0 to 1, and nobody without the master key can say which. */
function shareOf(masterKeys: MasterKeys, account: string): number {
  const [key] = masterKeys.derive('password-decoys')
  return createHmac('sha256', key).update(account).digest().readUIntBE(0, 6) / DRAW
}

function drawn(costs: readonly Cost[], share: number): string | null {
  const total = costs.reduce((sum, { count }) => sum + count, 0)
  let left = share * total
  for (const { cost, count } of costs) {
    left -= count
    if (left < 0) return cost
  }
  return null
}
