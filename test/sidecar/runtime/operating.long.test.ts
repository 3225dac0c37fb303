import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { createServer as createHttpsServer, request } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Ajv } from 'ajv'
import { describe, expect, test } from 'vitest'
import { createNonces } from '../../../pdp/shared/token/nonces.ts'
import { NO_CERTIFICATES } from '../../../sidecar/config/certificates.ts'
import { ecKeys, proof, thumbprint } from '../../support/peers/issuer.ts'
import { field, sendRaw } from '../../support/peers/raw-http.ts'
import { PROGRAM_ENV } from '../../support/programs/environment.ts'
import { until } from '../../support/until.ts'
import { PROMPT_MS, routeFile } from '../support/harness.ts'
import { fieldOf } from '../support/upstream.ts'
import { certificate, openRuntimeWorld, ROUTES, script } from './runtime-world.ts'

const world = openRuntimeWorld()
const start = world.start.bind(world)

describe('the decision log', () => {
  const schema: object = JSON.parse(
    readFileSync(new URL('../../../sidecar/enforce/decision-log.schema.json', import.meta.url), 'utf8'),
  )
  const validate = new Ajv({ strict: true, allowUnionTypes: true, formats: { 'date-time': true } }).compile(schema)

  test.each([
    ['plain', 'alice'],
    ['hashed', createHash('sha256').update('alice').digest('base64url').slice(0, 22)],
    ['omitted', null],
  ])('with subjects %s fits its schema and holds no secret', async (how, subject) => {
    const { send, log, issuer } = await start({ extra: `log: {subject: ${how}}` })
    const traceparent = 'traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
    const token = await issuer.token()
    await send('GET /invoices/1', { token, fields: [traceparent] })
    await send('GET /invoices/2?secret=query')
    await send('GET /invoices/1', { token: null })
    await send('PROPFIND /pot', { token: null })
    await send('OPTIONS /invoices/1')
    const lines = log.filter((line) => 'event' in line && line.event === 'decision')
    expect(lines.length).toBe(5)
    for (const line of lines) expect(validate(line), JSON.stringify([line, validate.errors])).toBe(true)
    expect(lines[0]).toMatchObject({ subject, decision: 'allow', trace_id: '4bf92f3577b34da6a3ce929d0e0e4736' })
    expect(lines[1]).toMatchObject({ decision: 'deny', reason: 'permission_denied', status: 403 })
    expect(lines[3]).toMatchObject({ method: 'other', reason: 'route_unknown' })
    const text = JSON.stringify(log)
    for (const secret of [token, 'secret=query']) expect(text).not.toContain(secret)
    if (how !== 'plain') expect(text).not.toContain('alice')
  })

  test('has one of so many allowed requests, and every denial', async () => {
    const { send, log, issuer } = await start({ extra: 'log: {allowed_one_in: 3}' })
    const token = await issuer.token()
    for (let round = 0; round < 7; round += 1) {
      await send('GET /invoices/1', { token })
      await send('GET /invoices/2', { token })
    }
    const decisions = log.flatMap((line) => ('decision' in line ? [line.decision] : []))
    expect(decisions.filter((decision) => decision === 'allow')).toHaveLength(3)
    expect(decisions.filter((decision) => decision === 'deny')).toHaveLength(7)
  })
})

