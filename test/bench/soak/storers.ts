/** Clients that do everything for which a PDP keeps something: in tables, or in memory. */
import { setTimeout as delay } from 'node:timers/promises'
import { ecKeys, proof } from '../../support/peers/issuer.ts'
import { adminToken, LOADER, makeRecords, ORGANIZATION, SECRET } from '../../upgrade/world.ts'

export type Storers = { done(): string; stop(): Promise<void> }

const PAUSE_MS = 20
const TOKEN_AGE_MS = 20_000
const OBJECTS = 200
const ADDRESSES = 10_000
const ORGANIZATION_PATH = `/v1/organizations/${ORGANIZATION}`

export async function startStorers(issuer: string): Promise<Storers> {
  await makeRecords(issuer)
  const counts: { [what: string]: number } = {}
  let stopped = false
  let turn = 0
  let manager = await adminToken(issuer)
  let asker = await adminToken(issuer, ORGANIZATION)
  const keys = ecKeys()

  async function send(path: string, init: RequestInit): Promise<{ status: number; text: string }> {
    const response = await fetch(`${issuer}${path}`, { redirect: 'manual', ...init })
    return { status: response.status, text: await response.text() }
  }
  const json = (method: string, path: string, body: object, token: string) =>
    send(path, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
  const basic = `Basic ${Buffer.from(`${LOADER}:${SECRET}`).toString('base64')}`
  const form = (path: string, fields: { [name: string]: string }, headers: { [name: string]: string } = {}) =>
    send(path, { method: 'POST', body: new URLSearchParams(fields), headers: { authorization: basic, ...headers } })

  const work: { readonly [what: string]: () => Promise<number> } = {
    'tokens revoked': async () => {
      const { text } = await form('/oauth/token', { grant_type: 'client_credentials' })
      return (await form('/oauth/revoke', { token: String(JSON.parse(text).access_token) })).status
    },
    'bound tokens': async () => {
      const url = `${issuer}/oauth/token`
      const dpop = await proof({ keys, method: 'POST', url, token: '', clock: Date.now, claims: { ath: undefined } })
      return (await form('/oauth/token', { grant_type: 'client_credentials' }, { dpop })).status
    },
    relationships: async () => {
      const tuple = `document:${turn % OBJECTS}#viewer@user:u${turn % ADDRESSES}`
      const written = await json('POST', `${ORGANIZATION_PATH}/relationships`, { write: [tuple] }, manager)
      await json('POST', `${ORGANIZATION_PATH}/relationships`, { delete: [tuple] }, manager)
      return written.status
    },
    entitlements: async () =>
      (await json('PUT', `${ORGANIZATION_PATH}/entitlements/feature.soak`, { value: turn % 2 === 0 }, manager)).status,
    organizations: async () => {
      const path = `/v1/organizations/soak-${turn}`
      await json('PUT', path, { name: 'Soak' }, manager)
      return (await json('DELETE', path, {}, manager)).status
    },
    questions: async () => {
      const permissions = Array.from({ length: 20 }, (_, at) => {
        return { relation: 'viewer', resource: `document:${(turn * 20 + at) % ADDRESSES}` }
      })
      const subject = { type: 'user', id: `u${turn % ADDRESSES}` }
      return (await json('POST', '/oauth/decisions', { subject, permissions }, asker)).status
    },
    // Each begins an interaction, which nobody goes on with.
    'sign-ins begun': async () => {
      const query = new URLSearchParams({
        client_id: 'documents-app',
        response_type: 'code',
        scope: 'openid',
        redirect_uri: 'https://app.upgrade.example/callback',
        code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
        code_challenge_method: 'S256',
      })
      return (await send(`/oauth/authorize?${query}`, {})).status
    },
    'wrong secrets': async () => {
      const wrong = `Basic ${Buffer.from(`nobody-${turn % ADDRESSES}:wrong`).toString('base64')}`
      return (await form('/oauth/token', { grant_type: 'client_credentials' }, { authorization: wrong })).status
    },
  }

  async function keep(what: string, once: () => Promise<number>): Promise<void> {
    for (; !stopped; await delay(PAUSE_MS)) {
      turn += 1
      const status = await once().catch(() => 0)
      const name = status >= 200 && status < 400 ? what : `${what} (${status})`
      counts[name] = (counts[name] ?? 0) + 1
    }
  }
  async function keepTokens(): Promise<void> {
    for (let madeMs = performance.now(); !stopped; await delay(PAUSE_MS * 10)) {
      if (performance.now() - madeMs < TOKEN_AGE_MS) continue
      madeMs = performance.now()
      manager = await adminToken(issuer).catch(() => manager)
      asker = await adminToken(issuer, ORGANIZATION).catch(() => asker)
    }
  }
  const workers = [...Object.entries(work).map(([what, once]) => keep(what, once)), keepTokens()]
  return {
    done: () =>
      Object.entries(counts)
        .map(([what, count]) => `${count} ${what}`)
        .join(', '),
    async stop() {
      stopped = true
      await Promise.all(workers)
    },
  }
}
