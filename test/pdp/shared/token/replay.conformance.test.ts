import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { processReplayMemory, type ReplayMemory, type UsedProof } from '../../../../pdp/shared/token/replay.ts'
import { type RedisReplayMemory, redisReplayMemory } from '../../../../pdp/shared/token/replay-redis.ts'
import { hasRedis, startRedis, type TestRedis } from '../../../support/peers/redis.ts'
import { startSilentProxy } from '../../../support/silent-proxy.ts'

const proof = (jti: string, jkt = 'key'): UsedProof => ({ jkt, jti })

/** What every replay memory does. `pass` lets real time go on where the memory has no other. */
function replaySuite(
  name: string,
  open: (proofsOfOneKeyMax?: number) => Promise<{ memory: ReplayMemory; pass: (ms: number) => Promise<void> }>,
) {
  describe(`the replay memory ${name}`, () => {
    const until = (ms: number): number => Date.now() + ms

    test('takes a key once', async () => {
      const { memory } = await open()
      expect([
        await memory.remember(proof('a1'), until(60_000)),
        await memory.remember(proof('a1'), until(60_000)),
      ]).toEqual([true, false])
      expect(await memory.remember(proof('a2'), until(60_000))).toBe(true)
    })

    test('lets exactly one of many at once have a key', async () => {
      const { memory } = await open()
      const firsts = await Promise.all(Array.from({ length: 100 }, () => memory.remember(proof('b'), until(60_000))))
      expect(firsts.filter((first) => first).length).toBe(1)
    })

    test('knows the same identifier of another key as another proof', async () => {
      const { memory } = await open()
      expect(await memory.remember(proof('e', 'one'), until(60_000))).toBe(true)
      expect(await memory.remember(proof('e', 'other'), until(60_000))).toBe(true)
      expect(await memory.remember(proof('e', 'one'), until(60_000))).toBe(false)
    })

    test('says that it has seen what was used, and nothing of what was not', async () => {
      const { memory } = await open()
      expect(memory.seen(proof('f'))).toBe(false)
      await memory.remember(proof('f'), until(60_000))
      expect([memory.seen(proof('f')), memory.seen(proof('g')), memory.seen(proof('f', 'other'))]).toEqual([
        true,
        false,
        false,
      ])
    })

    test('refuses a key that has used up its share, forgets nothing of it, and serves the others', async () => {
      const { memory } = await open(4)
      for (const jti of ['1', '2', '3', '4'])
        expect(await memory.remember(proof(jti, 'greedy'), until(60_000))).toBe(true)
      await expect(async () => memory.remember(proof('5', 'greedy'), until(60_000))).rejects.toThrow('no room')
      for (const jti of ['1', '2', '3', '4'])
        expect(await memory.remember(proof(jti, 'greedy'), until(60_000))).toBe(false)
      expect(await memory.remember(proof('1', 'modest'), until(60_000))).toBe(true)
      expect(await memory.remember(proof('2', 'modest'), until(60_000))).toBe(true)
    })

    test('gives a key its share again when its proofs have ended', async () => {
      const { memory, pass } = await open(1)
      expect(await memory.remember(proof('1', 'patient'), until(100))).toBe(true)
      await pass(400)
      expect(await memory.remember(proof('2', 'patient'), until(60_000))).toBe(true)
    })

    test('keeps a key until its time, however late it is asked again', async () => {
      const { memory, pass } = await open()
      await memory.remember(proof('c'), until(10_000))
      await pass(1_000)
      expect(await memory.remember(proof('c'), until(60_000))).toBe(false)
    })

    test('forgets a key some time after', async () => {
      const { memory, pass } = await open()
      await memory.remember(proof('d'), until(100))
      await pass(400)
      expect(await memory.remember(proof('d'), until(60_000))).toBe(true)
    })
  })
}

replaySuite('of the process', async (proofsOfOneKeyMax = 500) => {
  let aheadMs = 0
  const clock = (): number => Date.now() + aheadMs
  const pass = async (ms: number): Promise<void> => {
    // It forgets whole slices of ten seconds.
    aheadMs += ms > 399 && ms < 500 ? 20_000 : ms
  }
  // One key may have half of it.
  return { memory: processReplayMemory({ clock, entriesMax: 2 * proofsOfOneKeyMax }), pass }
})

describe.skipIf(!hasRedis())('with redis-server on this machine (Debian: redis-server)', () => {
  let redis: TestRedis
  const memories: RedisReplayMemory[] = []
  const open = async (options: { timeoutMs?: number; keyProofsMax?: number } = {}): Promise<RedisReplayMemory> => {
    const common = { url: redis.url, clock: Date.now, onError: () => undefined, timeoutMs: 5_000 }
    const memory = await redisReplayMemory({ ...common, ...options })
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

  replaySuite('in Redis', async (keyProofsMax = 500) => ({
    memory: await open({ keyProofsMax }),
    pass: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
  }))

  test('replicas share what they remember', async () => {
    const [a, b] = [await open(), await open()]
    expect([
      await a.remember(proof('shared'), Date.now() + 5_000),
      await b.remember(proof('shared'), Date.now() + 5_000),
    ]).toEqual([true, false])
  })

  test('replicas let exactly one of many at once have a proof', async () => {
    const both = [await open(), await open()]
    const tries = Array.from({ length: 100 }, (_, i) => both[i % 2]?.remember(proof('raced'), Date.now() + 60_000))
    expect((await Promise.all(tries)).filter((first) => first === true)).toHaveLength(1)
  })

  test('keeps nothing longer than the last proof of a key', async () => {
    const memory = await open()
    await memory.remember(proof('long', 'kept'), Date.now() + 60_000)
    await memory.remember(proof('short', 'kept'), Date.now() + 1_000)
    const client = new Redis(redis.url)
    const leftMs = await client.pttl('portcullis:proofs:kept')
    client.disconnect()
    expect(leftMs).toBeGreaterThan(30_000)
    expect(leftMs).toBeLessThanOrEqual(60_000)
  })

  test('a Redis that is gone is an error soon, never an answer, and back when it is', async () => {
    const memory = await open({ timeoutMs: 1_000 })
    expect(await memory.remember(proof('before'), Date.now() + 60_000)).toBe(true)
    await redis.kill()
    const startedMs = performance.now()
    await expect(memory.remember(proof('during'), Date.now() + 60_000)).rejects.toThrow()
    await expect(memory.remember(proof('during'), Date.now() + 60_000)).rejects.toThrow()
    expect(performance.now() - startedMs).toBeLessThan(10_000)
    await redis.start()
    for (let tries = 0; ; tries += 1) {
      const first = await Promise.resolve(memory.remember(proof(`after ${tries}`), Date.now() + 60_000)).catch(
        () => null,
      )
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
      Promise.resolve(memory.remember(proof(key), Date.now() + 60_000)).catch(() => null)
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

test('keeps room for new keys, however many proofs the others use', () => {
  const memory = processReplayMemory({ clock: () => 0, entriesMax: 1_000 })
  const taken = (jkt: string): number => {
    for (let count = 0; ; count += 1) {
      try {
        memory.remember(proof(`${count}`, jkt), 1)
      } catch {
        return count
      }
    }
  }
  expect(['first', 'second', 'third'].map(taken)).toEqual([500, 250, 125])
  expect(memory.remember(proof('1', 'newcomer'), 1)).toBe(true)
})
