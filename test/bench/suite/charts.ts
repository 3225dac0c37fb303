/** The pictures of the suite: one of bars for each group that has something to compare with. */
import { type Bar, barChart } from '../report/chart.ts'
import { ratios, short, spreadOf } from '../report/figures.ts'
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

/** More than so many times the reference gets words and no bar: the bars of all others would be too short to compare. */
const TIMES_MAX = 10

const barsOf = ({ rows, reference }: Group): Bar[] => {
  const against = rows.find(({ name }) => name === reference)?.perSecond ?? []
  return rows
    .map(({ name, ours, perSecond }) => {
      const { median } = spreadOf(perSecond)
      const times = ratios(perSecond, against).median
      const beside =
        name === reference || against.length === 0
          ? ''
          : ` (${times < 0.1 ? `1/${short(1 / times)}` : `${short(times)}×`})`
      return { name, ours, value: median, shown: `${short(median)}${beside}`, isDrawn: !(times > TIMES_MAX) }
    })
    .sort((a, b) => b.value - a.value)
}

const chart = (part: string, group: Group): string =>
  barChart(barsOf(group), {
    title: `${part}: ${group.unit} per second`,
    description: wordsOf(group),
    note: `in brackets: times ${group.reference}`,
  })
