/** The table that all screens use: counted, sorted and paged without scripts, with a CSV file for each. */
import { setTimeout as delay } from 'node:timers/promises'
import { EMPTY, type Html, html, unescapeHtml } from '../../../shared/base/html.ts'

/** How many rows a page has, if all rows are at hand. */
const PAGE_SIZE = 100
/** How many rows of a list that comes page by page are counted. */
const COUNTED_MAX = 1_000
/** How long a page waits for a count, in milliseconds. */
const COUNT_MS_MAX = 1_000
/** Columns of links and buttons: they are neither sorted nor part of the CSV file. */
const ACTIONS: ReadonlySet<string> = new Set(['Ask', 'Do', 'Try'])

/** `isExtra`: left out where there is no room for it, between a phone's cards and a wide screen. */
export type Column = string | { readonly title: string; readonly number?: true; readonly isExtra?: true }
type Row = readonly (Html | string)[]
/** The part of a visit that a table needs. */
export type Place = {
  /** The page's URL with its parameters; null for the answer to a form. */
  readonly url: string | null
  query(name: string): string
  /** The tables of the page by id, for CSV files. */
  readonly tables: Map<string, Shown>
}

/** `id`: identifies the table in the page's URLs. `caption` says what the rows are; `empty` says what to do when there are none. */
export function table(
  visit: Place,
  options: {
    readonly id: string
    readonly caption: string | Html
    readonly columns: readonly Column[]
    readonly rows: readonly Row[]
    readonly empty: Html
    /** The URL of the next page, if the rows come page by page. */
    readonly next?: string | null
    /** How many rows all pages have together, from `countOf`. */
    readonly total?: Total | undefined
    /** The text of the link to the next page. */
    readonly nextText?: string
    /** The URL of a file with more rows than this page. */
    readonly file?: string
    /** Names are never shortened, because the person is about to act on them. */
    readonly isWhole?: true
  },
): Html {
  const { id, caption, columns, rows, empty, next = null, nextText = 'Next page' } = options
  const titles = columns.map((column) => (typeof column === 'string' ? column : column.title))
  const isPart = next !== null || numberAt(visit, id) > 1
  visit.tables.set(id, { titles, rows, isPart })
  const onward =
    next === null
      ? EMPTY
      : html`<a href="${withPage(next, id, numberAt(visit, id) + 1)}">${nextText}<span class="for-readers"> of: ${plain(caption)}</span></a>`
  if (rows.length === 0) return html`<div class="empty">${empty}${next === null ? EMPTY : html`<p>${onward}</p>`}</div>`
  const sort = sortIn(visit, id, titles)
  const sorted = sort === null ? rows : sortedBy(rows, sort)
  const pages = options.next === undefined ? Math.ceil(rows.length / PAGE_SIZE) : 1
  const page = pages === 1 ? 1 : Math.min(pages, numberAt(visit, id))
  const shown = options.next === undefined ? sorted.slice((page - 1) * PAGE_SIZE, page * PAGE_SIZE) : sorted
  const heads = titles.map((title, i) => head(visit, { id, title, i, column: columns[i], sort }))
  const body = shown.map((cells) => html`<tr>${cells.map((cell, i) => cellOf(columns[i], cell))}</tr>`)
  const file = options.file ?? addressWith(visit, { csv: id })
  const csv =
    file === null ? EMPTY : html` <a class="file" href="${file}" aria-label="CSV of: ${plain(caption)}">CSV</a>`
  const { total } = options
  const known = total === undefined ? `${rows.length}${next === null ? '' : '+'}` : counted(total.count, 1, '', '+')
  const count = html`<span class="count">${known}</span>`
  const foot = footOf(visit, { id, page, pages, total, onward, isFirst: !isPart, isLast: next === null })
  // The region can be focused, because it scrolls if it is too wide.
  return html`<div class="scroll" role="region" tabindex="0" aria-label="${plain(caption)}"><table${options.isWhole === true ? html` class="whole"` : EMPTY}>
<caption><span>${caption} ${count}</span>${csv}</caption><thead><tr>${heads}</tr></thead><tbody>${body}</tbody></table></div>${foot}`
}

export type Total = { readonly count: number; readonly pageSize: number }

/**
 * Counts a list that has more than one page. `read` returns the first `countMax` rows; what is beyond the bound is not counted.
 * Undefined: one page, or the count fails or is late. The page that was read is shown without it.
 */
export async function countOf(
  visit: Place,
  { id, next, pageSize }: { readonly id: string; readonly next: string | null; readonly pageSize: number },
  read: (page: { readonly after: null; readonly countMax: number }) => Promise<readonly unknown[]>,
): Promise<Total | undefined> {
  if (next === null && numberAt(visit, id) === 1) return undefined
  const counting = read({ after: null, countMax: COUNTED_MAX + 1 }).then(
    ({ length }) => ({ count: length, pageSize }),
    () => undefined,
  )
  return await Promise.race([counting, delay(COUNT_MS_MAX, undefined, { ref: false })])
}

type ReadPage<Token> = (
  from: Token | null,
) => Promise<{ readonly items: readonly unknown[]; readonly next: Token | null }>

