/** Readers of protocols, each with every byte and with what JavaScript takes for a blank or for another case of a letter. */
import { describe, expect, test } from 'vitest'
import { words } from '../../../../pdp/identity/html/words/words.ts'
import { relationOf } from '../../../../pdp/server/serve/authzen/entities.ts'
import { isNoneMatch } from '../../../../pdp/server/serve/http/conditions.ts'
import { parseFilter } from '../../../../pdp/server/serve/scim/filter.ts'
import { memberOf } from '../../../../pdp/server/serve/scim/match.ts'
import { createNetworks, parseNetwork } from '../../../../pdp/shared/base/addresses.ts'
import { clientAddress } from '../../../../pdp/shared/base/client-address.ts'
import { mediaTypeOf, namesOtherCharset } from '../../../../pdp/shared/base/media-type.ts'
import { hasType } from '../../../../pdp/shared/token/jws.ts'
import { splitList } from '../../../../sidecar/http/fields.ts'
import { asFieldBytes, BLANKS_OF_SCRIPTS, BYTES } from '../../../support/blanks.ts'

const isBlank = (one: string): boolean => one === ' ' || one === '\t'
const ODD = [...BYTES, ...BLANKS_OF_SCRIPTS, ...BLANKS_OF_SCRIPTS.map(asFieldBytes)]
/** What a reader takes beside a text as if it were not there. */
const ignored = (reads: (beside: (text: string) => string) => boolean): readonly string[] => [
  ...new Set(ODD.filter((one) => reads((text) => `${text}${one}`) || reads((text) => `${one}${text}`))),
]
const BLANKS = ['\t', ' ']

describe('only space and tab may stand beside', () => {
  const trusted = createNetworks([parseNetwork('10.0.0.1')])
  const addressOf = (value: string): string =>
    clientAddress(['X-Forwarded-For', value], { remoteAddress: '10.0.0.1', trusted })

  test.each<[string, (beside: (text: string) => string) => boolean, readonly string[]]>([
    ['a media type', (beside) => mediaTypeOf(beside('Application/JSON')) === 'application/json', [...BLANKS, ';']],
    ['a charset', (beside) => !namesOtherCharset(`a/b; charset=${beside('utf-8')}`), [...BLANKS, ';']],
    ['a member of a list', (beside) => splitList(beside('Close')).includes('close'), [...BLANKS, ',']],
    [
      'an address of a proxy',
      (beside) => addressOf(`192.0.2.1, ${beside('192.0.2.7')}`) === '192.0.2.7',
      [...BLANKS, ','],
    ],
    [
      'a language',
      (beside) => words({ headers: { 'accept-language': beside('de') } }).lang === 'de',
      [...BLANKS, '-', ','],
    ],
  ])('%s', (_, reads, wanted) => {
    expect([...ignored(reads)].sort()).toEqual([...wanted].sort())
  })

  test('a list of entity tags', () => {
    for (const one of ODD.filter((odd) => !isBlank(odd))) {
      const reads = (text: string): boolean => !isNoneMatch({ 'if-none-match': text }, '"a"')
      expect(() => reads(`${one}"a"`)).toThrow()
      expect(() => reads(`"a"${one}`)).toThrow()
    }
    expect(isNoneMatch({ 'if-none-match': ' \t"a" ' }, '"a"')).toBe(false)
  })

  test('a filter of a directory', () => {
    const plain = parseFilter('active eq true')
    for (const one of ODD.filter((odd) => !isBlank(odd) && !/[A-Za-z$]/.test(odd))) {
      for (const text of [`${one}active eq true`, `active${one}eq true`, `active eq${one}true`])
        expect(() => parseFilter(text)).toThrow()
    }
    expect(parseFilter(' \tactive\teq  true ')).toEqual(plain)
  })
})

test('no letter beyond ASCII is another case of a letter', () => {
  expect(mediaTypeOf('application/\u212ab')).toBe('application/\u212ab')
  expect(relationOf('LOC\u212a', 'route')).not.toBe('lock')
  expect(hasType({ typ: '\u212awt' }, 'kwt')).toBe(false)
  expect(hasType({ typ: 'AT+JWT' }, 'at+jwt')).toBe(true)
  expect(memberOf({ 'nic\u212aName': 'x' }, 'nickName')).toBeUndefined()
  expect(memberOf({ NICKNAME: 'x' }, 'nickName')).toBe('x')
  expect(splitList('\u212aeep-Alive')).toEqual(['\u212aeep-alive'])
})
