/** Step-up as RFC 9470 has it, through a real sidecar: challenge, another authorization request, and the same call again. */
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readConfig } from '../../sidecar/config/config.ts'
import { startSidecar } from '../../sidecar/runtime/start.ts'
import { codeOf } from '../support/authenticator.ts'
import { type Browser, createBrowser } from '../support/browser.ts'
import { freePort } from '../support/free-port.ts'
import { clientToken, signIn } from '../support/sign-in.ts'
import { until } from '../support/until.ts'
import { choosePorts } from './demo-stack.ts'
import { ADMIN_SECRET, HOST, type OwnPdp, startOwnPdp } from './pdp-settings.ts'

const RESOURCE = 'https://vault.example'
const REDIRECT_URI = 'https://app.example/cb'
const PASSWORD = 'correct horse battery staple'

let issuer: string
let gate: string
let pdp: OwnPdp
beforeAll(async () => {
  const ports = await choosePorts({})
  pdp = await startOwnPdp(ports)
  const { log, shutdown, dataDirectory } = pdp
  issuer = pdp.issuer
  gate = `http://${HOST}:${ports.sidecar}`
  const upstream = createServer((_, res) => void res.end('the vault is open'))
  await new Promise<void>((done) => upstream.listen(0, HOST, done))
  shutdown.add('upstream', async () => void upstream.close())
  const address = upstream.address()
  const upstreamPort = typeof address === 'object' ? address?.port : 0
  await setUp()
  const file = join(dataDirectory, 'routes.yaml')
  await writeFile(
    file,
    `portcullis: v1
resource: ${RESOURCE}
public_url: ${gate}
issuers: [{issuer: "${issuer}"}]
upstream: http://${HOST}:${upstreamPort}
pdp: {address: "${HOST}:${ports.grpc}", insecure: true}
routes:
  GET /hall: "viewer vault:1"
  GET /vault: {check: "viewer vault:1", step_up: {acr_values: [mfa]}}
  GET /safe: {check: "viewer vault:1", step_up: {acr_values: [mfa], max_age: 9}}
`,
  )
  const admin = await freePort()
  await startSidecar(readConfig({}, { file, listen: `${HOST}:${ports.sidecar}`, adminListen: `${HOST}:${admin}` }), {
    log,
    shutdown,
  })
  await until(async () => (await fetch(`http://${HOST}:${admin}/readyz`)).ok)
})
afterAll(() => pdp?.close())

const pause = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms))

async function manage(method: string, path: string, body?: object): Promise<{ secret?: string }> {
  const scope = 'directory:write manifest:write relationships:write clients:write'
  const { access_token: token } = await clientToken({ issuer, clientId: 'admin', clientSecret: ADMIN_SECRET, scope })
  const response = await fetch(`${issuer}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
  return text === '' ? {} : JSON.parse(text)
}

async function setUp(): Promise<void> {
  await manage('PUT', '/v1/organizations/acme', { name: 'Acme' })
  await manage('PUT', '/v1/apps/vault/manifest', { audiences: [RESOURCE] })
  await manage('PUT', '/v1/clients/app', {
    redirect_uris: [REDIRECT_URI],
    token_endpoint_auth_method: 'none',
    scope: 'openid',
  })
  await manage('PUT', '/v1/users/ann', { email: 'ann@acme.example', password: PASSWORD })
  await manage('PUT', '/v1/organizations/acme/members/ann', { role: 'member', status: 'active' })
  await manage('POST', '/v1/organizations/acme/relationships', { write: ['vault:1#viewer@user:ann'] })
}

/** A token, and the pages that the person saw. `code`: of the authenticator, when asked for. */
async function authorize(browser: Browser, parameters: { [name: string]: string }, code = '') {
  const { tokens, steps } = await signIn({
    issuer,
    clientId: 'app',
    redirectUri: REDIRECT_URI,
    email: 'ann@acme.example',
    password: PASSWORD,
    code,
    resource: RESOURCE,
    browser,
    parameters,
  })
  return { token: tokens.access_token, steps }
}

/** Again while it is 503: gate and PDP share a thread here, and half a second can pass before an answer is read. */
async function call(path: string, token: string, triesMax = 10): ReturnType<typeof callOnce> {
  const answer = await callOnce(path, token)
  return answer.status === 503 && triesMax > 1 ? call(path, token, triesMax - 1) : answer
}

async function callOnce(path: string, token: string) {
  const response = await fetch(`${gate}${path}`, { headers: { authorization: `Bearer ${token}` } })
  const text = await response.text()
  return { status: response.status, challenge: response.headers.get('www-authenticate') ?? '', text }
}

test('a sign-in by password opens the hall; the vault needs the code, and the safe a fresh sign-in with both', async () => {
  const browser = createBrowser(issuer)
  const byPassword = await authorize(browser, {})
  expect(byPassword.steps).toEqual(['login'])
  expect((await call('/hall', byPassword.token)).status).toBe(200)
  const challenged = await call('/vault', byPassword.token)
  expect(challenged.status).toBe(401)
  expect(challenged.challenge).toContain('error="insufficient_user_authentication"')
  expect(challenged.challenge).toContain('acr_values="mfa"')

  const { secret = '' } = await manage('POST', '/v1/users/ann/totp')
  const stepped = await authorize(browser, { acr_values: 'mfa' }, codeOf(secret, Date.now()))
  expect(stepped.steps).toEqual(['totp'])
  expect(await call('/vault', stepped.token)).toMatchObject({ status: 200, text: 'the vault is open' })
  // What was minted before stays what it was.
  expect((await call('/vault', byPassword.token)).status).toBe(401)

  await pause(10_100) // auth_time has whole seconds
  const stale = await call('/safe', stepped.token)
  expect([stale.status, stale.challenge]).toEqual([401, expect.stringContaining('max_age="9"')])
  const fresh = await authorize(browser, { acr_values: 'mfa', max_age: '9' }, codeOf(secret, Date.now() + 30_000))
  expect(fresh.steps).toEqual(['login', 'totp'])
  expect((await call('/safe', fresh.token)).status).toBe(200)
})

test('a changed password ends the sign-in at the gate, at once', async () => {
  const browser = createBrowser(issuer)
  await manage('DELETE', '/v1/users/ann/totp')
  const { token } = await authorize(browser, {})
  expect((await call('/hall', token)).status).toBe(200)
  await manage('PUT', '/v1/users/ann', { email: 'ann@acme.example', password: PASSWORD })
  expect((await call('/hall', token)).status).toBe(200) // the same one changes nothing
  await manage('PUT', '/v1/users/ann', { email: 'ann@acme.example', password: 'another password' })
  expect((await call('/hall', token)).status).toBe(401)
})
