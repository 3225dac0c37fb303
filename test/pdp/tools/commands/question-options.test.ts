/** What the options of a question mean, and what they refuse. */
import { expect, test } from 'vitest'
import { readQuestion } from '../../../../pdp/tools/commands/question-options.ts'

test.each([
  ['2030-01-31T12:00:00Z', Date.UTC(2030, 0, 31, 12)],
  ['2030-01-31T12:00Z', Date.UTC(2030, 0, 31, 12)],
  ['2030-01-31T12:00:00.5+02:00', Date.UTC(2030, 0, 31, 10, 0, 0, 500)],
  ['2030-01-31', Date.UTC(2030, 0, 31)],
])('--as-of %s is one instant everywhere', (asOf, asOfMs) => {
  expect(readQuestion({ asOf })).toEqual({ asOfMs })
})

test.each([
  '2030-01-31T12:00',
  '2030-01-31T12:00:00',
  '2030-01-31 12:00',
  'Jan 31 2030',
  '2030-13-01T00:00Z',
  '2030-02-31',
  '2030-02-31T12:00Z',
  '',
  '7',
])('--as-of %j has no zone, or is no instant, and is refused', (asOf) => {
  expect(() => readQuestion({ asOf })).toThrow('an instant with its zone')
})