describe('with TLS', () => {
  const pemOf = (made: Awaited<ReturnType<typeof certificate>>) => ({
    ca: null,
    cert: Buffer.from(made.certificate),
    key: Buffer.from(made.key),
  })
  const get = (port: number, ca: string): Promise<number | string> =>
    new Promise((resolve) => {
      const options = { port, host: '127.0.0.1', servername: 'localhost', path: '/public/x', ca, agent: false }
      request({ ...options, headers: { host: 'app.test' } }, (res) => {
        res.resume()
        resolve(res.statusCode ?? 0)
      })
        .on('error', (err) => resolve('code' in err ? String(err.code) : err.message))
        .end()
    })

  test('on the data port, a certificate is replaced without a restart', async () => {
    const [first, second] = [await certificate(), await certificate()]
    const harness = await start({ certificates: { ...NO_CERTIFICATES, tls: pemOf(first) } })
    expect(await get(harness.port, first.authority)).toBe(200)
    expect(fieldOf(harness.upstream.reached[0], 'x-forwarded-proto')).toBe('https')
    expect(await get(harness.port, second.authority)).toMatch(/UNABLE_TO_VERIFY|SELF_SIGNED/)
    const { file } = { file: harness.file() }
    harness.sidecar.apply({ file, certificates: { ...NO_CERTIFICATES, tls: pemOf(second) }, hash: 'second' })
    expect(await get(harness.port, second.authority)).toBe(200)
    expect((await sendRaw(harness.port, 'GET /public/x HTTP/1.1\r\nHost: app.test\r\n\r\n')).status).toBe(0)
  })

  test('on the data port, a certificate stays when the rest of its configuration cannot be taken', async () => {
    const [first, second] = [await certificate(), await certificate()]
    const harness = await start({ certificates: { ...NO_CERTIFICATES, tls: pemOf(first) } })
    const good = harness.file()
    const file = { ...good, pdp: { ...good.pdp, insecure: false } }
    // A key without its certificate.
    const pdp = { ca: null, cert: null, key: Buffer.from(first.key) }
    const certificates = { ...NO_CERTIFICATES, pdp, tls: pemOf(second) }
    expect(() => harness.sidecar.apply({ file, certificates, hash: 'second' })).toThrow()
    expect(await get(harness.port, first.authority)).toBe(200)
    const broken = { ca: null, cert: Buffer.from('x'), key: Buffer.from('y') }
    const routeless = { ...good, routes: [] }
    expect(() =>
      harness.sidecar.apply({ file: routeless, certificates: { ...NO_CERTIFICATES, tls: broken }, hash: 'third' }),
    ).toThrow()
    expect(await get(harness.port, first.authority)).toBe(200)
  })

  test('on the data port, a reload cannot begin or end to ask clients for certificates', async () => {
    const made = await certificate()
    const harness = await start({ certificates: { ...NO_CERTIFICATES, tls: pemOf(made) } })
    const tls = { ...pemOf(made), ca: Buffer.from(made.authority) }
    const next = { file: harness.file(), certificates: { ...NO_CERTIFICATES, tls }, hash: 'second' }
    expect(() => harness.sidecar.apply(next)).toThrow('tls.client_ca_file can only be added')
  })

  test('on the data port, clients need a certificate when authorities of theirs are named', async () => {
    const made = await certificate()
    const tls = { ...pemOf(made), ca: Buffer.from(made.authority) }
    const harness = await start({ certificates: { ...NO_CERTIFICATES, tls } })
    expect(await get(harness.port, made.authority)).not.toBe(200)
    expect(harness.upstream.reached).toEqual([])
  })

  test('to the upstream, its certificate is verified', async () => {
    const made = await certificate('localhost')
    const server = createHttpsServer({ cert: made.certificate, key: made.key }, (_req, res) => res.end('secure'))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    world.closers.push(
      () => server.closeAllConnections(),
      () => server.close(),
    )
    const harness = await start()
    harness.upstream.origin = `https://localhost:${(server.address() as AddressInfo).port}`
    harness.apply(ROUTES)
    expect((await harness.send('GET /invoices/1')).status).toBe(502)
    const trusting = { ca: Buffer.from(made.authority), cert: null, key: null }
    harness.sidecar.apply({ file: harness.file(), certificates: { ...NO_CERTIFICATES, upstream: trusting }, hash: 'x' })
    expect((await harness.send('GET /invoices/1')).body).toBe('secure')
    const strange = { ca: Buffer.from((await certificate('localhost')).authority), cert: null, key: null }
    harness.sidecar.apply({ file: harness.file(), certificates: { ...NO_CERTIFICATES, upstream: strange }, hash: 'y' })
    expect((await harness.send('GET /invoices/1')).status).toBe(502)
  })
})

