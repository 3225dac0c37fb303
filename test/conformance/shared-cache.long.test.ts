/** No shared cache and Redis pass the same suite; Redis cannot make a decision wrong, or late by more than its deadline. */
import { connect, createServer } from 'node:net'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { createPdp } from '../../pdp/engine/decision-point/create-pdp.ts'
import type { EntitlementSource } from '../../pdp/engine/store/contract.ts'
import { REDIS_DEADLINE_MS, redisSharedCache } from '../../pdp/engine/store/entitlements/redis-cache.ts'
import { noSharedCache, type SharedCache, slotName } from '../../pdp/engine/store/entitlements/shared-cache.ts'
import { storeEntitlements } from '../../pdp/engine/store/entitlements/store-source.ts'
import { memoryStore } from '../../pdp/engine/store/memory/memory.ts'
import { hasRedis, startRedis, type TestRedis } from '../support/peers/redis.ts'
import { startSilentProxy } from '../support/silent-proxy.ts'
import { gate, given } from '../support/tuples.ts'
import { SLOT, sharedCacheSuite, VALUE } from './shared-cache-suite.ts'

const MASTER_KEY = Buffer.alloc(32, 5)
const NAME = `portcullis:entitlement:${slotName(SLOT, 'feature.a')}`
/** For tests of what Redis answers, not of when: a busy machine may take its time. */
const PATIENT_MS = 5_000
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

sharedCacheSuite('none', async () => ({ caches: [noSharedCache(), noSharedCache()], close: async () => undefined }), {
  keeps: false,
})

