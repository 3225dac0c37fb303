/**
 * `npm run bench -- sidecar [SECONDS] [--minutes N]` (SECONDS of a round): the sidecar beside a bare proxy and nginx, one upstream, one run;
 * `npm run bench -- sidecar body`: 1 GiB each way; `-- sidecar overload`: ten times too much. Needs nginx and wrk.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { type SidecarProcess, startProcess } from '../../sidecar/support/process.ts'
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
function startBenchSidecar(upstream: number, pdp: BenchPdp): Promise<SidecarProcess> {
  const routeFile = JSON.stringify({
    portcullis: 'v1',
    resource: RESOURCE,
    issuers: [{ issuer: pdp.issuer }],
    upstream: `http://127.0.0.1:${upstream}`,
    pdp: { address: pdp.grpcAddress, insecure: true },
    routes: { 'GET /invoices/{id}': 'viewer invoice:{id}', 'GET /public': 'public' },
  })
  const { SIDECAR_MAIN: main, SIDECAR_FLAGS: flags = '--max-semi-space-size=8 --max-old-space-size=256' } = process.env
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