describe('DPoP nonces', () => {
  test('are demanded, told, and good on every replica that shares the secret', async () => {
    const nowMs = Date.now()
    const clock = (): number => nowMs
    const { send, issuer } = await start({ extra: 'dpop: {nonce: required}', clock })
    const keys = ecKeys()
    const token = await issuer.token({ cnf: { jkt: await thumbprint(keys.publicKey) } })
    const attempt = async (nonce?: string) => {
      const claims = nonce === undefined ? {} : { nonce }
      const text = await proof({
        keys,
        method: 'GET',
        url: 'https://app.test/invoices/1',
        token,
        clock,
        claims,
      })
      return send('GET /invoices/1', { token: null, fields: [`Authorization: DPoP ${token}`, `DPoP: ${text}`] })
    }
    const first = await attempt()
    expect([first.status, field(first, 'www-authenticate')?.slice(0, 27)]).toEqual([401, 'DPoP error="use_dpop_nonce"'])
    const nonce = field(first, 'dpop-nonce') ?? ''
    const second = await attempt(nonce)
    expect([second.status, field(second, 'dpop-nonce')]).toEqual([200, nonce])
    const replica = createNonces({ secret: Buffer.alloc(32, 'n'), clock })
    expect((await attempt(replica.current())).status).toBe(200)
    const stranger = createNonces({ secret: Buffer.alloc(32, 'x'), clock })
    expect((await attempt(stranger.current())).status).toBe(401)
  })
})

describe('the circuit to the PDP', () => {
  test('opens after unanswered questions, answers at once meanwhile, and closes again', async () => {
    const { send, pdp, upstream } = await start({ limits: { pdpTimeoutMs: 500 } })
    pdp.script = () => null
    for (let at = 0; at < 5; at += 1) expect((await send('GET /invoices/1')).status).toBe(503)
    const startedMs = performance.now()
    for (let at = 0; at < 20; at += 1) expect((await send('GET /invoices/1')).status).toBe(503)
    expect(performance.now() - startedMs).toBeLessThan(PROMPT_MS)
    expect(upstream.reached).toEqual([])
    pdp.script = script
    await until(async () => (await send('GET /invoices/1')).status === 200)
  })
})

test('drain over the control socket ends the process after the last request', async () => {
  let reachedCount = 0
  const server = createHttpServer((_req, res) => {
    reachedCount += 1
    setTimeout(() => res.end('late'), 500)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  world.closers.push(() => server.close())
  const { port } = server.address() as AddressInfo
  const path = join(world.folder, 'routes.yaml')
  const control = join(world.folder, 'control.sock')
  writeFileSync(
    path,
    routeFile('GET /a: public').replace('UPSTREAM', `http://127.0.0.1:${port}`).replace('PDP', '127.0.0.1:9'),
  )
  const main = fileURLToPath(new URL('../../../sidecar/main.ts', import.meta.url))
  const env = { ...PROGRAM_ENV, PORTCULLIS_SIDECAR_CONTROL: control }
  const args = [main, 'run', '-f', path, '--listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0']
  const child = spawn(process.execPath, args, { env })
  world.closers.push(() => child.kill('SIGKILL'))
  let output = ''
  child.stdout.on('data', (chunk) => {
    output += chunk
  })
  await until(() => output.includes('"listening"'))
  const line = output.split('\n').find((text) => text.includes('"listening"')) ?? '{}'
  const { data } = JSON.parse(line)
  const answer = sendRaw(Number(data.split(':')[1]), 'GET /a HTTP/1.1\r\nHost: app.test\r\n\r\n')
  await until(() => reachedCount === 1)
  const drain = spawn(process.execPath, [main, 'drain'], { env })
  const exits = [child, drain].map((one) => new Promise((resolve) => one.on('exit', resolve)))
  expect((await answer).body).toBe('late')
  expect(await Promise.all(exits)).toEqual([0, 0])
})
