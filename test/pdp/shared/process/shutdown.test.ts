import { setTimeout as delay } from 'node:timers/promises'
import { pino } from 'pino'
import { describe, expect, test } from 'vitest'
import { createShutdown } from '../../../../pdp/shared/process/shutdown.ts'

const log = pino({ level: 'silent' })

describe('createShutdown', () => {
  test('closes in reverse order, one after the other', async () => {
    const shutdown = createShutdown({ log, timeoutMs: 10_000 })
    const closed: string[] = []
    shutdown.add('first', () => void closed.push('first'))
    shutdown.add('second', async () => {
      await delay(5)
      closed.push('second')
    })
    expect(await shutdown.run('test')).toBe(true)
    expect(closed).toEqual(['second', 'first'])
  })

  test('closes once, however often it is asked', async () => {
    const shutdown = createShutdown({ log, timeoutMs: 10_000 })
    let count = 0
    shutdown.add('only', () => {
      count += 1
    })
    await Promise.all([shutdown.run('a'), shutdown.run('b')])
    await shutdown.run('c')
    expect(count).toBe(1)
  })

  test('closes the rest when one fails, and says that it was not clean', async () => {
    const shutdown = createShutdown({ log, timeoutMs: 10_000 })
    let closed = false
    shutdown.add('last', () => {
      closed = true
    })
    shutdown.add('failing', () => Promise.reject(new Error('no')))
    expect(await shutdown.run('test')).toBe(false)
    expect(closed).toBe(true)
  })

  test('does not wait beyond its bound', async () => {
    const shutdown = createShutdown({ log, timeoutMs: 20 })
    shutdown.add('stuck', () => new Promise(() => undefined))
    expect(await shutdown.run('test')).toBe(false)
  })

  test('ends the process with 0 on a signal, and at once with 1 on a second', async () => {
    const shutdown = createShutdown({ log, timeoutMs: 10_000 })
    const { promise, resolve } = Promise.withResolvers<void>()
    shutdown.add('slow', () => promise)
    const before = { SIGINT: process.listeners('SIGINT'), SIGTERM: process.listeners('SIGTERM') }
    const statuses: number[] = []
    shutdown.onSignals((status) => void statuses.push(status))
    process.emit('SIGTERM')
    process.emit('SIGINT')
    expect(statuses).toEqual([1])
    resolve()
    await expect.poll(() => statuses).toEqual([1, 0])
    for (const name of ['SIGINT', 'SIGTERM'] as const) {
      for (const listener of process.listeners(name)) {
        if (!before[name].includes(listener)) process.removeListener(name, listener)
      }
    }
  })
})
