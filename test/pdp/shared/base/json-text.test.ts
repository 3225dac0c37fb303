import { describe, expect, test } from 'vitest'
import { endOfString, stringAt } from '../../../../pdp/shared/base/json-text.ts'

describe('a string in JSON text', () => {
  test.each([
    '',
    'a',
    '"',
    '\\',
    '\\"',
    '\\\\',
    'a\\',
    'ends in \\"',
    '\u0000',
    '\ud800',
    '😀',
    '\\u0022',
    ','.repeat(9),
  ])('is %j, wherever it begins and whatever follows', (value) => {
    for (const [before, after] of [
      ['', ''],
      ['{"a":', '}'],
      ['["\\\\",', ',"b"]'],
    ] as const) {
      const text = `${before}${JSON.stringify(value)}${after}`
      const end = endOfString(text, before.length)
      expect(text.slice(end)).toBe(after)
      expect(stringAt(text, before.length, end)).toBe(value)
    }
  })

  test('may hide its characters in escapes', () => {
    const text = '"\\u005f\\u005fproto__"'
    expect(stringAt(text, 0, endOfString(text, 0))).toBe('__proto__')
  })
})
