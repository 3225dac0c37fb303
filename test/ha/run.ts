/**
 * `npm run ha [-- FAULT… | --short]`: failovers of PostgreSQL under Patroni below three PDPs and two sidecars, with an oracle for
 * every answer and every acknowledged write. Says what is missing here, and passes, where the programs cannot be had.
 */
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { type Load, startLoad } from '../faults/load.ts'
import { startSystem } from '../faults/system.ts'
import { readArguments, requireNames } from '../support/programs/arguments.ts'
import { type AddressKind, findPrograms, type HaCluster, startCluster } from './cluster.ts'
import { HA_FAULTS, type HaFault } from './faults.ts'

const USAGE = 'npm run ha [-- FAULT… | --short]'
const { values, positionals } = readArguments(
  { allowPositionals: true, options: { short: { type: 'boolean' } } },
  USAGE,
)
requireNames(
  positionals,
  HA_FAULTS.map(({ name }) => name),
  USAGE,
)

type Setting = { readonly address: AddressKind; readonly synchronous: boolean }
type Row = {
  readonly wrong: readonly string[]
  readonly allows: number
  readonly lost: readonly string[]
  readonly outMs: number
  readonly ownMs: number
  /** The member that was the primary, and the one that is. */
  readonly moved: string
}

const PROBE_MS = 100

/** When a new connection by the address leads to a server that takes writes, from time to time. */
function watchAddress(url: string) {
  const good: number[] = []
  let isOver = false
  const watching = (async () => {
    while (!isOver) {
      const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 500, query_timeout: 500 })
      client.on('error', () => undefined)
      try {
        await client.connect()
        await client.query(`select pg_logical_emit_message(true, 'ha', '')`)
        good.push(performance.now())
      } catch {
        // It does not.
      }
      await Promise.race([client.end().catch(() => undefined), delay(200)])
      await delay(PROBE_MS)
    }
  })()
  return {
    good: good as readonly number[],
    async end(): Promise<void> {
      isOver = true
      await watching
    },
  }
}

async function play(fault: HaFault, on: { cluster: HaCluster; load: Load; setting: Setting }): Promise<Row> {
  const { cluster, load, setting } = on
  await cluster.whole()
  await delay(SETTLE_MS)
  const primary = await cluster.leader()
  if (primary === null) throw new Error('the cluster has no primary')
  const from = { asked: load.asked.length, wrong: load.wrong.length }
  const watch = watchAddress(cluster.urlAt(cluster.ports[setting.address]))
  const beginMs = performance.now()
  load.forgetsProofs = fault.forgetsProofs === true
  const end = await fault.begin(cluster, primary)
  await delay(Math.min(fault.lastsMs, LASTS_MS_MAX))
  await end()
  await cluster.whole()
  await delay(SETTLE_MS)
  await watch.end()
  load.forgetsProofs = false
  const asked = load.asked.slice(from.asked).filter(({ startMs }) => startMs >= beginMs)
  const answered = asked.filter(({ outcome }) => outcome !== 'unavailable').map(({ endMs }) => endMs)
  const wrong = load.wrong.slice(from.wrong)
  return {
    wrong,
    allows: wrong.filter((text) => / allowed /.test(text)).length,
    lost: await load.lost().catch((err: unknown) => [String(err)]),
    outMs: longestGap(answered, { fromMs: beginMs, toMs: performance.now() }),
    ownMs: ownShare(watch.good, answered),
    moved: `${primary.name}>${(await cluster.leader())?.name}`,
  }
}

const longestGap = (times: readonly number[], { fromMs, toMs }: { fromMs: number; toMs: number }): number => {
  const sorted = [fromMs, ...times.toSorted((a, b) => a - b), toMs]
  return sorted.reduce((most, time, i) => Math.max(most, time - (sorted[i - 1] ?? time)), 0)
}

/** From the moment that the address is good again after it was not, to the first answer since. */
function ownShare(good: readonly number[], answered: readonly number[]): number {
  const again = good.filter((time, i) => time - (good[i - 1] ?? time) > 10 * PROBE_MS)
  return again.reduce((most, time) => {
    const next = answered
      .filter((one) => one >= time)
      .reduce((least, one) => Math.min(least, one), Number.POSITIVE_INFINITY)
    return Math.max(most, next - time)
  }, 0)
}

async function playAll(cluster: HaCluster, setting: Setting): Promise<boolean> {
  const port = cluster.ports[setting.address]
  const env: { [name: string]: string } = setting.synchronous ? { PORTCULLIS_REPLICATION: 'synchronous' } : {}
  const redis = { part: cluster.redis.sentinel, url: cluster.redis.url }
  const given = { part: cluster.proxy, port, urlAt: cluster.urlAt, env, redis }
  const system = await startSystem({ given, counts: COUNTS })
  let isGood = true
  try {
    const load = await startLoad(system)
    for (const fault of faults) {
      const { wrong, allows, lost, outMs, ownMs, moved } = await play(fault, { cluster, load, setting })
      const columns = [
        fault.name.padEnd(18),
        setting.address.padEnd(6),
        (setting.synchronous ? 'synchronous' : '-').padEnd(12),
        `${wrong.length} (${allows})`.padStart(10),
        `${lost.length}`.padStart(5),
        `${(outMs / 1_000).toFixed(1)} s`.padStart(8),
        `${(ownMs / 1_000).toFixed(1)} s`.padStart(6),
        moved,
      ]
      console.log(columns.join(' '))
      for (const text of [...wrong.slice(0, 2), ...lost.slice(0, 2)]) console.log(`  ${text}`)
      if (setting.synchronous && wrong.length + lost.length > 0) isGood = false
    }
    await load.stop()
  } finally {
    await system.stop()
  }
  return isGood
}

const isShort = values.short === true
/** What the short form starts takes longer than what it plays. */
const COUNTS = isShort ? { pdps: 2, sidecars: 1 } : { pdps: 3, sidecars: 2 }
const SIZE = isShort ? { standbys: 1, loopSeconds: 1 } : { standbys: 2, loopSeconds: 2 }
const SETTLE_MS = isShort ? 1_000 : 3_000
const LASTS_MS_MAX = isShort ? 5_000 : 40_000
const names = isShort ? ['switchover'] : positionals
const faults = HA_FAULTS.filter(({ name }) => names.length === 0 || names.includes(name))
const settings: readonly Setting[] = (['keeps', 'cuts'] as const).flatMap((address) =>
  [true, false].map((synchronous) => ({ address, synchronous })),
)
const programs = findPrograms()
if (programs === null) console.log('skipped')
else {
  console.log(`${'fault'.padEnd(18)} open   replication  wrong (allows) lost      out    own primary`)
  for (const setting of isShort ? settings.slice(0, 1) : settings) {
    // PDPs of each setting begin on a cluster of their own.
    const cluster = await startCluster(programs, SIZE)
    try {
      if (!(await playAll(cluster, setting))) process.exitCode = 1
    } finally {
      await cluster.stop()
    }
  }
}