describe.skipIf(!hasRedis())('with redis-server on this machine (Debian: redis-server)', () => {
  let server: TestRedis
  let raw: Redis
  const caches: SharedCache[] = []
  const errors: Error[] = []
  const write = (cache: SharedCache) => cache.write(SLOT, new Map([['feature.a', VALUE]]), 60_000)
  const read = (cache: SharedCache) => cache.read(SLOT, ['feature.a'])
  const works = async (cache: SharedCache): Promise<boolean> => {
    await write(cache)
    return (await read(cache)).size === 1
  }
  type Options = Partial<Parameters<typeof redisSharedCache>[0]>
  async function make(options: Options = {}): Promise<SharedCache> {
    const onError = (error: Error): void => void errors.push(error)
    const url = server.url
    const cache = await redisSharedCache({ url, masterKey: MASTER_KEY, onError, deadlineMs: PATIENT_MS, ...options })
    caches.push(cache)
    return cache
  }
  async function opened(options: Options = {}): Promise<SharedCache> {
    const cache = await make(options)
    await expect.poll(() => works(cache)).toBe(true)
    await raw.flushall()
    return cache
  }
  beforeAll(async () => {
    server = await startRedis()
    raw = new Redis(server.url)
    raw.on('error', () => undefined)
  })
  afterEach(() => {
    for (const cache of caches.splice(0)) cache.close()
  })
  afterAll(async () => {
    raw.disconnect()
    await server.kill()
  })

  sharedCacheSuite('Redis', async () => ({ caches: [await opened(), await opened()], close: async () => undefined }), {
    keeps: true,
  })

  test('bounds how long Redis keeps a value', async () => {
    await write(await opened())
    expect(await raw.pttl(NAME)).toBeGreaterThan(0)
    expect(await raw.pttl(NAME)).toBeLessThanOrEqual(60_000)
  })

  test.each<[string, (sealed: string) => string]>([
    ['nothing', () => ''],
    ['no code at all', (sealed) => sealed.slice(sealed.indexOf('{'))],
    ['an empty code', (sealed) => `v1..${sealed.slice(sealed.indexOf('{'))}`],
    ['a code of zeros', (sealed) => `v1.${'A'.repeat(43)}.${sealed.slice(sealed.indexOf('{'))}`],
    ['a value other than the one signed', (sealed) => sealed.replace('"enabled":true', '"enabled":1')],
    ['another state', (sealed) => sealed.replace('"state":"7"', '"state":"8"')],
    ['one character less', (sealed) => sealed.slice(0, -1)],
    ['one character more', (sealed) => `${sealed} `],
    ['half of it', (sealed) => sealed.slice(0, sealed.length / 2)],
    ['another form', (sealed) => sealed.replace('v1.', 'v2.')],
    ['a code that is spelled differently', (sealed) => sealed.replace(/^(v1\..{42})./, '$1=')],
    ['text', () => 'enabled'],
    ['JSON without a code', () => '{"state":"7","entitlement":{"value":{"enabled":true},"enforcement":"Claims"}}'],
    ['more than any value has', () => 'x'.repeat(70_000)],
  ])('takes %s for a miss', async (_, forge) => {
    const cache = await opened()
    await write(cache)
    await raw.set(NAME, forge((await raw.get(NAME)) ?? ''))
    expect(await read(cache)).toEqual(new Map())
  })

  test.each([
    ['key', SLOT, 'feature.b'],
    ['organization', { ...SLOT, organization: 'other' }, 'feature.a'],
    ['version', { ...SLOT, version: 8 }, 'feature.a'],
    ['history', { ...SLOT, writeId: '43' }, 'feature.a'],
    ['source', { ...SLOT, source: 'http x' }, 'feature.a'],
  ])('takes a value moved to another %s for a miss', async (_, slot, key) => {
    const cache = await opened()
    await write(cache)
    await raw.copy(NAME, `portcullis:entitlement:${slotName(slot, key)}`)
    expect(await cache.read(slot, [key])).toEqual(new Map())
  })

  test('takes what was written with another master key, and what is no string, for a miss', async () => {
    const [cache, stranger] = [await opened(), await opened({ masterKey: Buffer.alloc(32, 6) })]
    await write(stranger)
    expect(await read(cache)).toEqual(new Map())
    await raw.del(NAME)
    await raw.lpush(NAME, 'x')
    expect(await read(cache)).toEqual(new Map())
  })

  test('costs its deadline once when Redis hangs, then nothing, and is used again afterwards', async () => {
    const cache = await opened({ deadlineMs: REDIS_DEADLINE_MS })
    await raw.client('PAUSE', 4_000, 'ALL')
    const begunAt = performance.now()
    expect(await read(cache)).toEqual(new Map())
    const once = performance.now() - begunAt
    for (let i = 0; i < 100; i++) expect(await read(cache)).toEqual(new Map())
    const often = performance.now() - begunAt - once
    // Of the four seconds of the pause, and of the five that a hundred deadlines last.
    expect(once).toBeLessThan(2_000)
    expect(often).toBeLessThan(2_000)
    await expect.poll(() => works(cache)).toBe(true)
  })

  test('leaves a Redis alone that is always too slow', async () => {
    const late = REDIS_DEADLINE_MS * 1.6
    const proxy = createServer((client) => {
      const behind = connect(Number(new URL(server.url).port), '127.0.0.1')
      client.on('data', (chunk) => void behind.write(chunk)).on('error', () => behind.destroy())
      behind.on('data', (chunk) => void setTimeout(() => client.write(chunk), late)).on('error', () => client.destroy())
      client.on('close', () => behind.destroy())
    })
    await new Promise<void>((resolve) => void proxy.listen(0, '127.0.0.1', resolve))
    const address = proxy.address()
    const url = `redis://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`
    // By a clock that stands still, its rest does not end.
    const cache = await make({ url, deadlineMs: REDIS_DEADLINE_MS, clock: () => 0 })
    const failures = () => errors.filter(({ message }) => message.includes('in time')).length
    const before = failures()
    await expect.poll(() => read(cache).then(failures)).toBe(before + 1)
    for (const begunAt = performance.now(); performance.now() - begunAt < 800; await pause(5)) {
      expect(await read(cache)).toEqual(new Map())
    }
    expect(failures()).toBe(before + 1)
    cache.close()
    await new Promise((resolve) => void proxy.close(resolve))
  })

  test('has nothing while Redis is dead, and is used again when it is back', async () => {
    const cache = await opened()
    await server.kill()
    const begunAt = performance.now()
    for (let i = 0; i < 20; i++) {
      await write(cache)
      expect(await read(cache)).toEqual(new Map())
      await pause(1)
    }
    expect(performance.now() - begunAt).toBeLessThan(PATIENT_MS)
    await server.start()
    await expect.poll(() => works(cache)).toBe(true)
  })

  test('gives a silent connection up, also one that never began, and is used again once Redis can be reached', async () => {
    const proxy = await startSilentProxy({ port: Number(new URL(server.url).port) })
    const cache = await opened({ url: `redis://127.0.0.1:${proxy.port}`, deadlineMs: 1_000 })
    proxy.silence()
    const before = proxy.connectionsCount
    await expect
      .poll(async () => [(await read(cache)).size, proxy.connectionsCount > before + 1], { timeout: 30_000 })
      .toEqual([0, true])
    proxy.heal()
    await expect.poll(() => works(cache), { timeout: 30_000 }).toBe(true)
    await proxy.close()
  }, 90_000)

  test('spares replicas the source, and changes no decision, whether its values are right, forged or gone', async () => {
    const store = memoryStore()
    await given(store, 'acme', gate('feature.a', true))
    const source = storeEntitlements(store)
    const reads: string[] = []
    const entitlements: EntitlementSource = {
      ...source,
      read(organization, keys) {
        reads.push(organization)
        return source.read(organization, keys)
      },
    }
    const replica = async () => {
      const sharedCache = await make()
      await expect.poll(() => works(sharedCache)).toBe(true)
      return createPdp({ store, entitlements, sharedCache })
    }
    const decided = async () => (await (await replica()).entitlement('acme', 'feature.a'))?.boolean()
    const stored = async () => {
      const { entitlementVersion: version, entitlementWriteId: writeId } =
        (await store.vector(['acme'])).logs.get('acme') ?? {}
      return raw.exists(`portcullis:entitlement:${JSON.stringify(['store', 'acme', version, writeId, 'feature.a'])}`)
    }

    expect([await decided(), reads.length]).toEqual([true, 1])
    await expect.poll(stored).toBe(1)
    expect([await decided(), reads.length]).toEqual([true, 1])
    for (const name of await raw.keys('portcullis:entitlement:*')) {
      await raw.set(name, ((await raw.get(name)) ?? '').replace('"enabled":true', '"enabled":false'))
    }
    expect([await decided(), reads.length]).toEqual([true, 2])
    const replicas = [await replica(), await replica()]
    await given(store, 'acme', gate('feature.a', false))
    for (const pdp of replicas) expect((await pdp.entitlement('acme', 'feature.a'))?.boolean()).toBe(false)
    const last = await replica()
    await server.kill()
    await given(store, 'acme', gate('feature.a', true))
    expect((await last.entitlement('acme', 'feature.a'))?.boolean()).toBe(true)
    await server.start()
  })

  test('has nothing where nobody listens or nobody answers as Redis does', async () => {
    for (const url of ['redis://127.0.0.1:1', server.url.replace('redis://', 'redis://user:hunter2@')]) {
      const cache = await make({ url })
      await write(cache)
      expect(await read(cache)).toEqual(new Map())
    }
    await expect.poll(() => errors.map(({ message }) => message).join()).toContain('WRONGPASS')
    expect(errors.map((error) => JSON.stringify({ ...error }) + error.message).join()).not.toContain('hunter2')
  })
})
