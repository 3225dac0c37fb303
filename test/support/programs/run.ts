/** Other programs that tests and suites run. */
import { type ChildProcess, spawnSync } from 'node:child_process'

/** Building a program from its sources takes long. */
const BUILD_TIMEOUT_MS = 3_600_000

/** What the program prints as JSON; null when it failed. */
export function askJson(program: string, words: readonly string[], cwd: string): unknown {
  const { status, stdout } = spawnSync(program, words, { cwd, encoding: 'utf8', timeout: BUILD_TIMEOUT_MS })
  if (status !== 0) return null
  const value: unknown = JSON.parse(stdout)
  return value
}

/** Whether it ended with 0. */
export function runs(program: string, words: readonly string[], cwd: string): boolean {
  const env = { ...process.env, CGO_ENABLED: '0' }
  const { status } = spawnSync(program, words, {
    cwd,
    env,
    stdio: ['ignore', 'ignore', 'inherit'],
    timeout: BUILD_TIMEOUT_MS,
  })
  return status === 0
}

/** How a process ended, and what it wrote. */
export async function endOf(child: ChildProcess): Promise<{ status: number | null; out: string; err: string }> {
  const text = { out: '', err: '' }
  child.stdout?.on('data', (chunk) => {
    text.out += chunk
  })
  child.stderr?.on('data', (chunk) => {
    text.err += chunk
  })
  const status = await new Promise<number | null>((done) => child.once('close', done))
  return { status, ...text }
}
