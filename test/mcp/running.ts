/** Calls that run while what allows them is taken away: when came the last byte, and when the end? */
import { once } from 'node:events'
import { request } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import type { BenchPdp } from '../bench/sidecar/pdp.ts'
import { openGate, relate } from './gate.ts'
import type { Server } from './servers.ts'

export type Running = {
  readonly name: string
  readonly count: number
  /** Without an error that has the id of its call as the last event. */
  readonly silent: number
  /** From the acknowledged revocation; the last byte is that of the error. */
  readonly lastByteMs: readonly number[]
  readonly endMs: readonly number[]
}
type Stream = { last: number; ended: number; text: string; readonly end: Promise<unknown> }

const PER_WRITE = 500
const AT_A_TIME = 16
/** So many more calls run, and end one after the other while the rest run. */
const ALONE_SHARE = 0.2
/** Without a pause each revocation would follow a look of the PDP, and wait for the next as long as is possible. */
const PAUSE_MS_MAX = 200

/** Some end one after another by their own grants, then all others at once by a membership. */
export async function measureRunning(
  server: Server,
  { pdp, token, count }: { readonly pdp: BenchPdp; readonly token: string; readonly count: number },
): Promise<readonly Running[]> {
  const gate = await openGate({ pdp, server }, { tools: server.play.rules })
  const aloneCount = Math.ceil(ALONE_SHARE * count)
  const ids = Array.from({ length: aloneCount + count }, (_, at) => `running-${at}`)
  const grants = ids.map((id, at) => `thing:${id}#viewer@${at < aloneCount ? 'service:bench' : 'group:readers#member'}`)
  const change = (body: object): Promise<void> => pdp.manage('POST', '/v1/organizations/acme/relationships', body)
  try {
    await relate(pdp, 'write', ['group:readers#member'])
    for (let at = 0; at < ids.length; at += PER_WRITE) await change({ write: grants.slice(at, at + PER_WRITE) })
    const streams: Stream[] = []
    await atATime(ids, async (id, at) => {
      streams[at] = await open(gate.port, token, { id, at })
    })
    const acknowledged: number[] = []
    for (const [at, { end }] of streams.slice(0, aloneCount).entries()) {
      await delay(Math.random() * PAUSE_MS_MAX)
      await change({ delete: [grants[at]] })
      acknowledged[at] = performance.now()
      await end
    }
    await relate(pdp, 'delete', ['group:readers#member'])
    acknowledged.length = ids.length
    acknowledged.fill(performance.now(), aloneCount)
    await Promise.all(streams.map(({ end }) => end))
    const all = streams.map((stream, at) => ({ ...stream, at, sinceMs: acknowledged[at] ?? 0 }))
    return [
      report('one revocation for each call', all.slice(0, aloneCount)),
      report('one revocation for all calls', all.slice(aloneCount)),
    ]
  } finally {
    await gate.stop()
  }
}

type Ended = Stream & { readonly at: number; readonly sinceMs: number }

const report = (name: string, streams: readonly Ended[]): Running => ({
  name,
  count: streams.length,
  silent: streams.filter(({ text, at }) => !hasError(text, at)).length,
  lastByteMs: streams.map(({ last, sinceMs }) => Math.max(0, last - sinceMs)),
  endMs: streams.map(({ ended, sinceMs }) => Math.max(0, ended - sinceMs)),
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
  const stream: Stream = { last: 0, ended: 0, text: '', end: closed }
  closed.then(() => {
    stream.ended = performance.now()
  })
  answer.on('error', () => undefined)
  answer.on('data', (chunk: Buffer) => {
    stream.last = performance.now()
    stream.text = (stream.text + chunk).slice(-2_000)
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
