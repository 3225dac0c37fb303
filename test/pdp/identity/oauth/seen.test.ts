/** A browser's name in a few words, whatever it sends. */
import { expect, test } from 'vitest'
import { browserName } from '../../../../pdp/identity/oauth/seen.ts'

const WEBKIT = 'AppleWebKit/605.1.15 (KHTML, like Gecko)'
const CHROME = 'AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0'

test.each([
  ['Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0', 'Firefox 128, Linux'],
  [`Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${CHROME} Safari/537.36`, 'Chrome 126, Windows'],
  [`Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${CHROME} Safari/537.36 Edg/126.0.0.0`, 'Edge 126, Windows'],
  [`Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) ${WEBKIT} Version/17.5 Safari/605.1.15`, 'Safari 17, macOS'],
  [
    `Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) ${WEBKIT} Version/17.5 Mobile/15E148 Safari/604.1`,
    'Safari 17, iPhone',
  ],
  [
    `Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) ${WEBKIT} CriOS/126.0.1 Mobile/15E148 Safari/604.1`,
    'Chrome 126, iPhone',
  ],
  [`Mozilla/5.0 (Linux; Android 14; Pixel 8) ${CHROME} Mobile Safari/537.36`, 'Chrome 126, Android'],
  [
    `Mozilla/5.0 (Linux; Android 14) AppleWebKit/537.36 SamsungBrowser/25.0 Chrome/121.0 Mobile Safari/537.36`,
    'Samsung Internet 25, Android',
  ],
  [`Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) ${CHROME} Safari/537.36`, 'Chrome 126, ChromeOS'],
])('%s', (agent, name) => {
  expect(browserName(agent)).toBe(name)
})

test.each([
  ['nothing', undefined, null],
  ['an empty field', '', null],
  ['a program', 'curl/8.5.0', null],
  ['a system alone', 'Something (Windows NT 10.0)', 'Windows'],
  ['markup in place of a version', 'Firefox/<script>alert(1)</script>', null],
  ['a version without end', `Firefox/${'9'.repeat(10_000)}`, 'Firefox 9999'],
  ['a name after a text without end', `${'a'.repeat(100_000)} Firefox/128.0`, null],
  ['words that repeat', 'Version/1. '.repeat(10_000), null],
])('of %s nothing is shown that is no name of ours', (_, agent, name) => {
  expect(browserName(agent)).toBe(name)
})
