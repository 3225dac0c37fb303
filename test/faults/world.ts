/** The organization, the app and the clients of the load, and how it talks to the PDPs and the sidecars. */
import { setTimeout as delay } from 'node:timers/promises'
import { type Dispatcher, request } from 'undici'
import { ecKeys, type KeyPair, proof } from '../support/peers/issuer.ts'
import { RESOURCE } from './system.ts'

export type Tokens = {
  /** Manages. */
  admin: string
  /** Of a bearer. */
  loader: string
  /** Bound to `keys`. */
  prover: string
  readonly keys: KeyPair
}
export type Sent = {
  readonly path: string
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  readonly headers: { readonly [name: string]: string }
  readonly body?: string
}

export const ORGANIZATION = 'acme'
export const LOADER = 'loader'
export const PROVER = 'prover'
export const CLIENT_TIMEOUT_MS = 65_000
const TRIES_MAX = 20
const RETRY_MS = 500
const SECRET = 'loader-secret-0123456789-abcdef'
const SCOPES = 'relationships:write relationships:read directory:write manifest:write clients:write entitlements:write'

/** Status 0: there was no answer. */
export async function send(
  to: Dispatcher | string | undefined,
  { path, ...options }: Sent,
): Promise<{ status: number; text: string }> {
  const timeouts = { headersTimeout: CLIENT_TIMEOUT_MS, bodyTimeout: CLIENT_TIMEOUT_MS }
  try {
    const { statusCode, body } =
      typeof to === 'string'
        ? await request(`${to}${path}`, { ...options, ...timeouts })
        : await (to as Dispatcher).request({ path, ...options, ...timeouts })
    return { status: statusCode, text: await body.text() }
  } catch (err) {
    return { status: 0, text: err instanceof Error ? err.message : String(err) }
  }
}

/** Again while the answer is 503: beside other parts, a machine with two cores may have no time for it. */
async function insist(...request: Parameters<typeof send>): ReturnType<typeof send> {
  for (let tries = 1; ; tries++) {
    const answer = await send(...request)
    if (answer.status !== 503 || tries === TRIES_MAX) return answer
    await delay(RETRY_MS)
  }
}

export async function createWorld(origin: string, adminSecret: string): Promise<Tokens> {
  const keys = ecKeys()
  const admin = await mint(origin, { id: 'admin', secret: adminSecret, scope: SCOPES })
  const put = async (path: string, body: object): Promise<void> => {
    const headers = { authorization: `Bearer ${admin}`, 'content-type': 'application/json' }
    const { status, text } = await insist(origin, { path, method: 'PUT', headers, body: JSON.stringify(body) })
    if (status >= 300) throw new Error(`PUT ${path}: ${status} ${text}`)
  }
  await put(`/v1/organizations/${ORGANIZATION}`, { name: 'Acme' })
  await put('/v1/apps/documents/manifest', { audiences: [RESOURCE] })
  for (const id of [LOADER, PROVER])
    await put(`/v1/clients/${id}`, {
      app: 'documents',
      grant_types: ['client_credentials'],
      organization: ORGANIZATION,
      client_secret: SECRET,
    })
  return { ...(await mintAll(origin, { adminSecret, keys })), keys }
}

export async function mintAll(
  origin: string,
  { adminSecret, keys }: { readonly adminSecret: string; readonly keys: KeyPair },
): Promise<Omit<Tokens, 'keys'>> {
  return {
    admin: await mint(origin, { id: 'admin', secret: adminSecret, scope: SCOPES }),
    loader: await mint(origin, { id: LOADER, secret: SECRET, resource: RESOURCE }),
    prover: await mint(origin, { id: PROVER, secret: SECRET, resource: RESOURCE, keys }),
  }
}

type From = {
  readonly id: string
  readonly secret: string
  readonly scope?: string
  readonly resource?: string
  /** The token is bound to them. */
  readonly keys?: KeyPair
}

async function mint(origin: string, { id, secret, scope, resource, keys }: From): Promise<string> {
  const form = {
    grant_type: 'client_credentials',
    ...(scope !== undefined && { scope }),
    ...(resource !== undefined && { resource }),
  }
  const url = `${origin}/oauth/token`
  const dpop =
    keys && (await proof({ keys, method: 'POST', url, token: '', clock: Date.now, claims: { ath: undefined } }))
  const { status, text } = await send(origin, {
    path: '/oauth/token',
    method: 'POST',
    headers: {
      authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`,
      'content-type': 'application/x-www-form-urlencoded',
      ...(dpop !== undefined && { dpop }),
    },
    body: new URLSearchParams(form).toString(),
  })
  const token: unknown = status === 200 ? JSON.parse(text).access_token : undefined
  if (typeof token !== 'string') throw new Error(`no token for ${id}: ${status} ${text}`)
  return token
}

/** The names of the documents with a relationship of the loader, and of the features that are on. */
export async function readAll(origin: string, token: string): Promise<Set<string>> {
  const held = new Set<string>()
  for await (const item of pages(origin, { token, path: 'relationships' })) {
    const { object, subject } = item as { object: string; subject: string }
    if (subject === `service:${LOADER}`) held.add(object.slice('document:'.length))
  }
  for await (const item of pages(origin, { token, path: 'entitlements' })) {
    const { key, value } = item as { key: string; value: { enabled: boolean } }
    if (value.enabled) held.add(key.slice('feature.'.length))
  }
  return held
}

async function* pages(origin: string, { token, path }: { readonly token: string; readonly path: string }) {
  for (let after = ''; ; ) {
    const target = `/v1/organizations/${ORGANIZATION}/${path}?page_size=1000${after}`
    const headers = { authorization: `Bearer ${token}` }
    const { status, text } = await insist(origin, { path: target, method: 'GET', headers })
    if (status !== 200) throw new Error(`the ${path} cannot be read: ${status} ${text}`)
    const { items, next_page_token: next } = JSON.parse(text)
    yield* items
    if (typeof next !== 'string' || next === '') return
    after = `&page_token=${encodeURIComponent(next)}`
  }
}
