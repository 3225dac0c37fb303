/** A part of the leases' schedules, in which nothing may be wrong, and one for each mistake that they must show. */
import { describe, expect, test } from 'vitest'
import { effort } from '../../support/effort.ts'
import { MISTAKES, playSeeds, RIGHT } from './leases.ts'

const TIMEOUT_MS = 600_000

describe('a process with a lease', () => {
  test.each(RIGHT)('answers right in every schedule with %s', { timeout: TIMEOUT_MS }, (_, play) => {
    const count = effort({ short: 20, long: 2_000 })
    const { wrong, leased, written } = playSeeds(play, { from: 1, count })
    expect(wrong).toBeNull()
    expect(leased).toBeGreaterThan(count)
    expect(written).toBeGreaterThan(count)
  })

  test.each(MISTAKES)('answers wrong in a schedule when %s', { timeout: TIMEOUT_MS }, async (_, search) => {
    expect(await search()).not.toBeNull()
  })
})
