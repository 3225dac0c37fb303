/**
 * How questions come over the network: each way to ask, with real tokens and callers in processes of their own. `PDP_BESIDE`: the
 * `pdp/main.ts` of another build, measured in the same rounds.
 */
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { median, perSecond } from './engine-data.ts'
import { type Load, type Measured, WAYS, type Way } from './engine-stream-client.ts'
import { cpuMs, postgresCpuMs } from './pdp/cpu.ts'
import { type BenchPdp, startBenchPdp } from './sidecar-pdp.ts'

const PROCESSES = 2
const CALLERS = 32
/** Of one process. Counted, not timed: on a machine that others use, a while may be too short to compile what runs often. */
const WARM_ASKS = 4_000
const ROUND_ASKS = 4_000
const ROUNDS = 3

type Build = {
  readonly name: string
  readonly pdp: BenchPdp
  readonly token: string
  readonly callers: readonly Caller[]
}
type Caller = { run(load: Load): Promise<Measured>; stop(): void }
type Figures = { readonly rate: number; readonly p99Ms: number; readonly ours: number; readonly database: number }

/** `words`: ways to ask; all when none is named. */
export async function benchStream(words: readonly string[] = []): Promise<void> {
  const ways = WAYS.filter((way) => words.length === 0 || words.includes(way))
  const beside = process.env.PDP_BESIDE
  const builds = [await startBuild('this build')]
  try {
    if (beside !== undefined) builds.push(await startBuild('beside', beside))
    console.log(`Over the network: ${CALLERS} callers in ${PROCESSES} processes, microseconds of CPU per check`)
    for (const way of ways) await compare(way, builds)
  } finally {
    for (const { pdp, callers } of builds) {
      for (const caller of callers) caller.stop()
      await pdp.stop()
    }
  }
}

async function startBuild(name: string, main?: string): Promise<Build> {
  const pdp = await startBenchPdp(main)
  return { name, pdp, token: await pdp.token(), callers: Array.from({ length: PROCESSES }, startCaller) }
}

/** In turns, so that what the machine does besides hits all alike. */
async function compare(way: Way, builds: readonly Build[]): Promise<void> {
  const all = builds.map((build) => ({ build, rounds: [] as Figures[] }))
  for (const { build } of all) await measure(build, way, WARM_ASKS)
  for (let round = 0; round < ROUNDS; round++)
    for (const { build, rounds } of all) rounds.push(await measure(build, way, ROUND_ASKS))
  for (const { build, rounds } of all) {
    const figure = (name: keyof Figures): number => median(rounds.map((one) => one[name]))
    console.log(
      `  ${way.padEnd(8)} ${build.name.padEnd(10)} ${perSecond(figure('rate')).padStart(10)}  p99 ${figure('p99Ms').toFixed(2).padStart(6)} ms  PDP ${figure('ours').toFixed(1).padStart(6)} us  PostgreSQL ${figure('database').toFixed(1).padStart(6)} us`,
    )
  }
}

async function measure({ pdp, token, callers }: Build, way: Way, asks: number): Promise<Figures> {
  const { grpcAddress: address, issuer } = pdp
  const load = { address, issuer, token, way, callers: CALLERS / PROCESSES, asks }
  const [ours, database] = [cpuMs(pdp.pid), postgresCpuMs(pdp.dataDirectory)]
  const measured = await Promise.all(callers.map((caller) => caller.run(load)))
  const [oursAfter, databaseAfter] = [cpuMs(pdp.pid), postgresCpuMs(pdp.dataDirectory)]
  const checks = measured.reduce((sum, one) => sum + one.checks, 0)
  return {
    rate: measured.reduce((sum, one) => sum + one.checks / (one.ms / 1_000), 0),
    p99Ms: Math.max(...measured.map((one) => one.p99Ms)),
    ours: ((oursAfter - ours) * 1_000) / checks,
    database: ((databaseAfter - database) * 1_000) / checks,
  }
}

function startCaller(): Caller {
  const child = fork(fileURLToPath(new URL('engine-stream-client.ts', import.meta.url)), { execArgv: [] })
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
