/** Streams that are open while their grants are removed: when did the last byte arrive, and when did they end? */
import type { Client } from '@grpc/grpc-js'
import type { Nodes } from '../nodes/nodes.ts'
import type { Fronts } from './fronts.ts'
import { KINDS, type Kind, OPENERS } from './openers.ts'

export { KINDS }
export type StreamTrials = {
  readonly name: Kind
  readonly count: number
  /** Still open when the waiting ended: must be 0. */
  readonly open: number
  /** Ended before their grant was removed. */
  readonly lostBefore: number
  /** From the acknowledgement; 0: it came before. */
  readonly lastByteMs: readonly number[]
  readonly endMs: readonly number[]
}

const AT_A_TIME = 16
const PER_WRITE = 500
const WAIT_MS = 60_000
/** So that no process has more than so many bytes to send in a second. */
const BYTES_PER_SECOND = 4_000
const TICK_MS_MIN = 50

export async function measureStreams(
  kind: Kind,
  { nodes, fronts, count }: { readonly nodes: Nodes; readonly fronts: Fronts; readonly count: number },
): Promise<StreamTrials> {
  const ids = Array.from({ length: count }, (_, i) => `${kind.slice(0, 1).toLowerCase()}${i}`)
  const tuple = (id: string): string => `invoice:${id}#viewer@service:bench`
  const change = (body: object, node: number): Promise<void> =>
    nodes.manage('POST', '/v1/organizations/acme/relationships', body, node)
  for (let from = 0; from < count; from += PER_WRITE)
    await change({ write: ids.slice(from, from + PER_WRITE).map(tuple) }, 0)
  const token = await nodes.token()
  const clients: Client[] = []
  const port = kind === 'gRPC stream' ? fronts.grpcPort : fronts.port
  const streams = await atATime(ids, (id) => OPENERS[kind]({ port, token, id, clients }))
  const ticking = setInterval(fronts.tick, Math.max(TICK_MS_MIN, (1_000 * count) / BYTES_PER_SECOND))
  const trials = { name: kind, count, open: 0, lostBefore: 0, lastByteMs: [] as number[], endMs: [] as number[] }
  try {
    await atATime(streams, async (stream, i) => {
      const wasLost = stream.endedAtMs !== null
      if (wasLost) trials.lostBefore += 1
      await change({ delete: [tuple(ids[i] ?? '')] }, i)
      const acknowledgedMs = performance.now()
      if (wasLost) return
      await Promise.race([stream.ended, lateness()])
      if (stream.endedAtMs === null) trials.open += 1
      trials.lastByteMs.push(Math.max(0, stream.lastByteAtMs - acknowledgedMs))
      trials.endMs.push(Math.max(0, (stream.endedAtMs ?? performance.now()) - acknowledgedMs))
    })
  } finally {
    clearInterval(ticking)
    for (const stream of streams) stream.close()
    for (const client of clients) client.close()
  }
  return trials
}

const lateness = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, WAIT_MS).unref())

async function atATime<T, R>(all: readonly T[], work: (one: T, at: number) => Promise<R>): Promise<R[]> {
  const results: R[] = []
  const left = all.entries()
  const worker = async (): Promise<void> => {
    for (const [at, one] of left) results[at] = await work(one, at)
  }
  await Promise.all(Array.from({ length: AT_A_TIME }, worker))
  return results
}
