/** Times as people write them; days are those of UTC. */
import { expect, test } from 'vitest'
import { instantIn } from '../../../../../pdp/server/console/sections/times.ts'

/** A Saturday. */
const NOW = Date.parse('2026-11-28T10:30:00Z')
const at = (text: string, edge: 'begin' | 'end'): string | null => {
  const ms = instantIn(text, NOW, edge)
  return ms === null ? null : new Date(ms).toISOString()
}

test.each([
  ['Friday', '2026-12-05T00:00:00.000Z'],
  ['sat', '2026-11-29T00:00:00.000Z'],
  ['tomorrow', '2026-11-30T00:00:00.000Z'],
  ['2026-12-04', '2026-12-05T00:00:00.000Z'],
  ['+3d', '2026-12-01T10:30:00.000Z'],
  ['+90m', '2026-11-28T12:00:00.000Z'],
  ['2026-12-04T12:00', '2026-12-04T12:00:00.000Z'],
  ['2026-12-04T12:00:30+02:00', '2026-12-04T10:00:30.000Z'],
])('the end "%s" is %s', (text, expected) => {
  expect(at(text, 'end')).toBe(expected)
})

test.each([
  ['yesterday', '2026-11-27T00:00:00.000Z'],
  ['Friday', '2026-11-27T00:00:00.000Z'],
  ['saturday', '2026-11-28T00:00:00.000Z'],
  ['-2h', '2026-11-28T08:30:00.000Z'],
  ['2026-11-01', '2026-11-01T00:00:00.000Z'],
])('the beginning "%s" is %s', (text, expected) => {
  expect(at(text, 'begin')).toBe(expected)
})

test.each([
  '',
  'fr',
  'frid',
  'someday',
  '3d',
  '+3',
  '+3y',
  '+99999d',
  '2026-02-31',
  '2026-13-01',
  '26-12-04',
  '12/04/2026',
])('"%s" names no time', (text) => {
  expect(at(text, 'end')).toBeNull()
})
test.each(['2026-12-04T25:00', '2026-12-04 12:00', '2026-12-04T12', 'constructor', '2026-12-04T12:00+2'])(
  '"%s" is not taken for an instant',
  (text) => {
    expect(at(text, 'begin')).toBeNull()
  },
)
