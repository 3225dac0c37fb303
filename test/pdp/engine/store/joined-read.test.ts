/** Who waits for rows shares statements, and nobody is answered by one that was sent before the question. */
import { describe, expect, test } from 'vitest'
import { joinedRead } from '../../../../pdp/engine/store/joined-read.ts'

type Sent = { readonly names: readonly string[]; answer(rows: Record<string, number>): void; fail(error: Error): void }

function open() {
  const sent: Sent[] = []
  const read = joinedRead<number>(
    (names) =>
      new Promise((resolve, reject) => {
        sent.push({ names, answer: (rows) => resolve(new Map(Object.entries(rows))), fail: reject })
      }),
  )
  return { sent, read }
}
const tick = () => new Promise(setImmediate)
const names = (sent: readonly Sent[]) => sent.map((one) => one.names)

describe('a joined read', () => {
  test('asks for each name once, and tells all who wait for it', async () => {
    const { sent, read } = open()
    const answers = Promise.all(['a', 'b', 'a', 'none'].map(read))
    await tick()
    sent[0]?.answer({ a: 1, b: 2 })
    expect(names(sent)).toEqual([['a', 'b', 'none']])
    expect(await answers).toEqual([1, 2, 1, null])
  })

  test('does not answer what was asked while a statement was under way by that statement', async () => {
    const { sent, read } = open()
    const first = read('a')
    await tick()
    const second = read('a')
    await tick()
    sent[0]?.answer({ a: 1 })
    await expect.poll(() => sent.length).toBe(2)
    sent[1]?.answer({ a: 2 })
    expect(await Promise.all([first, second])).toEqual([1, 2])
  })

  test('fails nobody for a name of another that the store refuses', async () => {
    const { sent, read } = open()
    const [good, bad] = [read('good'), read('bad')]
    const refused = expect(bad).rejects.toThrow('no such name')
    await tick()
    sent[0]?.fail(new Error('no such name'))
    await expect.poll(() => sent.length).toBe(2)
    sent[1]?.answer({ good: 1 })
    await expect.poll(() => sent.length).toBe(3)
    sent[2]?.fail(new Error('no such name'))
    await refused
    expect([await good, names(sent)]).toEqual([1, [['good', 'bad'], ['good'], ['bad']]])
  })
})
