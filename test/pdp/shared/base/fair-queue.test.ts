import { describe, expect, it } from 'vitest'
import { FairQueue } from '../../../../pdp/shared/base/fair-queue.ts'

/** Items are written `group name number`. */
function queueOf(...items: readonly string[]) {
  const queue = new FairQueue<string>()
  for (const item of items) queue.add(item, lineOf(item))
  return queue
}
function lineOf(item: string) {
  const [group = '', name = ''] = item.split(' ')
  return { group, name }
}
function drained(queue: FairQueue<string>): readonly string[] {
  const all: string[] = []
  for (let item = queue.next(); item !== undefined; item = queue.next()) all.push(item)
  return all
}

describe('FairQueue', () => {
  it('lets groups take turns, and the names of each, in order of arrival', () => {
    const queue = queueOf('a x 1', 'a x 2', 'a x 3', 'a y 1', 'b z 1', 'b z 2')
    expect(drained(queue)).toEqual(['a x 1', 'b z 1', 'a y 1', 'b z 2', 'a x 2', 'a x 3'])
    expect([queue.size, queue.has('a'), queue.next()]).toEqual([0, false, undefined])
  })

  it('passes over a group that may not start, which keeps its turn', () => {
    const queue = queueOf('a x 1', 'b z 1', 'b z 2')
    expect(queue.next((group) => group === 'b')).toBe('b z 1')
    expect(queue.next(() => false)).toBeUndefined()
    expect(drained(queue)).toEqual(['a x 1', 'b z 2'])
  })

  it('gives no second turn to a name whose last one left and came again', () => {
    const queue = queueOf('a x 1', 'a y 1')
    expect(queue.remove('a x 1', lineOf('a x 1'))).toBe(true)
    expect(queue.remove('a x 1', lineOf('a x 1'))).toBe(false)
    queue.add('a x 2', lineOf('a x 2'))
    expect(drained(queue)).toEqual(['a y 1', 'a x 2'])
  })

  it('finds the oldest of a line, else of the line of its group whose turn is next', () => {
    const queue = queueOf('a x 1', 'a x 2', 'a y 1')
    expect(queue.oldest({ group: 'a', name: 'y' })).toBe('a y 1')
    expect(queue.oldest({ group: 'a', name: 'new' })).toBe('a x 1')
    expect(queue.oldest({ group: 'new', name: 'x' })).toBeUndefined()
  })

  it('finds an end of the longest line in the largest group, and prefers the given line among equals', () => {
    const queue = queueOf('a x 1', 'a y 1', 'a y 2', 'b z 1', 'b z 2', 'b z 3')
    const z = { group: 'b', name: 'z' }
    expect(queue.longest('oldest', null)).toEqual({ item: 'a y 1', line: { group: 'a', name: 'y' } })
    expect(queue.longest('newest', null)).toEqual({ item: 'b z 3', line: z })
    expect(queue.longest('oldest', z)).toEqual({ item: 'b z 1', line: z })
    queue.add('a x 2', lineOf('a x 2'))
    expect(queue.longest('oldest', z)?.item).toBe('a x 1')
    expect(queue.longest('newest', z)?.item).toBe('a y 2')
    expect(queue.longest('newest', lineOf('a x 1'))?.item).toBe('a x 2')
    expect(queueOf().longest('oldest', null)).toBeUndefined()
  })
})
