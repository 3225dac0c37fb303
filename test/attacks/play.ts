/** Plays one attack case: its world, its steps, its request, and the judgement. */

import { spawnSync } from 'node:child_process'
import { connect } from 'node:net'
import { fileURLToPath } from 'node:url'
import { exportJWK } from 'jose'
import { parseAnswer, type RawAnswer, sendRaw } from '../sidecar/support/raw-http.ts'
import { type AttackCase, type Fixture, Skip, type TokenDelta } from './cases.ts'
import { createKeyring, digestOf, type Keyring, mint } from './credentials.ts'
import { judge } from './judge.ts'
import { expand, type Placeholders } from './placeholders.ts'
import { openWorld, type World } from './world.ts'

export type Outcome =
  | { readonly kind: 'passed' }
  | { readonly kind: 'failed'; readonly why: string }
  | { readonly kind: 'skipped'; readonly why: string }

type Playing = {
  readonly attack: AttackCase
  readonly fixture: Fixture
  readonly world: World
  readonly keyring: Keyring
  readonly time: { offsetMs: number }
}

/** `keyring` is shared by all cases, since keys are slow to make. */
export async function play(attack: AttackCase, fixture: Fixture, keyring: Keyring = createKeyring()): Promise<Outcome> {
  try {
    skipUnbuilt(attack)
    const why = await run(attack, fixture, keyring)
    return why.length === 0 ? { kind: 'passed' } : { kind: 'failed', why: why.join('; ') }
  } catch (err) {
    if (err instanceof Skip) return { kind: 'skipped', why: err.message }
    return { kind: 'failed', why: err instanceof Error ? (err.stack ?? err.message) : String(err) }
  }
}

