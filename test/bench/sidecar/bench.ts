/**
 * `npm run bench -- sidecar [SECONDS] [--minutes N]` (SECONDS of a round): the sidecar beside a bare proxy and nginx, one upstream, one run;
 * `npm run bench -- sidecar body`: 1 GiB each way; `-- sidecar overload`: ten times too much; `-- sidecar cold [MAIN...]`: the
 * first seconds after a start beside later ones, of each build in turn. Needs nginx and wrk.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { type SidecarProcess, startProcess } from '../../sidecar/support/process.ts'
import { short, spreadOf } from '../report/figures.ts'
import { cpuMs } from '../report/process-use.ts'
import { benchBody } from './body.ts'
import { atRate, fullSpeed, type Load, medians, ROUNDS, sustained } from './load.ts'
import { startGate, startUpstream } from './nginx.ts'
import { benchOverload } from './overload.ts'
import { type BenchPdp, PATH, RESOURCE, startBenchPdp } from './pdp.ts'
import { benchProofs } from './proofs.ts'

const RATE = 500
/** Until what runs often is compiled. */
const WARM_UP_SECONDS = 5

export async function bench(words: readonly string[]): Promise<void> {
  if (words[0] === 'body') return benchBody()
  if (words[0] === 'overload') return benchTooMuch(Number(words[1] ?? 5))
  if (words[0] === 'cold') return benchCold(words.slice(1))
  const at = words.indexOf('--minutes')
  const minutes = at < 0 ? 0 : Number(words[at + 1])
  const seconds = at < 0 ? Number(words[0] ?? 5) : 0
  const upstream = await startUpstream()
  const pdp = await startBenchPdp()
  const gate = await startGate(upstream.port, pdp.issuer)
  const bare = await startBareProxy(upstream.port)
  const sidecar = await startBenchSidecar(upstream.port, pdp)
  const ports = { bare: bare.port, gate: gate.port, sidecar: sidecar.port }
  try {
    await new Promise((resolve) => setTimeout(resolve, 1_000))
    say(`ready after ${sidecar.readyMs.toFixed(0)} ms; RSS idle ${sidecar.memory().nowMb.toFixed(1)} MB`)
    if (minutes > 0) await benchLong(sidecar, { pdp, minutes })
    else await benchShort(sidecar, { pdp, ports, seconds })
  } finally {
    await sidecar.stop()
    bare.process.kill('SIGKILL')
    await gate.stop()
    await pdp.stop()
    await upstream.stop()
  }
}

async function benchTooMuch(seconds: number): Promise<void> {
  const upstream = await startUpstream()
  const pdp = await startBenchPdp()
  const sidecar = await startBenchSidecar(upstream.port, pdp)
  try {
    const tokens = { greedy: await pdp.token(), normal: await pdp.otherToken() }
    say(await benchOverload({ port: sidecar.port, path: PATH, pid: sidecar.pid }, { ...tokens, seconds }))
  } finally {
    await sidecar.stop()
    await pdp.stop()
    await upstream.stop()
  }
}

const COLD_ROUNDS = 5
const COLD_RATE = 300
const COLD_SECONDS = 3

/** In each round every build is started, measured as it comes, warmed up, and measured again. */
async function benchCold(mains: readonly string[]): Promise<void> {
  const upstream = await startUpstream()
  const pdp = await startBenchPdp()
  const fields = { Host: 'app.test', Authorization: `Bearer ${await pdp.token()}` }
  const builds = mains.length === 0 ? [process.env.SIDECAR_MAIN] : mains
  const all = builds.map((main) => ({ main, rounds: [] as { [figure: string]: number }[] }))
  try {
    for (let round = 0; round < COLD_ROUNDS; round += 1)
      for (const { main, rounds } of all) {
        const sidecar = await startBenchSidecar(upstream.port, pdp, main)
        const load = { port: sidecar.port, path: PATH, fields }
        const startedMs = cpuMs(sidecar.pid)
        const cold = await atRate(load, COLD_RATE, COLD_SECONDS)
        const coldMs = cpuMs(sidecar.pid) - startedMs
        await fullSpeed(load, WARM_UP_SECONDS)
        const beforeMs = cpuMs(sidecar.pid)
        const warm = await atRate(load, COLD_RATE, COLD_SECONDS)
        const warmMs = cpuMs(sidecar.pid) - beforeMs
        await sidecar.stop()
        const p99 = { cold99: cold.p99Ms, warm99: warm.p99Ms, ratio: cold.p99Ms / warm.p99Ms }
        rounds.push({ ready: sidecar.readyMs, ...p99, cold50: cold.p50Ms, warm50: warm.p50Ms, coldMs, warmMs })
      }
  } finally {
    await pdp.stop()
    await upstream.stop()
  }
  say(`${COLD_RATE}/s for ${COLD_SECONDS} s, medians of ${COLD_ROUNDS} starts:`)
  for (const { main = 'sidecar/main.ts', rounds } of all) {
    const of = (figure: string): string => short(spreadOf(rounds.map((one) => one[figure] ?? 0)).median)
    say(`${main}: ready after ${of('ready')} ms`)
    say(`  cold: p50 ${of('cold50')} ms, p99 ${of('cold99')} ms, ${of('coldMs')} ms of CPU`)
    say(
      `  warm: p50 ${of('warm50')} ms, p99 ${of('warm99')} ms, ${of('warmMs')} ms of CPU; p99 cold/warm ${of('ratio')}`,
    )
  }
}

