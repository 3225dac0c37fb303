/**
 * How questions come over the network: each way to ask, with real tokens and callers in processes of their own; as fast as
 * it goes (32 callers that wait for their answers), and in an open loop, where a late answer delays no question.
 * `PDP_BESIDE`: the `pdp/main.ts` of another build, measured in the same rounds, with `PDP_BESIDE_FLAGS` as the flags of Node
 * (`PDP_FLAGS`: ours). `BENCH_ROUNDS`: default 3.
 */
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { latencyOf, ratios, spreadText } from '../report/figures.ts'
import { cpuMs, postgresCpuMs, residentMb } from '../report/process-use.ts'
import { type BenchPdp, startBenchPdp } from '../sidecar/pdp.ts'
import { median, perSecond } from './data.ts'
import { type Load, type Measured, WAYS, type Way } from './stream-client.ts'

const PROCESSES = 2
const CALLERS = 32
/** Of one process. Counted, not timed: on a machine that others use, a while may be too short to compile what runs often. */
const WARM_ASKS = 4_000
const ROUND_ASKS = 4_000
const OPEN_ASKS = 600
/** Questions a second of the open loop, of all processes together. */
const OPEN_RATE = 500
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 3)

type Build = {
  readonly name: string
  readonly pdp: BenchPdp
  readonly token: string
  readonly callers: readonly Caller[]
}
type Caller = { run(load: Load): Promise<Measured>; stop(): void }
type Figures = { readonly rate: number; readonly p50: number; readonly p99: number; readonly p999: number } & Cpu
/** Microseconds of a check. */
type Cpu = { readonly ours: number; readonly database: number }
type Loop = { readonly name: string; readonly asks: number; readonly rate: number | null }
const LOOPS: readonly Loop[] = [
  { name: `${CALLERS} callers`, asks: ROUND_ASKS, rate: null },
  { name: `${OPEN_RATE}/s`, asks: OPEN_ASKS, rate: OPEN_RATE },
]

/** `words`: ways to ask; all when none is named. */
export async function benchStream(words: readonly string[] = []): Promise<void> {
  const ways = WAYS.filter((way) => words.length === 0 || words.includes(way))
  const { PDP_BESIDE: beside, PDP_FLAGS, PDP_BESIDE_FLAGS } = process.env
  const builds = [await startBuild('this build', { flags: PDP_FLAGS })]
  try {
    if (beside !== undefined) builds.push(await startBuild('beside', { main: beside, flags: PDP_BESIDE_FLAGS }))
    console.log(`Over the network, callers in ${PROCESSES} processes; microseconds of CPU per check`)
    for (const way of ways) await compare(way, builds)
    for (const { name, pdp } of builds) console.log(`  RSS of ${name}: ${residentMb(pdp.pid).toFixed(0)} MB`)
  } finally {
    for (const { pdp, callers } of builds) {
      for (const caller of callers) caller.stop()
      await pdp.stop()
    }
  }
}

async function startBuild(name: string, of: { main?: string; flags: string | undefined }): Promise<Build> {
  const pdp = await startBenchPdp(of.main, of.flags)
  return { name, pdp, token: await pdp.token(), callers: Array.from({ length: PROCESSES }, startCaller) }
}

/** In turns, so that what the machine does besides hits all alike. */
async function compare(way: Way, builds: readonly Build[]): Promise<void> {
  for (const build of builds) await measure(build, way, { name: '', asks: WARM_ASKS, rate: null })
  for (const loop of LOOPS) {
    const all = builds.map((build) => ({ build, rounds: [] as Figures[] }))
    for (let round = 0; round < ROUNDS; round++)
      for (const { build, rounds } of all) rounds.push(await measure(build, way, loop))
    for (const { build, rounds } of all)
      console.log(`  ${way.padEnd(8)} ${build.name.padEnd(10)} ${line(loop, rounds)}`)
    const [ours, theirs] = all.map(({ rounds }) => rounds.map((one) => one.ours + one.database))
    if (ours === undefined || theirs === undefined) continue
    console.log(`  ${way.padEnd(8)} CPU of this build beside the other: ${spreadText(ratios(ours, theirs))}`)
  }
}

function line(loop: Loop, rounds: readonly Figures[]): string {
  const figure = (name: keyof Figures): number => median(rounds.map((one) => one[name]))
  const latency = (['p50', 'p99', 'p999'] as const).map((name) => figure(name).toFixed(2).padStart(6)).join(' ')
  return `${loop.name.padEnd(10)} ${perSecond(figure('rate')).padStart(10)}  p50, p99, p99.9 ${latency} ms  PDP ${figure('ours').toFixed(1).padStart(6)} us  PostgreSQL ${figure('database').toFixed(1).padStart(6)} us`
}

async function measure({ pdp, token, callers }: Build, way: Way, { asks, rate }: Loop): Promise<Figures> {
  const { grpcAddress: address, issuer } = pdp
  const ownRate = rate === null ? null : rate / PROCESSES
  const load = { address, issuer, token, way, callers: CALLERS / PROCESSES, asks, rate: ownRate }
  const [ours, database] = [cpuMs(pdp.pid), postgresCpuMs(pdp.dataDirectory)]
  const measured = await Promise.all(callers.map((caller) => caller.run(load)))
  const [oursAfter, databaseAfter] = [cpuMs(pdp.pid), postgresCpuMs(pdp.dataDirectory)]
  const checks = measured.reduce((sum, one) => sum + one.checks, 0)
  const { p50, p99, p999 } = latencyOf(measured.flatMap(({ timesMs }) => timesMs))
  return {
    rate: measured.reduce((sum, one) => sum + one.checks / (one.ms / 1_000), 0),
    p50,
    p99,
    p999,
    ours: ((oursAfter - ours) * 1_000) / checks,
    database: ((databaseAfter - database) * 1_000) / checks,
  }
}

function startCaller(): Caller {
  const child = fork(fileURLToPath(new URL('stream-client.ts', import.meta.url)), { execArgv: [] })
  return {
    run: (load) =>
      new Promise((resolve, reject) => {
        const ended = (code: number | null): void => reject(new Error(`the caller ended with ${code}`))
        child.once('exit', ended)
        child.once('message', (measured) => {
          child.off('exit', ended)
          resolve(measured as Measured)
        })
        child.send(load)
      }),
    stop: () => void child.kill('SIGTERM'),
  }
}
