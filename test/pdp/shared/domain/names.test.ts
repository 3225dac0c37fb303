/** The grammar of names: the scanner accepts exactly what the expressions below match (ARCHITECTURE.md section 5). */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  compareNames,
  isEntitlementKey,
  isId,
  isObject,
  isObjectId,
  isPermissionKey,
  isRelation,
  isSubject,
  isType,
  nameBefore,
} from '../../../../pdp/shared/domain/names.ts'
import { effort } from '../../../support/effort.ts'

// Characters that storage takes and that are no white space; the bound is on bytes, which an expression cannot count.
const UNFIT = '\\s\\p{Cc}\\p{Cs}\\p{Noncharacter_Code_Point}\\ufffd'
const NAME = `[^${UNFIT}:#@*]+`
const WIDE_ID = `(?!\\*(?![^]))[^${UNFIT}#]+`
const KEY = '[a-z][a-z0-9_.:-]{0,127}'
const within = (text: string, bytesMax: number): boolean => Buffer.byteLength(text) <= bytesMax
const matching =
  (source: string, bytesMax = 1_000_000) =>
  (text: string): boolean =>
    new RegExp(`^${source}$`, 'u').test(text) && within(text, bytesMax)
const isObjectByRule = (text: string): boolean => {
  const colon = text.indexOf(':')
  return matching(NAME, 254)(text.slice(0, Math.max(colon, 0))) && matching(WIDE_ID, 512)(text.slice(colon + 1))
}
const GRAMMAR: Readonly<Record<string, readonly [(text: string) => boolean, (text: string) => boolean]>> = {
  type: [isType, matching(NAME, 254)],
  relation: [isRelation, matching(NAME, 64)],
  id: [isId, matching('(?!\\*(?![^]))[\\x21\\x22\\x24-\\x7e]{1,256}')],
  'id of an object': [isObjectId, matching(WIDE_ID, 512)],
  'permission key': [isPermissionKey, matching(KEY)],
  'entitlement key': [isEntitlementKey, matching(KEY)],
  object: [isObject, isObjectByRule],
}

const character = fc.constantFrom(
  ...'az09_-.:*#@ /~AZ',
  '\n',
  '\0',
  '\x7f',
  '\x80',
  'ÿ',
  'Ā',
  'é',
  '😀',
  '\ud800',
  '\u00a0',
  '\u2028',
  '\ufeff',
  '\u{10ffff}',
)
const near = fc.stringMatching(/^[a-z][a-z0-9_-]{0,5}([:.][a-z0-9*#._-]{0,6})?$/)
const anything = fc.oneof(near, fc.string({ unit: character, maxLength: 12 }), fc.string({ unit: 'binary' }))
const LONG = [63, 64, 65, 127, 128, 129, 253, 254, 255, 256, 257, 511, 512, 513].flatMap((length) => [
  'a'.repeat(length),
  'é'.repeat(length / 2),
])

describe.each(Object.entries(GRAMMAR))('%s', (_, [accepts, follows]) => {
  test('is whatever the expression matches, and nothing else', () => {
    let accepted = 0
    fc.assert(
      fc.property(anything, (text) => {
        if (follows(text)) accepted++
        expect(accepts(text)).toBe(follows(text))
      }),
      { numRuns: effort({ short: 1_000, long: 5_000 }) },
    )
    expect(accepted).toBeGreaterThan(effort({ short: 10, long: 100 }))
  })

  test.each([
    '',
    '*',
    ':',
    'a:',
    ':a',
    'a:*',
    'a:**',
    'a:*x',
    'a::',
    'a\n',
    'a:b\n',
    'a:b#c',
    'A:b',
    '1a:b',
    'a:b c',
    'a:é',
    ...LONG,
    ...LONG.map((text) => `a:${text}`),
    ...LONG.map((text) => `${text}:a`),
  ])('is judged as the expression does: %j', (text) => {
    expect(accepts(text)).toBe(follows(text))
  })
})

describe('a subject', () => {
  test.each(['user:a', 'user:*', 'group:g#member', 'a:b:c', 'a:b@c', 'Role:Ä#Can_View', '人:山田', 'user:😀'])(
    'may be %s',
    (text) => {
      expect(isSubject(text)).toBe(true)
    },
  )
  test.each([
    '',
    '*',
    'user',
    'user:',
    ':a',
    'user:*#member',
    'group:g#',
    'group:g#a#b',
    '#member',
    'us er:*',
    'user:* ',
    'a:b#c@d',
    'a:b#*',
  ])('may not be %j', (text) => {
    expect(isSubject(text)).toBe(false)
  })
})

describe('the order of names', () => {
  const name = fc.string({
    unit: fc.constantFrom('a', 'b', '~', 'é', '\ud7ff', '\ue000', '\uffee', '😀', '\u{10fffd}'),
  })
  test('is that of their bytes', () => {
    fc.assert(
      fc.property(name, name, (a, b) => {
        expect(Math.sign(compareNames(a, b))).toBe(Buffer.compare(Buffer.from(a), Buffer.from(b)))
      }),
    )
  })

  test.each(['user:a', 'user:!', 'user:\ue000', 'user:😀', 'user:é'])(
    'has no other name directly before %s',
    (text) => {
      expect(compareNames(nameBefore(text), text)).toBeLessThan(0)
      const [start = ''] = /^.*(?=.$)/su.exec(text) ?? []
      const between = `${start}${nameBefore(text).slice(start.length, -2)}`
      for (const other of [between, `${between}zz`, `${between}\u{10fffd}`])
        expect(compareNames(other, nameBefore(text))).toBeLessThan(0)
    },
  )
})
