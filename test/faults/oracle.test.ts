/** The oracle of the fault tests must itself refuse what cannot be. */
import { expect, test } from 'vitest'
import { createOracle, missingOf } from './oracle.ts'

const at = (startMs: number, endMs = startMs + 1) => ({ startMs, endMs })

test('nothing is allowed that nobody wrote', () => {
  expect(createOracle().possible('a', true, at(0))).toBe(false)
  expect(createOracle().possible('a', false, at(0))).toBe(true)
})

test('an acknowledged write holds from its acknowledgement, and may hold from its beginning', () => {
  const oracle = createOracle()
  const done = oracle.begin('a', true, 10)
  expect(oracle.possible('a', true, at(5))).toBe(false)
  expect(oracle.possible('a', true, at(12))).toBe(true)
  expect(oracle.possible('a', false, at(12))).toBe(true)
  done(20)
  expect(oracle.possible('a', false, at(21))).toBe(false)
  expect(oracle.possible('a', true, at(21))).toBe(true)
  expect(oracle.possible('a', false, at(15, 30))).toBe(true)
  expect(oracle.possible('b', true, at(21))).toBe(false)
})

test('a revocation that is acknowledged ends what was allowed', () => {
  const oracle = createOracle()
  oracle.begin('a', true, 0)(1)
  oracle.begin('a', false, 10)(20)
  expect(oracle.possible('a', true, at(21))).toBe(false)
  expect(oracle.possible('a', true, at(19, 25))).toBe(true)
})

test('a write of unknown outcome may take effect at any later time, and is not settled by another value', () => {
  const oracle = createOracle()
  oracle.begin('a', true, 0)
  expect(oracle.possible('a', true, at(100))).toBe(true)
  expect(oracle.possible('a', false, at(100))).toBe(true)
  expect(oracle.settled().has('a')).toBe(false)
  oracle.begin('a', true, 10)(20)
  expect(oracle.settled().get('a')?.value).toBe(true)
  oracle.begin('a', false, 30)(40)
  expect(oracle.settled().has('a')).toBe(false)
})

test('what is acknowledged and not held is missing, unless it was written again while it was read', () => {
  const oracle = createOracle()
  oracle.begin('lost', true, 0)(1)
  oracle.begin('back', false, 0)(1)
  oracle.begin('toggled', false, 0)(1)
  const before = oracle.settled()
  oracle.begin('toggled', true, 2)(3)
  oracle.begin('toggled', false, 4)(5)
  const missing = missingOf(new Set(['back', 'toggled']), { before, after: oracle.settled() })
  expect(missing).toEqual(['lost is false, but true was acknowledged', 'back is true, but false was acknowledged'])
})
