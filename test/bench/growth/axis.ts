/** One thing that grows, and what each size of it costs. */
export type Point = { readonly x: number; readonly p50Ms: number; readonly p99Ms: number; readonly memoryMb: number }
export type Axis = {
  readonly name: string
  /** Of its picture. */
  readonly file: string
  /** What x counts. */
  readonly x: string
  /** What was asked, and whose memory it is. */
  readonly what: string
  readonly points: readonly Point[]
}
export type Scale = 'short' | 'usual' | 'long'

/** 1, 10, 100 … from one to the other. */
export const tens = (from: number, to: number): readonly number[] => {
  const sizes: number[] = []
  for (let size = from; size <= to; size *= 10) sizes.push(size)
  return sizes
}

/** After what can be given back was. */
export function heapMb(): number {
  globalThis.gc?.()
  globalThis.gc?.()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return (heapUsed + arrayBuffers) / 1_048_576
}
