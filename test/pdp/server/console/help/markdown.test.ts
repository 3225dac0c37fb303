/** The books as HTML: what the text says, and no markup that our template did not make. */
import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { parsePage } from '../../../../../pdp/server/console/help/markdown.ts'
import { HELP } from '../../../../../pdp/server/console/help/targets.ts'
import { SCREENS } from '../../../../../pdp/server/console/screens.ts'
import { REASONS } from '../../../../../pdp/shared/domain/reasons.ts'

const shown = (text: string): string =>
  parsePage(text, (href) => (href.startsWith('https:') ? href : null)).body.toString()
const BOOKS = readdirSync('docs').filter((name) => name.endsWith('.md'))
const idsOf = (name: string): readonly string[] =>
  [...shown(readFileSync(`docs/${name}`, 'utf8')).matchAll(/ id="([^"]*)"/g)].map(([, id = '']) => id)

test.each([
  ['# A `b`\n\n## Say *this*, now!\n', '<h2 id="say-this-now">Say <em>this</em>, now!</h2>'],
  ['a **b** `c<d>` & "e"', '<p>a <strong>b</strong> <code>c&lt;d&gt;</code> &amp; &quot;e&quot;</p>'],
  ['```sh\necho <a> & b\n```', '<pre tabindex="0"><code>echo &lt;a&gt; &amp; b</code></pre>'],
  ['1. a\n2. b\n', '<ol><li>a</li><li>b</li></ol>'],
  ['[a](https://a.test/?b&c)', '<p><a href="https://a.test/?b&amp;c">a</a></p>'],
])('%j is shown as it is meant', (text, html) => {
  expect(shown(text)).toBe(html)
})

test('a cell of a table says its column, for phones', () => {
  expect(shown('| a | `b` |\n|---|---|\n| c \\| d | e |\n')).toContain(
    '<tr><td data-title="a">c | d</td><td data-title="b">e</td></tr>',
  )
})

test.each([
  '<script>alert(1)</script>',
  'a <img src=x onerror=alert(1)> b',
  '[a](javascript:alert(1))',
  '![a](javascript:alert(1))',
  '![" onerror="alert(1)](https://a.test/x)',
  '[a](https://a.test/"onclick="alert(1))',
  '```"><script>\n</code></pre><script>\n```',
  '<!-- a --><script>alert(1)</script>',
  '# <script>',
  '| <b> |\n|---|\n| "><i> |\n',
])('%j makes no markup of its own', (text) => {
  expect(shown(text)).not.toMatch(/<(?:script|img src=x|b>|i>)|href="javascript|src="javascript|"[^"]*" on\w+="/)
})

test('a comment is not shown', () => {
  expect(shown('a\n\n<!-- npm run bench -->\n\nb')).toBe('<p>a</p><p>b</p>')
})

test.each(BOOKS)('every section of %s has an anchor of its own', (name) => {
  const ids = idsOf(name)
  expect(ids).toEqual([...new Set(ids)])
  for (const taken of ['main', 'find', 'screens', 'org']) expect(ids).not.toContain(taken)
})

test('every screen has a section in the book about the console', () => {
  const screens = SCREENS.map(({ path }) => path).filter((path) => !path.startsWith('help'))
  expect(Object.keys(HELP).toSorted()).toEqual(screens.toSorted())
  expect(idsOf('console.md')).toEqual(expect.arrayContaining(Object.values(HELP)))
})

test('the book about the console explains each reason', () => {
  const text = readFileSync('docs/console.md', 'utf8')
  for (const [code, means] of Object.entries(REASONS)) expect(text).toContain(`| \`${code}\` | ${means} |`)
})
