/** A Redis of a test's own, from the machine's redis-server. */
import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { freePort } from '../free-port.ts'

export type TestRedis = {
  readonly url: string
  /** Ends it, without a word to its clients. */
  kill(): Promise<void>
  /** After `kill`, on the same port, empty. */
  start(): Promise<void>
  /** The answer as text. */
  command(...words: readonly string[]): Promise<string>
}

export const hasRedis = (): boolean => spawnSync('redis-server', ['--version']).status === 0

export async function startRedis(): Promise<TestRedis> {
  const port = await freePort()
  return start(port, () => ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'])
}

/** One that watches the primary of this name, and decides alone. */
export async function startSentinel(name: string, primaryPort: number): Promise<TestRedis> {
  const port = await freePort()
  const file = join(mkdtempSync(join(tmpdir(), 'portcullis-sentinel-')), 'sentinel.conf')
  const lines = [`port ${port}`, 'bind 127.0.0.1', `sentinel monitor ${name} 127.0.0.1 ${primaryPort} 1`]
  writeFileSync(file, [...lines, `sentinel down-after-milliseconds ${name} 1000`, ''].join('\n'))
  return start(port, () => [file, '--sentinel'])
}

const SLOTS = 16_384

/** Three primaries, each with a third of the slots, and a replica of the first as the last. */
export async function startRedisCluster(): Promise<readonly TestRedis[]> {
  const nodes: TestRedis[] = []
  const buses: string[] = []
  while (nodes.length < 4) {
    const port = await freePort()
    // Without a bus port of its own a node takes the port 10,000 above, which any client of this machine may have.
    const bus = String(await freePort())
    buses.push(bus)
    const folder = mkdtempSync(join(tmpdir(), 'portcullis-redis-'))
    const own = ['--port', String(port), '--cluster-port', bus, '--bind', '127.0.0.1', '--save', '', '--dir', folder]
    nodes.push(await start(port, () => [...own, '--cluster-enabled', 'yes', '--cluster-node-timeout', '1000']))
  }
  const [first, , , replica] = nodes
  if (first === undefined || replica === undefined) throw new TypeError('a cluster needs nodes')
  for (const [i, node] of nodes.slice(0, 3).entries()) {
    const [from, to] = [i, i + 1].map((third) => Math.ceil((third * SLOTS) / 3))
    await node.command('cluster', 'addslotsrange', `${from}`, `${(to ?? 0) - 1}`)
  }
  for (const node of nodes) await node.command('cluster', 'meet', '127.0.0.1', new URL(first.url).port, buses[0] ?? '')
  const id = await first.command('cluster', 'myid')
  const until = async (node: TestRedis, words: readonly string[], found: RegExp): Promise<void> => {
    while (!found.test(await node.command(...words).catch(String))) await new Promise((done) => setTimeout(done, 100))
  }
  await until(replica, ['cluster', 'replicate', id], /^OK/)
  for (const node of nodes) await until(node, ['cluster', 'info'], /cluster_state:ok[\s\S]*cluster_known_nodes:4/)
  await until(replica, ['role'], /connected/)
  return nodes
}

async function start(port: number, args: () => readonly string[]): Promise<TestRedis> {
  let child = await launch(args())
  return {
    async command(...words) {
      const redis = new Redis(port, '127.0.0.1', { lazyConnect: true, maxRetriesPerRequest: 0 })
      redis.on('error', () => undefined)
      try {
        await redis.connect()
        return String(await redis.call(...(words as [string, ...string[]])))
      } finally {
        redis.disconnect()
      }
    },
    url: `redis://127.0.0.1:${port}`,
    kill: () =>
      new Promise((resolve) => {
        if (child.signalCode !== null) resolve()
        child.once('exit', () => resolve())
        child.kill('SIGKILL')
      }),
    async start() {
      child = await launch(args())
    },
  }
}

function launch(args: readonly string[]): Promise<ReturnType<typeof spawn>> {
  const child = spawn('redis-server', args, { stdio: ['ignore', 'pipe', 'ignore'] })
  return new Promise((resolve, reject) => {
    child.once('exit', () => reject(new Error('redis-server ended at its start')))
    child.stdout?.on('data', (chunk) => {
      if (/Ready to accept connections|Sentinel ID is/.test(String(chunk))) resolve(child)
    })
  })
}
