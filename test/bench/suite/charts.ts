/** The pictures of the suite: one of bars for each group that has something to compare with. */
import { type Bar, barChart } from '../report/chart.ts'
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
  parts.flatMap(({ name, groups }) => groups.map((group, at) => [fileOf(name, at), chart(name, group)] as const))

export const fileOf = (part: string, at: number): string => NAMES[part]?.[at] ?? `bench-${at}`

/** The same in words. */
const wordsOf = (group: Group): string =>
  `${group.unit} per second: ${barsOf(group)
    .map(({ name, shown }) => `${name}: ${shown}`)
    .join('; ')}.`

const barsOf = ({ rows }: Group): Bar[] =>
  rows
    .map(({ name, ours, perSecond }) => {
      const { median } = spreadOf(perSecond)
      return { name, ours, value: median, shown: short(median) }
    })
    .sort((a, b) => b.value - a.value)

function chart(part: string, group: Group): string {
  const bars = barsOf(group)
  const values = bars.map(({ value }) => value)
  const logarithmic = Math.max(...values) > 50 * Math.min(...values)
  const title = `${part}: ${group.unit} per second${logarithmic ? ', logarithmic' : ''}`
  return barChart(bars, { title, description: wordsOf(group), logarithmic })
}
