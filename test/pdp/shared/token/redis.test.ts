/** Connections to Redis, by redis-server of this machine. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { redisSharedCache } from '../../../../pdp/engine/store/entitlements/redis-cache.ts'
import { createLog } from '../../../../pdp/shared/process/log.ts'
import { redisLines } from '../../../../pdp/shared/process/redis-lines.ts'
import { asRedisUrl, withoutCommand } from '../../../../pdp/shared/token/redis.ts'
import { redisReplayMemory } from '../../../../pdp/shared/token/replay-redis.ts'
import { redisMemory } from '../../../../sidecar/sign-in/memory-redis.ts'
import { hasRedis, startRedis, startRedisCluster, startSentinel, type TestRedis } from '../../../support/peers/redis.ts'
import { openAddress } from '../../../support/postgres-pair.ts'

const PASSWORD = 'a-password-that-no-log-has'
type OnError = (error: Error) => void

describe.skipIf(!hasRedis())('a Redis that refuses the password (Debian: redis-server)', () => {
  let redis: TestRedis
  beforeAll(async () => {
    redis = await startRedis()
  })
  afterAll(() => redis.kill())

  const opened: { [part: string]: (url: string, onError: OnError) => Promise<{ close(): unknown }> } = {
    'memory of proofs': (url, onError) => redisReplayMemory({ url, clock: Date.now, onError }),
    'memory of sessions': (url, onError) => redisMemory({ url, onError }),
    'cache of entitlements': (url, onError) => redisSharedCache({ url, masterKey: Buffer.alloc(32, 1), onError }),
  }

  test.each(Object.keys(opened))('is told to the %s without the password', async (part) => {
    const url = redis.url.replace('redis://', `redis://nobody:${PASSWORD}@`)
    const errors: Error[] = []
    const memory = await opened[part]?.(url, (error) => void errors.push(error))
    await expect.poll(() => errors.length).toBeGreaterThan(0)
    await memory?.close()
    expect(errors[0]?.message).toMatch(/password|AUTH/)
    const text = (error: Error): string => JSON.stringify([error, error.message, error.stack, Object.entries(error)])
    expect(errors.map(text).join()).not.toContain(PASSWORD)
  })
})

test('a server that does not know AUTH, and repeats the password, is told without it', () => {
  const said = new Error(`ERR unknown command 'AUTH', with args beginning with: 'default' '${PASSWORD}'`)
  expect(withoutCommand(said).message).toBe("ERR unknown command 'AUTH'")
})

const portOf = (redis: TestRedis): number => Number(new URL(redis.url).port)
let proofs = 0
const proof = (jkt = 'key') => ({ jkt, jti: `proof-${++proofs}`, htm: 'GET', htu: 'https://a', iat: 0 })

type Memory = Awaited<ReturnType<typeof redisReplayMemory>>
const isRemembered = async (memory: Memory | undefined, one = proof()): Promise<boolean | string> => {
  try {
    return (await memory?.remember(one, Date.now() + 60_000)) ?? 'no memory'
  } catch (err) {
    return String(err)
  }
}

test.each([
  ['redis://bob:pass@word@redis.example:6379/2', 'redis.example:6379'],
  ['rediss://redis.example', 'redis.example'],
  ['redis+sentinel://:secret@a:26379,b:26379/name/0', 'a:26379,b:26379'],
  ['redis+cluster://bob:secret@[::1]:6379,b', '[::1]:6379,b'],
])('a line about %s has no password, and the address %s', (url, address) => {
  const lines: string[] = []
  const log = createLog({ service: 'test', level: 'info', destination: { write: (line) => void lines.push(line) } })
  redisLines(log, 'proofs', url).onError(new Error('it failed'))
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([{ event: 'redis_failed', address }])
  expect(lines[0]).not.toMatch(/secret|word/)
})

describe.skipIf(!hasRedis())('a failover of Redis (Debian: redis-server, redis-sentinel)', () => {
  let servers: readonly [TestRedis, TestRedis]
  beforeAll(async () => {
    servers = [await startRedis(), await startRedis()]
    await servers[1].command('replicaof', '127.0.0.1', String(portOf(servers[0])))
  })
  afterAll(() => Promise.all(servers.map((server) => server.kill())))

  test('ends connections to a primary that became a replica', async () => {
    const [former, next] = servers
    const address = await openAddress(portOf(former))
    const lines: string[] = []
    const destination = { write: (line: string) => void lines.push(line) }
    const log = createLog({ service: 'test', level: 'info', destination })
    const place = `127.0.0.1:${address.port}`
    const url = `redis://${place}`
    const memory = await redisReplayMemory({ url, clock: Date.now, ...redisLines(log, 'proofs', url) })
    await expect.poll(() => isRemembered(memory)).toBe(true)
    await next.command('replicaof', 'no', 'one')
    await former.command('replicaof', '127.0.0.1', String(portOf(next)))
    address.lead(portOf(next), 'keeps')
    expect(await isRemembered(memory)).toMatch(/READONLY/)
    await expect.poll(() => isRemembered(memory)).toBe(true)
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { event: 'redis_failed', part: 'proofs', address: place, reason: expect.stringContaining('READONLY') },
      { event: 'redis_back', part: 'proofs', address: place },
    ])
    memory.close()
    await address.close()
  })

  test('is followed by asking Sentinels for the primary', async () => {
    const [replica, primary] = servers
    const sentinel = await startSentinel('proofs', portOf(primary))
    const url = `redis+sentinel://127.0.0.1:${portOf(sentinel)}/proofs`
    const memory = await redisReplayMemory({ url, clock: Date.now, onError: () => {} })
    await expect.poll(() => isRemembered(memory), { timeout: 10_000 }).toBe(true)
    await expect.poll(() => sentinel.command('sentinel', 'replicas', 'proofs'), { timeout: 20_000 }).toMatch(/slave/)
    await expect.poll(() => sentinel.command('sentinel', 'failover', 'proofs'), { timeout: 20_000 }).toBe('OK')
    await expect.poll(() => replica.command('role'), { timeout: 20_000 }).toMatch(/master/)
    await expect.poll(() => isRemembered(memory), { timeout: 20_000 }).toBe(true)
    memory.close()
    await sentinel.kill()
  }, 60_000)
})

describe.skipIf(!hasRedis())('a Redis Cluster (Debian: redis-server)', () => {
  let nodes: readonly TestRedis[]
  const url = () => `redis+cluster://${nodes.map((node) => `127.0.0.1:${portOf(node)}`).join(',')}`
  const errors: Error[] = []
  const onError = (error: Error): void => void errors.push(error)
  beforeAll(async () => {
    nodes = await startRedisCluster()
  }, 60_000)
  afterAll(() => Promise.all(nodes.map((node) => node.kill())))
  const keys = Array.from({ length: 32 }, (_, n) => `key-${n}`)

  test('remembers proofs of keys that are on several nodes, for all processes', async () => {
    const memories = await Promise.all([1, 2].map(() => redisReplayMemory({ url: url(), clock: Date.now, onError })))
    const proofs = keys.map((key) => proof(key))
    for (const [at, memory] of memories.entries()) {
      await expect.poll(() => isRemembered(memory)).toBe(true)
      expect(await Promise.all(proofs.map((one) => isRemembered(memory, one)))).toEqual(proofs.map(() => at === 0))
    }
    for (const memory of memories) memory.close()
  })

  test('keeps sessions and entitlements whose keys are on several nodes', async () => {
    const sessions = await redisMemory({ url: url(), onError })
    await expect.poll(() => sessions.put('first', 'a', 60_000).then(() => 'kept', String)).toBe('kept')
    await Promise.all(keys.map((key) => sessions.put(key, `${key} kept`, 60_000)))
    expect(await sessions.get([...keys, 'unknown'])).toEqual([...keys.map((key) => `${key} kept`), null])
    expect(await Promise.all([sessions.claim('once', 60_000), sessions.claim('once', 60_000)])).toEqual([true, false])
    sessions.close()
    const cache = await redisSharedCache({ url: url(), masterKey: Buffer.alloc(32, 1), onError, deadlineMs: 1_000 })
    const slot = { source: 'database', organization: 'acme', version: 1, writeId: '7' }
    const values = new Map(keys.map((key) => [key, { state: 'a', entitlement: null }]))
    await expect
      .poll(async () => {
        await cache.write(slot, values, 60_000)
        return (await cache.read(slot, keys)).size
      })
      .toBe(keys.length)
    cache.close()
  })

  test('is told that it refuses the password, without the password', async () => {
    errors.length = 0
    const memory = await redisReplayMemory({
      url: url().replace('//', `//nobody:${PASSWORD}@`),
      clock: Date.now,
      onError,
    })
    await expect.poll(() => errors.map(({ message }) => message).join()).toMatch(/password|AUTH/)
    await expect(memory.remember(proof(), Date.now() + 60_000)).rejects.toThrow()
    expect(JSON.stringify(errors.map((error) => [error, error.message, error.stack]))).not.toContain(PASSWORD)
    memory.close()
  })

  test('refuses proofs of keys whose node is gone, serves the others, and follows the replica that takes over', async () => {
    const memory = await redisReplayMemory({ url: url(), clock: Date.now, onError })
    const ask = (key: string) => isRemembered(memory, proof(key))
    await expect.poll(() => Promise.all(keys.map(ask))).toEqual(keys.map(() => true))
    await nodes[0]?.kill()
    const during = await Promise.all(keys.map(ask))
    expect(during.filter((answer) => answer === true).length).toBeGreaterThan(0)
    expect(during.filter((answer) => answer !== true).length).toBeGreaterThan(0)
    expect(during).not.toContain(false)
    await expect.poll(() => Promise.all(keys.map(ask)), { timeout: 30_000 }).toEqual(keys.map(() => true))
    memory.close()
  }, 60_000)
})

describe('the URL of a Redis', () => {
  test.each([
    'redis://localhost',
    'rediss://user:word@cache:6379/1',
    'redis+sentinel://a:26379,b/proofs',
    'rediss+sentinel://user:w%40rd@a:1,[::1]:2,c/proofs/3',
    'redis+cluster://a',
    'rediss+cluster://user:w%40rd@a:1,[::1]:2,c',
  ])('may be %s', (text) => {
    expect(asRedisUrl(text)).toBe(text)
  })

  test.each([
    ...['', 'redis', 'redis://', 'http://a', 'redis+sentinel://a', 'redis+sentinel://a,/x', 'redis+sentinel://,/x'],
    ...['redis+sentinel:///x', 'redis+sentinel://a:99999/x', 'redis+sentinel://a/x/y', 'redis+sentinel://a/x/0/1'],
    ...[
      'redis+sentinel://a b/x',
      'redis+cluster://a/x',
      'redis+cluster://a,/',
      'redis+cluster://',
      'redis+cluster://a:99999',
      'redis+cluster://a?secret=1',
      'redis+cluster+x://a',
      'redis+sentinel://a/x?secret=1',
      'redis+sentinel://u:secret@/x',
    ],
  ])('may not be %s, and is not repeated', (text) => {
    expect(() => asRedisUrl(text)).toThrow(/^must /)
    expect(() => asRedisUrl(text)).not.toThrow(/secret/)
  })
})
