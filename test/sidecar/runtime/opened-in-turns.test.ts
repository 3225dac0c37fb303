/** Comparing the routes of a reload leaves others their turns. */
import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { openedRoutes } from '../../../sidecar/runtime/opened-routes.ts'
import { loadRoutes } from '../support/judge.ts'

test('a comparison of many routes gives others a turn for each route', async () => {
  const { routes } = loadRoutes(Array.from({ length: 300 }, (_, n) => `GET /a${n}/{id}: scope a`).join('\n'))
  let isDone = false
  const comparing = openedRoutes(routes, routes).then((opened) => {
    isDone = true
    return opened
  })
  let turns = 0
  while (!isDone) {
    await setImmediate()
    turns += 1
  }
  expect(await comparing).toEqual([])
  expect(turns).toBeGreaterThanOrEqual(routes.length)
})

test('a route whose path nobody can request opens nothing, and stops no reload', async () => {
  const [route] = [loadRoutes(`GET ${'/a.pl'.repeat(9)}/{x}: public`).routes]
  expect(await openedRoutes([], route)).toEqual([])
})
