/** Blanks and cases of protocols, with every byte and what JavaScript also takes for a blank or a letter. */
import { expect, test } from 'vitest'
import { lowerAscii, trimBlanks } from '../../../../pdp/shared/base/blanks.ts'
import { BLANKS_OF_SCRIPTS, BYTES } from '../../../support/blanks.ts'

const around = (one: string): string => `${one}a ${one} b${one}`

test('only space and tab around a text are no part of it', () => {
  for (const one of [...BYTES, ...BLANKS_OF_SCRIPTS])
    expect(trimBlanks(around(one))).toBe(one === ' ' || one === '\t' ? `a ${one} b` : around(one))
  expect([trimBlanks(''), trimBlanks(' \t '), trimBlanks(' \t a\t b \t'), trimBlanks('\u00a0 ')]).toEqual([
    '',
    '',
    'a\t b',
    '\u00a0',
  ])
})

test('only ASCII letters are put into lower case', () => {
  for (const one of BYTES) expect(lowerAscii(`x${one}Y`)).toBe(`x${/[A-Z]/.test(one) ? one.toLowerCase() : one}y`)
  expect(lowerAscii('WOR\u212a \u0130\u00c9\u1e9e\u017f')).toBe('wor\u212a \u0130\u00c9\u1e9e\u017f')
})
