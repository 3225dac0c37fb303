import { describe, expect, test } from 'vitest'
import { BadAnswer, type PostFetch, postJson, readAtMost } from '../../../../pdp/shared/base/http-json.ts'

describe('readAtMost', () => {
  async function* pieces(...sizes: readonly number[]): AsyncGenerator<Uint8Array> {
    for (const size of sizes) yield new Uint8Array(size).fill(size)
  }

  test.each([
    ['nothing', [], 0],
    ['as many bytes as it may', [4, 6], 10],
    ['empty pieces', [0, 10, 0], 10],
  ])('reads %s', async (_, sizes, length) => {
    expect(await readAtMost(pieces(...sizes), 10)).toHaveLength(length)
  })

  test.each([
    ['in one piece', [11]],
    ['in several', [5, 5, 1]],
  ])('is null for one byte more, %s', async (_, sizes) => {
    expect(await readAtMost(pieces(...sizes), 10)).toBeNull()
  })

  test('reads no further than it must', async () => {
    let readCount = 0
    async function* endless(): AsyncGenerator<Uint8Array> {
      for (;;) {
        readCount += 1
        yield new Uint8Array(4)
      }
    }
    expect(await readAtMost(endless(), 10)).toBeNull()
    expect(readCount).toBe(3)
  })
})

describe('postJson', () => {
  const call = (fetch: PostFetch, deadlineMs = 60_000) =>
    postJson({ fetch, url: 'https://x.example/a', headers: { 'x-a': 'b' }, body: '{}', deadlineMs, bytesMax: 10 })
  const answer = (body: string | Uint8Array<ArrayBuffer>, status = 200) =>
    call(async () => new Response(body, { status }))

  test('gives what a 200 holds, and asks without following redirects', async () => {
    const asked: unknown[] = []
    const value = await call(async (url, { method, redirect, headers, body }) => {
      asked.push({ url, method, redirect, headers, body })
      return new Response('{"a":[1]}')
    })
    expect(value).toEqual({ a: [1] })
    const headers = { 'content-type': 'application/json', accept: 'application/json', 'x-a': 'b' }
    expect(asked).toEqual([{ url: 'https://x.example/a', method: 'POST', redirect: 'manual', headers, body: '{}' }])
  })

  test.each([
    ['a redirect', '', 302],
    ['another success', '{}', 201],
    ['a refusal', '{}', 404],
    ['no JSON', '<html>', 200],
    ['nothing', '', 200],
    ['a byte too much', '"12345678"x', 200],
    ['bytes that are not UTF-8', new Uint8Array([0x22, 0xff, 0x22]), 200],
  ])('%s is a bad answer', async (_, body, status) => {
    await expect(answer(body, status)).rejects.toBeInstanceOf(BadAnswer)
  })

  test.each([500, 503, 429])('status %i is no answer at all', async (status) => {
    const refused = await answer('{}', status).catch((err: unknown) => err)
    expect(refused).toBeInstanceOf(Error)
    expect(refused).not.toBeInstanceOf(BadAnswer)
  })

  test('does not read the body of a status that it does not use', async () => {
    let cancelled = false
    const body = new ReadableStream<Uint8Array>({
      cancel() {
        cancelled = true
      },
    })
    await expect(call(async () => ({ status: 500, body }))).rejects.toThrow('status 500')
    expect(cancelled).toBe(true)
  })

  test('waits no longer than its deadline, even for a fetch that does not heed the signal', async () => {
    await expect(call(() => new Promise(() => undefined), 20)).rejects.toThrow('no answer in time')
  })
})
