/** `explain --token`: a real issuer and PDP beside it, and a service behind that must not be reached. */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { createIssuer, type Issuer } from '../../support/peers/issuer.ts'
import { type ScriptedPdp, startScriptedPdp, tuples } from '../../support/peers/scripted-pdp.ts'
import { runCli } from '../../support/peers/sidecar-cli.ts'
import { PROGRAM_ENV } from '../../support/programs/environment.ts'
import { startKeyServer } from '../support/process.ts'
import { startUpstream, type Upstream } from '../support/upstream.ts'

const MAIN = fileURLToPath(new URL('../../../sidecar/main.ts', import.meta.url))
let folder: string
let issuer: Issuer
let pdp: ScriptedPdp
let upstream: Upstream
let keys: Awaited<ReturnType<typeof startKeyServer>>
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'portcullis-explain-'))
  issuer = await createIssuer({ issuer: 'https://as.test', audience: 'https://app.test', clock: Date.now })
  keys = await startKeyServer([issuer.jwks])
  pdp = await startScriptedPdp(tuples(['alice viewer invoice:1', 'alice creator folder:a']))
  upstream = await startUpstream()
  writeFileSync(
    join(folder, 'portcullis.yaml'),
    `portcullis: v1
resource: https://app.test
issuers: [{issuer: https://as.test, jwks_uri: "${keys.urls[0]}"}]
upstream: ${upstream.origin}
pdp: {address: "${pdp.address}", insecure: true}
routes:
  GET /invoices/{id}: viewer invoice:{id}
  GET /shadow/{id}: {check: "viewer invoice:{id}", mode: shadow}
  POST /invoices: creator folder:{body.folder}
`,
  )
})
afterEach(() => {
  expect(upstream.reached).toEqual([])
  pdp.asked.length = 0
})
afterAll(async () => {
  keys.close()
  await pdp.stop()
  await upstream.close()
  rmSync(folder, { recursive: true })
})

type Explained = { readonly status: number; readonly lines: readonly string[]; readonly errors: string }

async function explain(words: readonly string[], token: string): Promise<Explained> {
  const path = join(folder, 'token')
  writeFileSync(path, `${token}\n`)
  const file = join(folder, 'portcullis.yaml')
  const { status, stdout, stderr } = await runCli(['explain', ...words, '--file', file, '--token', path])
  return { status, lines: stdout.trim().split('\n'), errors: stderr }
}

test('takes the token from standard input, and the route file from its folder', async () => {
  const child = spawn(process.execPath, [MAIN, 'explain', 'GET', '/invoices/1', '--token', '-'], {
    cwd: folder,
    env: PROGRAM_ENV,
  })
  child.stdin.end(`${await issuer.token()}\n`)
  let said = ''
  child.stdout.on('data', (chunk) => {
    said += chunk
  })
  const status = await new Promise((resolve) => child.on('close', resolve))
  expect([status, said.includes('result      allowed')]).toEqual([0, true])
})

test('a permitted request ends with 0, its route, its question and its verdict', async () => {
  expect(await explain(['get', '/invoices/1'], await issuer.token())).toEqual({
    status: 0,
    lines: [
      'route       GET /invoices/{id}',
      'parameter   id = 1',
      'asks        viewer invoice:1',
      'result      allowed',
      'reason      every check holds',
    ],
    errors: '',
  })
  expect(pdp.asked.map(({ permissions }) => permissions)).toEqual([['viewer invoice:1']])
})

test('a check of the body is asked with the given body', async () => {
  const { status, lines } = await explain(['POST', '/invoices', '--body', '{"folder":"a"}'], await issuer.token())
  expect([status, lines.at(-2)]).toEqual([0, 'result      allowed'])
})

test.each<[string, readonly string[], () => Promise<string>, string, number]>([
  ['a denial', ['GET', '/invoices/2'], () => issuer.token(), '403 permission_denied', 1],
  ['an expired token', ['GET', '/invoices/1'], () => issuer.token({ exp: 1 }), '401 token_expired', 0],
  [
    'a token for another resource',
    ['GET', '/invoices/1'],
    () => issuer.token({ aud: 'https://x.test' }),
    '401 token_invalid',
    0,
  ],
  ['what is no token', ['GET', '/invoices/1'], async () => 'hunter2.{}.x', '401 token_invalid', 0],
  ['nothing', ['GET', '/invoices/1'], async () => '', '400 request_invalid', 0],
  ['a path that no route has', ['GET', '/nothing'], () => issuer.token(), '404 route_unknown', 0],
  ['an ambiguous path', ['GET', '/invoices/%2e'], () => issuer.token(), '400 request_invalid', 0],
  ['a body without the member', ['POST', '/invoices', '--body', '{}'], () => issuer.token(), '400 request_invalid', 0],
  ['a denial in shadow mode', ['GET', '/shadow/2'], () => issuer.token(), '403 permission_denied, but only logged', 1],
])('%s ends with 1 and says so', async (_name, words, token, verdict, asked) => {
  const { status, lines, errors } = await explain(words, await token())
  expect([status, errors]).toEqual([1, ''])
  expect(lines.at(-2)).toContain(`result      ${verdict}`)
  expect(pdp.asked).toHaveLength(asked)
})

test.each([
  ['what is no token', '/invoices/1', 'hunter2.{}.x', 'result      401 token_invalid'],
  ['a path that no route has', '/nothing', 'hunter2', 'result      404 route_unknown'],
])('%s is denied once, by the result', async (_name, path, token, verdict) => {
  const { lines } = await explain(['GET', path], token)
  expect(lines.filter((line) => /^(denied|result)/.test(line))).toEqual([verdict])
})

test('a PDP that is not there ends with 1 and 503', async () => {
  await pdp.stop()
  const { status, lines } = await explain(['GET', '/invoices/1'], await issuer.token())
  await pdp.start()
  expect([status, lines.at(-2)]).toEqual([1, 'result      503 pdp_unavailable'])
})

test('a token file that is not there ends with 64 in one line', async () => {
  const file = join(folder, 'portcullis.yaml')
  const { status, stderr } = await runCli(['explain', 'GET', '/invoices/1', '--file', file, '--token', 'nowhere'])
  expect([status, stderr.trim().split('\n').length]).toEqual([64, 1])
  expect(stderr).toContain('the token file ')
})