/** Reads a list that comes page by page, for `countOf`: its first `countMax` rows, or a few more. */
export const pageByPage =
  <Token>(read: ReadPage<Token>) =>
  async ({ countMax }: { readonly countMax: number }): Promise<readonly unknown[]> => {
    const found: unknown[] = []
    let from: Token | null = null
    do {
      const { items, next }: Awaited<ReturnType<ReadPage<Token>>> = await read(from)
      found.push(...items)
      from = next
    } while (from !== null && found.length < countMax)
    return found
  }

const counted = (count: number, size: number, before: string, after: string): string =>
  count > COUNTED_MAX ? `${before}${Math.floor(COUNTED_MAX / size)}${after}` : String(Math.ceil(count / size))

export type Shown = { readonly titles: readonly string[]; readonly rows: readonly Row[]; readonly isPart: boolean }

/** The rows of the CSV file, after the titles of the columns. */
export function linesOf({ titles, rows, isPart }: Shown): readonly (readonly string[])[] {
  const kept = titles.flatMap((title, i) => (ACTIONS.has(title) ? [] : [i]))
  const lines = [titles, ...rows.map((cells) => cells.map(plain))].map((cells) => kept.map((i) => cells[i] ?? ''))
  return isPart ? [...lines, ['# not complete: one page of several']] : lines
}

const plain = (cell: string | Html): string =>
  typeof cell === 'string' ? cell : unescapeHtml(cell.toString().replaceAll(/<[^>]*>/g, '')).trim()

type Sort = { readonly column: number; readonly isDown: boolean }

function sortIn({ query }: Place, id: string, titles: readonly string[]): Sort | null {
  const [, of, down, column = ''] = /^([a-z0-9-]{1,40})\.(-?)(\d{1,2})$/.exec(query('sort')) ?? []
  const isColumn = Number(column) < titles.length && !ACTIONS.has(titles[Number(column)] ?? 'Do')
  return of === id && isColumn ? { column: Number(column), isDown: down === '-' } : null
}

function sortedBy(rows: readonly Row[], { column, isDown }: Sort): readonly Row[] {
  const order = new Intl.Collator('en', { numeric: true })
  const texts = new Map(rows.map((row) => [row, plain(row[column] ?? '')]))
  return rows.toSorted((one, other) => (isDown ? -1 : 1) * order.compare(texts.get(one) ?? '', texts.get(other) ?? ''))
}

/** The number of the table's page, from the parameter `at` in the form `ID.N`. */
function numberAt({ query }: Place, id: string): number {
  const [, of, number = ''] = /^([a-z0-9-]{1,40})\.(\d{1,6})$/.exec(query('at')) ?? []
  return of === id ? Math.max(1, Number(number)) : 1
}

const withPage = (to: string, id: string, number: number): string =>
  `${to}${to.includes('?') ? '&' : '?'}at=${id}.${number}`

/** This page's URL with other parameters; null for the answer to a form, which has no URL. */
function addressWith({ url }: Place, parameters: { readonly [name: string]: string }): string | null {
  if (url === null) return null
  const [path = '', query] = url.split('?', 2)
  const all = new URLSearchParams(query)
  for (const [key, value] of Object.entries(parameters)) all.set(key, value)
  return `${path}?${all}`
}

function head(
  visit: Place,
  of: {
    readonly id: string
    readonly title: string
    readonly i: number
    readonly column: Column | undefined
    readonly sort: Sort | null
  },
): Html {
  const { id, title, i, column, sort } = of
  const isSorted = sort?.column === i
  const to = ACTIONS.has(title)
    ? null
    : addressWith(visit, { sort: `${id}.${isSorted && !sort.isDown ? '-' : ''}${i}` })
  const text = to === null ? title : html`<a href="${to}">${title}</a>`
  const state = isSorted ? html` aria-sort="${sort.isDown ? 'descending' : 'ascending'}"` : EMPTY
  return html`<th scope="col"${classOf(column)}${state}>${text}</th>`
}

function footOf(
  visit: Place,
  of: {
    readonly id: string
    readonly page: number
    readonly pages: number
    readonly total: Total | undefined
    readonly onward: Html
    readonly isFirst: boolean
    readonly isLast: boolean
  },
): Html {
  const { id, page, pages, total, onward, isFirst, isLast } = of
  const to = (number: number, text: string): Html => {
    const address = addressWith(visit, { at: `${id}.${number}` })
    return number < 1 || number > pages || address === null ? EMPTY : html` <a href="${address}">${text}</a>`
  }
  if (pages > 1)
    return html`<p class="foot">Page ${String(page)} of ${String(pages)}${to(page - 1, 'Previous page')}${to(page + 1, 'Next page')}</p>`
  if (isFirst) return EMPTY
  const number = String(numberAt(visit, id))
  const last = isLast ? number : total === undefined ? '' : counted(total.count, total.pageSize, 'more than ', '')
  return html`<p class="foot">Page ${number}${last === '' ? EMPTY : ` of ${last}`} ${onward}</p>`
}

function classOf(column: Column | undefined): Html {
  if (column === undefined || typeof column === 'string') return EMPTY
  return column.number === true ? html` class="number"` : column.isExtra === true ? html` class="extra"` : EMPTY
}

function cellOf(column: Column | undefined, cell: Html | string): Html {
  const title = typeof column === 'string' ? column : (column?.title ?? '')
  // If the screen is too narrow for columns, each cell shows its title.
  const labelled = title === '' ? EMPTY : html` data-title="${title}"`
  return html`<td${classOf(column)}${labelled}>${cell}</td>`
}
