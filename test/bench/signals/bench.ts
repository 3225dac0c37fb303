/**
 * `npm run bench -- signals [SECONDS] [STREAMS] [RATE]`: what streams cost a writer and the machine, how late their events are,
 * and what receivers lose when a PDP is killed. By default 100 writes a second, with 1,000 streams of an organization each, and
 * with 10 streams that carry the events of all.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { eventsAfter, judge, type Verdict } from './judge.ts'
import { benchLock } from './lock.ts'
import { minus, shown, sum, type Usage, usage } from './usage.ts'
import { EVERY, openWorld, type Replica, type World } from './world.ts'

const ROUNDS = 3
/** A PDP that died gives back its streams when their leases end. */
const ARRIVE_MS = 90_000
const STREAMS_READ_MS = 2_000
const ATTEMPTS_MAX = 100
const BUSY_MS = 100

export async function bench([seconds = '10', streams = '1000', rate = '100']: readonly string[]): Promise<void> {
  const world = await openWorld(Number(streams))
  const load = { ms: Number(seconds) * 1_000, rate: Number(rate) }
  try {
    console.log(`${rate} writes/s for ${seconds} s, two PDPs`)
    await setStreams(world, null)
    await write(world, load) // warm
    const names = { own: `${streams} streams of an organization each`, every: `${EVERY} streams of all organizations` }
    const without: Round[] = []
    const beside = { own: [] as Round[], every: [] as Round[] }
    for (let round = 0; round < ROUNDS; round += 1) {
      await setStreams(world, null)
      without.push(await observed(world, () => write(world, load)))
      for (const layout of LAYOUTS) {
        await setStreams(world, layout)
        beside[layout].push(await observed(world, () => write(world, load)))
      }
    }
    console.log(
      `without streams: a writer waits ${figures(timesOf(without))}; a write takes ${share(without, writesOf(without))}`,
    )
    for (const layout of LAYOUTS) report(names[layout], beside[layout], without)
    for (const layout of LAYOUTS) {
      await setStreams(world, layout)
      const { verdict } = await observed(world, () => writeAndKill(world, load))
      console.log(`with kill -9 of one PDP in the middle, ${names[layout]}:\n  ${delivered(verdict)}`)
    }
    await benchLock(world)
  } finally {
    await world.stop()
  }
}

function report(name: string, rounds: readonly Round[], without: readonly Round[]): void {
  console.log(`${name}:`)
  for (const { verdict } of rounds) console.log(`  ${delivered(verdict)}`)
  const [times, alone] = [timesOf(rounds), timesOf(without)]
  console.log(
    `  a writer waits ${figures(times)}; ratio p50 ${ratio(times, alone, 0.5)}, p99 ${ratio(times, alone, 0.99)}`,
  )
  const setsCount = rounds.reduce((total, { verdict }) => total + verdict.delaysMs.length, 0)
  const more = minus(sum(rounds.map(({ used }) => used)), sum(without.map(({ used }) => used)))
  console.log(`  a SET takes ${shown(more, setsCount)}, beside what the write takes`)
}

const LAYOUTS = ['own', 'every'] as const
type Layout = (typeof LAYOUTS)[number]
type Round = { readonly times: readonly number[]; readonly verdict: Verdict; readonly used: Usage }
const timesOf = (rounds: readonly Round[]): readonly number[] => rounds.flatMap(({ times }) => times)
const writesOf = (rounds: readonly Round[]): number => timesOf(rounds).length
const share = (rounds: readonly Round[], count: number): string => shown(sum(rounds.map(({ used }) => used)), count)

type Load = { readonly ms: number; readonly rate: number }

/** Milliseconds of each write. Writes start at the rate, whatever the ones before do; organizations in turn. */
async function write(world: World, { ms, rate }: Load): Promise<readonly number[]> {
  const times: number[] = []
  const count = Math.round((ms / 1_000) * rate)
  const startMs = performance.now()
  const open: Promise<void>[] = []
  for (let at = 0; at < count; at += 1) {
    await delay(Math.max(0, startMs + (at * 1_000) / rate - performance.now()))
    const sentMs = performance.now()
    open.push(put(world, turn++).then(() => void times.push(performance.now() - sentMs)))
  }
  await Promise.all(open)
  return times
}
let turn = 0

