/** Connections to Redis, by redis-server of this machine. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { redisSharedCache } from '../../../../pdp/engine/store/entitlements/redis-cache.ts'
import { withoutCommand } from '../../../../pdp/shared/token/redis.ts'
import { redisReplayMemory } from '../../../../pdp/shared/token/replay-redis.ts'
import { redisMemory } from '../../../../sidecar/sign-in/memory-redis.ts'
import { hasRedis, startRedis, type TestRedis } from '../../../support/peers/redis.ts'

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
