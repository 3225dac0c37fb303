/** A small SSF transmitter of somebody else, for tests: it shares no code with ours. */
import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import { type CryptoKey, exportJWK, generateKeyPair, SignJWT } from 'jose'

type Json = { readonly [name: string]: unknown }
export type SentSet = { readonly jti: string; readonly text: string }
type TheirStream = {
  stream_id: string
  delivery: { method: string; endpoint_url: string; authorization_header?: string }
  events_requested: readonly string[]
  description: string
  status: string
  /** Not yet acknowledged, in order. */
  readonly queue: SentSet[]
}
export type Ways = {
  /** A second stream of one receiver is 409. */
  onlyOne: boolean
  noPatch: boolean
  noVerification: boolean
  /** Polls are answered at once. */
  noLongPoll: boolean
  /** It takes requests for verification and sends nothing. */
  mute: boolean
  /** Access tokens end after so many calls, whatever their `expires_in` says. */
  callsPerToken: number
  intervalS: number
}
export type Transmitter = {
  readonly issuer: string
  readonly jwks: { readonly keys: readonly object[] }
  readonly ways: Ways
  readonly streams: Map<string, TheirStream>
  /** `<METHOD> <path>` of every call. */
  readonly calls: string[]
  /** What receivers refused, by jti. */
  readonly refused: Map<string, Json>
  /** Compact, signed by its key unless the header says otherwise. */
  sign(claims: Json, header?: Json, key?: CryptoKey | Uint8Array): Promise<string>
  /** The claims of a SET for the only stream. */
  claims(type: string, subject: Json, members?: Json): Json & { jti: string }
  /** Queues a SET for the only stream, and pushes it if the stream is pushed. */
  send(claims: Json & { jti?: string }): Promise<void>
  /** Pushes it as it is, and returns the answer. */
  push(text: string, headers?: { [name: string]: string }): Promise<{ status: number; body: unknown }>
  stream(): TheirStream
  /** Another stream than the receiver's own. */
  stop(): Promise<void>
  start(): Promise<void>
}

const SSF = 'https://schemas.openid.net/secevent/ssf/event-type'
const POLL = 'urn:ietf:rfc:8936'
const LONG_POLL_MS = 2_000
export const CLIENT = { id: 'portcullis', secret: 'the-secret-of-portcullis-at-the-idp' }

