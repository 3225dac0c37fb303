/** The grammar of names: the scanner accepts exactly what the expressions below match (ARCHITECTURE.md section 5). */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isEntitlementKey, isId, isName, isObject, isPermissionKey, isSubject } from '../../../pdp/domain/names.ts'

const NAME = '[a-z][a-z0-9_-]{0,63}'
const ID = '(?!\\*(?![^]))[\\x21\\x22\\x24-\\x7e]{1,256}'
const KEY = '[a-z][a-z0-9_.:-]{0,127}'
const GRAMMAR: Readonly<Record<string, readonly [(text: string) => boolean, RegExp]>> = {
  name: [isName, new RegExp(`^${NAME}$`)],
  id: [isId, new RegExp(`^${ID}$`)],
  'permission key': [isPermissionKey, new RegExp(`^${KEY}$`)],
  'entitlement key': [isEntitlementKey, new RegExp(`^${KEY}$`)],
  object: [isObject, new RegExp(`^${NAME}:${ID}$`)],
}

const character = fc.constantFrom(...'az09_-.:*#@ /~AZ', '\n', '\0', '\x7f', '\x80', 'ÿ', 'Ā', 'é', '😀', '\ud800')
const near = fc.stringMatching(/^[a-z][a-z0-9_-]{0,5}([:.][a-z0-9*#._-]{0,6})?$/)
const anything = fc.oneof(near, fc.string({ unit: character, maxLength: 12 }), fc.string({ unit: 'binary' }))
const LONG = [63, 64, 65, 127, 128, 129, 255, 256, 257].map((length) => 'a'.repeat(length))

describe.each(Object.entries(GRAMMAR))('%s', (_, [accepts, grammar]) => {
  it('is whatever the expression matches, and nothing else', () => {
    let accepted = 0
    fc.assert(
      fc.property(anything, (text) => {
        if (grammar.test(text)) accepted++
        expect(accepts(text)).toBe(grammar.test(text))
      }),
      { numRuns: 5_000 },
    )
    expect(accepted).toBeGreaterThan(100)
  })

  it.each([
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
    expect(accepts(text)).toBe(grammar.test(text))
  })
})

describe('a subject', () => {
  it.each(['user:a', 'user:*', 'group:g#member', 'a:b:c', 'a:b@c'])('may be %s', (text) => {
    expect(isSubject(text)).toBe(true)
  })
  it.each(['', '*', 'user', 'user:', ':a', 'user:*#member', 'group:g#', 'group:g#a#b', '#member', 'User:*', 'user:* '])(
    'may not be %j',
    (text) => {
      expect(isSubject(text)).toBe(false)
    },
  )
})
