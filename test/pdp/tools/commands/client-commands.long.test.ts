/** The commands that ask a running PDP, as a person and as a script run them. */
import { type ChildProcess, spawn } from 'node:child_process'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { makeDataFolder } from '../../../support/programs/data-folder.ts'
import { PROGRAM_ENV } from '../../../support/programs/environment.ts'
import { runPdp } from '../../run-cli.ts'

const MAIN = new URL('../../../../pdp/main.ts', import.meta.url).pathname
let folder: string
let server: ChildProcess
let url: string
beforeAll(async () => {
  folder = makeDataFolder('commands-')
  server = start(['serve'], {
    PORTCULLIS_HTTP_LISTEN: '127.0.0.1:0',
    PORTCULLIS_GRPC_LISTEN: '127.0.0.1:0',
    PORTCULLIS_METRICS_LISTEN: '127.0.0.1:0',
    // What the client commands read does not keep a server from starting.
    PORTCULLIS_URL: 'http://127.0.0.1:1',
  })
  url = await listening(server)
  const token = await adminToken()
  const put = async (path: string, body: object) => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const answer = await fetch(`${url}/v1/${path}`, { method: 'PUT', headers, body: JSON.stringify(body) })
    expect([answer.status, await answer.json()]).toMatchObject([201, {}])
  }
  await put('organizations/acme', { name: 'Acme' })
  await put('organizations/copy', { name: 'Copy' })
  await put('users/alice', {})
  await put('clients/reader', {
    grant_types: ['client_credentials'],
    scope: 'decisions:read',
    organization: 'acme',
    client_secret: 'reader-secret-1234',
  })
})
afterAll(async () => {
  server.kill('SIGTERM')
  await new Promise((done) => server.once('close', done))
  await rm(folder, { recursive: true })
})

function start(args: readonly string[], environment: NodeJS.ProcessEnv = {}): ChildProcess {
  const env = { ...PROGRAM_ENV, PORTCULLIS_DATA_DIR: folder, ...environment }
  return spawn(process.execPath, [MAIN, ...args], { env, stdio: 'pipe' })
}
function listening(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = ''
    child.stdout?.on('data', (chunk) => {
      text += chunk
      const line = text.split('\n').find((candidate) => candidate.includes('"event":"listening"'))
      if (line !== undefined) resolve(JSON.parse(line).http)
    })
    child.once('close', () => reject(new Error(`it ended: ${text}`)))
  })
}
async function adminToken(): Promise<string> {
  const secret = await readFile(join(folder, 'admin-secret'), 'utf8')
  const authorization = `Basic ${Buffer.from(`admin:${secret}`).toString('base64')}`
  const body = new URLSearchParams({
    grant_type: 'client_credentials',
    scope: 'directory:write clients:write decisions:read',
  })
  const response = await fetch(`${url}/oauth/token`, { method: 'POST', headers: { authorization }, body })
  const { access_token }: { access_token?: string } = Object(await response.json())
  return access_token ?? ''
}
const run = (args: readonly string[], options: { env?: NodeJS.ProcessEnv; input?: string } = {}) =>
  runPdp(args, { ...options, env: { PORTCULLIS_DATA_DIR: folder, PORTCULLIS_URL: url, ...options.env }, cwd: folder })
/** As an operator runs it. */
async function runProcess(args: readonly string[]) {
  const child = start(args, { PORTCULLIS_URL: url })
  const printed = Promise.all([child.stdout, child.stderr].map((stream) => (stream === null ? '' : text(stream))))
  const status = await new Promise<number | null>((done) => child.once('close', done))
  const [out, err] = await printed
  return { status, out, err }
}
const relationships = (...args: string[]) => run(['relationships', ...args, '-o', 'acme'])