export async function startTransmitter(port: number, given: Partial<Ways> = {}): Promise<Transmitter> {
  const issuer = `http://127.0.0.1:${port}`
  const pair = await generateKeyPair('RS256')
  const jwks = { keys: [{ ...(await exportJWK(pair.publicKey)), kid: 't', alg: 'RS256', use: 'sig' }] }
  const ways: Ways = {
    ...{ onlyOne: false, noPatch: false, noVerification: false, noLongPoll: false, mute: false },
    ...{ callsPerToken: Number.POSITIVE_INFINITY, intervalS: 0 },
    ...given,
  }
  const streams = new Map<string, TheirStream>()
  const calls: string[] = []
  const refused = new Map<string, Json>()
  const tokens = new Map<string, number>()
  const waiting = new Set<() => void>()
  let server: Server | null = null

  const sign: Transmitter['sign'] = (claims, header = {}, key = pair.privateKey) =>
    new SignJWT({ ...claims }).setProtectedHeader({ alg: 'RS256', typ: 'secevent+jwt', kid: 't', ...header }).sign(key)
  const shown = ({ queue: _, status: _s, delivery, ...stream }: TheirStream) => ({
    ...stream,
    delivery: { method: delivery.method, endpoint_url: delivery.endpoint_url },
    iss: issuer,
    aud: [`${issuer}/receivers/portcullis`],
    events_delivered: stream.events_requested,
    min_verification_interval: ways.intervalS,
  })

  const transmitter: Transmitter = {
    ...{ issuer, jwks, ways, streams, calls, refused, sign },
    claims: (type, subject, members = {}) => ({
      ...{ iss: issuer, aud: `${issuer}/receivers/portcullis`, iat: Math.floor(Date.now() / 1_000) },
      ...{ jti: randomUUID(), txn: randomUUID(), sub_id: subject, events: { [type]: members } },
    }),
    async send(claims) {
      const set = { jti: claims.jti ?? randomUUID(), text: await sign(claims) }
      const stream = transmitter.stream()
      stream.queue.push(set)
      for (const wake of waiting) wake()
      if (stream.delivery.method !== POLL) {
        const { status } = await transmitter.push(set.text)
        if (status === 202 || status === 400) stream.queue.splice(stream.queue.indexOf(set), 1)
      }
    },
    async push(text, headers = {}) {
      const { delivery } = transmitter.stream()
      const authorization = delivery.authorization_header ?? ''
      const response = await fetch(delivery.endpoint_url, {
        method: 'POST',
        headers: { 'content-type': 'application/secevent+jwt', accept: 'application/json', authorization, ...headers },
        body: text,
      })
      const body = await response.text()
      return { status: response.status, body: body === '' ? null : JSON.parse(body) }
    },
    stream() {
      const [only] = streams.values()
      if (only === undefined) throw new Error('there is no stream')
      return only
    },
    async stop() {
      for (const wake of waiting) wake()
      server?.closeAllConnections()
      await new Promise<void>((done) => (server === null ? done() : server.close(() => done())))
      server = null
    },
    async start() {
      const started = createServer(async (req, res) => {
        const body = await text(req)
        const { status, answer } = await respond(req, body)
        res.writeHead(status, { 'content-type': 'application/json' }).end(answer === null ? '' : JSON.stringify(answer))
      })
      await new Promise<void>((done) => started.listen(port, '127.0.0.1', done))
      server = started
    },
  }

  type Said = { readonly status: number; readonly answer: unknown }
  const say = (status: number, answer: unknown = null): Said => ({ status, answer })

  async function respond(req: IncomingMessage, body: string): Promise<Said> {
    const url = new URL(req.url ?? '', issuer)
    calls.push(`${req.method} ${url.pathname}`)
    if (url.pathname === '/.well-known/ssf-configuration') return say(200, metadata())
    if (url.pathname === '/jwks') return say(200, jwks)
    if (url.pathname === '/token') return token(req, new URLSearchParams(body))
    const bearer = req.headers.authorization?.replace('Bearer ', '') ?? ''
    const left = tokens.get(bearer) ?? 0
    if (left <= 0) return say(401, { error: 'invalid_token' })
    tokens.set(bearer, left - 1)
    const sent: { [name: string]: never } = body === '' ? {} : JSON.parse(body)
    const id = url.searchParams.get('stream_id') ?? String(sent.stream_id ?? '')
    if (url.pathname === '/stream') return manage(req.method ?? '', id, sent)
    const stream = streams.get(url.pathname.startsWith('/poll/') ? url.pathname.slice(6) : id)
    if (stream === undefined) return say(404)
    if (url.pathname === '/verify') return verify(stream, sent)
    if (url.pathname === '/status') {
      if (req.method === 'POST') stream.status = String(sent.status)
      return say(200, { stream_id: stream.stream_id, status: stream.status })
    }
    return poll(stream, sent)
  }

  const metadata = (): Json => ({
    ...{
      spec_version: '1_0',
      issuer,
      jwks_uri: `${issuer}/jwks`,
      delivery_methods_supported: ['urn:ietf:rfc:8935', POLL],
    },
    ...{ configuration_endpoint: `${issuer}/stream`, status_endpoint: `${issuer}/status` },
    ...(!ways.noVerification && { verification_endpoint: `${issuer}/verify` }),
  })

  function token(req: IncomingMessage, form: URLSearchParams): Said {
    const basic = Buffer.from(`${CLIENT.id}:${CLIENT.secret}`).toString('base64')
    if (req.headers.authorization !== `Basic ${basic}` || form.get('grant_type') !== 'client_credentials')
      return say(401, { error: 'invalid_client' })
    const value = randomUUID()
    tokens.set(value, ways.callsPerToken)
    return say(200, { access_token: value, token_type: 'Bearer', expires_in: 300 })
  }

  function manage(method: string, id: string, sent: { [name: string]: never }): Said {
    const known = streams.get(id)
    if (method === 'GET' && id === '') return say(200, [...streams.values()].map(shown))
    if (method === 'POST') {
      if (ways.onlyOne && streams.size > 0) return say(409)
      const streamId = randomUUID()
      const made: TheirStream = { ...blank(streamId), ...parts(sent, streamId) }
      streams.set(streamId, made)
      return say(201, shown(made))
    }
    if (known === undefined) return say(404)
    if (method === 'GET') return say(200, shown(known))
    if (method === 'PATCH') {
      if (ways.noPatch) return say(405)
      Object.assign(known, parts(sent, id))
      return say(200, shown(known))
    }
    streams.delete(id)
    return say(204)
  }

  const blank = (id: string): TheirStream => ({
    ...{ stream_id: id, events_requested: [], description: '', status: 'enabled', queue: [] },
    delivery: { method: POLL, endpoint_url: `${issuer}/poll/${id}` },
  })
  function parts({ delivery, events_requested, description }: { [name: string]: never }, id: string): object {
    const { method, endpoint_url = `${issuer}/poll/${id}`, ...rest } = delivery as unknown as { [name: string]: string }
    return { delivery: { method, endpoint_url, ...rest }, events_requested, description }
  }

  async function verify(stream: TheirStream, { state }: Json): Promise<Said> {
    if (ways.mute) return say(204)
    const subject = { format: 'opaque', id: stream.stream_id }
    // RFC 9110: the event may come before the answer.
    setImmediate(() => {
      const sent = transmitter.claims(`${SSF}/verification`, subject, state === undefined ? {} : { state })
      transmitter.send(sent).catch(() => undefined)
    })
    return say(204)
  }

  async function poll(stream: TheirStream, sent: Json): Promise<Said> {
    const {
      ack = [],
      setErrs = {},
      maxEvents = 100,
      returnImmediately = false,
    } = sent as {
      ack?: readonly string[]
      setErrs?: { [jti: string]: Json }
      maxEvents?: number
      returnImmediately?: boolean
    }
    for (const [jti, err] of Object.entries(setErrs)) refused.set(jti, err)
    const done = new Set([...ack, ...Object.keys(setErrs)])
    stream.queue.splice(0, stream.queue.length, ...stream.queue.filter(({ jti }) => !done.has(jti)))
    if (!returnImmediately && !ways.noLongPoll && stream.queue.length === 0) await somethingComes()
    const sets = stream.queue.slice(0, maxEvents)
    return say(200, {
      sets: Object.fromEntries(sets.map(({ jti, text: compact }) => [jti, compact])),
      moreAvailable: stream.queue.length > sets.length,
    })
  }

  function somethingComes(): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        clearTimeout(timer)
        waiting.delete(wake)
        resolve()
      }
      const timer = setTimeout(wake, LONG_POLL_MS)
      waiting.add(wake)
    })
  }

  await transmitter.start()
  return transmitter
}

async function text(req: IncomingMessage): Promise<string> {
  let body = ''
  for await (const chunk of req) body += chunk
  return body
}
