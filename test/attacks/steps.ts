/** What happens before the request that an attack case judges: steps in prose, or requests of their own. */
import { exportJWK } from 'jose'
import { sendRaw } from '../sidecar/support/raw-http.ts'
import { type AttackCase, type Fixture, Skip, type Step } from './cases.ts'
import type { Keyring } from './credentials.ts'
import type { World } from './world.ts'

export type Playing = {
  readonly attack: AttackCase
  readonly fixture: Fixture
  readonly world: World
  readonly keyring: Keyring
  readonly time: { offsetMs: number }
  /** Sends a request of the case's own form; nobody looks at the answer. */
  readonly send: (request: AttackCase['request']) => Promise<void>
}

const SENDS_MAX = 1_000
const MAX_AGE_MS = 700_000
const UNITS: { readonly [unit: string]: number } = { ms: 1, s: 1_000, m: 60_000, min: 60_000 }

type Take = (match: RegExpExecArray, playing: Playing) => Promise<unknown>

/** By what a step says; the first that fits is taken. */
const STEPS: readonly (readonly [RegExp, Take])[] = [
  [/^send(?: at t0\b.*| to replica \w+| again| once)?$/, (_, { attack, send }) => send(attack.request)],
  [/^send (?:x ?)?(\d+)(?: times)?$/, ([, count], { attack, send }) => repeat(count, () => send(attack.request))],
  [/^send twice$/, (_, { attack, send }) => repeat('2', () => send(attack.request))],
  [/^rotate key\b/, (_, playing) => rotateKey(playing)],
  [/^remove (k1|key)\b/, (_, playing) => removeKey(playing)],
  [/^wait max_age$/, async (_, { time }) => pass(time, MAX_AGE_MS)],
  [
    /^(?:wait|sleep) (\d+) ?(ms|s|min|m)$/,
    async ([, n, unit], { time }) => pass(time, Number(n) * (UNITS[unit ?? ''] ?? 0)),
  ],
  [/^hang PDP$/, (_, { world }) => hangPdp(world)],
  [/^(?:stop|kill) PDP$/, (_, { world }) => world.stopPdp()],
  [/^(?:revoke|delete|remove)(?: tuple)? (\S+ \S+ \S+:\S+)$/, ([, tuple], { world }) => world.revoke([tuple ?? ''])],
  [/^(GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS) (\S+) as (\w+)$/, (match, playing) => sendOther(match, playing)],
]

/** Throws Skip for prose that nobody here knows. */
export async function takeStep(step: Step, playing: Playing): Promise<void> {
  if (typeof step !== 'string') return playing.send({ ...step, steps: [] })
  for (const [form, take] of STEPS) {
    const match = form.exec(step)
    if (match !== null) return void (await take(match, playing))
  }
  throw new Skip(`a step is prose that this runner does not know: ${step}`)
}

async function repeat(count: string | undefined, act: () => Promise<void>): Promise<void> {
  for (let at = 0; at < Math.min(Number(count), SENDS_MAX); at += 1) await act()
}

async function rotateKey({ fixture, world, keyring }: Playing): Promise<void> {
  const [issuer] = fixture.issuers
  const jwk = { ...(await exportJWK(keyring('rotated').publicKey)), kid: 'k2' }
  if (issuer !== undefined) world.jwks.get(issuer.iss)?.keys.push(jwk)
}

/** After a use, so that the key is known and its token is cached. */
async function removeKey({ attack, fixture, world, send }: Playing): Promise<void> {
  const [issuer] = fixture.issuers
  await send(attack.request)
  if (issuer !== undefined) world.jwks.set(issuer.iss, { keys: [] })
}

async function hangPdp({ pdp }: World): Promise<void> {
  if (pdp !== null) pdp.script = () => null
}

async function pass(time: Playing['time'], ms: number): Promise<void> {
  time.offsetMs += ms
}

/** Another request of the same client, or of the one that is named when the case has its token. */
function sendOther(
  [, method = '', target = '', name = '']: RegExpExecArray,
  { attack, fixture, send }: Playing,
): Promise<void> {
  const known = { ...fixture.tokens, ...attack.setup.tokens }[name] !== undefined
  const headers = attack.request.headers.map(
    ([field, value]) => [field, known ? value.replace(/\{\{tok:\w+\}\}/, `{{tok:${name}}}`) : value] as const,
  )
  return send({ ...attack.request, method, target, headers })
}

/** The last step is the request itself; some of its words change the time, or come with more requests. */
export async function takeLastStep(step: string, { time, world }: Playing): Promise<void> {
  const later = /^send at t0\+(\d+)s$/.exec(step)
  if (later !== null) time.offsetMs += Number(later[1]) * 1_000
  if (!/different paths; \/metrics stays/.test(step)) return
  for (let at = 0; at < 1_000; at += 1)
    await sendRaw(world.port, `GET /invoices/${at} HTTP/1.1\r\nHost: app.test\r\nConnection: close\r\n\r\n`)
  const { length } = await world.registry.metrics()
  if (length > 100_000) throw new Error(`/metrics has ${length} characters after 1,000 paths`)
}
