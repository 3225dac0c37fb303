/** A PDP as a process of its own, and the command `portcullis` on it as a person and as a script run it. */
import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { expect } from 'vitest'
import { runClientCli } from '../../../../pdp/client-cli.ts'
import { openTestDatabase } from '../../../support/database.ts'
import { freePort } from '../../../support/free-port.ts'
import { PROGRAM_ENV } from '../../../support/programs/environment.ts'

const MAIN = new URL('../../../../pdp/main.ts', import.meta.url).pathname

export type ServedPdp = {
  /** Home, data directory and working directory of the commands. */
  readonly folder: string
  readonly url: string
  run(line: string, options?: RunOptions): Promise<Ran>
  /** What a command prints that must succeed and complain of nothing. */
  good(line: string): Promise<string>
  close(): Promise<void>
}
type RunOptions = { readonly env?: NodeJS.ProcessEnv; readonly onError?: (text: string) => void }
type Ran = { readonly status: NodeJS.Process['exitCode']; readonly out: string; readonly err: string }

export async function servePdp(): Promise<ServedPdp> {
  const folder = await mkdtemp(join(tmpdir(), 'everyday-'))
  const database = await openTestDatabase()
  const loopback = '127.0.0.1:0'
  const env = {
    ...PROGRAM_ENV,
    DATABASE_URL: database.connectionString,
    PORTCULLIS_DATA_DIR: folder,
    // The issuer, which others read the keys from, has the port in its name.
    PORTCULLIS_HTTP_LISTEN: `127.0.0.1:${await freePort()}`,
    PORTCULLIS_GRPC_LISTEN: loopback,
    PORTCULLIS_METRICS_LISTEN: loopback,
    // What is meant for the sidecar does not keep a PDP from starting.
    PORTCULLIS_ROUTE_FILE: 'routes.yaml',
  }
  const server = spawn(process.execPath, [MAIN, 'serve'], { env, stdio: 'pipe' })
  const url = await new Promise<string>((resolve, reject) => {
    let said = ''
    server.stdout.on('data', (chunk) => {
      said += chunk
      const line = said.split('\n').find((candidate) => candidate.includes('"event":"listening"'))
      if (line !== undefined) resolve(JSON.parse(line).http)
    })
    server.stderr.on('data', (chunk) => {
      said += chunk
    })
    server.once('close', () => reject(new Error(`it ended: ${said}`)))
  })
  const run = (line: string, options: RunOptions = {}): Promise<Ran> => runOn({ folder, url }, line, options)
  return {
    folder,
    url,
    run,
    async good(line) {
      const { status, out, err } = await run(line)
      expect([line, status, err]).toEqual([line, 0, ''])
      return out
    },
    async close() {
      server.kill('SIGTERM')
      await new Promise((done) => server.once('close', done))
      await rm(folder, { recursive: true })
      await database.drop()
    },
  }
}

export async function runOn(
  { folder, url }: Pick<ServedPdp, 'folder' | 'url'>,
  line: string,
  { env, onError }: RunOptions,
): Promise<Ran> {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()]
  stderr.on('data', (chunk) => onError?.(String(chunk)))
  const io = {
    argv: ['node', 'portcullis', ...line.split(' ')],
    env: { HOME: folder, PORTCULLIS_DATA_DIR: folder, PORTCULLIS_URL: url, ...env },
    platform: process.platform,
    cwd: () => folder,
    stdin: Readable.from([]),
    stdout,
    stderr,
    exitCode: 0,
    exit(status: number): never {
      throw new Error(`exit ${status}`)
    },
  }
  const [out, err] = [text(stdout), text(stderr)]
  await runClientCli(io as unknown as NodeJS.Process).finally(() => {
    stdout.end()
    stderr.end()
  })
  return { status: io.exitCode, out: await out, err: await err }
}
