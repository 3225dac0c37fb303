/** A path that could be read in very many ways is refused before it is read in each of them. */
import { expect, test } from 'vitest'
import { RequestError } from '../../../sidecar/request/errors.ts'
import { judge } from '../support/judge.ts'

const WIDE = 'GET /**: scope a'
const codeOf = (routes: string, target: string): string => {
  try {
    return judge(routes, `GET ${target}`)
  } catch (err) {
    return err instanceof RequestError ? err.code : `${err}`
  }
}

test.each([
  [WIDE, '/a.pl'.repeat(1_600)],
  [WIDE, '/a.pl'.repeat(1_200)],
  [WIDE, '/.pl'.repeat(2_000)],
  [WIDE, '/a.pl'.repeat(9).concat('/x')],
  [WIDE, `/${'a.pl%2F'.repeat(300)}x`],
  [WIDE, `/${'a.pl%EF%BC%8F'.repeat(12)}x`],
  [WIDE, '/a.php;x'.repeat(9).concat('/x')],
  [WIDE, '/cgi-bin/a'.repeat(9).concat('/x')],
  [`GET /public/**: public\n${WIDE}`, `/public${'/a.pl'.repeat(1_600)}`],
  [`${WIDE}\nGET /admin/index.html: scope b`, '/.pl'.repeat(2_000)],
  [`${WIDE}\nGET /admin.html: scope b`, '/admin/a.pl'.repeat(100)],
  [`${WIDE}\nGET /admin.html: scope b`, '/admin/a.pl'.repeat(150)],
  [`${WIDE}\nGET /robots.txt: public`, '/robots/a.pl'.repeat(200)],
  [`${WIDE}\nGET /robots.txt: public`, '/robots'.repeat(9)],
  [
    `${WIDE}\n${Array.from({ length: 200 }, (_, n) => `GET /index.x${n}: public`).join('\n')}`,
    '/a.pl/b.pl/c.pl/d.pl/index',
  ],
])('path %# is too complex', (routes, target) => {
  expect(codeOf(routes, target)).toBe('path_too_complex')
})

test.each([
  [WIDE, '/a.pl'.repeat(8).concat('/x')],
  [WIDE, '/x'.repeat(256)],
  [`${WIDE}\nGET /robots.txt: public`, '/robots'.repeat(8)],
  [WIDE, `/${':$'.repeat(4_000)}%E2%80%A8`],
  [WIDE, `/${'.'.repeat(8_000)}x`],
])('path %# is judged', (routes, target) => {
  expect(codeOf(routes, target)).toBe('GET /**')
})

test('a script behind many names is still found', () => {
  expect(codeOf(`${WIDE}\nGET /admin.php: scope b`, `/admin.php${'/x'.repeat(200)}`)).toBe('refused')
})

test.each([
  ['a line separator behind the question mark', '/admin%EF%BC%9Fa%E2%80%A8b'],
  ['a line separator behind the format', '/admin.json%E2%80%A8b'],
  ['a line separator in the name of a stream', '/admin::$DATA%E2%80%A8'],
])('%s hides no reading', (_, target) => {
  expect(codeOf('GET /{a}: public\nGET /admin: scope b', target)).toBe('refused')
})
