/**
 * `npm run bench -- signals [SECONDS] [STREAMS] [RATE]`: what streams cost a writer, how late their events are, and what
 * receivers lose when a PDP is killed. By default 1,000 streams, of which one carries the events of all, and 100 writes a second.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { type Event, eventsAfter, judge, type Verdict } from './judge.ts'
import { benchLock } from './lock.ts'
import { openWorld, type Replica, type World } from './world.ts'

const ROUNDS = 3
/** A PDP that died gives back its streams when their leases end. */
const ARRIVE_MS = 90_000
const STREAMS_READ_MS = 2_000

export async function bench([seconds = '10', streams = '1000', rate = '100']: readonly string[]): Promise<void> {
  const world = await openWorld(Number(streams))
  const load = { ms: Number(seconds) * 1_000, rate: Number(rate) }
  try {
    console.log(`${streams} streams, ${rate} writes/s for ${seconds} s, two PDPs`)
    await write(world, load) // warm
    const [without, beside]: [number[], number[]] = [[], []]
    for (let round = 0; round < ROUNDS; round += 1) {
      await setStreams(world, 'disabled')
      without.push(...(await write(world, load)))
      await setStreams(world, 'enabled')
      const { times, verdict } = await observed(world, () => write(world, load))
      beside.push(...times)
      console.log(`  ${delivered(verdict)}`)
    }
    console.log(`  a writer waits: without streams ${figures(without)}; with them ${figures(beside)}`)
    console.log(`  ratio: p50 ${ratio(beside, without, 0.5)}, p99 ${ratio(beside, without, 0.99)}`)
    const { verdict } = await observed(world, () => writeAndKill(world, load))
    console.log(`with kill -9 of one PDP in the middle:\n  ${delivered(verdict)}`)
    await benchLock(world)
  } finally {
    await world.stop()
  }
}

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
  for (let attempt = 0; attempt < 3; attempt += 1) {
    const replica = world.replicas[(at + attempt) % 2]
    if (await sendTo(replica, { organization, role, token: world.token })) return
  }
  throw new Error(`no PDP takes a write of ${organization}`)
}

async function sendTo(
  replica: Replica | undefined,
  of: { readonly organization: string | undefined; readonly role: string; readonly token: string },
): Promise<boolean> {
  const response = await fetch(`${replica?.url}/v1/organizations/${of.organization}/members/ann`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${of.token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ role: of.role, status: 'active' }),
  }).catch(() => null)
  const text = await response?.text()
  if (response !== null && response.status < 500 && !response.ok) throw new Error(`${response.status} ${text}`)
  return response?.ok === true
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

async function setStreams({ opened: { sql } }: World, status: 'enabled' | 'disabled'): Promise<void> {
  await sql.query(
    `update signal_stream set status = $1, cursor_seq = (select revision from revision where organization_id = '#events')`,
    [status],
  )
  await delay(STREAMS_READ_MS)
}

async function observed(
  world: World,
  work: () => Promise<readonly number[]>,
): Promise<{ times: readonly number[]; verdict: Verdict }> {
  const { sql } = world.opened
  const [newest] = await sql.query<{ seq: number }>(
    "select revision as seq from revision where organization_id = '#events'",
  )
  const from = new Map([...world.receiver.received].map(([stream, all]) => [stream, all.length]))
  const times = await work()
  const endMs = performance.now() + ARRIVE_MS
  let events: readonly Event[] = []
  let verdict: Verdict
  do {
    await delay(1_000)
    events = await eventsAfter(world, newest?.seq ?? 0)
    verdict = judge(world, events, from)
  } while (verdict.lost > 0 && performance.now() < endMs)
  return { times, verdict }
}

const delivered = ({ delaysMs, ...v }: Verdict): string =>
  `${v.expected} SETs: ${figures(delaysMs)} from the begin of the write to the receiver; lost ${v.lost}, repeated ${v.repeated}, with other bytes ${v.otherBytes}, out of order ${v.outOfOrder}, unexpected ${v.unexpected}`

const at = (times: readonly number[], share: number): number =>
  times.toSorted((a, b) => a - b)[Math.min(times.length - 1, Math.floor(times.length * share))] ?? 0
const figures = (times: readonly number[]): string =>
  `p50 ${at(times, 0.5).toFixed(1)} ms, p99 ${at(times, 0.99).toFixed(1)} ms, longest ${at(times, 1).toFixed(0)} ms`
const ratio = (a: readonly number[], b: readonly number[], share: number): string =>
  (at(a, share) / at(b, share)).toFixed(2)
