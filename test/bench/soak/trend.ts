/** Whether something that goes up and down grows in the long run. */

export type Series = { readonly atMinutes: number; readonly value: number }[]

/** What may come on top of its level in the first half: a sample is taken before or after a collection. */
const ALLOWANCE = 0.25
/** Rows, or megabytes, that are not worth a word. */
const NOISE: { readonly [name: string]: number } = { 'heap, MB': 30, 'RSS, MB': 60 }
const NOISE_ROWS = 500

/** Per minute, over the second half: the first fills caches. */
export function slopeOf(points: Series): number {
  const half = points.slice(Math.floor(points.length / 2))
  const mean = (of: (point: Series[number]) => number): number =>
    half.reduce((sum, point) => sum + of(point), 0) / half.length
  const [at, value] = [mean((point) => point.atMinutes), mean((point) => point.value)]
  const spread = half.reduce((sum, point) => sum + (point.atMinutes - at) ** 2, 0)
  if (spread === 0) return 0
  return half.reduce((sum, point) => sum + (point.atMinutes - at) * (point.value - value), 0) / spread
}

/** The highest of the last third beside the highest of the second third: each has several ups and downs. */
export function verdictOf(name: string, points: Series): 'flat' | 'grows' {
  const third = Math.floor(points.length / 3)
  const highest = (part: Series): number => Math.max(0, ...part.map(({ value }) => value))
  const [before, after] = [highest(points.slice(third, 2 * third)), highest(points.slice(2 * third))]
  return after <= before * (1 + ALLOWANCE) + (NOISE[name] ?? NOISE_ROWS) ? 'flat' : 'grows'
}
