/**
 * `npm run bench -- revocation [--short | --long] [--write]`: from an acknowledged revocation to the last request that is let
 * through and to the last byte of open streams, on three PDPs through sidecars and a door; `-- revocation signals [ROUNDS]`:
 * from another issuer's event. A request that is sent after the acknowledgement and let through is a bug: it ends with 1.
 */
import { execFileSync } from 'node:child_process'
import { parseArgs } from 'node:util'
import { findBinaries } from '../../doors/binaries.ts'
import { type Nodes, startNodes } from '../nodes/nodes.ts'
import { latencyOf, short } from '../report/figures.ts'
import { machine, table, writeBlock } from '../report/page.ts'
import { startFronts } from './fronts.ts'
import { measureRequests, type RequestTrials } from './requests.ts'
import { benchSignals } from './signals.ts'
import { KINDS, measureStreams, type StreamTrials } from './streams.ts'

const COMMAND = 'npm run bench -- revocation --write'
const NODES = 3
const EXTENTS = {
  short: { trials: 200, streams: 50 },
  usual: { trials: 1_000, streams: 300 },
  long: { trials: 10_000, streams: 10_000 },
} as const
const FIGURES = ['p50', 'p99', 'longest']
/** A stream has two in the sidecar and two in this process: with its client and with its service. */
const DESCRIPTORS_OF_A_STREAM = 2
const DESCRIPTORS_OF_THE_REST = 1_000

export async function bench(words: readonly string[]): Promise<void> {
  if (words[0] === 'signals') return benchSignals(words.slice(1))
  const options = { short: { type: 'boolean' }, long: { type: 'boolean' }, write: { type: 'boolean' } } as const
  const { values } = parseArgs({ args: [...words], options })
  const extent = EXTENTS[values.short === true ? 'short' : values.long === true ? 'long' : 'usual']
  const on = machine()
  const streamsMax = streamsPossible()
  const isCut = extent.streams > streamsMax
  const nodes = await startNodes(NODES)
  try {
    const { requests, streams } = await measure(nodes, { ...extent, streams: Math.min(extent.streams, streamsMax) })
    const text = `${report(requests, streams)}${isCut ? `\n\n${CUT}` : ''}`
    console.log(`${on}\n\n${text}`)
    if (values.write === true) writeBlock('docs/benchmarks.md', COMMAND, `Measured ${on}.\n\n${text}`)
    if (requests.some(({ after }) => after > 0) || streams.some(({ open }) => open > 0)) process.exitCode = 1
  } finally {
    await nodes.stop()
  }
}

const CUT = 'More streams than these were not possible here: a process may open too few files (`ulimit -Hn`).'

/** How many streams the limit on open files of a process leaves room for. Programs that this one starts have the same limit. */
function streamsPossible(): number {
  const limit = execFileSync('sh', ['-c', 'ulimit -Hn'], { encoding: 'utf8' }).trim()
  if (limit === 'unlimited') return Number.POSITIVE_INFINITY
  return Math.max(1, Math.floor((Number(limit) - DESCRIPTORS_OF_THE_REST) / DESCRIPTORS_OF_A_STREAM))
}

async function measure(nodes: Nodes, extent: { readonly trials: number; readonly streams: number }) {
  const fronts = await startFronts(nodes, findBinaries(process.env, { make: false }))
  try {
    const requests = await measureRequests(nodes, fronts.places, extent.trials)
    const streams: StreamTrials[] = []
    for (const kind of KINDS) streams.push(await measureStreams(kind, { nodes, fronts, count: extent.streams }))
    return { requests, streams }
  } finally {
    await fronts.stop()
  }
}

function report(requests: readonly RequestTrials[], streams: readonly StreamTrials[]): string {
  const figures = (timesMs: readonly number[]): readonly string[] => {
    const { p50, p99, max } = latencyOf(timesMs)
    return [p50, p99, max].map((ms) => `${short(ms)} ms`)
  }
  const rows = requests.map(({ name, trials, after, lastMs }) => [name, trials, after, ...figures(lastMs)])
  const cells = streams.flatMap(({ name, count, open, lostBefore, lastByteMs, endMs }) => [
    [`${name}: last byte`, count, open, lostBefore, ...figures(lastByteMs)],
    [`${name}: end`, count, open, lostBefore, ...figures(endMs)],
  ])
  return [
    'Requests, sent one after another while the grant is removed: so long after the acknowledgement came the last answer that let one through (0: before it).',
    table(['', 'revocations', 'sent after it and let through', ...FIGURES], rows),
    'Open streams that carry data all the time: so long after the acknowledgement came the last byte, and the end.',
    table(['', 'streams', 'never ended', 'ended before', ...FIGURES], cells),
  ].join('\n\n')
}