describe('relationships', () => {
  test('write and delete, all or none', async () => {
    expect(await relationships('write', 'invoice:1#viewer@user:alice', 'group:g#member@user:alice')).toEqual({
      status: 0,
      out: 'stored: 2\n',
      err: '',
    })
    expect(await relationships('write', 'invoice:2#viewer@user:alice', 'wrong')).toMatchObject({
      status: 2,
      out: '',
      err: expect.stringContaining('/write/1: "wrong" is not a tuple'),
    })
    expect(await relationships('delete', 'group:g#member@user:alice')).toMatchObject({ status: 0, out: 'deleted: 1\n' })
    expect((await relationships('export')).out).toBe('invoice:1#viewer@user:alice\n')
  })

  test('import a file, stop at a mistake, go on after it is mended, and export it all', async () => {
    const lines = Array.from({ length: 1_200 }, (_, i) => `doc:${i}#viewer@user:alice`)
    const file = join(folder, 'tuples.txt')
    await writeFile(file, [...lines, 'wrong', 'doc:x#viewer@user:alice 2040-01-01T00:00:00Z'].join('\n'))
    const stopped = await relationships('import', file)
    expect(stopped).toMatchObject({ status: 2, out: '' })
    expect(stopped.err).toContain('line 1201: "wrong" is not a tuple')
    expect(stopped.err).toContain('lines up to 1000 are stored; continue with --after-line 1000')
    await writeFile(file, [...lines, '', 'doc:x#viewer@user:alice 2040-01-01T00:00:00Z'].join('\n'))
    const done = await relationships('import', file, '--after-line', '1000')
    expect(done).toMatchObject({ status: 0, out: 'stored: 201 tuples of 1202 lines\n' })
    const exported = await relationships('export', '--relation', 'viewer')
    expect(exported.out.trimEnd().split('\n')).toHaveLength(1_202)
    const copied = await run(['relationships', 'import', '-', '-o', 'copy', '--json'], { input: exported.out })
    expect(copied.status).toBe(0)
    expect(JSON.parse(copied.out.trimEnd().split('\n').at(-1) ?? '')).toMatchObject({ done: true, tuples: 1_202 })
    const json = await run(['relationships', 'export', '-o', 'copy', '--object', 'doc:x', '--json'])
    expect(JSON.parse(json.out)).toMatchObject({ object: 'doc:x', expires_at: '2040-01-01T00:00:00.000Z' })
  })

  test.each<[string, readonly string[], RegExp]>([
    ['no organization', ['export'], /name the organization with --organization/],
    ['an organization that is not there', ['export', '-o', 'nowhere'], /no organization nowhere/],
    ['a file that is not there', ['import', '/nowhere.txt', '-o', 'acme'], /nowhere.txt does not exist/],
    ['a line that is none', ['import', '-', '-o', 'acme', '--after-line', 'x'], /not a line number/],
    ['no tuples', ['write', '-o', 'acme'], /missing required argument 'tuple'/],
    ['an unknown option', ['export', '-o', 'acme', '--all'], /unknown option '--all'/],
    ['an unknown command', ['move'], /unknown command|too many arguments|Usage/],
  ])('end with 2 for %s', async (_, args, message) => {
    expect(await run(['relationships', ...args])).toMatchObject({ status: 2, err: expect.stringMatching(message) })
  })
})

describe('the command itself', () => {
  test('ends with the status of the answer', async () => {
    const question = (relation: string) => ['check', 'user:alice', relation, 'invoice:1', '-o', 'acme']
    expect(await runProcess(question('viewer'))).toEqual({
      status: 0,
      out: 'allowed  user:alice viewer invoice:1 in acme\n',
      err: '',
    })
    expect((await runProcess(question('editor'))).status).toBe(1)
    expect((await runProcess(question('#'))).status).toBe(2)
    expect((await runProcess(['check', '--nonsense'])).status).toBe(2)
  })
})

