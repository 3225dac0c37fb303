/** A Redis of a test's own, from the machine's redis-server. */
import { spawn, spawnSync } from 'node:child_process'
import { freePort } from '../free-port.ts'

export type TestRedis = {
  readonly url: string
  /** Ends it, without a word to its clients. */
  kill(): Promise<void>
  /** After `kill`, on the same port, empty. */
  start(): Promise<void>
}

export const hasRedis = (): boolean => spawnSync('redis-server', ['--version']).status === 0

export async function startRedis(): Promise<TestRedis> {
  const port = await freePort()
  let child = await launch(port)
  return {
    url: `redis://127.0.0.1:${port}`,
    kill: () =>
      new Promise((resolve) => {
        child.once('exit', () => resolve())
        child.kill('SIGKILL')
      }),
    async start() {
      child = await launch(port)
    },
  }
}

function launch(port: number): Promise<ReturnType<typeof spawn>> {
  const child = spawn(
    'redis-server',
    ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'],
    {
      stdio: ['ignore', 'pipe', 'ignore'],
    },
  )
  return new Promise((resolve, reject) => {
    child.once('exit', () => reject(new Error('redis-server ended at its start')))
    child.stdout?.on('data', (chunk) => {
      if (String(chunk).includes('Ready to accept connections')) resolve(child)
    })
  })
}
