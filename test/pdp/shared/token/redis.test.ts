/** Connections to Redis, by redis-server of this machine. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { redisSharedCache } from '../../../../pdp/engine/store/entitlements/redis-cache.ts'
import { asRedisUrl, withoutCommand } from '../../../../pdp/shared/token/redis.ts'
import { redisReplayMemory } from '../../../../pdp/shared/token/replay-redis.ts'
import { redisMemory } from '../../../../sidecar/sign-in/memory-redis.ts'
import { hasRedis, startRedis, startSentinel, type TestRedis } from '../../../support/peers/redis.ts'
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
const proof = () => ({ jkt: 'key', jti: `proof-${++proofs}`, htm: 'GET', htu: 'https://a', iat: 0 })

describe.skipIf(!hasRedis())('a failover of Redis (Debian: redis-server, redis-sentinel)', () => {
  let servers: readonly [TestRedis, TestRedis]
  beforeAll(async () => {
    servers = [await startRedis(), await startRedis()]
    await servers[1].command('replicaof', '127.0.0.1', String(portOf(servers[0])))
  })
  afterAll(() => Promise.all(servers.map((server) => server.kill())))
  const isRemembered = async (memory: Awaited<ReturnType<typeof redisReplayMemory>>): Promise<boolean | string> => {
    try {
      return await memory.remember(proof(), Date.now() + 60_000)
    } catch (err) {
      return String(err)
    }
  }

  test('ends connections to a primary that became a replica', async () => {
    const [former, next] = servers
    const address = await openAddress(portOf(former))
    const memory = await redisReplayMemory({
      url: `redis://127.0.0.1:${address.port}`,
      clock: Date.now,
      onError: () => {},
    })
    await expect.poll(() => isRemembered(memory)).toBe(true)
    await next.command('replicaof', 'no', 'one')
    await former.command('replicaof', '127.0.0.1', String(portOf(next)))
    address.lead(portOf(next), 'keeps')
    expect(await isRemembered(memory)).toMatch(/READONLY/)
    await expect.poll(() => isRemembered(memory)).toBe(true)
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

describe('the URL of a Redis', () => {
  test.each([
    'redis://localhost',
    'rediss://user:word@cache:6379/1',
    'redis+sentinel://a:26379,b/proofs',
    'rediss+sentinel://user:w%40rd@a:1,[::1]:2,c/proofs/3',
  ])('may be %s', (text) => {
    expect(asRedisUrl(text)).toBe(text)
  })

  test.each([
    ...['', 'redis', 'redis://', 'http://a', 'redis+sentinel://a', 'redis+sentinel://a,/x', 'redis+sentinel://,/x'],
    ...['redis+sentinel:///x', 'redis+sentinel://a:99999/x', 'redis+sentinel://a/x/y', 'redis+sentinel://a/x/0/1'],
    ...[
      'redis+sentinel://a b/x',
      'redis+cluster://a/x',
      'redis+sentinel://a/x?secret=1',
      'redis+sentinel://u:secret@/x',
    ],
  ])('may not be %s, and is not repeated', (text) => {
    expect(() => asRedisUrl(text)).toThrow(/^must /)
    expect(() => asRedisUrl(text)).not.toThrow(/secret/)
  })
})
