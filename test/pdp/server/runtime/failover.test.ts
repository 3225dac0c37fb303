/** What an operator reads of a failover: one line when a state begins, and counters. */
import { Registry } from 'prom-client'
import { describe, expect, test } from 'vitest'
import type { ServerEvent } from '../../../../pdp/engine/store/postgres/connection/fence.ts'
import { watchServers } from '../../../../pdp/server/runtime/failover.ts'
import { createLog } from '../../../../pdp/shared/process/log.ts'

function watch() {
  const lines: { [name: string]: unknown }[] = []
  const log = createLog({
    service: 'test',
    level: 'info',
    destination: { write: (line) => lines.push(JSON.parse(line)) },
  })
  const registry = new Registry()
  const report = watchServers({ log, registry })
  const value = async (metric: string, labels: object = {}) =>
    (await registry.getSingleMetric(metric)?.get())?.values.find(
      (one) => JSON.stringify(one.labels) === JSON.stringify(labels),
    )?.value
  return { report: (...events: readonly ServerEvent[]) => events.forEach(report), lines, value }
}
const FIRST: ServerEvent = { kind: 'primary', address: '10.0.0.1:5432', timeline: 1 }
const SECOND: ServerEvent = { kind: 'primary', address: '10.0.0.2:5432', timeline: 2 }

describe('the log of a failover', () => {
  test('has one line for each server and state that begins, with address and timeline', () => {
    const { report, lines } = watch()
    const standby: ServerEvent = { kind: 'standby', address: '10.0.0.2:5432' }
    const overtaken: ServerEvent = { ...FIRST, kind: 'overtaken', latest: 2, isNew: false }
    report(FIRST, FIRST, standby, standby, SECOND, overtaken, overtaken, SECOND, SECOND)
    expect(lines.map(({ event, address, timeline }) => [event, address, timeline])).toEqual([
      ['database_primary', '10.0.0.1:5432', 1],
      ['database_standby', '10.0.0.2:5432', undefined],
      ['database_primary', '10.0.0.2:5432', 2],
      ['primary_overtaken', '10.0.0.1:5432', 1],
      ['database_primary', '10.0.0.2:5432', 2],
    ])
  })

  test('says when the database is unreachable, and when no longer', () => {
    const { report, lines } = watch()
    const gone: ServerEvent = { kind: 'unreachable', error: new Error('connect ECONNREFUSED') }
    report(gone, gone, FIRST)
    expect(lines.map(({ event }) => event)).toEqual(['database_unreachable', 'database_primary'])
    expect(lines[0]).toMatchObject({ reason: 'connect ECONNREFUSED' })
  })

  test('is an error with what to do when the address leads back to an overtaken server', async () => {
    const { report, lines, value } = watch()
    report(SECOND, { ...FIRST, kind: 'overtaken', latest: 2, isNew: true })
    const error = { level: 'error', event: 'history_went_back', timeline: 1, known_timeline: 2 }
    expect(lines.at(-1)).toMatchObject({ ...error, reason: expect.stringContaining('DATABASE_URL') })
    expect(await value('portcullis_history_went_back_total')).toBe(1)
    expect(await value('portcullis_database_refused_total', { reason: 'overtaken' })).toBe(1)
  })

  test('is an error with the log and both revisions when acknowledged writes are lost', async () => {
    const { report, lines, value } = watch()
    report({ kind: 'history', log: 'acme', revision: 7, known: 9 })
    expect(lines).toMatchObject([
      { level: 'error', event: 'history_went_back', log: 'acme', revision: 7, known_revision: 9 },
    ])
    expect(await value('portcullis_history_went_back_total')).toBe(1)
  })

  test('does not count as trouble what a healthy start does', async () => {
    const { report, lines, value } = watch()
    report(FIRST)
    expect(lines).toHaveLength(1)
    expect(await value('portcullis_database_timeline')).toBe(1)
    for (const reason of ['overtaken', 'standby', 'unreachable'])
      expect(await value('portcullis_database_refused_total', { reason })).toBe(0)
    expect(await value('portcullis_history_went_back_total')).toBe(0)
  })
})
