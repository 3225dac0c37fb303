/** A sidecar asks a real PDP over TLS, and is believed by the ServiceAccount token that a real API server gave it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { makeCertificate } from '../../sidecar/injector/certificate/certificate.ts'
import { objectAt, textAt } from '../../sidecar/injector/pod/json.ts'
import { RESOURCE } from '../e2e/demo-stack.ts'
import { createWorld, type World } from '../e2e/demo-world.ts'
import { startUpstream, type Upstream } from '../sidecar/support/upstream.ts'
import { freePort } from '../support/free-port.ts'
import { type ControlPlane, startControlPlane } from './control-plane.ts'

const AUDIENCE = 'portcullis-pdp'
const ADMIN_SECRET = 'an-admin-secret-of-some-length'
const running: ChildProcess[] = []
let plane: ControlPlane
let upstream: Upstream
let world: World
let grpcPort = 0
let issuer = ''

beforeAll(async () => {
  plane = await startControlPlane(inject('binaries'))
  upstream = await startUpstream()
  for (const name of ['invoices', 'other'])
    await plane.kube.must('POST', '/api/v1/namespaces/default/serviceaccounts', { metadata: { name } })
  const made = await makeCertificate({ names: ['localhost'], days: 1, nowMs: Date.now() })
  writeFileSync(file('pdp-ca.pem'), made.authority)
  writeFileSync(file('pdp.crt'), made.certificate)
  writeFileSync(file('pdp.key'), made.key)
  writeFileSync(file('jwks.json'), JSON.stringify(await plane.kube.must('GET', '/openid/v1/jwks')))
  const [http, grpc] = await Promise.all([freePort(), freePort()])
  grpcPort = grpc
  issuer = `http://127.0.0.1:${http}`
  await start('pdp/main.ts', [], {
    PORTCULLIS_HTTP_LISTEN: `127.0.0.1:${http}`,
    PORTCULLIS_METRICS_LISTEN: '127.0.0.1:0',
    // Not loopback: only with TLS, and only for callers that say who they are.
    PORTCULLIS_GRPC_LISTEN: `:${grpc}`,
    PORTCULLIS_GRPC_TLS_CERT_FILE: file('pdp.crt'),
    PORTCULLIS_GRPC_TLS_KEY_FILE: file('pdp.key'),
    PORTCULLIS_SERVICE_ACCOUNT_ISSUER: 'https://kubernetes.default.svc',
    PORTCULLIS_SERVICE_ACCOUNT_JWKS: file('jwks.json'),
    PORTCULLIS_SERVICE_ACCOUNTS: 'default/invoices',
    PORTCULLIS_ADMIN_SECRET: ADMIN_SECRET,
    PORTCULLIS_DATA_DIR: file('data'),
  })
  world = await createWorld({ issuer, adminSecret: ADMIN_SECRET })
})
afterAll(async () => {
  for (const child of running.toReversed()) {
    if (child.exitCode !== null) continue
    const ended = once(child, 'exit')
    child.kill('SIGTERM')
    await ended
  }
  await upstream?.close()
  await plane?.close()
})

const file = (name: string): string => join(plane.folder, name)

/** Returns the line that says where it listens. */
async function start(
  program: string,
  words: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<{ [name: string]: unknown }> {
  const child = spawn(process.execPath, [program, ...words], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  running.push(child)
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
  for (;;) {
    const line = output.split('\n').find((text) => text.includes('"listening"') && text.endsWith('}'))
    if (line !== undefined) return JSON.parse(line)
    if (child.exitCode !== null) throw new Error(output)
    await delay(50)
  }
}

async function tokenFor(audience: string, account = 'invoices'): Promise<string> {
  const path = `/api/v1/namespaces/default/serviceaccounts/${account}/token`
  const made = await plane.kube.must('POST', path, { spec: { audiences: [audience], expirationSeconds: 3600 } })
  return textAt(objectAt(made.status, 'status').token, 'token') ?? ''
}

/** The data port of a sidecar that shows the PDP a token for this audience. */
async function sidecar(name: string, audience: string, account?: string): Promise<number> {
  writeFileSync(file(`${name}.token`), await tokenFor(audience, account))
  const routes = `portcullis: v1
resource: ${RESOURCE}
issuers: [{issuer: "${issuer}"}]
upstream: ${upstream.origin}
pdp: {address: "localhost:${grpcPort}", ca_file: ${file('pdp-ca.pem')}, token_file: ${file(`${name}.token`)}}
routes:
  GET /invoices/{id}: viewer invoice:{id}
`
  writeFileSync(file(`${name}.yaml`), routes)
  const words = ['run', `--file=${file(`${name}.yaml`)}`, '--listen=127.0.0.1:0', '--admin-listen=127.0.0.1:0']
  const { data, admin } = await start('sidecar/main.ts', words, {})
  while ((await fetch(`http://${admin}/readyz`)).status !== 200) await delay(50)
  return Number(String(data).split(':').at(-1))
}

function get(port: number, path: string, token: string): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  const headers = { host: new URL(RESOURCE).host, authorization: `Bearer ${token}` }
  const req = request({ host: '127.0.0.1', port, path, headers, agent: false }, (res) => {
    res.resume()
    resolve(res.statusCode ?? 0)
  })
  req.on('error', reject)
  req.end()
  return promise
}

test('a sidecar with the token of its Pod is answered: the grant lets through, the next lack of it denies', async () => {
  const port = await sidecar('sidecar', AUDIENCE)
  const { alice } = world.tokens
  while ((await get(port, '/invoices/1', alice)) === 503) await delay(50)
  expect(await get(port, '/invoices/1', alice)).toBe(200)
  expect(await get(port, '/invoices/2', alice)).toBe(403)
  await world.relate({ delete: ['invoice:1#viewer@user:alice'] })
  expect(await get(port, '/invoices/1', alice)).toBe(403)
  await world.relate({ write: ['invoice:1#viewer@user:alice'] })
  expect(await get(port, '/invoices/1', alice)).toBe(200)
})

test.each([
  ['for another audience', 'https://kubernetes.default.svc', 'invoices'],
  ['of a ServiceAccount that the operator did not name', AUDIENCE, 'other'],
])('a sidecar with a token %s is not, so it answers 503 and forwards nothing', async (what, audience, account) => {
  const port = await sidecar(what.replaceAll(' ', '-'), audience, account)
  upstream.reached.length = 0
  for (let tries = 0; tries < 10; tries += 1) {
    expect(await get(port, '/invoices/1', world.tokens.alice)).toBe(503)
    await delay(100)
  }
  expect(upstream.reached).toEqual([])
})

test('the token of a sidecar opens nothing at the API server (K8S-021)', async () => {
  const status = async (audience: string): Promise<number> =>
    (await plane.kubeAs(await tokenFor(audience)).send('GET', '/api')).status
  expect(await status(AUDIENCE)).toBe(401)
  expect(await status('https://kubernetes.default.svc')).toBe(200)
})