describe('check and explain', () => {
  test('end with 0 for allowed and 1 for denied', async () => {
    expect(await run(['check', 'user:alice', 'viewer', 'invoice:1', '-o', 'acme'])).toEqual({
      status: 0,
      out: 'allowed  user:alice viewer invoice:1 in acme\n',
      err: '',
    })
    expect(await run(['check', 'user:alice', 'editor', 'invoice:1', '-o', 'acme'])).toMatchObject({
      status: 1,
      out: 'denied  user:alice editor invoice:1 in acme\n',
    })
    expect((await run(['check', 'user:nobody', 'viewer', 'invoice:1', '-o', 'acme'])).status).toBe(1)
  })

  test('take a bound client of the environment’s choice, and the bearer of a token', async () => {
    const env = { PORTCULLIS_CLIENT_ID: 'reader', PORTCULLIS_CLIENT_SECRET: 'reader-secret-1234' }
    expect(await run(['check', 'user:alice', 'viewer', 'invoice:1'], { env })).toMatchObject({ status: 0, err: '' })
    expect(await run(['check', '-', 'viewer', 'invoice:1'], { env })).toMatchObject({
      status: 1,
      out: 'denied  service:reader viewer invoice:1 in acme\n',
    })
    expect(await run(['check', 'user:alice', 'viewer', 'invoice:1', '-o', 'copy'], { env })).toMatchObject({
      status: 2,
      err: expect.stringContaining('there is no organization copy, or client reader may not act in it'),
    })
  })

  test('print what a script can read', async () => {
    const { status, out } = await run(['explain', 'user:alice', 'viewer', 'invoice:1', '-o', 'acme', '--json'])
    expect([status, JSON.parse(out)]).toMatchObject([
      0,
      { organization: 'acme', subject: { type: 'user', id: 'alice' }, permissions: [{ allowed: true }] },
    ])
  })

  test.each<[string, readonly string[], NodeJS.ProcessEnv, RegExp]>([
    ['a subject that is none', ['alice', 'viewer', 'invoice:1', '-o', 'acme'], {}, /must be <type>:<id>/],
    ['a resource that is none', ['user:alice', 'viewer', 'invoice', '-o', 'acme'], {}, /\/permissions\/0\/resource/],
    ['no organization', ['user:alice', 'viewer', 'invoice:1'], {}, /name the organization with --organization/],
    [
      'an organization that is not there',
      ['user:alice', 'viewer', 'invoice:1', '-o', 'nowhere'],
      {},
      /there is no organization nowhere/,
    ],
    ['a missing argument', ['user:alice', 'viewer'], {}, /missing required argument/],
    [
      'a wrong secret',
      ['user:alice', 'viewer', 'invoice:1', '-o', 'acme'],
      { PORTCULLIS_CLIENT_SECRET: 'wrong' },
      /got no token: invalid_client/,
    ],
    [
      'an empty secret',
      ['user:alice', 'viewer', 'invoice:1', '-o', 'acme'],
      { PORTCULLIS_CLIENT_SECRET: '' },
      /^PORTCULLIS_CLIENT_SECRET is set but empty/,
    ],
    ['an empty organization', ['user:alice', 'viewer', 'invoice:1', '-o', ''], {}, /^--organization is empty/],
    [
      'a dead token and an organization',
      ['-', 'viewer', 'invoice:1', '-o', 'acme'],
      { PORTCULLIS_TOKEN: 'dead' },
      /has ended, was revoked, or is of another PDP$/m,
    ],
    ['a dead token', ['-', 'viewer', 'invoice:1'], { PORTCULLIS_TOKEN: 'dead' }, /not active/],
    [
      'nobody there',
      ['-', 'viewer', 'invoice:1'],
      { PORTCULLIS_URL: 'http://127.0.0.1:19999' },
      /cannot be reached: nothing listens there.*portcullis doctor/,
    ],
    ['a URL that is none', ['-', 'viewer', 'invoice:1'], { PORTCULLIS_URL: 'pdp' }, /PORTCULLIS_URL must be an origin/],
    ['another scheme', ['-', 'viewer', 'invoice:1', '--url', 'ftp://pdp'], {}, /--url must be an origin/],
    [
      'secrets in plain text',
      ['-', 'viewer', 'invoice:1'],
      { PORTCULLIS_URL: 'http://pdp.example' },
      /PORTCULLIS_URL: .*use https/,
    ],
    [
      'a token file that is not there',
      ['-', 'viewer', 'invoice:1', '--token-file', '/nowhere'],
      {},
      /\/nowhere does not exist/,
    ],
  ])('end with 2 for %s', async (_, args, env, message) => {
    expect(await run(['check', ...args], { env })).toMatchObject({
      status: 2,
      out: '',
      err: expect.stringMatching(message),
    })
  })

  test('say how to use them', async () => {
    const { status, out } = await run(['explain', '--help'])
    expect([status, out]).toEqual([0, expect.stringContaining('Exit status: 0 allowed, 1 denied, 2')])
  })
})

describe('manifest', () => {
  test('is tried, applied and shown', async () => {
    const file = join(folder, 'manifest.yaml')
    await writeFile(
      file,
      'permissions:\n  "invoices:read": Read\nroles:\n  reader: {name: Reader, permissions: ["invoices:read"]}\n',
    )
    expect(await run(['manifest', 'apply', 'billing', file, '--dry-run'])).toMatchObject({
      status: 0,
      out: 'billing would have version 1\n',
    })
    expect(await run(['manifest', 'apply', 'billing', file])).toMatchObject({
      status: 0,
      out: 'billing has version 1\n',
    })
    expect(JSON.parse((await run(['manifest', 'get', 'billing'])).out)).toMatchObject({ app: 'billing', version: 1 })
    await writeFile(file, 'permissions: [\n')
    expect(await run(['manifest', 'apply', 'billing', file])).toMatchObject({
      status: 2,
      err: expect.stringMatching(/line \d, column \d/),
    })
    await writeFile(file, 'permisions: {}\n')
    expect(await run(['manifest', 'apply', 'billing', file])).toEqual({
      status: 2,
      out: '',
      err: 'The request is malformed\n  /permisions: is not a known member\n',
    })
    expect((await run(['manifest', 'get', 'nothing'])).status).toBe(2)
  })
})

describe('model test', () => {
  test('runs store files without a server', async () => {
    const file = join(folder, 'store.fga.yaml')
    const model =
      'model: |\n  model\n    schema 1.1\n  type user\n  type doc\n    relations\n      define viewer: [user]\n'
    const test = (allowed: boolean) =>
      `tuples:\n  - {user: "user:a", relation: viewer, object: "doc:1"}\ntests:\n  - name: t\n    check:\n      - {user: "user:a", object: "doc:1", assertions: {viewer: ${allowed}}}\n`
    await writeFile(file, model + test(true))
    expect(await run(['model', 'test', file])).toMatchObject({ status: 0, out: '1 passed, 0 failed\n' })
    await writeFile(file, model + test(false))
    expect((await run(['model', 'test', file])).status).toBe(1)
    expect((await run(['model', 'test', '/nowhere.fga.yaml'])).status).toBe(2)
    expect((await run(['model', 'test'])).status).toBe(2)
  })
})
