/** Calls that run while what allows them is taken away: when came the last byte, and when the error? */
import { once } from 'node:events'
import { request } from 'node:http'
import type { BenchPdp } from '../bench/sidecar/pdp.ts'
import { openGate, relate } from './gate.ts'
import type { Server } from './servers.ts'

export type Running = {
  readonly name: string
  readonly count: number
  /** Without an error that has the id of its call as the last event. */
  readonly silent: number
  /** From the acknowledged revocation; 0: it came before. */
  readonly lastByteMs: readonly number[]
  readonly endMs: readonly number[]
}
type Stream = { last: number; ended: number | null; text: string; readonly end: Promise<unknown> }

const PER_WRITE = 500
const AT_A_TIME = 16

/** One after another by its own grant, and all at once by a membership. */
export async function measureRunning(
  server: Server,
  { pdp, token, count }: { readonly pdp: BenchPdp; readonly token: string; readonly count: number },
): Promise<readonly Running[]> {
  const gate = await openGate({ pdp, server }, { tools: server.play.rules })
  const ids = Array.from({ length: count }, (_, at) => `running-${at}`)
  const own = ids.map((id) => `thing:${id}#viewer@service:bench`)
  const shared = ids.map((id) => `thing:${id}#viewer@group:readers#member`)
  const change = (body: object): Promise<void> => pdp.manage('POST', '/v1/organizations/acme/relationships', body)
  const writeAll = async (grants: readonly string[]): Promise<void> => {
    for (let at = 0; at < count; at += PER_WRITE) await change({ write: grants.slice(at, at + PER_WRITE) })
  }
  const openAll = async (): Promise<Stream[]> => {
    const streams: Stream[] = []
    await atATime(ids, async (id, at) => {
      streams[at] = await open(gate.port, token, { id, at })
    })
    return streams
  }
  try {
    await writeAll(own)
    const each = await openAll()
    const acknowledged: number[] = []
    await atATime(own, async (grant, at) => {
      await change({ delete: [grant] })
      acknowledged[at] = performance.now()
      await each[at]?.end
    })
    await change({ write: ['group:readers#member@service:bench'] })
    await writeAll(shared)
    const all = await openAll()
    await relate(pdp, 'delete', ['group:readers#member'])
    const atMs = performance.now()
    await Promise.all(all.map(({ end }) => end))
    return [
      report('one revocation for each call', each, (at) => acknowledged[at] ?? 0),
      report('one revocation for all calls', all, () => atMs),
    ]
  } finally {
    await gate.stop()
  }
}

const report = (name: string, streams: readonly Stream[], since: (at: number) => number): Running => ({
  name,
  count: streams.length,
  silent: streams.filter(({ text }, at) => !hasError(text, at)).length,
  lastByteMs: streams.map(({ last }, at) => Math.max(0, last - since(at))),
  endMs: streams.map(({ ended }, at) => Math.max(0, (ended ?? Number.POSITIVE_INFINITY) - since(at))),
})

function hasError(text: string, id: number): boolean {
  const last = text.trim().split('\n\n').at(-1) ?? ''
  return last.includes(`"id":${id},"error":{"code":403`) && last.includes('permission_denied')
}

/** Resolves when the tool runs. */
async function open(
  port: number,
  token: string,
  { id, at }: { readonly id: string; readonly at: number },
): Promise<Stream> {
  const body = JSON.stringify({
    jsonrpc: '2.0',
    id: at,
    method: 'tools/call',
    params: { name: 'wait', arguments: { id } },
  })
  const headers = {
    host: '127.0.0.1',
    authorization: `Bearer ${token}`,
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': '2025-11-25',
  }
  const out = request({ host: '127.0.0.1', port, path: '/mcp', method: 'POST', headers, agent: false })
  out.end(body)
  const [answer] = await once(out, 'response')
  const closed = new Promise((done) => answer.once('close', done))
  const stream: Stream = { last: 0, ended: null, text: '', end: closed }
  closed.then(() => {
    stream.ended = performance.now()
  })
  answer.on('error', () => undefined)
  answer.on('data', (chunk: Buffer) => {
    const text = chunk.toString()
    // Our own last event is no byte of the call.
    if (!text.startsWith('event: message\ndata: {"jsonrpc":"2.0","id"')) stream.last = performance.now()
    stream.text = (stream.text + text).slice(-2_000)
  })
  await once(answer, 'data')
  return stream
}

async function atATime<T>(all: readonly T[], work: (one: T, at: number) => Promise<void>): Promise<void> {
  const left = all.entries()
  const worker = async (): Promise<void> => {
    for (const [at, one] of left) await work(one, at)
  }
  await Promise.all(Array.from({ length: AT_A_TIME }, worker))
}