type Ports = { readonly bare: number; readonly gate: number; readonly sidecar: number }

async function benchShort(
  sidecar: SidecarProcess,
  { pdp, ports, seconds }: { readonly pdp: BenchPdp; readonly ports: Ports; readonly seconds: number },
): Promise<void> {
  const fields = { Host: 'app.test', Authorization: `Bearer ${await pdp.token()}` }
  const load = (port: number, path = PATH): Load => ({ port, path, fields })
  const loads = [load(ports.bare), load(ports.sidecar), load(ports.gate), load(ports.sidecar, '/public')]
  for (const one of loads) await fullSpeed(one, WARM_UP_SECONDS)
  const full = await medians(loads, (one) => fullSpeed(one, seconds))
  const [bare = 0, ours = 0, nginx = 0, open = 0] = full.map(({ perSecond }) => perSecond)
  const share = (part: number, whole: number): string => (part / whole).toFixed(2)
  say(`32 connections, medians of ${ROUNDS} rounds in turn: bare proxy ${bare.toFixed(0)}/s`)
  say(
    `  nginx auth_request ${nginx.toFixed(0)}/s, full enforcement ${ours.toFixed(0)}/s, public route ${open.toFixed(0)}/s`,
  )
  say(`  full enforcement is ${share(ours, bare)} of the bare proxy, a public route ${share(open, bare)},`)
  say(`  and it is ${share(ours, nginx)} of nginx auth_request, which verifies no token or proof,`)
  say('  takes no question from the route, lets a denial through, since that is 200 as well, and strips no field')
  say(`  RSS after load ${sidecar.memory().nowMb.toFixed(1)} MB, at most ${sidecar.memory().peakMb.toFixed(1)} MB`)
  const slow = await medians(loads.slice(0, 2), (one) => atRate(one, RATE, seconds))
  const [before, after] = slow.map(
    ({ p50Ms, p99Ms, p999Ms }) =>
      `p50 ${p50Ms.toFixed(2)} ms, p99 ${p99Ms.toFixed(2)} ms, p99.9 ${p999Ms.toFixed(2)} ms`,
  )
  const [from = 0, to = 0] = slow.map(({ p50Ms }) => p50Ms)
  say(`at ${RATE}/s: bare proxy ${before}; full enforcement ${after}; added p50 ${(to - from).toFixed(2)} ms`)
  say(await benchProofs({ port: ports.sidecar, path: PATH, fields: { Host: 'app.test' } }, { pdp, seconds }))
}

/** Is memory flat? One line a minute under full load of 32 connections. */
async function benchLong(
  sidecar: SidecarProcess,
  { pdp, minutes }: { readonly pdp: BenchPdp; readonly minutes: number },
): Promise<void> {
  for (let minute = 1; minute <= minutes; minute += 1) {
    const fields = { Host: 'app.test', Authorization: `Bearer ${await pdp.token()}` }
    const { perSecond, p99Ms, refused } = await sustained({ port: sidecar.port, path: PATH, fields }, 60)
    const { nowMb, peakMb } = sidecar.memory()
    say(
      `minute ${minute}: ${perSecond.toFixed(0)}/s, ${refused} not served, p99 ${p99Ms.toFixed(1)} ms, RSS ${nowMb.toFixed(1)} MB, at most ${peakMb.toFixed(1)} MB`,
    )
  }
}

const say = (line: string): void => void process.stdout.write(`${line}\n`)

/** `SIDECAR_MAIN` and `SIDECAR_FLAGS`: another build of it, or other flags of Node. */
function startBenchSidecar(upstream: number, pdp: BenchPdp, main = process.env.SIDECAR_MAIN): Promise<SidecarProcess> {
  const routeFile = JSON.stringify({
    portcullis: 'v1',
    resource: RESOURCE,
    issuers: [{ issuer: pdp.issuer }],
    upstream: `http://127.0.0.1:${upstream}`,
    pdp: { address: pdp.grpcAddress, insecure: true },
    routes: { 'GET /invoices/{id}': 'viewer invoice:{id}', 'GET /public': 'public' },
  })
  const { SIDECAR_FLAGS: flags = '--max-semi-space-size=8 --max-old-space-size=256' } = process.env
  return startProcess({
    routeFile,
    ...(main !== undefined && { command: [process.execPath, ...flags.split(' '), main] }),
  })
}

async function startBareProxy(upstream: number): Promise<{ process: ChildProcess; port: number }> {
  const path = fileURLToPath(new URL('bare-proxy.ts', import.meta.url))
  const words = [path, `http://127.0.0.1:${upstream}`]
  const started = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'inherit'] })
  const port = await new Promise<number>((resolve, reject) => {
    started.once('exit', (code) => reject(new Error(`the bare proxy ended with ${code}`)))
    started.stdout.on('data', (chunk) => {
      const match = /port (\d+)/.exec(String(chunk))
      if (match !== null) resolve(Number(match[1]))
    })
  })
  return { process: started, port }
}
