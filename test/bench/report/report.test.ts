/** What benchmarks report is what was measured. */
import { describe, expect, test } from 'vitest'
import { barChart, lineChart } from './chart.ts'
import { latencyOf, ratios, short, spreadOf } from './figures.ts'
import { staleness } from './stale.ts'

const TITLED = { title: 'a & b', description: 'one <two>' }

describe('figures', () => {
  test('ratios are taken round by round, and a round without a figure has none', () => {
    expect(ratios([2, 9, 4], [1, 3, 0])).toEqual({ median: 3, least: 2, most: 3 })
  })
  test('nothing measured is 0, not a failure', () => {
    expect(spreadOf([])).toEqual({ median: 0, least: 0, most: 0 })
    expect(latencyOf([])).toEqual({ p50: 0, p99: 0, p999: 0, max: 0, count: 0 })
  })
  test.each([
    [0, '0'],
    [0.0123, '0.012'],
    [1.5, '1.50'],
    [12.34, '12.3'],
    [1_234, '1,234'],
    [2_500_000, '2.50 M'],
  ])('shows three digits of %d', (value, shown) => {
    expect(short(value)).toBe(shown)
  })
})

describe('charts', () => {
  const NOTED = { ...TITLED, note: '' }
  test('escape what they name, and say in words what they show', () => {
    const svg = barChart([{ name: '<x>', value: 2, shown: '2 & more', ours: true }], NOTED)
    expect(svg).toContain('<desc id="description">one &#60;two&#62;</desc>')
    expect(svg).not.toMatch(/<x>|& /)
  })
  test('bars are as long as what they stand for, from 0 on', () => {
    const bars = [1_000, 250, 0].map((value) => ({ name: `${value}`, value, shown: '', ours: false }))
    const widths = [...barChart(bars, NOTED).matchAll(/<rect class="bar".* width="([\d.]+)"/g)].map(([, width]) =>
      Number(width),
    )
    expect(widths).toEqual([290, 72.5, 2])
  })
  test('what has no bar does not shorten those of the others', () => {
    const bars = [9_000, 1_000].map((value) => ({ name: '', value, shown: '', ours: false, isDrawn: value < 5_000 }))
    const widths = [...barChart(bars, NOTED).matchAll(/<rect class="bar".* width="([\d.]+)"/g)].map(([, width]) =>
      Number(width),
    )
    expect(widths).toEqual([0, 290])
  })
  test('a line leaves out what a logarithmic scale cannot show', () => {
    const lines = [{ name: 'heap', points: [[1_000, 0] as const, [10_000, 5] as const, [100_000, 50] as const] }]
    const svg = lineChart(lines, { ...TITLED, x: 'tuples', y: 'MB' })
    expect(svg.match(/<circle/g)).toHaveLength(2)
    expect(svg).not.toMatch(/NaN|Infinity/)
  })
})

describe('staleness', () => {
  /** Allowed for so many questions after its revocation. */
  const way = (late: number) => {
    const left = new Map<number, number>()
    return {
      grant: async (i: number) => left.set(i, Number.POSITIVE_INFINITY),
      revoke: async (i: number) => left.set(i, late),
      async allowed(i: number) {
        const more = left.get(i) ?? 0
        left.set(i, more - 1)
        return more > 0
      },
    }
  }
  test('counts nothing for a way that refuses at once', async () => {
    expect(await staleness(way(0), { count: 20, waitMs: 50 })).toEqual({ count: 20, wrong: 0, longestMs: 0, never: 0 })
  })
  test('counts each grant that was allowed once more', async () => {
    expect(await staleness(way(1), { count: 20, waitMs: 1_000 })).toMatchObject({ count: 20, wrong: 20, never: 0 })
  })
  test('ends for a way that never refuses, and says so', async () => {
    expect(await staleness(way(1_000), { count: 9, waitMs: 10 })).toMatchObject({ count: 9, wrong: 9, never: 9 })
  })
})
