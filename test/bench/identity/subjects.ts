/** What is measured of the identity service: each grant, and introspection. */
import { createHash } from 'node:crypto'
import type { Identity } from '../../../pdp/identity/identity.ts'
import { type Browser, hiddenFields } from '../../support/browser.ts'
import { signIn } from '../../support/sign-in.ts'
import { patiently } from './limits.ts'

export const CALLERS = 16
export const REDIRECT = 'https://app.example/cb'
export const PASSWORD = 'correct horse battery staple'
export const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
export const DEVICE_CODE = 'urn:ietf:params:oauth:grant-type:device_code'
export const CIBA = 'urn:openid:params:grant-type:ciba'
const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token'
const VERIFIER = 'v'.repeat(43)

/** `signatures`: RSA signatures that one call makes. */
export type Subject = {
  readonly name: string
  readonly signatures: number
  readonly call: (caller: number) => Promise<void>
  /** What calls use up, made beforehand and not measured; null when they can go on for as long as one likes. */
  readonly prepare: ((count: number) => Promise<void>) | null
}

type World = { readonly issuer: string; readonly secret: string; readonly identity: Identity }
type Answer = { readonly access_token: string; readonly refresh_token?: string; readonly [member: string]: unknown }

export async function subjects(world: World): Promise<readonly Subject[]> {
  const { issuer, secret, identity } = world
  const authorization = `Basic ${Buffer.from(`bench:${secret}`).toString('base64')}`
  async function send(path: string, form: Record<string, string>): Promise<Answer> {
    const body = new URLSearchParams(form)
    const response = await fetch(issuer + path, { method: 'POST', headers: { authorization }, body })
    const text = await response.text()
    if (response.status !== 200) throw new Error(text)
    return JSON.parse(text)
  }
  const post = (form: Record<string, string>) => send('/oauth/token', form)
  const person = { redirectUri: REDIRECT, email: 'ann@x.example', password: PASSWORD }
  const request = { issuer, clientId: 'bench', clientSecret: secret, ...person }
  const refreshTokens: string[] = []
  for (let caller = 0; caller < CALLERS; caller += 1) {
    const { tokens } = await signIn({ ...request, scope: 'openid offline_access', parameters: { prompt: 'consent' } })
    refreshTokens.push(tokens.refresh_token ?? '')
  }
  const { tokens, browser } = await signIn(request)
  const subject = { subject_token: tokens.access_token, subject_token_type: ACCESS_TOKEN }
  const agreed = agreements(browser, send)
  return [
    {
      name: 'client_credentials',
      signatures: 1,
      prepare: null,
      call: async () => void (await post({ grant_type: 'client_credentials' })),
    },
    usedUp('authorization_code with ID token', agreed.code, (code) =>
      post({ grant_type: 'authorization_code', code, redirect_uri: REDIRECT, code_verifier: VERIFIER }),
    ),
    usedUp('device_code with ID token', agreed.device, (code) => post({ grant_type: DEVICE_CODE, device_code: code })),
    usedUp('CIBA with ID token', agreed.ciba, (id) => post({ grant_type: CIBA, auth_req_id: id })),
    {
      name: 'refresh_token with ID token',
      signatures: 2,
      prepare: null,
      async call(caller) {
        const answer = await post({ grant_type: 'refresh_token', refresh_token: refreshTokens[caller] ?? '' })
        refreshTokens[caller] = answer.refresh_token ?? ''
      },
    },
    {
      name: 'token exchange',
      signatures: 1,
      prepare: null,
      call: async () => void (await post({ grant_type: EXCHANGE, ...subject })),
    },
    {
      name: 'introspection in process',
      signatures: 0,
      prepare: null,
      call: async () => void (await identity.introspect(tokens.access_token)),
    },
  ]
}

/** Redeems what a person agreed to, once each. */
function usedUp(name: string, make: () => Promise<string>, redeem: (text: string) => Promise<unknown>): Subject {
  const ready: string[] = []
  return {
    name,
    signatures: 2,
    async prepare(count) {
      while (ready.length < count) ready.push(await patiently(make))
    },
    async call() {
      const text = ready.pop()
      if (text === undefined) throw new Error(`${name}: nothing is left to redeem`)
      await redeem(text)
    },
  }
}

/** What a signed-in person agrees to in the browser, up to what the client redeems. */
function agreements(browser: Browser, send: (path: string, form: Record<string, string>) => Promise<Answer>) {
  const challenge = createHash('sha256').update(VERIFIER).digest('base64url')
  const query = new URLSearchParams({
    ...{ client_id: 'bench', response_type: 'code', redirect_uri: REDIRECT, scope: 'openid' },
    ...{ code_challenge: challenge, code_challenge_method: 'S256' },
  })
  return {
    async code(): Promise<string> {
      const location = (await browser.send(`/oauth/authorize?${query}`)).headers.get('location') ?? ''
      const code = URL.parse(location)?.searchParams.get('code')
      if (code == null) throw new Error(`no code: ${location}`)
      return code
    },
    async device(): Promise<string> {
      const started = await send('/oauth/device_authorization', { scope: 'openid' })
      const answers: { readonly [step: string]: { readonly [field: string]: string } } = {
        code: { user_code: String(started.user_code) },
        confirm: { confirm: 'yes' },
      }
      // The last page has no form, which ends the walk with its text.
      const end = await browser
        .follow('/oauth/device', ({ step }) => answers[step] ?? { action: 'continue' })
        .catch((err: unknown) => err)
      if (!String(end).includes('is connected')) throw new Error(`not connected: ${end}`)
      return String(started.device_code)
    },
    async ciba(): Promise<string> {
      const started = await send('/oauth/bc-authorize', { scope: 'openid', login_hint: 'ann@x.example' })
      const page = await (await browser.send('/oauth/approve')).text()
      const form = { ...hiddenFields(page), action: 'approve' }
      if (!(await (await browser.send('/oauth/approve', { form })).text()).includes('You approved')) {
        throw new Error('not approved')
      }
      return String(started.auth_req_id)
    },
  }
}
