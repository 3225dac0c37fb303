/** The command `portcullis-pdp` as an operator runs it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { readFile, rm, stat } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { isRunning } from '../../pdp/engine/store/embedded-postgres/process.ts'
import { makeDataFolder } from '../support/programs/data-folder.ts'
import { PROGRAM_ENV } from '../support/programs/environment.ts'
import { endOf } from '../support/programs/run.ts'
import { runPdp } from './run-cli.ts'

const MAIN = new URL('../../pdp/main.ts', import.meta.url).pathname
const BIN = new URL('../../pdp/bin.ts', import.meta.url).pathname
let dataDirectory: string
beforeAll(async () => {
  dataDirectory = makeDataFolder('cli-')
})
afterAll(() => rm(dataDirectory, { recursive: true, force: true }))

const ANY_PORTS = {
  PORTCULLIS_HTTP_LISTEN: '127.0.0.1:0',
  PORTCULLIS_GRPC_LISTEN: '127.0.0.1:0',
  PORTCULLIS_METRICS_LISTEN: '127.0.0.1:0',
}
function start(args: readonly string[], environment: NodeJS.ProcessEnv = {}, file = MAIN): ChildProcess {
  const env = { ...PROGRAM_ENV, PORTCULLIS_DATA_DIR: dataDirectory, ...environment }
  return spawn(process.execPath, [file, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] })
}
/** The log entry that says where it listens. */
function listening(child: ChildProcess): Promise<{ http: string; grpc: string; metrics: string }> {
  return new Promise((resolve, reject) => {
    let text = ''
    child.stdout?.on('data', (chunk) => {
      text += chunk
      const line = text.split('\n').find((candidate) => candidate.includes('"event":"listening"'))
      if (line !== undefined) resolve(JSON.parse(line))
    })
    child.once('close', () => reject(new Error(`it ended: ${text}`)))
  })
}

