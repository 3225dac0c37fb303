/** The latest decisions in memory: the newest first, within a count and within characters, whoever asks for however much. */
import { describe, expect, test } from 'vitest'
import {
  createDecisionRing,
  type DecisionRing,
  type KeptDecision,
} from '../../../../../pdp/server/serve/decisions/decision-ring.ts'

const decision = (requestId: string, checks = 1, name = 'doc:1'): Omit<KeptDecision, 'number'> => ({
  atMs: 1,
  decisionId: 'd',
  requestId,
  route: null,
  clientId: 'c',
  subject: 'user:ann',
  organization: 'acme',
  app: null,
  acting: {},
  permissions: Array.from({ length: checks }, () => ({
    relation: 'viewer',
    resource: name,
    allowed: true,
    reasonCode: 'tuple' as const,
  })),
  entitlements: [],
  isInactive: false,
  durationMs: 1,
  isWhole: true,
})
const idsIn = (ring: DecisionRing): readonly (string | null)[] => [...ring.latest()].map(({ requestId }) => requestId)

describe('the ring of decisions', () => {
  test('has the newest first, and no more than it may', () => {
    const ring = createDecisionRing(3)
    expect(idsIn(ring)).toEqual([])
    for (const id of ['a', 'b', 'c', 'd', 'e']) ring.record(decision(id))
    expect(idsIn(ring)).toEqual(['e', 'd', 'c'])
  })

  test('keeps nothing when it may keep none', () => {
    const ring = createDecisionRing(0)
    ring.record(decision('a'))
    expect(idsIn(ring)).toEqual([])
  })

  test('drops as many of the oldest as a large one takes the place of', () => {
    const ring = createDecisionRing(100, 10_000)
    for (let i = 0; i < 10; i++) ring.record(decision(`small-${i}`))
    ring.record(decision('large', 12, `doc:${'x'.repeat(512)}`))
    const kept = idsIn(ring)
    expect(kept[0]).toBe('large')
    expect(kept.length).toBeLessThan(10)
    for (let i = 0; i < 500; i++) ring.record(decision(`large-${i}`, 12, `doc:${'x'.repeat(512)}`))
    expect(idsIn(ring)).toEqual(['large-499'])
    for (let i = 0; i < 40; i++) ring.record(decision(`after-${i}`))
    expect(idsIn(ring).length).toBeGreaterThan(10)
  })

  test('keeps the newest, though it alone is beyond the characters', () => {
    const ring = createDecisionRing(100, 1_000)
    ring.record(decision('a'))
    ring.record(decision('b', 256))
    expect(idsIn(ring)).toEqual(['b'])
  })

  test('ends for a reader where newer ones took the place of what it reads', () => {
    const ring = createDecisionRing(2)
    for (const id of ['a', 'b']) ring.record(decision(id))
    const reading = ring.latest()
    expect(reading.next().value?.requestId).toBe('b')
    for (const id of ['c', 'd']) ring.record(decision(id))
    expect(reading.next().done).toBe(true)
  })
})
