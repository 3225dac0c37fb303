/** `npm run bench -- growth [--short | --long] [--write]`: latency and memory as each thing grows by tens, with a chart each. */
import { parseArgs } from 'node:util'
import { lineChart } from '../report/chart.ts'
import { short } from '../report/figures.ts'
import { machine, table, writeBlock, writePicture } from '../report/page.ts'
import type { Axis, Point } from './axis.ts'
import { growServed } from './served.ts'
import { growStored } from './stored.ts'

const COMMAND = 'npm run bench -- growth --write'

export async function bench(words: readonly string[]): Promise<void> {
  const options = { short: { type: 'boolean' }, long: { type: 'boolean' }, write: { type: 'boolean' } } as const
  const { values } = parseArgs({ args: [...words], options })
  const scale = values.short === true ? 'short' : values.long === true ? 'long' : 'usual'
  const on = machine()
  const axes: Axis[] = []
  for (const grow of [growStored, growServed])
    for (const axis of await grow(scale)) {
      axes.push(axis)
      console.log(`${text(axis)}\n`)
    }
  if (values.write !== true) return
  const shown = axes.map(
    (axis) => `**${axis.name}** (${axis.what}): ${ends(axis)}.\n\n![${axis.name}](pictures/${axis.file}.svg)`,
  )
  writeBlock('docs/benchmarks.md', COMMAND, `Measured ${on}.\n\n${shown.join('\n\n')}`)
  for (const axis of axes) writePicture(axis.file, picture(axis))
}

const text = ({ name, what, x, points }: Axis): string => {
  const rows = points.map((point) => [
    point.x.toLocaleString('en'),
    `${short(point.p50Ms)} ms`,
    `${short(point.p99Ms)} ms`,
    `${short(point.memoryMb)} MB`,
  ])
  return `**${name}**: ${what}.\n\n${table([x, 'p50', 'p99', 'memory'], rows)}`
}

/** The least and the most; the picture has what lies between. */
const ends = ({ x, points }: Axis): string => {
  const [first, last] = [points[0], points.at(-1)]
  if (first === undefined || last === undefined) return `no ${x}`
  const both = (of: (point: Point) => number, unit: string): string =>
    `${short(of(first))} to ${short(of(last))} ${unit}`
  return `from ${first.x.toLocaleString('en')} to ${last.x.toLocaleString('en')} ${x}, p50 ${both(({ p50Ms }) => p50Ms, 'ms')}, p99 ${both(({ p99Ms }) => p99Ms, 'ms')}, memory ${both(({ memoryMb }) => memoryMb, 'MB')}`
}

function picture(axis: Axis): string {
  const { name, x, points } = axis
  const lines = [
    { name: 'p50, ms', points: points.map((point) => [point.x, point.p50Ms] as const) },
    { name: 'p99, ms', points: points.map((point) => [point.x, point.p99Ms] as const) },
    { name: 'memory, MB', points: points.map((point) => [point.x, point.memoryMb] as const) },
  ]
  return lineChart(lines, { title: name, description: `${name}: ${ends(axis)}.`, x, y: 'ms, MB' })
}
