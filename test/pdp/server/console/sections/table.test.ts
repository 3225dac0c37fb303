/** The table of the console: sorted, paged and exported by its address alone. */
import { expect, test } from 'vitest'
import { countOf, linesOf, type Place, pageByPage, table } from '../../../../../pdp/server/console/sections/table.ts'
import { html } from '../../../../../pdp/shared/base/html.ts'

const at = (url: string | null): Place => ({
  url,
  query: (name) => new URL(url ?? '/', 'http://a').searchParams.get(name) ?? '',
  tables: new Map(),
})
const ROWS = [
  [html`<a href="/x"><bdi>doc:10</bdi></a>`, '3', 'Delete'],
  ['doc:9', '20', 'Delete'],
]
const COLUMNS = ['Name', { title: 'Number', number: true }, 'Do'] as const
const shown = (
  place: Place,
  rows: Parameters<typeof table>[1]['rows'] = ROWS,
  more: { readonly next?: string; readonly total?: Parameters<typeof table>[1]['total'] } = {},
) => table(place, { id: 'docs', caption: 'Docs', columns: COLUMNS, rows, empty: html`<p>none</p>`, ...more }).toString()
const names = (page: string): readonly string[] => page.match(/doc:\d+/g) ?? []
const MANY = Array.from({ length: 250 }, (_, i) => [`doc:${i}`, '1', ''])

test('sorts by the column that the address names, numbers as numbers, up and down', () => {
  expect(names(shown(at('/console/x?sort=docs.0')))).toEqual(['doc:9', 'doc:10'])
  expect(names(shown(at('/console/x?sort=docs.-0')))).toEqual(['doc:10', 'doc:9'])
  expect(names(shown(at('/console/x?sort=docs.1')))).toEqual(['doc:10', 'doc:9'])
  expect(shown(at('/console/x?org=a&sort=docs.1'))).toContain(
    'aria-sort="ascending"><a href="/console/x?org=a&amp;sort=docs.-1"',
  )
})

test.each(['others.0', 'docs.2', 'docs.99', 'docs', 'docs.', 'docs.0x', '__proto__.0', 'docs.--0'])(
  'keeps the order of the rows for sort=%s',
  (sort) => {
    expect(names(shown(at(`/console/x?sort=${sort}`)))).toEqual(['doc:10', 'doc:9'])
  },
)

test('says how many rows there are, and shows them a hundred at a time', () => {
  const page = shown(at('/console/x'), MANY)
  expect(page).toContain('<span class="count">250</span>')
  expect([names(page).length, page.includes('Page 1 of 3')]).toEqual([100, true])
  const last = shown(at('/console/x?at=docs.3'), MANY)
  expect([names(last).length, last.includes('Page 3 of 3'), last.includes('Next page')]).toEqual([50, true, false])
  expect(shown(at('/console/x?at=docs.99'), MANY)).toContain('Page 3 of 3')
})

test('numbers the pages of a list that comes page by page, and knows the last', () => {
  const first = shown(at('/console/x'), ROWS, { next: '/console/x?page=abc' })
  expect(first).toMatch(
    /<span class="count">2\+<\/span>[\s\S]*Page 1 <a href="\/console\/x\?page=abc&amp;at=docs.2">Next page/,
  )
  expect(shown(at('/console/x?page=abc&at=docs.2'))).toContain('Page 2 of 2')
})

test.each([
  [250, '250', 'Page 2 of 3 '],
  [1_000, '1000', 'Page 2 of 10 '],
  [1_001, '1000+', 'Page 2 of more than 10 '],
])('says how many pages a list of %i rows has that comes page by page', async (count, rows, pages) => {
  const place = at('/console/x?page=abc&at=docs.2')
  const total = await countOf(place, { id: 'docs', next: null, pageSize: 100 }, async ({ countMax }) =>
    Array.from({ length: Math.min(count, countMax) }),
  )
  const page = shown(place, ROWS, { next: '/console/x?page=def', ...(total === undefined ? {} : { total }) })
  expect(page).toContain(`<span class="count">${rows}</span>`)
  expect(page).toContain(pages)
})

test.each([
  [250, '250', 'Page 2 of 5 '],
  [1_300, '1000+', 'Page 2 of more than 16 '],
])('counts %i rows that an API gives page by page, and no page beyond the bound', async (count, rows, pages) => {
  const place = at('/console/x?page=abc&at=docs.2')
  const froms: (number | null)[] = []
  const read = pageByPage(async (from: number | null) => {
    froms.push(from)
    const end = Math.min(count, (from ?? 0) + 100)
    return { items: Array.from({ length: end - (from ?? 0) }), next: end === count ? null : end }
  })
  const total = await countOf(place, { id: 'docs', next: '/console/x?page=def', pageSize: 60 }, read)
  const page = shown(place, ROWS, { next: '/console/x?page=def', total })
  expect([page.includes(`<span class="count">${rows}</span>`), page.includes(pages)]).toEqual([true, true])
  expect(froms).toHaveLength(Math.min(11, Math.ceil(count / 100)))
})

test('counts nothing where all rows are on one page', async () => {
  const asked: unknown[] = []
  const read = async (page: unknown) => asked.splice(0, 0, page)
  expect(await countOf(at('/console/x'), { id: 'docs', next: null, pageSize: 100 }, read)).toBeUndefined()
  expect(asked).toEqual([])
})

test('a file has the cells as text, without columns that only act, and says when it is a part', () => {
  const place = at('/console/x?csv=docs')
  shown(place, [[html`<bdi>a &amp; b</bdi>`, '3', html`<a href="/">Delete</a>`]])
  const whole = place.tables.get('docs')
  expect(whole && linesOf(whole)).toEqual([
    ['Name', 'Number'],
    ['a & b', '3'],
  ])
  shown(place, ROWS, { next: '/console/x?page=2' })
  const part = place.tables.get('docs')
  expect(part && linesOf(part).at(-1)).toEqual(['# not complete: one page of several'])
})

test('offers nothing by address on the answer to a form, which has none', () => {
  expect(shown(at(null), MANY)).not.toMatch(/href="[^"]*(?:sort|csv|at)=/)
})

test.each([
  ['fails', () => Promise.reject(new Error('canceling statement due to statement timeout'))],
  ['is late', () => new Promise<never>(() => undefined)],
])('is shown without a number of pages when its count %s', async (_, read) => {
  expect(
    await countOf(at('/console/x'), { id: 'docs', next: '/console/x?page=2', pageSize: 100 }, read),
  ).toBeUndefined()
})
