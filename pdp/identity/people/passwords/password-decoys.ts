/** Hashes to check for unknown accounts, so that answers take as long as for known ones. */
import { createHmac } from 'node:crypto'
import type { Queries } from '../../../engine/store/directory.ts'
import type { MasterKeys } from '../../../shared/base/encryption.ts'
import type { Log } from '../../../shared/process/log.ts'
import { costOf, hashOfCost } from './imported-hash.ts'

const KEPT_MS = 60_000
const COUNTED_MAX = 20_000
const DRAW = 2 ** 48

/** A decoy for an account. `account`: an unused address in the form for comparison, or the id of a person without a password. */
export type PasswordDecoys = { of(account: string): Promise<string> }

const OWN = '$scrypt$ln=15,r=8,p=3'
// The forms of stored hashes. The first part reads the index of hashes that are not ours; if it is empty, nothing else is read. Each part
// reads at most $1 hashes: if there are more, these are a sample, and the database's statistics give the number.
const FORMS = `
  with imported as materialized (
    select password_hash as hash from user_account where password_hash not like '${OWN}$%' order by user_id limit $1
  ), own as materialized (
    select 1 from user_account where password_hash like '${OWN}$%' and exists (select 1 from imported) limit $1
  ), counted as materialized (
    select (select count(*) from imported)::float8 as imported, (select count(*) from own)::float8 as own
  ), estimated as materialized (
    select (select reltuples from pg_class where oid = 'user_account_imported_password'::regclass) as imported,
      reltuples * (1 - coalesce((select null_frac from pg_stats s join pg_namespace n on n.nspname = s.schemaname
        where n.oid = relnamespace and tablename = relname and attname = 'password_hash'), 0)) as people
    from pg_class where oid = 'user_account'::regclass
  ), sizes as materialized (
    select c.imported as sample, i.imported,
      case when c.own < $1 then c.own else greatest(c.own, e.people - i.imported) end as own
    from counted c, estimated e,
      lateral (select case when c.imported < $1 then c.imported else greatest(c.imported, e.imported) end as imported) i
  )
  select case when hash like '$2_$%' then left(hash, 7)
    else regexp_replace(hash, '\\$[^$]*\\$[^$]*$', '') || ' ' || length(substring(hash from '[^$]*$')) end as cost,
    count(*) * max(sizes.imported / sizes.sample) as count
  from imported, sizes group by 1
  union all select '${OWN} 43', own from sizes where own > 0
  order by 1`

/**
 * Hashes of other systems take another time to check. So an unknown address costs as much as some stored hash: always the same for
 * one address, and each cost as often as among people. `own`: a hash as new ones are made.
 */
export function createPasswordDecoys(deps: {
  readonly sql: Queries
  readonly own: string
  readonly masterKeys: MasterKeys
  readonly clock: () => number
  readonly log: Log
  /** How many hashes of ours, and how many of others, are read to learn the costs. */
  readonly countedMax?: number
}): PasswordDecoys {
  /** The costs; null: not read yet. */
  let costs: readonly Cost[] | null = null
  let readAtMs = Number.NEGATIVE_INFINITY
  let reading: Promise<void> | null = null

  async function read(): Promise<void> {
    try {
      costs = await deps.sql.query<Cost>(FORMS, [deps.countedMax ?? COUNTED_MAX])
    } catch (err) {
      // The costs that were read before stay. If the database is down, the sign-in itself finds out.
      deps.log.warn({ event: 'password_costs_unread', err })
    }
    readAtMs = deps.clock()
    reading = null
  }

  /** The costs. Callers wait only for the first reading; during later ones they get the old costs. */
  async function known(): Promise<readonly Cost[]> {
    if (costs === null || deps.clock() - readAtMs >= KEPT_MS) reading ??= read()
    if (costs === null) await reading
    return costs ?? []
  }

  return {
    async of(account) {
      const cost = drawn(await known(), shareOf(deps.masterKeys, account))
      return cost === null || cost === costOf(deps.own) ? deps.own : hashOfCost(cost)
    },
  }
}

type Cost = { readonly cost: string; readonly count: number }

/** A number from 0 to 1 for the account, which only the master key reveals. */
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
