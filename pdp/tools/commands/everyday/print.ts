/** Answers as a table for people, or as JSON for programs. */
import { visible } from '../../../shared/base/invisible.ts'

export type Item = { readonly [name: string]: unknown }

/** `next_page_token`: null on the last page. */
export type ItemsPage = { readonly items: readonly Item[]; readonly next_page_token: string | null }

/** One line per item, below the columns' names. */
export function table(items: readonly Item[], columns: readonly string[]): string {
  const rows = [
    columns.map((name) => name.toUpperCase()),
    ...items.map((item) => columns.map((name) => cell(item[name]))),
  ]
  const widths = columns.map((_, i) => Math.max(...rows.map((row) => row[i]?.length ?? 0)))
  return rows
    .map(
      (row) =>
        `${row
          .map((text, i) => text.padEnd(widths[i] ?? 0))
          .join('  ')
          .trimEnd()}\n`,
    )
    .join('')
}

function cell(value: unknown): string {
  if (value === null || value === undefined) return '-'
  if (Array.isArray(value)) return visible(value.join(' '))
  return visible(typeof value === 'object' ? JSON.stringify(value) : String(value))
}

/** `columns`: the columns of the table. */
export const show = (
  items: readonly Item[],
  { json, columns }: { json: boolean; columns: readonly string[] },
): string => (json ? `${JSON.stringify(items, null, 2)}\n` : table(items, columns))
