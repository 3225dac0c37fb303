/** One process of the system under test: started, killed, frozen, and started again on the same ports. */
import { type ChildProcess, spawn } from 'node:child_process'
import { openSync, readdirSync, readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { PROGRAM_ENV } from '../support/programs/environment.ts'

export type Part = {
  readonly name: string
  pid(): number
  /** Throws when it is not ready in time. `env`: besides what it always has. */
  start(env?: { readonly [name: string]: string }): Promise<void>
  signal(name: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT' | 'SIGTERM'): void
  /** Resolves when it is gone. */
  ended(): Promise<void>
  running(): boolean
  log(): string
}
export type PartOptions = {
  readonly name: string
  readonly logFile: string
  readonly launch: (env: { readonly [name: string]: string }, log: number) => ChildProcess
  readonly ready: () => Promise<boolean>
}

/** Many times what a start takes, for a machine that has more to do. */
const START_MS = 150_000

export function createPart({ name, logFile, launch, ready }: PartOptions): Part {
  let child: ChildProcess | null = null
  const pid = (): number => child?.pid ?? 0
  const running = (): boolean => child !== null && child.exitCode === null && child.signalCode === null
  return {
    name,
    pid,
    running,
    log: () => readFileSync(logFile, 'utf8'),
    async start(env = {}) {
      const started = launch(env, openSync(logFile, 'a'))
      child = started
      const deadline = performance.now() + START_MS
      while (!(await ready().catch(() => false))) {
        if (!running()) throw new Error(`${name} ended at its start; see ${logFile}`)
        if (performance.now() > deadline) {
          // The caller has nothing yet by which it could end it.
          this.signal('SIGKILL')
          await this.ended()
          throw new Error(`${name} is not ready; see ${logFile}`)
        }
        await delay(50)
      }
    },
    signal(signal) {
      // A database server is many processes.
      for (const one of [pid(), ...childrenOf(pid())]) tryKill(one, signal)
    },
    async ended() {
      while (running()) await delay(20)
    },
  }
}

function tryKill(pid: number, signal: NodeJS.Signals): void {
  try {
    if (pid > 0) process.kill(pid, signal)
  } catch {
    // It has ended by itself.
  }
}

function childrenOf(pid: number): number[] {
  if (process.platform !== 'linux' || pid === 0) return []
  return readdirSync('/proc').flatMap((name) => (/^\d+$/.test(name) && parentOf(name) === pid ? [Number(name)] : []))
}

function parentOf(name: string): number | null {
  try {
    return Number(/^\d+ \(.*\) \S (\d+)/s.exec(readFileSync(`/proc/${name}/stat`, 'utf8'))?.[1])
  } catch {
    return null
  }
}

export const spawnNode = (
  args: readonly string[],
  { env, log }: { readonly env: { readonly [name: string]: string }; readonly log: number },
): ChildProcess => spawn(process.execPath, args, { env: { ...PROGRAM_ENV, ...env }, stdio: ['ignore', log, log] })