function skipUnbuilt({ class: kind, setup }: AttackCase): void {
  if (kind === 'injection-bypass') throw new Skip('belongs to the Kubernetes injector')
  if (/RST_STREAM|CONTINUATION frames/.test(setup.note ?? '')) throw new Skip('HTTP/2 is not built yet')
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
    timeout: 10_000,
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

async function request(playing: Playing): Promise<string[]> {
  const { attack, world } = playing
  const { steps = [] } = attack.request
  for (const step of steps.slice(0, -1)) await takeStep(step, playing)
  await lastStep(steps.at(-1) ?? 'send', playing)
  const keepReached = attack.expect.upstream === 'first_only'
  if (!keepReached) world.upstream.reached.length = 0
  if (/(\d+) concurrent/.test(steps.at(-1) ?? ''))
    return sendMany(playing, Number(/(\d+) concurrent/.exec(steps.at(-1) ?? '')?.[1]))
  // Once before, so that a time limit measures the request and not the first use of each part.
  const drip = /^([\s\S]*)\{\{drip:/.exec(attack.request.raw ?? '')?.[1]
  const bytes = drip === undefined ? await wireBytes(playing) : Buffer.alloc(0)
  // The first use of each part is not what the case is about.
  if (world.peakMb !== null)
    await send(world.port, await wireBytes(playing), { ...attack, request: { ...attack.request, body: '' } })
  const peakBefore = world.peakMb?.() ?? 0
  const startedMs = performance.now()
  const replica = /send to replica/.test(steps.at(-1) ?? '') ? await world.replicaPort?.() : undefined
  const port = replica ?? world.port
  const answer = drip === undefined ? await send(port, bytes, attack) : await sendSlowly(port, drip)
  return judge(attack.expect, {
    answer,
    reached: world.upstream.reached,
    fetched: world.fetched,
    tookMs: Math.round(performance.now() - startedMs),
    rssGrowthMb: Math.round((world.peakMb?.() ?? 0) - peakBefore),
    target: attack.request.target,
  })
}

const send = (port: number, bytes: Buffer, { request }: AttackCase): Promise<RawAnswer> =>
  sendRaw(port, bytes, { timeoutMs: 10_000, head: request.method === 'HEAD', streamBytes: streamedBytes(request) })

/** `{{stream:n}}` as a whole body is sent in pieces, so that it does not count as memory of the sidecar. */
const streamedBytes = ({ body }: AttackCase['request']): number =>
  Number(typeof body === 'string' ? (/^\{\{stream:(\d+)\}\}$/.exec(body)?.[1] ?? 0) : 0)

/** What happens before the request that is judged. */
async function takeStep(step: string, playing: Playing): Promise<void> {
  const { world, time, keyring, fixture, attack } = playing
  const issuer = fixture.issuers[0]
  const other = /^(GET|POST|PUT|DELETE) (\S+) as (\w+)$/.exec(step)
  if (step === 'send' || step.startsWith('send at t0'))
    return void (await send(world.port, await wireBytes(playing), attack))
  if (step.startsWith('rotate key') && issuer !== undefined) {
    const jwk = { ...(await exportJWK(keyring('rotated').publicKey)), kid: 'k2' }
    return void world.jwks.get(issuer.iss)?.keys.push(jwk)
  }
  if (step === 'remove k1' && issuer !== undefined) {
    await send(world.port, await wireBytes(playing), attack)
    return void world.jwks.set(issuer.iss, { keys: [] })
  }
  if (step === 'wait max_age') {
    time.offsetMs += 700_000
    return
  }
  if (step === 'hang PDP') {
    if (world.pdp !== null) world.pdp.script = () => null
    return
  }
  if (step.startsWith('send to replica')) return void (await send(world.port, await wireBytes(playing), attack))
  if (other !== null) {
    const [, method = '', target = ''] = other
    const earlier = { ...attack, request: { ...attack.request, method, target } }
    return void (await send(world.port, await wireBytes({ ...playing, attack: earlier }), earlier))
  }
  throw new Skip(`a step is prose that this runner does not know: ${step}`)
}

/** The last step is the request itself; some of its words change the time or the amount. */
async function lastStep(step: string, { time, world }: Playing): Promise<void> {
  const later = /^send at t0\+(\d+)s$/.exec(step)
  if (later !== null) time.offsetMs += Number(later[1]) * 1_000
  if (!/different paths; \/metrics stays/.test(step)) return
  for (let at = 0; at < 1_000; at += 1)
    await sendRaw(world.port, `GET /invoices/${at} HTTP/1.1\r\nHost: app.test\r\nConnection: close\r\n\r\n`)
  const { length } = await world.registry.metrics()
  if (length > 100_000) throw new Error(`/metrics has ${length} characters after 1,000 paths`)
}

async function sendMany(playing: Playing, count: number): Promise<string[]> {
  const bytes = await wireBytes(playing)
  const complaints = new Set<string>()
  await Promise.all(
    Array.from({ length: count }, async () => {
      const startedMs = performance.now()
      const answer = await send(playing.world.port, bytes, playing.attack)
      const tookMs = Math.round(performance.now() - startedMs)
      const { reached } = playing.world.upstream
      const found = judge(playing.attack.expect, { answer, reached, fetched: [], tookMs, rssGrowthMb: 0, target: '' })
      for (const complaint of found) complaints.add(complaint)
    }),
  )
  return [...complaints]
}

/** The start at once, then a byte each second, until the other end has had enough. */
function sendSlowly(port: number, start: string): Promise<RawAnswer> {
  return new Promise((resolve) => {
    let text = ''
    const socket = connect(port, '127.0.0.1', () => socket.write(start))
    const timer = setInterval(() => socket.write('a'), 1_000)
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1')
    })
    socket.on('error', () => undefined)
    socket.on('close', () => {
      clearInterval(timer)
      resolve(parseAnswer(text))
    })
  })
}

async function wireBytes(playing: Playing): Promise<Buffer> {
  const { attack, fixture, keyring, time } = playing
  const { request: wanted, setup } = attack
  const nowSeconds = (): number => Math.floor((Date.now() + time.offsetMs) / 1_000)
  const tokens = new Map<string, string>()
  const definitions = { ...fixture.tokens, ...setup.tokens }
  const placeholders: Placeholders = { keyring, token, proof, nowSeconds }
  const fill = (value: string): Promise<string> => expand(value, placeholders)
  const publicUrl = String(setup.config?.public_origin ?? fixture.pep.public_origin)

  async function token(name: string): Promise<string> {
    const known = tokens.get(name)
    if (known !== undefined) return known
    const delta = rotated(definitions[name], wanted.steps)
    if (delta === undefined) throw new Skip(`the token ${name} is not defined`)
    const minted = await mint({ delta, definitions, keyring, nowSeconds: nowSeconds() - lateness(wanted.steps), fill })
    tokens.set(name, minted)
    return minted
  }

  async function proof(name: string): Promise<string> {
    const delta = setup.proofs?.[name] ?? fixture.proofs[name]
    if (delta === undefined) throw new Skip(`the proof ${name} is not defined`)
    const bearer = wanted.headers
      .map(([, value]) => /\{\{tok:(\w+)\}\}/.exec(value)?.[1])
      .find((found) => found !== undefined)
    const texts: { readonly [text: string]: string } = {
      '<method>': wanted.method,
      '<public_origin + path>': `${publicUrl}${wanted.target.split('?')[0]}`,
      '<sha256 of the token>': bearer === undefined ? '' : digestOf(await token(bearer)),
    }
    const fillProof = async (value: string): Promise<string> => texts[value] ?? fill(value)
    return mint({ delta, definitions: fixture.proofs, keyring, nowSeconds: nowSeconds(), fill: fillProof })
  }

  if (wanted.raw !== undefined) return Buffer.from(await fill(wanted.raw), 'latin1')
  const lines = [`${wanted.method} ${await fill(Buffer.from(wanted.target).toString('latin1'))} HTTP/1.1`]
  for (const [name, value] of wanted.headers) lines.push(`${name}: ${await fill(value)}`)
  const streamed = streamedBytes(wanted)
  const body = typeof wanted.body === 'string' && streamed === 0 ? await fill(wanted.body) : ''
  if (body !== '' || streamed > 0) lines.push(`Content-Length: ${body.length + streamed}`)
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n${body}`, 'latin1')
}

/** A token that was used before time went on was made before it did. */
const lateness = (steps: readonly string[] = []): number =>
  Number(/^send at t0\+(\d+)s$/.exec(steps.at(-1) ?? '')?.[1] ?? 0)

function rotated(delta: TokenDelta | undefined, steps: readonly string[] = []): TokenDelta | undefined {
  if (delta === undefined || !/new kid/.test(steps.at(-1) ?? '')) return delta
  return { ...delta, header: { ...delta.header, kid: 'k2' }, key: 'rotated' }
}
