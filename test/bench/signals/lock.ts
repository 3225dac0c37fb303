/** What it costs writers of different organizations that their writes store events. */
import type { Change } from '../../../pdp/shared/domain/change.ts'
import { context } from '../../support/tuples.ts'
import type { World } from './world.ts'

const WRITERS = 16
const ROUND_MS = 2_000
const ROUNDS = 4

/** Memberships, which store an event each, in turn with tuples, which store none. Deliveries are off. */
export async function benchLock(world: World): Promise<void> {
  await setStreamsOff(world)
  const shares: number[] = []
  const rates: { readonly with: number[]; readonly without: number[] } = { with: [], without: [] }
  await rate(world, membership)
  for (let round = 0; round < ROUNDS; round += 1) {
    const [alone, told] = [await rate(world, tuple), await rate(world, membership)]
    rates.without.push(alone)
    rates.with.push(told)
    shares.push(told / alone)
  }
  console.log(
    `${WRITERS} writers of ${WRITERS} organizations: ${mean(rates.with)} memberships/s with events, ${mean(rates.without)} tuples/s without; ratio ${median(shares).toFixed(2)}`,
  )
}

const setStreamsOff = ({ opened: { sql } }: World) => sql.query("update signal_stream set status = 'disabled'")

const membership = (at: number): Change => ({
  kind: 'membership',
  user: 'ann',
  membership: { role: 'viewer', status: at % 2 === 0 ? 'active' : 'suspended' },
})
const tuple = (at: number): Change => ({
  kind: 'tuple',
  op: at % 2 === 0 ? 'write' : 'delete',
  tuple: { object: 'doc:1', relation: 'viewer', subject: 'user:ann', expiresAtMs: null },
})

async function rate({ opened: { store }, organizations }: World, change: (at: number) => Change): Promise<number> {
  const endMs = performance.now() + ROUND_MS
  let count = 0
  await Promise.all(
    organizations.slice(0, WRITERS).map(async (organization) => {
      for (let at = 0; performance.now() < endMs; at += 1) {
        await store.write(organization, [change(at)], { context })
        count += 1
      }
    }),
  )
  return (count / ROUND_MS) * 1_000
}

const mean = (rates: readonly number[]): string => (rates.reduce((a, b) => a + b, 0) / rates.length).toFixed(0)
const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0
