import { describe, expect, it } from 'vitest'
import { BoundedMap } from '../../../../pdp/shared/base/bounded-map.ts'

describe('BoundedMap', () => {
  it('keeps as many entries as it may, and forgets the first for one more', () => {
    const map = new BoundedMap<string, number>(2)
    map.set('a', 1)
    map.set('b', 2)
    expect([map.get('a'), map.get('b'), map.size]).toEqual([1, 2, 2])
    map.set('c', 3)
    expect([map.get('a'), map.get('b'), map.get('c'), map.size]).toEqual([undefined, 2, 3, 2])
  })

  it('makes a key that is set again the newest, and forgets none for it', () => {
    const map = new BoundedMap<string, number>(2)
    map.set('a', 1)
    map.set('b', 2)
    map.set('a', 3)
    expect(map.size).toBe(2)
    map.set('c', 4)
    expect([map.get('a'), map.get('b')]).toEqual([3, undefined])
  })

  it('makes a value once for as long as its key is known', () => {
    const map = new BoundedMap<string, object>(1)
    const made = map.getOrMake('a', () => ({}))
    expect(map.getOrMake('a', () => ({}))).toBe(made)
    map.set('b', {})
    expect(map.getOrMake('a', () => ({}))).not.toBe(made)
  })

  it('gives out the oldest entry, and undefined when it is empty', () => {
    const map = new BoundedMap<string, number>(3)
    map.set('a', 1)
    map.set('b', 2)
    map.delete('a')
    expect([map.takeOldest(), map.takeOldest(), map.size]).toEqual([2, undefined, 0])
  })
})
