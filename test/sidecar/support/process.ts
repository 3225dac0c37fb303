/** A sidecar as a process of its own, for what can only be seen from outside: memory, start, end. */
import { spawn } from 'node:child_process'
import { mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { PROGRAM_ENV } from '../../support/programs/environment.ts'
import { until } from '../../support/until.ts'

export type SidecarProcess = {
  readonly port: number
  readonly admin: string
  readonly pid: number
  /** Milliseconds from the start to ready. */
  readonly readyMs: number
  /** Resident memory now, and the most that it ever was, in MB. */
  memory(): { readonly nowMb: number; readonly peakMb: number }
  stop(): Promise<void>
}

const MAIN = fileURLToPath(new URL('../../../sidecar/main.ts', import.meta.url))

/** As the installed command has them. */
const FLAGS = ['--max-semi-space-size=8', '--max-old-space-size=256']

/** Returns when it is ready. `command`: what runs it; the arguments of `run` follow. */
export async function startProcess(options: {
  readonly routeFile: string
  readonly command?: readonly string[]
  readonly env?: { readonly [name: string]: string }
}): Promise<SidecarProcess> {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-process-'))
  const path = join(folder, 'routes.yaml')
  writeFileSync(path, options.routeFile)
  const [program = process.execPath, ...words] = options.command ?? [process.execPath, ...FLAGS, MAIN]
  const args = [...words, 'run', '-f', path, '--listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0']
  // A file, since a pipe would make the reader part of what is measured.
  const logPath = join(folder, 'log')
  const log = openSync(logPath, 'w')
  const startedMs = performance.now()
  const child = spawn(program, args, {
    env: { ...PROGRAM_ENV, ...options.env },
    stdio: ['ignore', log, 'inherit'],
  })
  const said = (): string => readFileSync(logPath, 'utf8')
  await until(() => said().includes('"listening"') || child.exitCode !== null)
  const line = said()
    .split('\n')
    .find((text) => text.includes('"listening"'))
  if (line === undefined) throw new Error(`the sidecar ended with ${child.exitCode}`)
  const { data, admin } = JSON.parse(line)
  await until(async () => (await fetch(`http://${admin}/readyz`)).status === 200)
  const readyMs = performance.now() - startedMs
  const pid = child.pid ?? 0
  return {
    port: Number(data.split(':').at(-1)),
    admin,
    pid,
    readyMs,
    memory: () => ({ nowMb: statusMb(pid, 'VmRSS'), peakMb: statusMb(pid, 'VmHWM') }),
    stop: () =>
      new Promise((resolve) => {
        child.once('exit', () => {
          rmSync(folder, { recursive: true, force: true })
          resolve()
        })
        child.kill('SIGINT')
      }),
  }
}

/** From /proc; 0 where there is none. */
function statusMb(pid: number, name: string): number {
  try {
    const text = readFileSync(`/proc/${pid}/status`, 'utf8')
    return Number(new RegExp(`${name}:\\s+(\\d+) kB`).exec(text)?.[1] ?? 0) / 1_024
  } catch {
    return 0
  }
}

/** Serves each key set at `/0`, `/1`, … over plain HTTP on loopback. */
export async function startKeyServer(sets: readonly object[]): Promise<{ urls: string[]; close(): void }> {
  const server = createServer((req, res) => res.end(JSON.stringify(sets[Number(req.url?.slice(1))] ?? {})))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    urls: sets.map((_, at) => `http://127.0.0.1:${port}/${at}`),
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}
