/** The one table, as text for a terminal and as Markdown for a page. */
import { short, spreadText } from '../report/figures.ts'
import { table } from '../report/page.ts'
import { staleText } from '../report/stale.ts'
import { fileOf } from './charts.ts'
import { against, type Group, type Part, type Row } from './rows.ts'

const HEAD = [
  '',
  'per second (spread)',
  'reference is',
  'p50, ms',
  'p99',
  'p99.9',
  'CPU for one, µs',
  'allowed after revocation',
  'does not check',
]

function cells(group: Group, row: Row): readonly string[] {
  const ratio = against(group, row)
  return [
    row.name,
    spreadText({ ...spread(row) }),
    ratio === null ? 'reference' : spreadText(ratio),
    short(row.p50Ms),
    short(row.p99Ms),
    short(row.p999Ms),
    row.cpuUs === null ? '–' : [row.cpuUs.caller, row.cpuUs.server, row.cpuUs.database].map(short).join('+'),
    row.stale === null ? '–' : staleText(row.stale),
    row.unchecked === '' ? '–' : row.unchecked,
  ]
}

const spread = ({ perSecond }: Row) => {
  const sorted = perSecond.toSorted((a, b) => a - b)
  return { median: sorted[sorted.length >> 1] ?? 0, least: sorted[0] ?? 0, most: sorted.at(-1) ?? 0 }
}

/** Prints. */
export function show(parts: readonly Part[]): void {
  for (const { name, groups, missing } of parts) {
    for (const group of groups) {
      console.log(`\n${name}: ${group.unit}; ${group.title}`)
      const rows = [HEAD, ...group.rows.map((row) => cells(group, row))]
      const widths = HEAD.map((_, at) => Math.max(...rows.map((row) => row[at]?.length ?? 0)))
      for (const row of rows)
        console.log(
          `  ${row
            .map((cell, at) => cell.padEnd(widths[at] ?? 0))
            .join('  ')
            .trimEnd()}`,
        )
    }
    if (missing.length > 0) console.log(`  missing: ${missing.join('; ')}`)
  }
}

export const markdown = (parts: readonly Part[]): string =>
  parts
    .map(({ name, groups, missing }) => {
      const tables = groups.map(
        (group, at) =>
          `${capital(group.unit)}: ${group.title}.\n\n${table(
            HEAD,
            group.rows.map((row) =>
              cells(group, row).map((cell, column) => (column === 0 && row.ours ? `**${cell}**` : cell)),
            ),
          )}\n\n![${group.unit} per second](pictures/${fileOf(name, at)}.svg)`,
      )
      const absent = missing.length === 0 ? [] : [`Not present when this was measured: ${missing.join('; ')}.`]
      return [`### ${capital(name)}`, ...tables, ...absent].join('\n\n')
    })
    .join('\n\n')

const capital = (text: string): string => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`
