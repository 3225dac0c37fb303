/**
 * Whole endpoints of a running PDP, over its socket: somebody without a token sends twice as much, and causes at most 2.2 times
 * the work. Each run plays a part of the table, the long one all of it.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { LONG } from '../../support/effort.ts'
import { exchange } from '../../support/growth/exchange.ts'
import { GROWTH_MAX, growthOf } from '../../support/growth/growth.ts'
import { openRunningWorld, type RunningWorld } from '../server/runtime/running-world.ts'
import { ENDPOINT_ROWS, PIPELINED, RUN, type Sent } from './endpoint-rows.ts'

/** A number that is prime to those of the table's parts, so that each part is played. */
const PLAYED_ONE_IN = LONG ? 1 : 7

let world: RunningWorld
beforeAll(async () => {
  world = await openRunningWorld()
}, 120_000)
afterAll(() => world.close())

function ask({ line, fields = [], body }: Sent, count: number): Promise<void> {
  const { port, host } = new URL(world.issuer)
  const length = body === undefined ? [] : [`Content-Length: ${body.length}`]
  const text = (more: readonly string[]): string =>
    [`${line} HTTP/1.1`, `Host: ${host}`, ...fields, ...length, ...more, '', body ?? ''].join('\r\n')
  return exchange(Number(port), Buffer.from(text([]).repeat(count - 1) + text(['Connection: close'])))
}

describe('work of a running PDP grows no faster than', () => {
  test.each(ENDPOINT_ROWS.filter((_, at) => at % PLAYED_ONE_IN === 0))(
    '%s',
    { timeout: 60_000 },
    async (name, most, make) => {
      const at = (size: number) => {
        const sent = make(size)
        return () => ask(sent, 1)
      }
      expect((await growthOf({ name, runs: RUN, most, at })).growth).toBeLessThanOrEqual(GROWTH_MAX)
    },
  )

  test.each(PIPELINED)('the number of pipelined requests: %s', { timeout: 60_000 }, async (line) => {
    const at = (size: number) => () => ask({ line, body: '' }, size)
    expect((await growthOf({ name: line, runs: RUN, most: 80, at })).growth).toBeLessThanOrEqual(GROWTH_MAX)
  })
})
