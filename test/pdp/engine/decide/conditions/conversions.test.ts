/** Conversions inside conditions: whatever is not a value of the type that is asked for is an error, never an answer. */
import { describe, expect, test, vi } from 'vitest'
import type { JsonValue } from '../../../../../pdp/shared/domain/json.ts'
import { compile, told } from './told.ts'

describe('a conversion', () => {
  test.each<[string, string, readonly JsonValue[]]>([
    ['int(x) <= 100', 'string', ['', ' ', ' 7 ', '0x10', '0b1', '1e1', '1.5', '٣', '7\n', '9223372036854775808']],
    ['uint(x) <= 100u', 'string', ['', ' ', ' 7 ', '0x10', '+7', '-7', '18446744073709551616']],
    ['double(x) < 100.0 || double(x) >= 100.0', 'string', ['', ' ', '1,000', '1000 EUR', 'x', '-1e400', '0x1p-2']],
    ['double(x) < 100.0', 'string', ['NaN', 'Infinity', '-Infinity', '-inf', '1_000']],
    ['bool(x) || true == bool(x)', 'string', ['', 'yes', 'tRue', ' true', '2']],
    ['duration(x) < duration("1h")', 'string', ['', ' ', '1', '1d', '1 h', '1h-5m', '2562047h48m']],
    [
      'timestamp(x) > timestamp("0001-01-01T00:00:00Z")',
      'string',
      ['2031-02-30T00:00:00Z', '2031-03-01T24:00:00Z', '2031-03-01T00:00:60Z', '2031-03-01', '', '1893456000'],
    ],
    [
      'timestamp(x) > timestamp("0001-01-01T00:00:00Z")',
      'string',
      ['2031-03-01T00:00:00+24:00', '2031-03-01T00:00:00,5Z', '9999-12-31T23:59:59-01:00', '2031-03-01t00:00:00z'],
    ],
    ['timestamp(x) > timestamp(0)', 'int', [253_402_300_800, -62_135_596_801, 1_893_456_000_000]],
    ['duration(x) < duration("1h")', 'any', [7, null, true, ['1h']]],
    ['has(x.a)', 'any', [[], ['a'], [null]]],
    ['x % -1 == 0', 'int', ['-9223372036854775808']],
    ['string(bytes(x)) == x', 'string', ['\ud800', 'a\udc00']],
    ['timestamp(0).getHours(x) >= 0', 'string', ['+2', '99:99', '24:00', '02:60', 'Nowhere/City', '+0200', ' UTC']],
    ['timestamp(0).getHours(x) >= 0', 'string', ['BST', 'CST', 'IST', 'PST', 'AST', 'bst', 'SystemV/AST4']],
  ])('%s of a %s is an error for all of %j', (expression, type, values) => {
    const condition = compile(expression, { x: type })
    expect(values.filter((x) => typeof told(condition, { x }) !== 'string')).toEqual([])
  })

  test.each<[string, string, JsonValue]>([
    ['timestamp(x) == timestamp("2030-01-01T00:00:00Z")', 'int', 1_893_456_000],
    ['now < timestamp(x) && !(now >= timestamp(x))', 'int', 1_893_456_000],
    ['timestamp(int(x)) == x', 'timestamp', '2030-01-01T00:00:00Z'],
    ['int(x) == 7 && double(x) == 7.0', 'string', '+7'],
    ['double(x) == 0.5', 'string', '.5'],
    ['int(x) == 3600000000000', 'duration', '1h'],
    ['x.getMilliseconds() == 3600000', 'duration', '1h'],
    ['string(x) == "1.5s"', 'duration', '1500ms'],
    ['string(x) == "0.000000001s"', 'duration', '1ns'],
    ['string(x) == "1e+06" && string(x / 8.0) == "125000"', 'double', 1_000_000],
    ['string(x / 1e12) == "1e-06"', 'double', 1_000_000],
    ['string(x) == "2026-01-31T12:00:45.5Z"', 'timestamp', '2026-01-31T12:00:45.500Z'],
    ['string(x) == "2026-01-31T11:00:45Z"', 'timestamp', '2026-01-31T12:00:45+01:00'],
    ['string(bytes(x)) == x && size(x) == 2', 'string', '\ufeffa'],
    ['x < "😀" && !(x > "😀") && x <= "😀" && !(x >= "😀")', 'string', '\uffff'],
    ['"a" in x && has(x.a) && x.a == null', 'any', { a: null }],
    ['has(x.toString) && x.toString == "a"', 'map<string>', { toString: 'a' }],
    ['!has(x.a)', 'any', 'a'],
    ['matches(x, "^a+$")', 'string', 'aaa'],
    ['x / 1u == 18446744073709551615u', 'uint', '18446744073709551615'],
    ['dyn(x) != 9007199254740992.0', 'int', '9007199254740993'],
    ['x.getDayOfYear() == 180 && x.getHours() == 0', 'timestamp', '2026-06-30T00:30:00Z'],
    ['x.getHours() == 2', 'timestamp', '2026-03-29T02:30:00Z'],
    [
      'x.getHours("EST") == 21 && x.getHours("CET") == 4 && x.getHours("UTC") == 2',
      'timestamp',
      '2026-03-29T02:30:00Z',
    ],
    ['x.getHours("02:30") == 5 && x.getHours("") == 2', 'timestamp', '2026-03-29T02:30:00Z'],
    ['x.getFullYear("Europe/Berlin") == 10000', 'timestamp', '9999-12-31T23:30:00Z'],
  ])('%s holds for the %s %j', (expression, type, x) => {
    expect(
      told(compile(expression, { x: type, ...(expression.includes('now') ? { now: 'timestamp' } : {}) }), { x }),
    ).toBe(true)
  })

  test.each(['T', 't', 'true', 'True', 'TRUE', '1'])('bool of "%s" is true', (x) => {
    expect(told(compile('bool(x)', { x: 'string' }), { x })).toBe(true)
  })

  test('reads the rules of a time zone once', () => {
    const made = vi.spyOn(Intl, 'DateTimeFormat')
    const condition = compile('x.getHours("Asia/Tokyo") == 9 && x.getMinutes("Asia/Tokyo") == 0', { x: 'timestamp' })
    const answers = [1, 2].map((day) => told(condition, { x: `2026-03-0${day}T00:00:00Z` }))
    expect([answers, made.mock.calls.length]).toEqual([[true, true], 1])
    made.mockRestore()
  })

  test('does not depend on the time zone of the process', () => {
    const { TZ } = process.env
    process.env.TZ = 'Europe/Berlin'
    try {
      // Half past two in the night of 29 March did not exist in Berlin.
      const hour = compile('x.getHours() == 2 && x.getDayOfYear() == 87', { x: 'timestamp' })
      expect(told(hour, { x: '2026-03-29T02:30:00Z' })).toBe(true)
    } finally {
      if (TZ === undefined) delete process.env.TZ
      else process.env.TZ = TZ
    }
  })

  test('finds no half of a character in an expression', () => {
    expect(() => compile('x == "\ud800"', { x: 'string' })).toThrow('half of a character')
    expect(() => compile('x == "\\ud800"', { x: 'string' })).toThrow()
  })
})
