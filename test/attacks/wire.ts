/** The bytes of an attack case: placeholders filled in, names and order kept, nothing made right. */
import { connect } from 'node:net'
import { parseAnswer, type RawAnswer, sendRaw } from '../support/peers/raw-http.ts'
import { type AttackCase, type Fixture, type TokenDelta, Unknown } from './case-format.ts'
import { claimOf, digestOf, type Keyring, lifetimeOf, mint } from './credentials.ts'
import { sendHttp2 } from './http2.ts'
import { expand, type Placeholders } from './placeholders.ts'

export type WireOptions = {
  readonly attack: AttackCase
  readonly fixture: Fixture
  readonly keyring: Keyring
  /** True time, by the clock of issuers and clients. */
  readonly nowMs: () => number
  /** When the case began. */
  readonly bornMs: number
  readonly nonce: Placeholders['nonce']
  /** Tokens are signed by the key that the issuer rotated to. */
  readonly newKey?: boolean
  /** What every token has that says nothing else of it. */
  readonly header?: { readonly [name: string]: unknown }
  readonly acr?: string | null
  /** How long an answer may take. */
  readonly timeoutMs?: number
}
export type Sent = RawAnswer & { readonly firstByteMs: number }

const TIMEOUT_MS = 10_000
const HTTP2 = /^\s*\{\{h2\}\}/
const DRIP = /\{\{drip:(\d+)?[^}]*\}\}/

/** Prepared first, since making tokens takes time that is not the sidecar's. */
export async function prepare(options: WireOptions): Promise<(port: number) => Promise<Sent>> {
  const { attack, timeoutMs = TIMEOUT_MS } = options
  const { raw, method, body } = attack.request
  const values = fillerOf(options)
  if (raw !== undefined && HTTP2.test(raw)) {
    const text = await values.fill(raw.replace(HTTP2, ''))
    return (port) => sendHttp2(port, text, attack.request)
  }
  const slow = DRIP.exec(raw ?? (typeof body === 'string' ? body : ''))
  const streamBytes = streamedBytes(attack.request)
  const bytes = Buffer.from(await messageOf(attack.request, values.fill, slow === null ? null : slow.index), 'latin1')
  if (slow !== null) return (port) => sendSlowly(port, { start: bytes, perSecond: Number(slow[1] ?? 1) })
  return (port) => sendRaw(port, bytes, { timeoutMs, head: method === 'HEAD', streamBytes })
}

/** `{{stream:n}}` as a whole body is sent in pieces, so that it does not count as memory of the sidecar. */
const streamedBytes = ({ body }: AttackCase['request']): number =>
  Number(typeof body === 'string' ? (/^\{\{stream:(\d+)\}\}$/.exec(body)?.[1] ?? 0) : 0)

type Fill = (value: string) => Promise<string>

/** `cutAt`: where in raw or body the slow part begins. */
async function messageOf(request: AttackCase['request'], fill: Fill, cutAt: number | null): Promise<string> {
  if (request.raw !== undefined) return fill(request.raw.slice(0, cutAt ?? undefined))
  const streamed = streamedBytes(request)
  const whole = bodyText(request.body)
  const body = streamed > 0 ? '' : latin1(await fill(whole.slice(0, cutAt ?? undefined)))
  const lines = [`${request.method} ${latin1(await fill(request.target))} HTTP/1.1`]
  for (const [name, value] of request.headers) lines.push(...(await linesOf(name, value, fill)))
  const framed = request.headers.some(([name]) => /^(?:content-length|transfer-encoding)$/i.test(name))
  const length = cutAt === null ? body.length + streamed : SLOW_LENGTH
  if (!framed && length > 0) lines.push(`Content-Length: ${length}`)
  if (typeof request.body === 'object' && !request.headers.some(([name]) => /^content-type$/i.test(name)))
    lines.push('Content-Type: application/json')
  return `${lines.join('\r\n')}\r\n\r\n${body}`
}

/** What a slow body promises; it never comes to its end. */
const SLOW_LENGTH = 10_000

const bodyText = (body: unknown): string => {
  if (body === undefined) return ''
  return typeof body === 'string' ? body : JSON.stringify(body)
}

/** `{{repeatheader:h}}` with a number stands for so many fields of that name. */
async function linesOf(name: string, value: string, fill: Fill): Promise<string[]> {
  const repeated = /^\{\{repeatheader:(.+)\}\}$/.exec(name)?.[1]
  if (repeated === undefined) return [`${latin1(name)}: ${latin1(await fill(value))}`]
  const count = Number(value)
  if (!Number.isInteger(count)) throw new Unknown(`the header ${repeated} is repeated ${value} times`)
  return Array.from({ length: count }, (_, at) => `${repeated}: ${at}`)
}

