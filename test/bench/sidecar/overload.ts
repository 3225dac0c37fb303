/**
 * `npm run bench -- sidecar overload [SECONDS]`: one greedy client with ten times as many connections as keep the sidecar
 * busy, and beside it callers of another address who ask now and then. Needs wrk.
 */
import { Agent, request } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { cpuMs } from '../report/process-use.ts'
import { type Measured, sustained } from './load.ts'

export const [ENOUGH, TEN_FOLD] = [64, 640]
const NORMAL_CALLERS = 20
const NORMAL_PAUSE_MS = 100
/** Another client address than that of wrk. */
const NORMAL_ADDRESS = '127.0.0.2'
const ROUNDS = 3

type Target = { readonly port: number; readonly path: string; readonly pid: number }
export type Normal = {
  readonly served: number
  readonly refused: number
  readonly p50Ms: number
  readonly p99Ms: number
}

export type Round = {
  readonly alone: Normal
  /** Served in a second, to as many connections as keep it busy, and to ten times as many. */
  readonly enough: number
  readonly tenFold: number
  /** CPU time of the sidecar for a served request, in microseconds: what the load takes of the machine is not in it. */
  readonly enoughCpuUs: number
  readonly tenFoldCpuUs: number
  readonly refused: number
  readonly beside: Normal
}

export async function measureOverload(
  target: Target,
  { greedy, normal, seconds }: { readonly greedy: string; readonly normal: string; readonly seconds: number },
): Promise<readonly Round[]> {
  const load = (connections: number): Promise<Measured> =>
    sustained({ ...target, fields: { Host: 'app.test', Authorization: `Bearer ${greedy}` }, connections }, seconds)
  const served = (one: Measured): number => one.perSecond - one.refused / seconds
  await load(ENOUGH)
  const rounds: Round[] = []
  for (let round = 0; round < ROUNDS; round += 1) {
    const alone = await besides(target, { token: normal, seconds })
    const beforeMs = cpuMs(target.pid)
    const enough = served(await load(ENOUGH))
    const betweenMs = cpuMs(target.pid)
    const [flood, beside] = await Promise.all([load(TEN_FOLD), besides(target, { token: normal, seconds })])
    const tenFold = served(flood)
    rounds.push({
      ...{ alone, enough, tenFold, refused: flood.refused, beside },
      enoughCpuUs: (1_000 * (betweenMs - beforeMs)) / (enough * seconds),
      tenFoldCpuUs: (1_000 * (cpuMs(target.pid) - betweenMs)) / (tenFold * seconds + beside.served),
    })
  }
  return rounds
}

/** What it prints. */
export async function benchOverload(...given: Parameters<typeof measureOverload>): Promise<string> {
  const rounds = (await measureOverload(...given)).map(
    ({ alone, enough, tenFold, enoughCpuUs, tenFoldCpuUs, beside }) =>
      `  ${enough.toFixed(0)}/s served to ${ENOUGH} connections, ${tenFold.toFixed(0)}/s (${((100 * tenFold) / enough).toFixed(0)} %) to ${TEN_FOLD}, for ${enoughCpuUs.toFixed(0)} and ${tenFoldCpuUs.toFixed(0)} us of CPU time each; others: alone ${figures(alone)}; beside them ${figures(beside)}`,
  )
  return [`overload, ${ROUNDS} rounds:`, ...rounds].join('\n')
}

const figures = ({ served, refused, p50Ms, p99Ms }: Normal): string =>
  `${served} served, ${refused} refused, p50 ${p50Ms.toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms`

/** Callers who wait after each answer. */
async function besides(
  target: Target,
  { token, seconds }: { readonly token: string; readonly seconds: number },
): Promise<Normal> {
  const endMs = performance.now() + seconds * 1_000
  const timesMs: number[] = []
  let refused = 0
  const agent = new Agent({ keepAlive: true, localAddress: NORMAL_ADDRESS })
  const callers = Array.from({ length: NORMAL_CALLERS }, async () => {
    while (performance.now() < endMs) {
      const startedMs = performance.now()
      const status = await ask({ ...target, agent, token })
      if (status === 200) timesMs.push(performance.now() - startedMs)
      else refused += 1
      await delay(Math.random() * 2 * NORMAL_PAUSE_MS)
    }
  })
  await Promise.all(callers)
  agent.destroy()
  timesMs.sort((a, b) => a - b)
  const share = (part: number): number => timesMs[Math.floor(part * timesMs.length)] ?? Number.NaN
  return { served: timesMs.length, refused, p50Ms: share(0.5), p99Ms: share(0.99) }
}

/** 0: no answer. */
function ask({ port, path, agent, token }: Target & { agent: Agent; token: string }): Promise<number> {
  return new Promise((resolve) => {
    const headers = { host: 'app.test', authorization: `Bearer ${token}` }
    request({ host: '127.0.0.1', port, path, agent, headers }, (res) => {
      res.resume().on('end', () => resolve(res.statusCode ?? 0))
    })
      .on('error', () => resolve(0))
      .end()
  })
}
