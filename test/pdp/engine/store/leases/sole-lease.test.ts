/** The lease of a process that writes alone, by its own clock. */
import { expect, test } from 'vitest'
import { SoleLease } from '../../../../../pdp/engine/store/leases/sole-lease.ts'

const POSITION = { revision: 1, writeId: '1', entitlementVersion: 0, entitlementWriteId: '' }

test('a lease that is renewed after its term rests on nothing that was read before', () => {
  let nowMs = 0
  const lease = new SoleLease({ clock: () => nowMs })
  lease.begun(lease.renewal('a'), { clockMs: 0, timeline: 1 })
  lease.read(lease.reading(), new Map([['acme', POSITION]]))
  nowMs = 500
  lease.renewed(lease.renewal('a'), { clockMs: 500, timeline: 1 })
  expect(lease.vector(['acme'])?.logs.get('acme')).toBe(POSITION)
  nowMs = 5_000
  lease.renewed(lease.renewal('a'), { clockMs: 5_000, timeline: 1 })
  expect(lease.vector(['acme'])).toBeNull()
})