/** What is no single byte goes out as UTF-8; what is, as it is. */
const latin1 = (text: string): string =>
  [...text].some((one) => one.charCodeAt(0) > 0xff) ? Buffer.from(text).toString('latin1') : text

/** Tokens and proofs of one case; each token is made once, each proof whenever it is named. */
function fillerOf(options: WireOptions): { readonly fill: Fill } {
  const { attack, fixture, keyring, nowMs, nonce } = options
  const { request: wanted, setup } = attack
  const nowSeconds = (): number => Math.floor(nowMs() / 1_000)
  const tokens = new Map<string, string>()
  const bases = { definitions: { ...fixture.tokens, ...setup.tokens }, given: fixture.tokens }
  const placeholders: Placeholders = { keyring, token, proof, nowSeconds, nonce }
  const fill: Fill = (value) => expand(value, placeholders)
  const publicUrl = String(setup.config?.public_origin ?? fixture.pep.public_origin)

  async function token(name: string): Promise<string> {
    const known = tokens.get(name)
    if (known !== undefined) return known
    const delta = bases.definitions[name]
    if (delta === undefined) throw new Unknown(`the token ${name} is not defined`)
    // A token with a life of its own was made at the start; the case is about its end.
    const lifetime = lifetimeOf(delta, bases)
    const early = lifetime !== null && lifetime < USUAL_LIFETIME_SECONDS
    const madeAt = early ? Math.floor(options.bornMs / 1_000) : nowSeconds()
    const minted = await mint({
      delta: adapted(delta, { ...options, bases }),
      ...bases,
      keyring,
      nowSeconds: madeAt,
      fill,
    })
    tokens.set(name, minted)
    return minted
  }

  async function proof(name: string): Promise<string> {
    const delta = setup.proofs?.[name] ?? fixture.proofs[name]
    if (delta === undefined) throw new Unknown(`the proof ${name} is not defined`)
    const bearer = wanted.headers
      .map(([, value]) => /\{\{tok:(\w+)\}\}/.exec(value)?.[1])
      .find((found) => found !== undefined)
    const texts: { readonly [text: string]: string } = {
      '<method>': wanted.method,
      '<public_origin + path>': `${publicUrl}${wanted.target.split('?')[0]}`,
      '<sha256 of the token>': bearer === undefined ? '' : digestOf(await token(bearer)),
    }
    const fillProof: Fill = async (value) => texts[value] ?? fill(value)
    const bases = { definitions: { ...fixture.proofs, ...setup.proofs }, given: fixture.proofs }
    return mint({ delta, ...bases, keyring, nowSeconds: nowSeconds(), fill: fillProof })
  }

  return { fill }
}

const USUAL_LIFETIME_SECONDS = 300

/** The token of a case as the step and the route want it: by the new key, with another kid, from a good sign-in. */
function adapted(
  delta: TokenDelta,
  { newKey, header, acr, bases }: WireOptions & { readonly bases: Parameters<typeof claimOf>[1] },
): TokenDelta {
  const lacksAcr = acr !== undefined && acr !== null && claimOf(delta, bases, 'acr') === undefined
  return {
    ...delta,
    header: { ...delta.header, ...header, ...(newKey === true && { kid: 'k2' }) },
    ...(newKey === true && { key: 'rotated' }),
    ...(lacksAcr && { claims: { ...delta.claims, acr } }),
  }
}

const SLOW_MAX_MS = 90_000

/** The start at once, then byte by byte, until the other end has had enough. */
function sendSlowly(port: number, { start, perSecond }: { start: Buffer; perSecond: number }): Promise<Sent> {
  return new Promise((resolve) => {
    let text = ''
    let firstByteMs = 0
    const startedMs = performance.now()
    const socket = connect(port, '127.0.0.1', () => socket.write(start))
    const timer = setInterval(() => socket.write('a'), 1_000 / Math.max(1, perSecond))
    const late = setTimeout(() => socket.destroy(), SLOW_MAX_MS)
    socket.on('data', (chunk) => {
      firstByteMs ||= performance.now() - startedMs
      text += chunk.toString('latin1')
    })
    socket.on('error', () => undefined)
    socket.on('close', () => {
      clearInterval(timer)
      clearTimeout(late)
      resolve({ ...parseAnswer(text), firstByteMs })
    })
  })
}
