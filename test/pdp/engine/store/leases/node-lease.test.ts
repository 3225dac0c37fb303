/** The lease of one of several processes, by its own clock. */
import { describe, expect, test } from 'vitest'
import { bucketOf, NodeLease, type Registry } from '../../../../../pdp/engine/store/leases/node-lease.ts'

const POSITION = { revision: 1, writeId: '1', entitlementVersion: 0, entitlementWriteId: '' }
const answer = (of: Partial<Registry> = {}): Registry => ({
  interests: new Set([bucketOf('acme')]),
  intents: new Set(),
  positions: new Map(),
  clockMs: 0,
  timeline: 1,
  ...of,
})
const READ = answer({ positions: new Map([['acme', POSITION]]) })

function open() {
  const time = { nowMs: 0 }
  const lease = new NodeLease({ clock: () => time.nowMs })
  lease.registered('a')
  lease.want('acme')
  lease.renewed(lease.renewal(), READ)
  const isCovered = () => lease.vector(['acme']) !== null
  return { time, lease, isCovered }
}

describe('a lease', () => {
  test('covers a journal that a renewal read', () => {
    expect(open().isCovered()).toBe(true)
  })

  test('asks from when a renewal is sent until its answer comes', () => {
    const { lease, isCovered } = open()
    const renewal = lease.renewal()
    expect(isCovered()).toBe(false)
    lease.renewed(renewal, answer())
    expect(isCovered()).toBe(true)
  })

  test('rests on nothing from before a renewal whose answer was lost', () => {
    const { lease, isCovered } = open()
    lease.renewal()
    lease.renewed(lease.renewal(), answer())
    expect(isCovered()).toBe(false)
  })

  test('does not take an answer that another renewal has overtaken', () => {
    const { lease, isCovered } = open()
    const late = lease.renewal()
    lease.renewal()
    lease.renewed(late, READ)
    expect(isCovered()).toBe(false)
  })

  test('does not count an interest before the row had it', () => {
    const { lease, isCovered } = open()
    lease.renewed(lease.renewal(), answer({ interests: new Set() }))
    expect(isCovered()).toBe(false)
  })

  test('gives up what a writer is about to change', () => {
    const { lease, isCovered } = open()
    lease.renewed(lease.renewal(), answer({ intents: new Set([bucketOf('acme')]) }))
    expect(isCovered()).toBe(false)
  })

  test('rests on nothing from before another timeline, or a term that is over', () => {
    const failedOver = open()
    failedOver.lease.renewed(failedOver.lease.renewal(), answer({ timeline: 2 }))
    expect(failedOver.isCovered()).toBe(false)
    const lapsed = open()
    lapsed.time.nowMs = 2_000
    expect(lapsed.isCovered()).toBe(false)
    lapsed.lease.renewed(lapsed.lease.renewal(), answer())
    expect(lapsed.isCovered()).toBe(false)
  })

  test('is over when its row is gone', () => {
    const { lease, isCovered } = open()
    lease.renewed(lease.renewal(), null)
    expect([isCovered(), lease.id]).toEqual([false, null])
    expect(() => lease.renewal()).toThrow(TypeError)
  })

  test('wants no journal any more that nobody asked about, and none that does not exist', () => {
    const { lease } = open()
    lease.want('nobody')
    expect(lease.renewal().reads).toContain('nobody')
    lease.renewed(lease.renewal(), READ)
    expect(lease.renewal().reads).toEqual([])
    lease.leaveIdle()
    lease.leaveIdle()
    expect(lease.renewal().interests.size).toBe(0)
  })

  test('leaves all journals when there are too many', () => {
    const { lease, isCovered } = open()
    for (let n = 0; n < 10_000; n++) lease.want(`o${n}`)
    expect(isCovered()).toBe(false)
  })
})
