/**
 * `npm run bench -- overload [SECONDS] [--write]` (of a round): ten times what a PDP and a sidecar can answer, most of it from one
 * client of one organization beside normal clients, without and with thousands of idle connections. Needs wrk and nginx.
 */
import { connect, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { grpcClient } from '../../consistency/history/grpc.ts'
import { startProcess } from '../../sidecar/support/process.ts'
import { decideByHttp, ENOUGH, type Reply, seed, TEN_FOLD } from '../pdp/bench.ts'
import { besides, floodApart, type Measured } from '../pdp/load.ts'
import { latencyOf, short, spreadOf } from '../report/figures.ts'
import { machine, table, writeBlock } from '../report/page.ts'
import { cpuMs } from '../report/process-use.ts'
import { startUpstream } from '../sidecar/nginx.ts'
import {
  measureOverload,
  type Round,
  ENOUGH as SIDECAR_ENOUGH,
  TEN_FOLD as SIDECAR_TEN_FOLD,
} from '../sidecar/overload.ts'
import { type BenchPdp, PATH, RESOURCE, startBenchPdp } from '../sidecar/pdp.ts'

const COMMAND = 'npm run bench -- overload --write'
const HEAD = [
  '',
  'answered to enough',
  'answered to ten times as many',
  'its CPU time for an answer, to both',
  'refused',
  "others' p99 alone",
  "others' p99 beside",
  'others refused',
]
const NORMAL_PAUSE_MS = 100
const HTTP_AFTER_MS = 1_000
const HTTP_REQUESTS = 100
/** With those of the load below the default limits of a sidecar: 10,000 connections, 1,000 of one address. */
const IDLE = { addresses: 11, each: 840 }

export async function bench(words: readonly string[]): Promise<void> {
  const options = { write: { type: 'boolean' } } as const
  const { values, positionals } = parseArgs({ args: [...words], options, allowPositionals: true })
  const seconds = Number(positionals[0] ?? 4)
  const on = machine()
  const pdp = await startBenchPdp()
  try {
    const { row, http } = await overPdp(pdp, seconds)
    const text = `${table(HEAD, [row, ...(await overSidecar(pdp, seconds))])}\n\n${http}`
    console.log(`${on}\n\n${text}`)
    if (values.write === true) writeBlock('docs/benchmarks.md', COMMAND, `Measured ${on}.\n\n${text}`)
  } finally {
    await pdp.stop()
  }
}

/** One greedy organization and one greedy client of another, among fifty clients. */
async function overPdp(pdp: BenchPdp, seconds: number): Promise<{ row: readonly string[]; http: string }> {
  const client = grpcClient(pdp.grpcAddress)
  try {
    const ms = seconds * 1_000
    const { greedy, normal } = await seed(pdp)
    const askers = normal.map((token) => ({ ...token, client }))
    const others = (): Promise<Measured> => besides(askers, { ms, pauseMs: NORMAL_PAUSE_MS })
    const flood = (open: number): Promise<Measured> =>
      floodApart({ address: pdp.grpcAddress, tokens: greedy, open, ms })
    await flood(ENOUGH)
    const alone = await others()
    const beforeMs = cpuMs(pdp.pid)
    const enough = await flood(ENOUGH)
    const betweenMs = cpuMs(pdp.pid)
    const [many, beside, replies] = await Promise.all([
      flood(TEN_FOLD),
      others(),
      overHttp(pdp, greedy[0]?.token ?? ''),
    ])
    const manyMs = cpuMs(pdp.pid) - betweenMs
    const row = [
      `PDP, ${ENOUGH} and ${TEN_FOLD.toLocaleString('en')} open questions, beside ${askers.length} clients`,
      `${short(enough.timesMs.length / seconds)}/s`,
      `${short(many.timesMs.length / seconds)}/s`,
      cpuTimes(
        (1_000 * (betweenMs - beforeMs)) / enough.timesMs.length,
        (1_000 * manyMs) / (many.timesMs.length + beside.timesMs.length + replies.length),
      ),
      codes(many),
      `${short(latencyOf(alone.timesMs).p99)} ms`,
      `${short(latencyOf(beside.timesMs).p99)} ms`,
      codes(beside),
    ]
    return { row, http: `The greedy client over HTTP meanwhile: ${describe(replies)}.` }
  } finally {
    client.close()
  }
}

/** In microseconds: the load shares the cores with what it loads, so this says more than the rates. */
const cpuTimes = (enoughUs: number, manyUs: number): string => `${short(enoughUs)} and ${short(manyUs)} µs`

const codes = ({ refused }: Measured): string =>
  Object.entries(refused)
    .map(([code, count]) => `${count.toLocaleString('en')} ${code}`)
    .join(', ') || '0'

async function overHttp(pdp: BenchPdp, token: string): Promise<readonly Reply[]> {
  await delay(HTTP_AFTER_MS)
  return Promise.all(Array.from({ length: HTTP_REQUESTS }, () => decideByHttp(pdp, token)))
}

const describe = (replies: readonly Reply[]): string =>
  [...Map.groupBy(replies, ({ status, retryAfter }) => `${status}${retryAfter === null ? '' : ' with Retry-After'}`)]
    .map(
      ([kind, all]) => `${all.length} × ${kind}, the longest after ${short(Math.max(...all.map(({ ms }) => ms)))} ms`,
    )
    .join('; ')

/** One greedy client with all its connections, beside callers of another address. */
async function overSidecar(pdp: BenchPdp, seconds: number): Promise<readonly (readonly string[])[]> {
  const upstream = await startUpstream()
  const sidecar = await startProcess({
    routeFile: JSON.stringify({
      portcullis: 'v1',
      resource: RESOURCE,
      issuers: [{ issuer: pdp.issuer }],
      upstream: `http://127.0.0.1:${upstream.port}`,
      pdp: { address: pdp.grpcAddress, insecure: true },
      routes: { 'GET /invoices/{id}': 'viewer invoice:{id}' },
    }),
  })
  const idle: Socket[] = []
  try {
    const tokens = { greedy: await pdp.token(), normal: await pdp.otherToken(), seconds }
    const target = { port: sidecar.port, path: PATH, pid: sidecar.pid }
    const name = `sidecar, ${SIDECAR_ENOUGH} and ${SIDECAR_TEN_FOLD} connections`
    const plain = rowOf(name, await measureOverload(target, tokens))
    for (let address = 1; address <= IDLE.addresses; address += 1)
      for (let at = 0; at < IDLE.each; at += 1) idle.push(await openFrom(`127.0.1.${address}`, sidecar.port))
    const count = (IDLE.addresses * IDLE.each).toLocaleString('en')
    return [plain, rowOf(`the same beside ${count} idle connections`, await measureOverload(target, tokens))]
  } finally {
    for (const socket of idle) socket.destroy()
    await sidecar.stop()
    await upstream.stop()
  }
}

function openFrom(localAddress: string, port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, localAddress }, () => resolve(socket))
    socket.on('error', reject)
  })
}

function rowOf(name: string, rounds: readonly Round[]): readonly string[] {
  const middle = (figure: (round: Round) => number): string => short(spreadOf(rounds.map(figure)).median)
  return [
    name,
    `${middle(({ enough }) => enough)}/s`,
    `${middle(({ tenFold }) => tenFold)}/s`,
    cpuTimes(
      spreadOf(rounds.map(({ enoughCpuUs }) => enoughCpuUs)).median,
      spreadOf(rounds.map(({ tenFoldCpuUs }) => tenFoldCpuUs)).median,
    ),
    middle(({ refused }) => refused),
    `${middle(({ alone }) => alone.p99Ms)} ms`,
    `${middle(({ beside }) => beside.p99Ms)} ms`,
    middle(({ beside }) => beside.refused),
  ]
}
