/** Reads rows by name, in one statement for all callers that wait: a statement for each request would cost more than its decision. */
import { Batcher, whenLate } from './batcher.ts'

type Wait<Row> = {
  readonly name: string
  readonly resolve: (row: Row | null) => void
  readonly reject: (error: unknown) => void
}

const STATEMENTS_MAX = 2

/** Joins look-ups: `read` sends one statement after all its names were asked for. A missing name gives null. Rejects as `read` does. */
export function joinedRead<Row>(
  read: (names: readonly string[]) => Promise<ReadonlyMap<string, Row>>,
): (name: string) => Promise<Row | null> {
  const batcher = new Batcher<Wait<Row>>({
    runningMax: STATEMENTS_MAX,
    schedule: setImmediate,
    late: whenLate,
    async run(waits) {
      const rows = await read([...new Set(waits.map(({ name }) => name))])
      for (const { name, resolve } of waits) resolve(rows.get(name) ?? null)
    },
    fail: ({ reject }, error) => reject(error),
  })
  return (name) => new Promise((resolve, reject) => batcher.add({ name, resolve, reject }))
}
