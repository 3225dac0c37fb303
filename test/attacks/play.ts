/** Plays one attack case: its world, its steps, its request, and the judgement. */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { type AttackCase, type Fixture, Skip } from './cases.ts'
import { createKeyring, type Keyring } from './credentials.ts'
import { floodOf, judgeFlood } from './http2.ts'
import { judge } from './judge.ts'
import { INJECTION_ATTACKS } from './kubernetes.ts'
import type { ReadCase } from './shape.ts'
import { type Playing, takeLastStep, takeStep } from './steps.ts'
import { prepare } from './wire.ts'
import { openWorld, type World } from './world.ts'

export type Outcome =
  | { readonly kind: 'passed' }
  | { readonly kind: 'failed'; readonly why: string }
  | { readonly kind: 'skipped'; readonly why: string }

/** `keyring` is shared by all cases, since keys are slow to make. */
export async function play(read: ReadCase, fixture: Fixture, keyring: Keyring = createKeyring()): Promise<Outcome> {
  if (read.kind === 'broken') return { kind: 'failed', why: read.why }
  try {
    skipInjection(read.attack)
    const why = await run(read.attack, fixture, keyring)
    if (why.length > 0) return { kind: 'failed', why: why.join('; ') }
    const { unknown } = read
    return unknown.length === 0 ? { kind: 'passed' } : { kind: 'skipped', why: `not known here: ${unknown.join(', ')}` }
  } catch (err) {
    if (err instanceof Skip) return { kind: 'skipped', why: err.message }
    return { kind: 'failed', why: err instanceof Error ? (err.stack ?? err.message) : String(err) }
  }
}

function skipInjection({ id, class: kind }: AttackCase): void {
  if (kind === 'injection-bypass') throw new Skip(`is played by ${INJECTION_ATTACKS[id]?.file ?? 'nobody'}`)
}

async function run(attack: AttackCase, fixture: Fixture, keyring: Keyring): Promise<string[]> {
  const environment = attack.setup.config?.env
  if (typeof environment === 'string') return runProcess(environment)
  const time = { offsetMs: 0 }
  const world = await openWorld({ fixture, case: attack, keyring, clock: () => Date.now() + time.offsetMs })
  const mustRefuse = attack.expect.upstream === 'refuses_to_start'
  if (typeof world === 'string') return mustRefuse ? [] : [`the configuration was refused: ${world}`]
  try {
    if (mustRefuse) return ['the configuration was accepted']
    prepareUpstream(attack.setup.note ?? '', world)
    return await request({ attack, fixture, world, keyring, time })
  } finally {
    await world.close()
  }
}

/** A start with an environment variable that must keep it from starting. */
function runProcess(assignment: string): string[] {
  const [name = '', value = ''] = assignment.split('=')
  const main = fileURLToPath(new URL('../../sidecar/main.ts', import.meta.url))
  const { status } = spawnSync(process.execPath, [main, 'run'], {
    env: { ...process.env, [name]: value },
    timeout: 60_000,
  })
  return status === 64 ? [] : [`the process ended with ${status}`]
}

/** Upstreams that misbehave are described in words. */
function prepareUpstream(note: string, { upstream }: World): void {
  if (/upstream answers Connection: close, X-Secret/.test(note))
    upstream.handle = (_req, res) =>
      void res.writeHead(200, ['Connection', 'close, X-Secret', 'X-Secret', '1']).end('ok')
  if (/upstream sends CL shorter than its bytes/.test(note))
    upstream.handle = (_req, res) =>
      res.socket?.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n\r\n')
  if (/upstream 103 forwarded/.test(note))
    upstream.handle = (_req, res) => {
      res.writeEarlyHints({ link: '</style.css>; rel=preload' })
      res.end('ok')
    }
  let first = true
  if (/closes an idle pooled socket at the same moment/.test(note))
    upstream.handle = (req, res) => {
      if (first) req.socket.destroy()
      else res.end('ok')
      first = false
    }
}

async function request({ attack, fixture, world, keyring, time }: Omit<Playing, 'send'>): Promise<string[]> {
  const { steps = [] } = attack.request
  const nowMs = (): number => Date.now() + time.offsetMs
  const ready = (wanted: AttackCase['request']) =>
    prepare({ attack: { ...attack, request: wanted }, fixture, keyring, nowMs, nonce: world.nonce })
  const send: Playing['send'] = async (wanted) => void (await (await ready(wanted))(world.port))
  const playing = { attack, fixture, world, keyring, time, send }
  for (const step of steps.slice(0, -1)) await takeStep(step, playing)
  const last = steps.at(-1) ?? 'send'
  const words = typeof last === 'string' ? last : ''
  const judged = typeof last === 'string' ? attack.request : { ...last, steps }
  await takeLastStep(words, playing)
  if (attack.expect.upstream !== 'first_only') world.upstream.reached.length = 0
  const flood = floodOf(attack.setup.note ?? '')
  if (flood !== null) return judgeFlood(flood, world)
  const count = /(\d+) concurrent/.exec(words)?.[1]
  const sender = await ready(judged)
  if (count !== undefined) return sendMany(playing, { sender, count: Number(count) })
  // The first use of each part is not what a limit of memory is about; what grows with a body would show all the same.
  if (world.peakMb !== null) await send({ ...judged, body: WARM_UP })
  const peakBefore = world.peakMb?.() ?? 0
  const replica = /send to replica/.test(words) ? await world.replicaPort?.() : undefined
  const startedMs = performance.now()
  const answer = await sender(replica ?? world.port)
  return judge(attack.expect, {
    answer,
    reached: world.upstream.reached,
    fetched: world.fetched,
    tookMs: Math.round(performance.now() - startedMs),
    rssGrowthMb: Math.round((world.peakMb?.() ?? 0) - peakBefore),
    target: judged.target,
  })
}

type Many = { readonly sender: Awaited<ReturnType<typeof prepare>>; readonly count: number }

/** What is wrong with any of them, and the time of the slowest. */
async function sendMany({ attack, world }: Playing, { sender, count }: Many): Promise<string[]> {
  const complaints = new Set<string>()
  let slowestMs = 0
  await Promise.all(
    Array.from({ length: Math.min(count, CONCURRENT_MAX) }, async () => {
      const startedMs = performance.now()
      const answer = await sender(world.port)
      slowestMs = Math.max(slowestMs, Math.round(performance.now() - startedMs))
      const { reached } = world.upstream
      const found = judge(attack.expect, { answer, reached, fetched: [], tookMs: 0, rssGrowthMb: 0, target: '' })
      for (const complaint of found) complaints.add(complaint)
    }),
  )
  const { max_ms: longestMs = slowestMs } = attack.expect
  return [...complaints, ...(slowestMs > longestMs ? [`took up to ${slowestMs} ms, not ${longestMs} at most`] : [])]
}

const CONCURRENT_MAX = 2_000
const WARM_UP = '{{stream:8388608}}'
