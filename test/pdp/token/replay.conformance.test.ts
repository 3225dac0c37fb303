import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { processReplayMemory, type ReplayMemory } from '../../../pdp/token/replay.ts'
import { type RedisReplayMemory, redisReplayMemory } from '../../../pdp/token/replay-redis.ts'
import { hasRedis, startRedis, type TestRedis } from '../../sidecar/support/redis.ts'
import { startSilentProxy } from '../../support/silent-proxy.ts'

/** What every replay memory does. `pass` lets real time go on where the memory has no other. */
function replaySuite(name: string, open: () => Promise<{ memory: ReplayMemory; pass: (ms: number) => Promise<void> }>) {
  describe(`the replay memory ${name}`, () => {
    const until = (ms: number): number => Date.now() + ms

    test('takes a key once', async () => {
      const { memory } = await open()
      expect([await memory.remember('a1', until(60_000)), await memory.remember('a1', until(60_000))]).toEqual([
        true,
        false,
      ])
      expect(await memory.remember('a2', until(60_000))).toBe(true)
    })

    test('lets exactly one of many at once have a key', async () => {
      const { memory } = await open()
      const firsts = await Promise.all(Array.from({ length: 100 }, () => memory.remember('b', until(60_000))))
      expect(firsts.filter((first) => first).length).toBe(1)
    })

    test('keeps a key until its time, however late it is asked again', async () => {
      const { memory, pass } = await open()
      await memory.remember('c', until(10_000))
      await pass(1_000)
      expect(await memory.remember('c', until(60_000))).toBe(false)
    })

    test('forgets a key some time after', async () => {
      const { memory, pass } = await open()
      await memory.remember('d', until(100))
      await pass(400)
      expect(await memory.remember('d', until(60_000))).toBe(true)
    })
  })
}

replaySuite('of the process', async () => {
  let aheadMs = 0
  const clock = (): number => Date.now() + aheadMs
  const pass = async (ms: number): Promise<void> => {
    // It forgets whole slices of ten seconds.
    aheadMs += ms > 399 && ms < 500 ? 20_000 : ms
  }
  return { memory: processReplayMemory({ clock, entriesMax: 1_000 }), pass }
})

describe.skipIf(!hasRedis())('with redis-server on this machine (Debian: redis-server)', () => {
  let redis: TestRedis
  const memories: RedisReplayMemory[] = []
  const open = async (options: { timeoutMs?: number } = { timeoutMs: 5_000 }): Promise<RedisReplayMemory> => {
    const memory = await redisReplayMemory({ url: redis.url, clock: Date.now, onError: () => undefined, ...options })
    memories.push(memory)
    return memory
  }
  beforeAll(async () => {
    redis = await startRedis()
  })
  afterAll(async () => {
    for (const memory of memories) memory.close()
    await redis.kill()
  })

  replaySuite('in Redis', async () => ({
    memory: await open(),
    pass: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
  }))

  test('replicas share what they remember', async () => {
    const [a, b] = [await open(), await open()]
    expect([await a.remember('shared', Date.now() + 5_000), await b.remember('shared', Date.now() + 5_000)]).toEqual([
      true,
      false,
    ])
  })

  test('a Redis that is gone is an error soon, never an answer, and back when it is', async () => {
    const memory = await open({ timeoutMs: 1_000 })
    expect(await memory.remember('before', Date.now() + 60_000)).toBe(true)
    await redis.kill()
    const startedMs = performance.now()
    await expect(memory.remember('during', Date.now() + 60_000)).rejects.toThrow()
    await expect(memory.remember('during', Date.now() + 60_000)).rejects.toThrow()
    expect(performance.now() - startedMs).toBeLessThan(10_000)
    await redis.start()
    for (let tries = 0; ; tries += 1) {
      const first = await Promise.resolve(memory.remember(`after ${tries}`, Date.now() + 60_000)).catch(() => null)
      if (first === true) break
      expect(tries).toBeLessThan(150)
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  })

  test('a connection that fell silent is given up, on an old one as on one that never began, and all is well afterwards', async () => {
    const proxy = await startSilentProxy({ port: Number(new URL(redis.url).port) })
    const options = {
      url: `redis://127.0.0.1:${proxy.port}`,
      clock: Date.now,
      onError: () => undefined,
      timeoutMs: 200,
    }
    const memory = await redisReplayMemory(options)
    memories.push(memory)
    const remember = (key: string): Promise<boolean | null> =>
      Promise.resolve(memory.remember(key, Date.now() + 60_000)).catch(() => null)
    await expect.poll(() => remember(`before ${Math.random()}`), { timeout: 20_000 }).toBe(true)
    proxy.silence()
    const before = proxy.connectionsCount
    // Those that are made meanwhile are accepted and silent too, and have to be given up as well.
    await expect
      .poll(async () => [await remember('lost'), proxy.connectionsCount > before + 1], { timeout: 30_000 })
      .toEqual([null, true])
    proxy.heal()
    await expect.poll(() => remember(`after ${Math.random()}`), { timeout: 30_000 }).toBe(true)
    await proxy.close()
  }, 90_000)
})
