/** What `helm test` runs in Pods, run here before servers that answer well or badly. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, inject, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { isObject, listAt, objectAt } from '../../sidecar/injector/pod/json.ts'

const ISSUER = 'https://id.example.com'
let server: Server | null = null
afterEach(() => void server?.close())

/** The script of the test Pod's container. */
function scriptOf(pod: string): string {
  const values = ['--values', 'charts/portcullis/ci/platform-values.yaml']
  const words = ['template', 'portcullis', 'charts/portcullis', '--namespace', 'portcullis', ...values]
  const documents = parseAllDocuments(execFileSync(inject('binaries').helm, words, { encoding: 'utf8' }))
  const objects = Array.isArray(documents) ? documents.map((document): unknown => document.toJS()).filter(isObject) : []
  const found = objects.find(({ kind, metadata }) => kind === 'Pod' && objectAt(metadata, '').name === pod)
  const container = objectAt(listAt(objectAt(found?.spec, 'spec').containers, 'containers')[0], 'container')
  expect(container.command).toEqual(['node', '-e'])
  return String(listAt(container.args, 'args')[0])
}

async function listen(answer: RequestListener): Promise<number> {
  server = createServer(answer).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

async function run(script: string): Promise<{ status: number | null; said: string }> {
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'pipe'] })
  let said = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      said += text
    })
  const [status] = await once(child, 'close')
  return { status, said }
}

const metadata =
  (status: number, issuer: string): RequestListener =>
  (_req, res) =>
    res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify({ issuer }))

test.each([
  ['serves the issuer of the values', metadata(200, ISSUER), 0, `the PDP serves ${ISSUER}`],
  ['serves another issuer', metadata(200, 'https://other.example'), 1, 'the issuer is https://other.example'],
  ['is not ready', metadata(503, ISSUER), 1, 'answered 503'],
])('the test of the PDP says so when it %s', async (_what, answer, status, said) => {
  const origin = `http://127.0.0.1:${await listen(answer)}`
  const script = scriptOf('portcullis-test-pdp').replace('http://portcullis-pdp.portcullis.svc:8080', origin)
  expect(script).toContain(origin)
  const done = await run(script)
  expect([done.status, done.said]).toEqual([status, expect.stringContaining(said)])
})

test.each([
  ['refuses a request without a token', 401, 0, 'the sidecar reaches the PDP'],
  ['forwards it', 200, 1, 'answered 200 to a request without a token, not 401'],
  ['cannot decide', 503, 1, 'answered 503'],
])('the test of a sidecar says so when it %s', async (_what, answered, status, said) => {
  const port = await listen((req, res) => res.writeHead(req.headers.host?.includes(':') ? 421 : answered).end())
  const done = await run(scriptOf('portcullis-test-sidecar').replace('port: 15080', `port: ${port}`))
  expect([done.status, done.said]).toEqual([status, expect.stringContaining(said)])
})
