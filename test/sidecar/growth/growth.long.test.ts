/** No request costs more than its bytes: twice the input is at most 2.2 times the work, in the heap that the chart gives. */
import { beforeAll, describe, expect, test } from 'vitest'
import { GROWTH_MAX, type Grown, playTable } from '../../support/growth/growth.ts'
import { ROWS } from './rows.ts'

/** Half of the memory of an injected sidecar. */
const HEAP_MB = 128

let grown: ReadonlyMap<string, Grown>
beforeAll(async () => {
  grown = await playTable(new URL('rows.ts', import.meta.url).pathname, { heapMb: HEAP_MB })
}, 600_000)

describe('work before the token is known grows no faster than', () => {
  test.each(ROWS.map(({ name }) => name))('%s', (name) => {
    expect(grown.get(name)?.growth).toBeLessThanOrEqual(GROWTH_MAX)
  })
})
