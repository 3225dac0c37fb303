/** Which cookies are the sidecar's, and how those are removed that somebody else planted. */
import { describe, expect, test } from 'vitest'
import { OWN_COOKIES, removals, separateCookies, withoutOwnCookies } from '../../../sidecar/http/cookies.ts'
import { asFieldBytes, BLANKS_OF_SCRIPTS, BYTES } from '../../support/blanks.ts'

const NAME = `${OWN_COOKIES}session`
const separated = (...values: readonly string[]): ReturnType<typeof separateCookies> =>
  separateCookies(values.flatMap((value) => ['Cookie', value]))
const isBlank = (one: string): boolean => one === ' ' || one === '\t'

describe('a cookie is the sidecar’s only by exactly its name', () => {
  test('with no byte before it but space and tab', () => {
    for (const one of BYTES.filter((byte) => byte !== ';')) {
      const { own, planted } = separated(`a=1; ${one}${NAME}=x`)
      expect([one, own.has(NAME)]).toEqual([one, isBlank(one)])
      expect(planted.includes(NAME)).toBe(false)
    }
  })

  test('with no byte after it but space and tab', () => {
    for (const one of BYTES.filter((byte) => byte !== ';' && byte !== '='))
      expect([one, separated(`${NAME}${one}=x`).own.has(NAME)]).toEqual([one, isBlank(one)])
  })

  test('with no Unicode blank around it, and in no other case', () => {
    for (const one of BLANKS_OF_SCRIPTS.filter((blank) => !isBlank(blank)).flatMap((blank) => [
      blank,
      asFieldBytes(blank),
    ]))
      for (const name of [`${one}${NAME}`, `${NAME}${one}`, `${one}${NAME}${one}`])
        expect(separated(`${name}=x`).own.has(NAME)).toBe(false)
    for (const name of [NAME.toLowerCase(), NAME.toUpperCase(), NAME.replace('s', '\u017f'), `"${NAME}"`, `$${NAME}`])
      expect(separated(`${name}=x`).own.has(NAME)).toBe(false)
  })

  test('and keeps every byte of its value but space and tab around it', () => {
    for (const one of BYTES.filter((byte) => byte !== ';'))
      expect(separated(`${NAME}=${one}x${one}`).own.get(NAME)).toBe(isBlank(one) ? 'x' : `${one}x${one}`)
  })
})

test('a name that could pass for one of the sidecar’s reaches no service, and is named as planted', () => {
  for (const one of BYTES.filter((byte) => /[^!-~]/.test(byte) && !isBlank(byte))) {
    const { raw, own, planted } = separated(`a=1; ${one}${NAME}=x;b=\u00a0`)
    expect([raw, own.size, planted]).toEqual([['Cookie', 'a=1; b=\u00a0'], 0, [`${one}${NAME}`]])
    expect(withoutOwnCookies(['set-cookie', `${one}${NAME}=x`, 'set-cookie', 'a=1'])).toEqual(['set-cookie', 'a=1'])
  }
})

test('one that came twice is not believed, and each way to read it is given', () => {
  for (const { own, readings, planted } of [
    separated(`${NAME}=1; a=1; ${NAME}=2; ${NAME}-1=3`),
    separated(`${NAME}=1`, `${NAME}-1=3; ${NAME}\t=2`),
  ]) {
    expect([[...own], planted]).toEqual([[[`${NAME}-1`, '3']], [NAME]])
    expect(readings.map((reading) => [reading.get(NAME), reading.get(`${NAME}-1`)])).toEqual([
      ['1', '3'],
      ['2', '3'],
    ])
  }
  expect(separated(...Array.from({ length: 500 }, (_, at) => `${NAME}=${at}`)).readings.length).toBe(4)
})

describe('a planted cookie is removed', () => {
  const at = { hostname: 'app.example.test', path: '/docs/1' }
  const forms = (lines: readonly string[]): string[] =>
    lines.map((line) => /; Path=([^;]*)(?:; Domain=([^;]*))?;/.exec(line)?.slice(1).join(' ') ?? '')

  test('at each path and domain that this address gets cookies of, with and without a partition', () => {
    const lines = removals([`\u00a0${NAME}`], at)
    expect(lines.every((line) => line.startsWith(`\u00a0${NAME}=;`) && line.includes('Max-Age=0; Secure'))).toBe(true)
    const wanted = ['/', '/docs', '/docs/', '/docs/1'].flatMap((path) => [
      `${path} `,
      `${path} app.example.test`,
      `${path} example.test`,
    ])
    expect(forms(lines.filter((line) => !line.includes('Partitioned'))).sort()).toEqual(wanted.sort())
    expect(new Set(forms(lines.filter((line) => line.includes('Partitioned'))))).toEqual(new Set(wanted))
  })

  test('without a domain that no browser takes for an address or a single label', () => {
    for (const hostname of ['127.0.0.1', '[::1]', 'localhost'])
      expect(new Set(forms(removals(['x'], { hostname, path: '/' })))).toEqual(new Set(['/ ', `/ ${hostname}`]))
  })

  test('by no more bytes than the head of an answer has room for, the shortest paths first', () => {
    const names = Array.from({ length: 200 }, (_, n) => `\u00a0${NAME}-${n}`)
    const lines = removals(names, { hostname: 'a.b.c.d.example.test', path: `/${'p/'.repeat(2_000)}` })
    expect(lines.join('').length).toBeLessThanOrEqual(3_000)
    expect(lines.length).toBeGreaterThan(20)
    expect(forms(lines)[0]).toBe('/ ')
  })

  test('by lines that are whole: a path ends before a semicolon', () => {
    expect(new Set(forms(removals(['x'], { hostname: 'localhost', path: '/a;Domain=evil.test/b' })))).toEqual(
      new Set(['/ ', '/ localhost', '/a ', '/a localhost']),
    )
  })
})
