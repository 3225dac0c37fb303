/** Tokens for the part of the questions that goes through the whole process: made, and revoked, as their owners do it. */
import { setTimeout as delay } from 'node:timers/promises'
import { readerOf } from './mix.ts'
import type { ReaderToken, TokenUse, Violation } from './records.ts'

export type Served = { readonly issuer: string; readonly adminSecret: string; readonly masterKey: string }
export type ReaderTokens = {
  /** Any of the organization's last tokens, of which all but the newest are revoked; undefined for an unknown organization. */
  pick(organization: string): ReaderToken | undefined
  /** Replaces an organization's token by a new one, and revokes it. */
  revokeOne(origin: string): Promise<void>
  /** One that is revoked only by who asked for it. */
  mint(origin: string, organization: string): Promise<ReaderToken>
  revoke(origin: string, organization: string, token: ReaderToken): Promise<void>
}
export type Client = { readonly id: string; readonly secret: string; readonly scope: string }

const KEPT_MAX = 3
const BUSY_TRIES_MAX = 20
const BUSY_WAIT_MS = 500

/** Of clients that may ask about others in their organization. The users are created, too. */
export async function createReaderTokens(
  origin: string,
  { adminSecret }: Served,
  world: { ORGANIZATIONS: readonly string[]; USERS: readonly string[] },
): Promise<ReaderTokens> {
  const scope = 'directory:write clients:write decisions:read'
  const admin = await mint(origin, { id: 'admin', secret: adminSecret, scope })
  const put = async (path: string, body: object): Promise<void> => {
    const headers = { authorization: `Bearer ${admin.value}`, 'content-type': 'application/json' }
    const response = await patiently(() =>
      fetch(`${origin}${path}`, { method: 'PUT', headers, body: JSON.stringify(body) }),
    )
    if (!response.ok) throw new Error(`PUT ${path}: ${response.status} ${await response.text()}`)
  }
  for (const id of world.USERS) await put(`/v1/users/${id}`, {})
  const tokens = new Map<string, ReaderToken[]>()
  const clientOf = (organization: string): Client => ({
    id: readerOf(organization),
    secret: `secret-of-the-reader-${organization}`,
    scope: 'decisions:read',
  })
  for (const organization of world.ORGANIZATIONS) {
    const client = clientOf(organization)
    const body = {
      grant_types: ['client_credentials'],
      scope: client.scope,
      organization,
      client_secret: client.secret,
    }
    await put(`/v1/clients/${client.id}`, body)
    tokens.set(organization, [await mint(origin, client)])
  }
  const random = <T>(items: readonly T[]): T | undefined => items[Math.floor(Math.random() * items.length)]
  const revoke = async (at: string, organization: string, token: ReaderToken): Promise<void> => {
    token.revokingAt = performance.now()
    const form = { token: token.value }
    const response = await asClient(at, { client: clientOf(organization), path: '/oauth/revoke', form })
    if (!response.ok) throw new Error(`revocation: ${response.status} ${await response.text()}`)
    token.revokedAt = performance.now()
  }
  return {
    pick: (organization) => random(tokens.get(organization) ?? []),
    async revokeOne(at) {
      const organization = random(world.ORGANIZATIONS) ?? ''
      const own = tokens.get(organization) ?? []
      const token = own.at(-1)
      if (token === undefined) return
      tokens.set(organization, [...own, await mint(at, clientOf(organization))].slice(-KEPT_MAX))
      await revoke(at, organization, token)
    },
    mint: (at, organization) => mint(at, clientOf(organization)),
    revoke,
  }
}

export async function mint(origin: string, client: Client): Promise<ReaderToken> {
  const form = { grant_type: 'client_credentials', scope: client.scope }
  const response = await asClient(origin, { client, path: '/oauth/token', form })
  const body = (await response.json()) as { access_token?: string }
  if (body.access_token === undefined) throw new Error(`no token for ${client.id}: ${JSON.stringify(body)}`)
  return { value: body.access_token, revokingAt: null, revokedAt: null }
}

export const asClient = (
  origin: string,
  { client, path, form }: { client: Client; path: string; form: Record<string, string> },
): Promise<Response> =>
  patiently(() =>
    fetch(`${origin}${path}`, {
      method: 'POST',
      headers: {
        authorization: `Basic ${Buffer.from(`${client.id}:${client.secret}`).toString('base64')}`,
        'content-type': 'application/x-www-form-urlencoded',
      },
      body: new URLSearchParams(form),
    }),
  )

/** A busy machine makes the issuer answer that it has no time: that is no fault of what is proven here. */
export async function patiently(send: () => Promise<Response>): Promise<Response> {
  for (let tries = 1; ; tries++) {
    const response = await send()
    if (response.status !== 503 || tries === BUSY_TRIES_MAX) return response
    await response.body?.cancel()
    await delay(BUSY_WAIT_MS)
  }
}

/** A token is dead to every question that begins after its revocation was acknowledged, and alive until that was sent. */
export function judgeTokens(uses: readonly TokenUse[]): readonly Violation[] {
  return uses.flatMap(({ token, active, startAt, endAt }): Violation[] => {
    const dead = token.revokedAt !== null && startAt > token.revokedAt
    const alive = token.revokingAt === null || endAt < token.revokingAt
    if (active && dead) return [{ rule: 'stale', message: 'a revoked token was taken for active' }]
    return !active && alive ? [{ rule: 'answer', message: 'a live token was taken for inactive' }] : []
  })
}
