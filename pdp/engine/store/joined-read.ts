/** Rows by their names, in one statement for all who wait: on the way of each request, a statement of its own costs more than the decision. */
import { Batcher, whenLate } from './batcher.ts'

type Wait<Row> = {
  readonly name: string
  readonly resolve: (row: Row | null) => void
  readonly reject: (error: unknown) => void
}

const STATEMENTS_MAX = 2

/**
 * `read` sends one statement, and is never given a name that came after the statement was sent. A name that it does not find is
 * null. Rejects as `read` does.
 */
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