describe('portcullis-pdp', () => {
  test('says all mistakes of the environment and exits 64, having started nothing', async () => {
    const child = start([], {
      PORTCULLIS_HTTP_LISTEN: '0.0.0.0:0',
      PORTCULLIS_TYPO: 'x',
      PORTCULLIS_PORT: 'tcp://10.0.0.1:80',
    })
    const { status, out, err } = await endOf(child)
    expect([status, out]).toEqual([64, ''])
    expect(err.trim().split('\n')).toHaveLength(4)
    expect(err).toMatch(/^PORTCULLIS_TYPO is not a known setting$/m)
  })

  test.each([
    [['nonsense'], 2, "error: unknown command 'nonsense'\nTry: portcullis-pdp --help\n"],
    [['help', 'srve'], 2, 'error: there is no command "srve"; did you mean "serve"?\nTry: portcullis-pdp --help\n'],
    [['srve'], 2, "error: unknown command 'srve'\n(Did you mean serve?)\nTry: portcullis-pdp --help\n"],
    [
      ['serve', 'x'],
      64,
      "error: too many arguments for 'serve'. Expected 0 arguments but got 1.\nTry: portcullis-pdp serve --help\n",
    ],
    [['migrate', '--dry'], 64, "error: unknown option '--dry'\nTry: portcullis-pdp migrate --help\n"],
    [['--verison'], 2, "error: unknown option '--verison'\n(Did you mean --version?)\nTry: portcullis-pdp --help\n"],
  ])('says what was meant for %j, and exits %i: 1 means denied', async (args, status, err) => {
    expect(await runPdp(args)).toEqual({ status, out: '', err })
  })

  test('says its version', async () => {
    const { version } = JSON.parse(await readFile('package.json', 'utf8'))
    expect(await endOf(start(['--version']))).toEqual({ status: 0, out: `${version}\n`, err: '' })
  })

  test('explains itself', async () => {
    const { status, out } = await endOf(start(['--help'], {}, BIN))
    expect([status, out]).toEqual([0, expect.stringContaining('PORTCULLIS_GRPC_LISTEN')])
  })

  test('migrates, serves with probes, and ends with 0 and without a process left on SIGTERM', async () => {
    const migrated = await endOf(start(['migrate']))
    expect([migrated.status, migrated.err, migrated.out]).toEqual([
      0,
      '',
      expect.stringMatching(/^Applied: 0001-initial/),
    ])
    const child = start(['serve'], ANY_PORTS)
    const end = endOf(child)
    const { http, metrics } = await listening(child)
    await vi.waitUntil(async () => (await fetch(`${metrics}/readyz`)).status === 200, { timeout: 30_000 })
    expect(await (await fetch(`${metrics}/metrics`)).text()).toContain('portcullis_checks_total')
    expect((await fetch(`${http}/oauth/decisions`, { method: 'POST' })).status).toBe(401)
    expect((await fetch(`${http}/.well-known/openid-configuration`)).status).toBe(200)
    for (const secret of ['admin-secret', 'master-key'])
      expect((await stat(join(dataDirectory, secret))).mode & 0o777).toBe(0o600)
    const pid = Number((await readFile(join(dataDirectory, 'postgres/postmaster.pid'), 'utf8')).split('\n')[0])
    child.kill('SIGTERM')
    const { status, out, err } = await end
    expect([status, err, isRunning(pid)]).toEqual([0, '', false])
    for (const secret of ['admin-secret', 'master-key'])
      expect(out).not.toContain(await readFile(join(dataDirectory, secret), 'utf8'))
  })

  test('ends cleanly on a signal while it is still starting', async () => {
    const child = start([], ANY_PORTS)
    const end = endOf(child)
    await new Promise((done) => setTimeout(done, 700))
    child.kill('SIGINT')
    const { err } = await end
    expect(err).toBe('')
    await expect(stat(join(dataDirectory, 'postgres/postmaster.pid'))).rejects.toThrow('ENOENT')
  })

  test.each([
    ['PORTCULLIS_HTTP_LISTEN', 'The HTTP listener'],
    ['PORTCULLIS_GRPC_LISTEN', 'The gRPC listener'],
    ['PORTCULLIS_METRICS_LISTEN', 'The metrics listener'],
  ])('says one line when the port of %s is taken, and leaves nothing running', async (name, what) => {
    const server = createServer()
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
    const address = server.address()
    const place = `127.0.0.1:${address === null || typeof address === 'string' ? 0 : address.port}`
    const { status, err } = await endOf(start([], { ...ANY_PORTS, [name]: place }))
    expect([status, err]).toEqual([
      1,
      `${what} cannot listen on ${place}: another process uses this port. Choose another address by ${name}\n`,
    ])
    await expect(stat(join(dataDirectory, 'postgres/postmaster.pid'))).rejects.toThrow('ENOENT')
    await new Promise((done) => server.close(done))
  })

  test.each([
    ['28P01', 'it refuses the user or the password of DATABASE_URL'],
    ['3D000', 'the database that DATABASE_URL names does not exist'],
  ])('says one line when PostgreSQL refuses the connection with %s', async (code, said) => {
    const fields = `SFATAL\0VFATAL\0C${code}\0Mrefused\0\0`
    const length = Buffer.alloc(4)
    length.writeUInt32BE(fields.length + 4)
    const server = createServer((socket) => {
      socket.on('error', () => undefined)
      socket.once('data', () => socket.end(Buffer.concat([Buffer.from('E'), length, Buffer.from(fields)])))
    })
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
    const address = server.address()
    const port = address === null || typeof address === 'string' ? 0 : address.port
    const { status, err } = await endOf(
      start([], { ...ANY_PORTS, DATABASE_URL: `postgresql://a:b@127.0.0.1:${port}/x` }),
    )
    expect([status, err]).toEqual([1, `PostgreSQL: ${said}\n`])
    await new Promise((done) => server.close(done))
  })

  test('does not start with a proxy that has no URL, and repeats none of its text', async () => {
    const { status, out, err } = await endOf(start([], { ...ANY_PORTS, HTTPS_PROXY: 'socks5://ann:word@proxy:1080' }))
    expect([status, err]).toEqual([64, expect.stringContaining('HTTPS_PROXY is not the URL of a proxy')])
    expect(out + err).not.toContain('word')
  })

  test('says one line when the database cannot be reached', async () => {
    const { status, err } = await endOf(start([], { ...ANY_PORTS, DATABASE_URL: 'postgresql://a:b@127.0.0.1:1/x' }))
    expect([status, err]).toEqual([
      1,
      'PostgreSQL: the database cannot be reached (ECONNREFUSED): nothing listens at the host and port of DATABASE_URL\n',
    ])
  })
})
