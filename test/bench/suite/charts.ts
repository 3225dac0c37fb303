/** The pictures of the suite: one of bars for each group that has something to compare with. */
import { barChart } from '../report/chart.ts'
import { short, spreadOf } from '../report/figures.ts'
import type { Group, Part } from './rows.ts'

const NAMES: { readonly [part: string]: readonly string[] } = {
  engine: ['bench-in-process', 'bench-engines'],
  transports: ['bench-transports'],
  identity: ['bench-identity'],
  'sidecar and doors': ['bench-doors'],
}

/** Names of files, and what they contain. */
export const charts = (parts: readonly Part[]): readonly (readonly [name: string, svg: string])[] =>
  parts.flatMap(({ name, groups }) =>
    groups.map((group, at) => [NAMES[name]?.[at] ?? `bench-${at}`, chart(name, group)] as const),
  )

function chart(part: string, { unit, rows }: Group): string {
  const bars = rows
    .map(({ name, ours, perSecond }) => {
      const { median } = spreadOf(perSecond)
      return { name, ours, value: median, shown: short(median) }
    })
    .sort((a, b) => b.value - a.value)
  const values = bars.map(({ value }) => value)
  const logarithmic = Math.max(...values) > 50 * Math.min(...values)
  const title = `${part}: ${unit} per second${logarithmic ? ', logarithmic' : ''}`
  const description = `${bars.map(({ name, shown }) => `${name}: ${shown}`).join('; ')}.`
  return barChart(bars, { title, description, logarithmic })
}
