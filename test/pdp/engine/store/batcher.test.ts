/** When calls begin, and what they serve. Ticks and lateness come when the test says so. */
import { beforeEach, describe, expect, test } from 'vitest'
import { Batcher } from '../../../../pdp/engine/store/batcher.ts'
import { PdpError } from '../../../../pdp/shared/domain/errors.ts'

type Call = { readonly items: readonly number[]; readonly end: () => void; readonly break: (error: unknown) => void }
let calls: Call[]
let failed: [number, unknown][]
let ticks: (() => void)[]
let lates: (() => void)[]
beforeEach(() => {
  calls = []
  failed = []
  ticks = []
  lates = []
})

function make(withLate = true, itemsMax?: number): Batcher<number> {
  return new Batcher({
    runningMax: 2,
    ...(itemsMax !== undefined && { itemsMax }),
    schedule: (run) => void ticks.push(run),
    ...(withLate && { late: (run: () => void) => void lates.push(run) }),
    run: (items) =>
      new Promise((resolve, reject) => {
        calls.push({ items, end: resolve, break: reject })
      }),
    fail: (item, error) => void failed.push([item, error]),
  })
}
/** All that was promised meanwhile happens, then the ticks that are due. */
async function settle(queue: (() => void)[]): Promise<void> {
  await new Promise(setImmediate)
  for (const run of queue.splice(0)) run()
  await new Promise(setImmediate)
}
const served = () => calls.map(({ items }) => [...items])

describe('a batcher', () => {
  test('serves what a tick brings with one call', async () => {
    const batcher = make()
    for (const item of [1, 2, 3]) batcher.add(item)
    await settle(ticks)
    expect(served()).toEqual([[1, 2, 3]])
  })

  test('lets what arrives beside a call wait for its end, and then share one', async () => {
    const batcher = make()
    batcher.add(1)
    await settle(ticks)
    batcher.add(2)
    await settle(ticks)
    batcher.add(3)
    await settle(ticks)
    expect(served()).toEqual([[1]])
    calls[0]?.end()
    await settle(ticks)
    await settle(ticks)
    expect(served()).toEqual([[1], [2, 3]])
  })

  test('begins another call beside one that is late, and no third', async () => {
    const batcher = make()
    batcher.add(1)
    await settle(ticks)
    batcher.add(2)
    await settle(lates)
    await settle(ticks)
    expect(served()).toEqual([[1], [2]])
    batcher.add(3)
    await settle(lates)
    await settle(ticks)
    expect(served()).toEqual([[1], [2]])
    calls[1]?.end()
    await settle(lates)
    await settle(ticks)
    await settle(lates)
    await settle(ticks)
    expect(served()).toEqual([[1], [2], [3]])
  })

  test('does not take a call for late that began after the item had begun to wait', async () => {
    const batcher = make()
    batcher.add(1)
    await settle(ticks)
    batcher.add(2)
    calls[0]?.end()
    await settle(ticks)
    batcher.add(3)
    await settle(lates)
    await settle(ticks)
    expect(served()).toEqual([[1], [2]])
  })

  test('begins calls side by side when nothing is ever late', async () => {
    const batcher = make(false)
    for (const item of [1, 2, 3]) {
      batcher.add(item)
      await settle(ticks)
    }
    expect(served()).toEqual([[1], [2]])
  })

  test('serves with one call as many as may be, and the others with the next', async () => {
    const batcher = make(false, 2)
    for (const item of [1, 2, 3, 4, 5]) batcher.add(item)
    for (let tick = 0; tick < 3; tick += 1) await settle(ticks)
    expect(served()).toEqual([
      [1, 2],
      [3, 4],
    ])
    calls[0]?.end()
    for (let tick = 0; tick < 2; tick += 1) await settle(ticks)
    expect(served().at(-1)).toEqual([5])
  })

  test('asks again for each half of a call that failed, and fails only what cannot be served', async () => {
    const batcher = make()
    for (const item of [1, 2]) batcher.add(item)
    await settle(ticks)
    const reason = new Error('one of them')
    calls[0]?.break(reason)
    await settle(ticks)
    calls[1]?.break(reason)
    await settle(ticks)
    calls[2]?.end()
    await settle(ticks)
    expect([served(), failed]).toEqual([[[1, 2], [1], [2]], [[1, reason]]])
  })

  test('fails all of a call at once while the store is unavailable, and goes on with what comes next', async () => {
    const batcher = make()
    for (const item of [1, 2]) batcher.add(item)
    await settle(ticks)
    batcher.add(3)
    const reason = new PdpError('store_unavailable', 'gone')
    calls[0]?.break(reason)
    await settle(ticks)
    await settle(ticks)
    expect(failed).toEqual([
      [1, reason],
      [2, reason],
    ])
    expect(served()).toEqual([[1, 2], [3]])
  })
})
