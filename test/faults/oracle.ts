/** Knows which answers are right: what was written and acknowledged, when, and what may have happened meanwhile. */

export type Value = boolean
/** `endMs`: when it was acknowledged; null: nobody knows whether it took effect, so it may at any time. */
type Write = { readonly value: Value; readonly startMs: number; endMs: number | null }
export type Settled = { readonly value: Value; readonly count: number }
export type Oracle = {
  /** The returned function is called when the write is acknowledged. */
  begin(document: string, value: Value, nowMs: number): (nowMs: number) => void
  /** Whether a document may have had this value at some moment between the two. */
  possible(document: string, value: Value, between: { readonly startMs: number; readonly endMs: number }): boolean
  /** Documents whose last write is acknowledged, with what it wrote, and how many writes there were. */
  settled(): ReadonlyMap<string, Settled>
}

/** No document has a tuple at the beginning. Writers of one document wait for each other. */
export function createOracle(): Oracle {
  const histories = new Map<string, Write[]>()
  return {
    begin(document, value, nowMs) {
      const write: Write = { value, startMs: nowMs, endMs: null }
      const history = histories.get(document) ?? []
      histories.set(document, history)
      history.push(write)
      return (endMs) => {
        write.endMs = endMs
      }
    },
    possible(document, value, { startMs, endMs }) {
      const history = histories.get(document) ?? []
      const before = history.findLastIndex((write) => write.endMs !== null && write.endMs <= startMs)
      if ((history[before]?.value ?? false) === value) return true
      // An unknown outcome from before the last acknowledged write can still come true.
      return history.some(
        (write, at) => write.value === value && write.startMs <= endMs && (at > before || write.endMs === null),
      )
    },
    settled: () =>
      new Map(
        [...histories].flatMap(([document, history]) => {
          const last = history.at(-1)
          const isKnown = history.every(({ value, endMs }) => endMs !== null || value === last?.value)
          if (last === undefined || last.endMs === null || !isKnown) return []
          return [[document, { value: last.value, count: history.length }] as const]
        }),
      ),
  }
}

/** What is not held as it was acknowledged. The load goes on, so only what nobody wrote while it was read is judged. */
export function missingOf(
  held: ReadonlySet<string>,
  { before, after }: { readonly before: ReadonlyMap<string, Settled>; readonly after: ReadonlyMap<string, Settled> },
): string[] {
  const missing: string[] = []
  for (const [name, { value, count }] of before)
    if (held.has(name) !== value && after.get(name)?.count === count)
      missing.push(`${name} is ${held.has(name)}, but ${value} was acknowledged`)
  return missing
}
