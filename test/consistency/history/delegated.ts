/** Tokens of an agent that acts for a person, got by token exchange as agents get them; and whether their claims are right. */
import { setTimeout as delay } from 'node:timers/promises'
import { signIn } from '../../support/sign-in.ts'
import { CLOCK_SLACK_MS, type Logs } from './answers.ts'
import { AGENT, AUDIENCE, type Question } from './mix.ts'
import type { Asked, ReaderToken, Violation } from './records.ts'
import { asClient, mint, patiently, type Served } from './served.ts'
import { Truth } from './standing.ts'

/** A token that was exchanged, and whether its claims have the permission. */
export type Claimed = Asked & { readonly holds: boolean }
export type DelegatedTokens = {
  /** One of the last few; undefined where the question is not about the person by the agent. */
  pick(question: Question): ReaderToken | undefined
  /** Null: the person does not let the agent act, or not for long. */
  mint(origin: string): Promise<ReaderToken | null>
  revoke(origin: string, organization: string, token: ReaderToken): Promise<void>
  readonly claimed: readonly Claimed[]
}

/** The one about whom the agent's tokens are. */
export const DELEGATED = { organization: 'o0', subject: 'user:u0', actor: AGENT } as const
const CLAIM = { relation: 'x:read', resource: 'organization:o0' } as const
const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token'
const PASSWORD = 'the password of u0'
const KEPT_MAX = 8
/** A token that ends with its delegation soon is of no use to a run. */
const LASTING_SECONDS = 300
/** From the moment that a commit's time is taken until others see what it wrote. */
const COMMIT_MS = 200

/** `origin` is the issuer's own. The person is a member, and signs in once. */
export async function createDelegatedTokens({ issuer, adminSecret }: Served): Promise<DelegatedTokens> {
  const scope = 'directory:write clients:write'
  const admin = await mint(issuer, { id: 'admin', secret: adminSecret, scope })
  const put = async (path: string, body: object): Promise<void> => {
    const headers = { authorization: `Bearer ${admin.value}`, 'content-type': 'application/json' }
    const response = await patiently(() => fetch(issuer + path, { method: 'PUT', headers, body: JSON.stringify(body) }))
    if (!response.ok) throw new Error(`PUT ${path}: ${response.status} ${await response.text()}`)
  }
  const redirectUri = 'http://127.0.0.1:9/callback'
  const web = { id: 'web', secret: 'secret-of-the-web-application' }
  const bot = { id: AGENT.slice('service:'.length), secret: 'secret-of-the-agent-that-acts', scope: '' }
  await put('/v1/users/u0', { email: 'u0@history.example', password: PASSWORD })
  await put(`/v1/clients/${web.id}`, { redirect_uris: [redirectUri], scope: 'openid', client_secret: web.secret })
  await put(`/v1/clients/${bot.id}`, {
    ...{ grant_types: [EXCHANGE], client_secret: bot.secret },
    ...{ exchange_clients: [web.id], exchange_resources: [AUDIENCE] },
  })
  const { tokens } = await signIn({
    ...{ issuer, redirectUri, clientId: web.id, clientSecret: web.secret },
    ...{ email: 'u0@history.example', password: PASSWORD, organization: DELEGATED.organization },
  })
  const form = {
    ...{ grant_type: EXCHANGE, subject_token: tokens.access_token, subject_token_type: ACCESS_TOKEN },
    resource: AUDIENCE,
  }
  let kept: readonly ReaderToken[] = []
  const claimed: Claimed[] = []
  return {
    claimed,
    pick: ({ organization, subject, actor }) =>
      organization === DELEGATED.organization && subject === DELEGATED.subject && actor === AGENT
        ? kept[Math.floor(Math.random() * kept.length)]
        : undefined,
    async mint(origin) {
      const [startAt, startMs] = [performance.now(), Date.now()]
      const response = await asClient(origin, { client: bot, path: '/oauth/token', form })
      const body = (await response.json()) as { access_token?: string; expires_in?: number; error_description?: string }
      const { access_token: value } = body
      if (value === undefined) {
        if (body.error_description?.includes('has not let') !== true)
          throw new Error(`the exchange: ${JSON.stringify(body)}`)
        await delay(20)
        return null
      }
      const claims = JSON.parse(Buffer.from(value.split('.')[1] ?? '', 'base64url').toString()) as {
        permissions?: readonly string[]
      }
      const holds = claims.permissions?.includes(CLAIM.relation) === true
      claimed.push({ holds, startAt, startMs, endAt: performance.now(), endMs: Date.now() + 1 })
      if ((body.expires_in ?? 0) < LASTING_SECONDS) return null
      const token = { value, revokingAt: null, revokedAt: null }
      kept = [...kept, token].slice(-KEPT_MAX)
      return token
    },
    async revoke(origin, _organization, token) {
      kept = kept.filter((one) => one !== token)
      token.revokingAt = performance.now()
      const response = await asClient(origin, { client: bot, path: '/oauth/revoke', form: { token: token.value } })
      if (!response.ok) throw new Error(`revocation: ${response.status} ${await response.text()}`)
      token.revokedAt = performance.now()
    },
  }
}

/** At some moment of the exchange both had what its claims have, or one of them lacked what they lack. */
export function judgeClaims(logs: Logs, claimed: readonly Claimed[]): readonly Violation[] {
  const truth = new Truth(logs)
  const question = { ...DELEGATED, permissions: [CLAIM], entitlements: [] }
  return claimed.flatMap(({ holds, startMs, endMs }): Violation[] => {
    const fromMs = startMs - COMMIT_MS
    const toMs = endMs + CLOCK_SLACK_MS
    const moments = [fromMs, ...truth.changes({ fromMs, toMs }), toMs]
    if (moments.some((ms) => truth.answers(question, ms)[0] === holds)) return []
    const message = `the claims of the agent’s token ${holds ? 'have' : 'lack'} ${CLAIM.relation}`
    return [{ rule: 'answer', message: `${message}, at every moment of the exchange wrongly` }]
  })
}