/** A membership that alternates between two tiers. Another PDP takes the write when one is gone. */
async function put(world: World, at: number): Promise<void> {
  const organization = world.organizations[at % world.organizations.length]
  const role = Math.floor(at / world.organizations.length) % 2 === 0 ? 'viewer' : 'developer'
  let refusal: string | null = null
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
    const replica = world.replicas[(at + attempt) % 2]
    refusal = await refusalOf(replica, { organization, role, token: world.token })
    if (refusal === null) return
    if (attempt > 0) await delay(BUSY_MS)
  }
  throw new Error(`no PDP takes a write of ${organization}: ${refusal}`)
}

/** Why the PDP did not take the write, when another try may succeed; `null` when it took it. */
async function refusalOf(
  replica: Replica | undefined,
  of: { readonly organization: string | undefined; readonly role: string; readonly token: string },
): Promise<string | null> {
  const response = await fetch(`${replica?.url}/v1/organizations/${of.organization}/members/ann`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${of.token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ role: of.role, status: 'active' }),
  }).catch(() => null)
  const text = await response?.text()
  // 429: as many calls of one client are under way as may be. The wait of a call that is made again counts.
  if (response === null) return 'no answer'
  if (response.status >= 500 || response.status === 429) return `${response.status} ${text}`
  if (!response.ok) throw new Error(`${response.status} ${text}`)
  return null
}

async function writeAndKill(world: World, load: Load): Promise<readonly number[]> {
  const [, victim] = world.replicas
  const written = write(world, { ...load, ms: load.ms * 2 })
  await delay(load.ms)
  victim.part.signal('SIGKILL')
  await victim.part.ended()
  const times = await written
  await victim.part.start()
  return times
}

/** Streams that are enabled; the others are not. */
async function setStreams({ opened: { sql }, streams }: World, layout: Layout | null): Promise<void> {
  const enabled = [...streams].flatMap(([id, organization]) =>
    (organization === '' ? 'every' : 'own') === layout ? [id] : [],
  )
  await sql.query(
    `update signal_stream set status = case when stream_id = any($1) then 'enabled' else 'disabled' end,
       cursor_seq = (select revision from revision where organization_id = '#events')`,
    [enabled],
  )
  await delay(STREAMS_READ_MS)
}

async function observed(world: World, work: () => Promise<readonly number[]>): Promise<Round> {
  const { sql } = world.opened
  const [newest] = await sql.query<{ seq: number }>(
    "select revision as seq from revision where organization_id = '#events'",
  )
  const enabled = await sql.query<{ id: string }>("select stream_id as id from signal_stream where status = 'enabled'")
  const streams = new Set(enabled.map(({ id }) => id))
  const from = new Map([...world.receiver.received].map(([stream, all]) => [stream, all.length]))
  const before = await usage(world)
  const times = await work()
  const endMs = performance.now() + ARRIVE_MS
  let verdict: Verdict
  do {
    await delay(1_000)
    verdict = judge(world, { streams, events: await eventsAfter(world, newest?.seq ?? 0), from })
  } while (verdict.lost > 0 && performance.now() < endMs)
  return { times, verdict, used: minus(await usage(world), before) }
}

const delivered = ({ delaysMs, ...v }: Verdict): string =>
  `${v.expected} SETs: ${figures(delaysMs)} from the begin of the write to the receiver; lost ${v.lost}, repeated ${v.repeated}, with other bytes ${v.otherBytes}, out of order ${v.outOfOrder}, unexpected ${v.unexpected}`

const at = (times: readonly number[], share: number): number =>
  times.toSorted((a, b) => a - b)[Math.min(times.length - 1, Math.floor(times.length * share))] ?? 0
const figures = (times: readonly number[]): string =>
  `p50 ${at(times, 0.5).toFixed(1)} ms, p99 ${at(times, 0.99).toFixed(1)} ms, longest ${at(times, 1).toFixed(0)} ms`
const ratio = (a: readonly number[], b: readonly number[], share: number): string =>
  (at(a, share) / at(b, share)).toFixed(2)
