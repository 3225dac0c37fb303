/** Times as people write them; days are those of the reader's zone. */
import { expect, test } from 'vitest'
import { exactUrl, instantIn, zoneIn } from '../../../../../pdp/server/console/sections/times.ts'

/** A Saturday. */
const NOW = Date.parse('2026-11-28T10:30:00Z')
const at = (text: string, edge: 'begin' | 'end', zone = 'UTC', nowMs = NOW): string | null => {
  const ms = instantIn(text, { nowMs, zone }, edge)
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
  '0026-12-04',
  '12/04/2026',
])('"%s" names no time', (text) => {
  expect(at(text, 'end')).toBeNull()
})
test.each([
  '2026-12-04T25:00',
  '2026-02-31T12:00',
  '2026-02-31T12:00Z',
  '2026-12-04 12:00',
  '2026-12-04T12',
  'constructor',
  '2026-12-04T12:00+2',
])('"%s" is not taken for an instant', (text) => {
  expect(at(text, 'begin')).toBeNull()
})

test.each([
  ['2026-12-04', 'end', 'Europe/Berlin', '2026-12-04T23:00:00.000Z'],
  ['2026-12-04', 'end', 'Pacific/Kiritimati', '2026-12-04T10:00:00.000Z'],
  ['today', 'begin', 'Pacific/Kiritimati', '2026-11-28T10:00:00.000Z'],
  ['today', 'begin', 'Pacific/Pago_Pago', '2026-11-27T11:00:00.000Z'],
  ['Friday', 'end', 'America/New_York', '2026-12-05T05:00:00.000Z'],
  ['+3d', 'end', 'America/New_York', '2026-12-01T10:30:00.000Z'],
  ['2026-12-04T12:00', 'end', 'Asia/Kathmandu', '2026-12-04T06:15:00.000Z'],
  ['2026-12-04T12:00Z', 'end', 'Asia/Kathmandu', '2026-12-04T12:00:00.000Z'],
  // The last day of summer time has 25 hours, and the first one 23.
  ['2026-10-25', 'begin', 'Europe/Berlin', '2026-10-24T22:00:00.000Z'],
  ['2026-10-25', 'end', 'Europe/Berlin', '2026-10-25T23:00:00.000Z'],
  ['2027-03-28', 'end', 'Europe/Berlin', '2027-03-28T22:00:00.000Z'],
  // This day begins at one o'clock.
  ['2026-04-24', 'begin', 'Africa/Cairo', '2026-04-23T22:00:00.000Z'],
  // A time that is shown twice is the first one; one that is leapt over is as late after the leap.
  ['2026-11-01T01:30', 'begin', 'America/New_York', '2026-11-01T05:30:00.000Z'],
  ['2027-03-28T02:30', 'begin', 'Europe/Berlin', '2027-03-28T01:30:00.000Z'],
] as const)('"%s" as the %s in %s is %s', (text, edge, zone, expected) => {
  expect(at(text, edge, zone)).toBe(expected)
})

test('a weekday is the one of the zone, where UTC has another day already', () => {
  const nowMs = Date.parse('2026-11-28T01:00:00Z')
  expect(at('friday', 'end', 'America/New_York', nowMs)).toBe('2026-11-28T05:00:00.000Z')
  expect(at('friday', 'end', 'UTC', nowMs)).toBe('2026-12-05T00:00:00.000Z')
})

test.each(['', 'Mars/Olympus', '../etc', '+01:00', 'Europe/Berlin; x', '__proto__', 'a'.repeat(65), '<b>'])(
  'the zone "%s" is UTC, because there is none of that name',
  (text) => {
    expect(zoneIn(text)).toBe('UTC')
  },
)

const exact = (asOf: string | null, zone = 'Europe/Berlin'): string | null => {
  const query = new URLSearchParams({ org: 'acme', ...(asOf === null ? {} : { as_of: asOf }) })
  return exactUrl({
    url: `/console/ask?${query}`,
    reading: { nowMs: NOW, zone },
    query: (name) => query.get(name) ?? '',
  })
}

test.each([
  ['yesterday', '2026-11-26T23:00:00.000Z'],
  ['-2h', '2026-11-28T08:30:00.000Z'],
  ['2026-11-01T12:00', '2026-11-01T11:00:00.000Z'],
])('a moment that is written as %s has a URL that means the same to readers elsewhere', (text, instant) => {
  expect(exact(text)).toBe(`/console/ask?${new URLSearchParams({ org: 'acme', as_of: instant })}`)
})

test.each([null, '', 'soon', '2026-11-01T12:00Z', '2026-11-01T12:00:00.000Z', '2026-11-01T12:00+02:00', '2026-02-31'])(
  'as_of=%s stays as it is',
  (text) => {
    expect(exact(text)).toBeNull()
  },
)
