import { describe, expect, test } from 'vitest'
import { openedRoutes } from '../../../sidecar/runtime/opened-routes.ts'
import { loadFile, routeFile } from '../support/harness.ts'

const routesOf = (text: string) =>
  loadFile(routeFile(text).replace('UPSTREAM', 'http://127.0.0.1:1').replace('PDP', '127.0.0.1:2')).routes
const opened = (former: string, next: string): string[] =>
  openedRoutes(routesOf(former), routesOf(next)).map(({ before, route, now }) => `${before} -> ${route}: ${now}`)

const GUARDED = 'GET /a/{id}: viewer a:{id}'

describe('a change of the routes opens', () => {
  test.each([
    ['a route that becomes public', GUARDED, 'GET /a/{id}: public', 'GET /a/{id}: public'],
    ['paths that a wider public route takes over', `${GUARDED}\nGET /**: public`, 'GET /**: public', 'GET /**: public'],
    ['paths of a new public route', 'GET /**: scope x', 'GET /**: scope x\nGET /a: public', 'GET /a: public'],
    ['paths that had no route', GUARDED, `${GUARDED}\nGET /b: public`, 'GET /b: public'],
    ['methods that had no route', GUARDED, `${GUARDED}\nPOST /a/{id}: public`, 'POST /a/{id}: public'],
    [
      'paths that had no route, and whose refusals are only counted',
      GUARDED,
      `${GUARDED}\nGET /b: {check: "viewer a:b", mode: shadow}`,
      'GET /b: shadow',
    ],
    [
      'a method that a public one takes over',
      `${GUARDED}\n"* /a/{id}": public`,
      '"* /a/{id}": public',
      '* /a/{id}: public',
    ],
    [
      'a route whose refusals are only counted',
      GUARDED,
      'GET /a/{id}: {check: "viewer a:{id}", mode: shadow}',
      'GET /a/{id}: shadow',
    ],
    [
      'paths that a route which is gone shared with a new public one, whose others were public before',
      'GET /a/b/{y}: viewer a:{y}\nGET /a/**: public',
      'GET /a/{x}/c: public\nGET /a/**: viewer a:1',
      'GET /a/{x}/c: public',
    ],
    [
      'a route that loses one of its checks',
      'GET /a/{id}: {all: ["viewer a:{id}", scope x]}',
      GUARDED,
      'GET /a/{id}: weaker',
    ],
    [
      'a route that gets another way in',
      GUARDED,
      'GET /a/{id}: {any: ["viewer a:{id}", scope x]}',
      'GET /a/{id}: weaker',
    ],
    [
      'all that becomes any',
      'GET /a/{id}: {all: ["viewer a:{id}", scope x]}',
      'GET /a/{id}: {any: ["viewer a:{id}", scope x]}',
      'GET /a/{id}: weaker',
    ],
    [
      'a route that needs no second factor any more',
      'GET /a/{id}: {check: "viewer a:{id}", step_up: {acr_values: [mfa]}}',
      GUARDED,
      'GET /a/{id}: weaker',
    ],
    [
      'a route that takes older sign-ins',
      'GET /a/{id}: {check: "viewer a:{id}", step_up: {max_age: 60}}',
      'GET /a/{id}: {check: "viewer a:{id}", step_up: {max_age: 600}}',
      'GET /a/{id}: weaker',
    ],
  ])('%s', (_name, former, next, expected) => {
    const [one, ...others] = opened(former, next)
    expect([one?.split(' -> ')[1], others]).toEqual([expected, []])
  })

  test.each([
    ['that stays as it is', GUARDED, GUARDED],
    [
      'that is written in another order',
      'GET /a/{id}: {all: ["viewer a:{id}", scope x]}',
      'GET /a/{id}: {all: [scope x, "viewer a:{id}"]}',
    ],
    ['that becomes stricter', GUARDED, 'GET /a/{id}: {all: ["viewer a:{id}", scope x]}'],
    ['that was public', 'GET /a/{id}: public', 'GET /a/{id}: public\nGET /a/1: public'],
    ['that is gone', `${GUARDED}\nGET /b: public`, 'GET /b: public'],
    ['that was only counted', 'GET /a/{id}: {check: "viewer a:{id}", mode: shadow}', 'GET /a/{id}: public'],
    ['that a stricter one takes over', 'GET /a/{id}: public', GUARDED],
    ['that is new and asks', GUARDED, `${GUARDED}\nPOST /a/{id}: editor a:{id}`],
  ])('nothing by a route %s', (_name, former, next) => {
    expect(opened(former, next)).toEqual([])
  })
})
