/** Plays one attack case: its world, its steps, its request, and the judgement. */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { type AttackCase, type Fixture, Skip, Unknown } from './case-format.ts'
import type { ReadCase } from './case-reader.ts'
import { createKeyring, type Keyring } from './credentials.ts'
import { floodOf, judgeFlood } from './http2.ts'
import { isInjection, playInjection } from './kubernetes.ts'
import { isSending, type Planned, planOf } from './plan.ts'
import { skewOf } from './route-text.ts'
import { judgeRequest } from './send.ts'
import { act, currentView, type Playing, slowDown, type Time } from './steps.ts'
import { openWorld, type World } from './world.ts'

export type Outcome =
  | { readonly kind: 'passed' }
  | { readonly kind: 'failed'; readonly why: string }
  /** This machine lacks what the case needs. */
  | { readonly kind: 'skipped'; readonly why: string }

/** `keyring` is shared by all cases, since keys are slow to make. */
export async function play(read: ReadCase, fixture: Fixture, keyring: Keyring = createKeyring()): Promise<Outcome> {
  if (read.kind === 'broken') return { kind: 'failed', why: read.why }
  if (read.unknown.length > 0) return { kind: 'failed', why: `not known here: ${read.unknown.join(', ')}` }
  try {
    const why = isInjection(read.attack) ? await playInjection(read.attack) : await run(read.attack, fixture, keyring)
    return why.length === 0 ? { kind: 'passed' } : { kind: 'failed', why: why.join('; ') }
  } catch (err) {
    if (err instanceof Skip) return { kind: 'skipped', why: err.message }
    if (err instanceof Unknown) return { kind: 'failed', why: err.message }
    return { kind: 'failed', why: err instanceof Error ? (err.stack ?? err.message) : String(err) }
  }
}

async function run(attack: AttackCase, fixture: Fixture, keyring: Keyring): Promise<string[]> {
  const { env } = attack.setup.config ?? {}
  if (env !== undefined) return runProcess(env)
  const plan = planOf(attack)
  const time: Time = { offsetMs: 0, skewMs: skewOf(attack.setup.config ?? {}) }
  const clock = (): number => Date.now() + time.offsetMs + time.skewMs
  const world = await openWorld({ fixture, case: attack, keyring, plan, clock })
  const mustRefuse = attack.expect.upstream === 'refuses_to_start'
  if (typeof world === 'string') return mustRefuse ? [] : [`the configuration was refused: ${world}`]
  try {
    if (mustRefuse) return ['the configuration was accepted']
    prepareUpstream(attack.setup.note ?? '', world)
    const flood = floodOf(attack.setup.note ?? '')
    if (flood !== null) return await judgeFlood(flood, world)
    return await follow(plan, { attack, fixture, world, keyring, time })
  } finally {
    await world.close()
  }
}

/** The last step that sends is judged; what comes after it happens, or is looked at, while it is under way. */
async function follow(plan: readonly Planned[], playing: Playing): Promise<string[]> {
  const bornMs = Date.now()
  const complaints: string[] = []
  const last = plan.findLastIndex(isSending)
  const sendOnce = async (): Promise<void> => void (await judgeRequest(null, { playing, bornMs }))
  let share = 1
  for (const [at, step] of plan.slice(0, last).entries()) {
    if (isSending(step)) {
      const sent = await judgeRequest(step, { playing, bornMs })
      if (step.kind === 'send') complaints.push(...wrongStatus(step.statuses, sent.statuses, at))
      share = Math.min(share, sent.share)
    } else if (step.kind === 'look') complaints.push(...(await currentView(step, playing, share)))
    else await act(step, playing, sendOnce)
  }
  const judged = plan[last]
  if (judged === undefined || !isSending(judged)) throw new TypeError('a plan sends something')
  const during = plan.slice(last + 1)
  if (during.some(({ kind }) => kind === 'terminate')) slowDown(playing.world)
  const sending = judgeRequest(judged, { playing, bornMs, judge: true })
  // Until the request is under way, what interrupts it would come before it.
  if (during.length > 0) await Promise.race([sending, new Promise((resolve) => setTimeout(resolve, UNDER_WAY_MS))])
  for (const step of during) if (step.kind !== 'look' && !isSending(step)) await act(step, playing, sendOnce)
  const sent = await sending
  complaints.push(...sent.complaints)
  if (judged.kind === 'send') complaints.push(...wrongStatus(judged.statuses, sent.statuses, last))
  for (const step of during)
    if (step.kind === 'look') complaints.push(...(await currentView(step, playing, Math.min(share, sent.share))))
  return complaints
}

const UNDER_WAY_MS = 400

const wrongStatus = (wanted: readonly number[], got: readonly number[], at: number): string[] =>
  wanted.length === 0
    ? []
    : got
        .filter((status) => !wanted.includes(status))
        .slice(0, 1)
        .map((status) => `step ${at + 1} got ${status}, not ${wanted.join(' or ')}`)

/** A start with an environment variable that must keep it from starting. */
function runProcess(assignments: unknown): string[] {
  const pairs = [assignments].flat().map((one) => /^([A-Z_]+)=(.*)$/.exec(String(one))?.slice(1))
  if (pairs.some((pair) => pair === undefined))
    throw new Unknown(`the environment ${JSON.stringify(assignments)} is not known`)
  const main = fileURLToPath(new URL('../../sidecar/main.ts', import.meta.url))
  const { status } = spawnSync(process.execPath, [main, 'run'], {
    env: { ...process.env, ...Object.fromEntries(pairs.map((pair) => pair ?? [])) },
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
