/** A Redis with a replica, and a Sentinel that promotes it. */
import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { createPart, type Part } from '../faults/part.ts'
import { freePort } from '../support/free-port.ts'

export type HaRedis = {
  /** Leads to the Sentinel. */
  readonly url: string
  readonly sentinel: Part
  /** The server that takes writes. */
  primary(): Promise<Part>
  /** One server takes writes, and the other one follows it. */
  whole(): Promise<void>
}

const NAME = 'proofs'
const WHOLE_MS = 60_000

/** `own` gets each part that is to be ended. */
export async function startRedis(folder: string, own: (part: Part) => void): Promise<HaRedis> {
  const start = async (name: string, port: number, args: readonly string[]): Promise<Part> => {
    const part = createPart({
      name,
      logFile: join(folder, `${name}.log`),
      launch: (_env, log) => spawn('redis-server', args, { stdio: ['ignore', log, log] }),
      ready: async () => (await ask(port, 'ping')) === 'PONG',
    })
    own(part)
    await part.start()
    return part
  }
  const [one, two, watch] = [await freePort(), await freePort(), await freePort()]
  const serve = ['--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', folder]
  const servers = new Map([
    [one, await start('redis-1', one, ['--port', `${one}`, ...serve])],
    [two, await start('redis-2', two, ['--port', `${two}`, ...serve, '--replicaof', '127.0.0.1', `${one}`])],
  ])
  const file = join(folder, 'sentinel.conf')
  const lines = [`port ${watch}`, 'bind 127.0.0.1', `sentinel monitor ${NAME} 127.0.0.1 ${one} 1`]
  const times = [`sentinel down-after-milliseconds ${NAME} 2000`, `sentinel failover-timeout ${NAME} 5000`]
  writeFileSync(file, [...lines, ...times, ''].join('\n'))
  const roleOf = (port: number): Promise<string> => ask(port, 'role').catch(() => '')
  return {
    url: `redis+sentinel://127.0.0.1:${watch}/${NAME}`,
    sentinel: await start('sentinel', watch, [file, '--sentinel']),
    async primary() {
      for (const [port, part] of servers) if ((await roleOf(port)).startsWith('master')) return part
      throw new Error('no Redis takes writes')
    },
    async whole() {
      for (const deadline = performance.now() + WHOLE_MS; performance.now() < deadline; await delay(200)) {
        const roles = (await Promise.all([one, two].map(roleOf))).sort()
        if (/^master,/.test(roles[0] ?? '') && /^slave,.*,connected,/.test(roles[1] ?? '')) return
      }
      throw new Error(`Redis is not whole again; see ${folder}`)
    },
  }
}

/** The answer as text. */
async function ask(port: number, word: string): Promise<string> {
  const redis = new Redis(port, '127.0.0.1', { lazyConnect: true, maxRetriesPerRequest: 0 })
  redis.on('error', () => undefined)
  try {
    await redis.connect()
    return String(await redis.call(word))
  } finally {
    redis.disconnect()
  }
}
