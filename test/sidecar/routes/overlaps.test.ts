/** Paths that two routes match although neither is the more specific. */
import { describe, expect, test } from 'vitest'
import { createExplainer, type Explanation } from '../../../sidecar/enforce/explain.ts'
import { routeWarnings } from '../../../sidecar/route-file/warnings.ts'
import { judge, loadRoutes } from '../support/judge.ts'

const COMMITTEES = `
GET /committees/{uid}/members/{m}: viewer committee:{uid}
GET /committees/b2b-org/{uid}/seats: auditor b2b_org:{uid}
`
const COMMON = 'GET /committees/b2b-org/members/seats'

type Sent = { readonly headers?: readonly (readonly [string, string])[]; readonly body?: string }
function explain(routes: string, line: string, sent: Sent = {}): Explanation {
  const [method = '', target = ''] = line.split(' ')
  return createExplainer(loadRoutes(routes))({ method, target, as: { sub: 'alice', a: 'b' }, ...sent })
}
const JSON_TYPE = [['content-type', 'application/json']] as const

describe('a path that two routes match, of which neither is the more specific', () => {
  test('is refused with a code of its own, which names the routes, and their other paths are not', () => {
    expect(explain(COMMITTEES, COMMON).denial).toEqual({
      code: 'route_ambiguous',
      status: 400,
      detail:
        'Several routes match this path, and none is the most specific: GET /committees/b2b-org/{uid}/seats, GET /committees/{uid}/members/{m}; add a route for this path',
    })
    expect(explain(COMMITTEES, 'GET /committees/7/members/seats').asks).toEqual(['viewer committee:7'])
    expect(explain(COMMITTEES, 'GET /committees/b2b-org/members/8').asks).toEqual(['viewer committee:b2b-org'])
    expect(explain(COMMITTEES, 'GET /committees/b2b-org/9/seats').asks).toEqual(['auditor b2b_org:9'])
  })

  test.each([
    ['the order of the routes', COMMITTEES.trim().split('\n').toReversed().join('\n'), COMMON],
    ['a public route', 'GET /a/{x}/c: public\nGET /a/b/{y}: viewer doc:{y}', 'GET /a/b/c'],
    ['a public route in the other order', 'GET /a/b/{y}: viewer doc:{y}\nGET /a/{x}/c: public', 'GET /a/b/c'],
    ['two parameters', 'GET /a/{x}/c: viewer doc:{x}\nGET /a/b/{x}: viewer doc:{x}', 'GET /a/b/c'],
    ['a rest', 'GET /{x}/c: scope c\nGET /a/**: scope a', 'GET /a/c'],
    ['two rests', 'GET /{x}/b/**: scope c\nGET /a/{y}/c/**: scope a', 'GET /a/b/c/d'],
    ['a parameter that may be empty to Fastify', 'GET /o/{x}/c/**: scope c\nGET /o/a/{y}/{z}: scope a', 'GET /o/a/c/'],
    ['a slash at the end', 'GET /{x}/c/: scope c\nGET /a/{y}/: scope a', 'GET /a/c/'],
    ['a method that one lacks', 'DELETE /a/{x}/c: scope x\nGET /a/b/{y}: scope y', 'GET /a/b/c'],
    ['HEAD', 'HEAD /a/{x}/c: scope x\nGET /a/b/{y}: scope y', 'HEAD /a/b/c'],
    ['every method of one', '"* /a/{x}/c": scope x\nGET /a/b/{y}: scope y', 'GET /a/b/c'],
    [
      'another step-up',
      'GET /a/{x}/c: {check: signed_in, step_up: {max_age: 5}}\nGET /a/b/{y}: signed_in',
      'GET /a/b/c',
    ],
    ['another mode', 'GET /a/{x}/c: {check: signed_in, mode: shadow}\nGET /a/b/{y}: signed_in', 'GET /a/b/c'],
    [
      'another treatment of the token',
      'GET /a/{x}/c: {check: signed_in, forward_token: true}\nGET /a/b/{y}: signed_in',
      'GET /a/b/c',
    ],
    [
      'another context',
      'GET /a/{x}/c: {check: viewer a:b, context: {c: 1}}\nGET /a/b/{y}: {check: viewer a:b, context: {c: 2}}',
      'GET /a/b/c',
    ],
    [
      'three routes of which two agree',
      'GET /a/{x}/{z}: scope z\nGET /a/{x}/c: scope x\nGET /{w}/b/{y}: scope x\nGET /a/b/{y}: scope y',
      'GET /a/b/c',
    ],
  ])('is refused whatever differs: %s', (_, routes, line) => {
    expect(judge(routes, line)).toBe('overlap')
  })

  test.each([
    ['the same check', 'GET /a/{x}/c: scope x\nGET /a/b/{y}: scope x', 'GET /a/b/c', []],
    [
      'a value and its text',
      'GET /a/{x}/c: viewer doc:{x}\nGET /a/b/{y}: viewer doc:b',
      'GET /a/b/c',
      ['viewer doc:b'],
    ],
    [
      'values in two places',
      'GET /{o}/{x}/c: viewer doc:{o}/{x}\nGET /a/b/{y}: viewer doc:a/b',
      'GET /a/b/c',
      ['viewer doc:a/b'],
    ],
    [
      'values of the same place',
      'GET /r/{x}/c/{z}: viewer doc:{x}\nGET /r/{id}/{k}/d: viewer doc:{id}',
      'GET /r/7/c/d',
      ['viewer doc:7'],
    ],
    [
      'other methods, and the same check',
      'DELETE /a/{x}/c: viewer doc:1\nGET /a/b/{y}: viewer doc:1',
      'GET /a/b/c',
      ['viewer doc:1'],
    ],
    ['a third route for it', `${COMMITTEES}${COMMON}: viewer doc:1`, COMMON, ['viewer doc:1']],
  ])('passes with %s', (_, routes, line, asks) => {
    const explanation = explain(routes, line)
    if (asks.length > 0) expect(explanation).toMatchObject({ denial: null, asks })
    else expect(explanation.denial).toBeNull()
  })

  test('has the methods of both routes, where neither has that of the request', () => {
    const routes = 'DELETE /a/{x}/c: scope x\nGET /a/b/{y}: scope y'
    expect(explain(routes, 'PUT /a/b/c').denial?.detail).toBe('the path has routes for DELETE, GET, HEAD, OPTIONS')
  })

  test('keeps twins of the parameters of either route out, because a service may run either', () => {
    const routes = 'POST /r/{x}/c/{z}: viewer doc:{x}\nPOST /r/{id}/{k}/d: viewer doc:{id}'
    for (const key of ['x', 'id']) {
      expect(explain(routes, `POST /r/7/c/d?${key}=8`).denial?.code).toBe('request_invalid')
      expect(explain(routes, `POST /r/7/c/d?${key}=7`).denial).toBeNull()
    }
    const judged = routes.replaceAll(/: (viewer \S+)/g, ': {check: "$1", body: judge}')
    for (const key of ['x', 'id'])
      expect(explain(judged, 'POST /r/7/c/d', { headers: JSON_TYPE, body: `{"${key}":"8"}` }).denial?.code).toBe(
        'request_invalid',
      )
    expect(explain(judged, 'POST /r/7/c/d', { headers: JSON_TYPE, body: '{"k":"8"}' }).denial).toBeNull()
  })

  test('is found under every other reading of a path', () => {
    const routes = `${COMMITTEES}GET /**: signed_in`
    for (const path of [
      '/committees/B2B-ORG/members/seats',
      '/committees/b2b-org/Members/seats',
      '/committees/b2b-org/members/seats/',
      '/committees/b2b-org/members/seats.json',
      '/x.php/committees/b2b-org/members/seats',
      '/_next/data/1/committees/b2b-org/members/seats.json',
    ])
      expect(judge(routes, `GET ${path}`), path).toMatch(/^(?:refused|overlap)$/)
  })

  test('is no other method that a form may ask for', () => {
    const routes = '"* /a/{x}/c": public\n"* /a/b/{y}": public\nPUT /a/{x}/c: scope x\nPUT /a/b/{y}: scope y'
    const headers = [['content-type', 'application/x-www-form-urlencoded']] as const
    expect(explain(routes, 'POST /a/b/c', { headers, body: '_method=PUT' }).denial?.code).toBe('media_type_unsupported')
    expect(explain(routes, 'POST /a/b/c?_method=PUT').denial?.code).toBe('request_invalid')
  })

  test('is what check warns about, with such a path, unless the routes agree or another one takes it', () => {
    expect(routeWarnings(loadRoutes(COMMITTEES).routes)).toEqual([
      'GET /committees/{uid}/members/{m} and GET /committees/b2b-org/{uid}/seats both match /committees/b2b-org/members/seats, and neither is the more specific, so such a request is refused (route_ambiguous). If somebody sends one, add a route for /committees/b2b-org/members/seats with its check',
    ])
    expect(routeWarnings(loadRoutes(`${COMMITTEES}${COMMON}: public`).routes)).toEqual([])
    expect(routeWarnings(loadRoutes('GET /{x}/b: scope a\nPUT /a/{y}: scope a').routes)).toEqual([])
    expect(routeWarnings(loadRoutes('GET /{x}/b/**: scope a\nGET /a/{y}/**: scope b').routes).join()).toContain(
      'both match /a/b/**,',
    )
  })
})

/** Fastify runs `/files/:id` for `/files/`, with an empty id: such a path must not pass by a wider route with other rules. */
const FILES = 'GET /files/{id}: viewer file:{id}'
test.each([
  [`GET /**: public\n${FILES}`, 'GET /files/'],
  [`GET /**: public\n${FILES}`, 'HEAD /files/'],
  [`GET /**: public\n${FILES}`, 'GET /Files/'],
  [`GET /**: signed_in\n${FILES}`, 'GET /files/'],
  [`GET /files/**: public\n${FILES}`, 'GET /files/'],
  ['GET /a/**: public\nGET /a/{x}/c/{id}: viewer c:{id}', 'GET /a/b/c/'],
])('with %j, %s is refused', (routes, line) => {
  expect(judge(routes, line)).toBe('refused')
})

test.each([
  [`GET /**: public\n${FILES}`, 'GET /files', 'GET /**'],
  [`GET /**: public\n${FILES}`, 'GET /files/7', 'GET /files/{id}'],
  [`GET /**: public\n${FILES}\nGET /files/: public`, 'GET /files/', 'GET /files/'],
  [`GET /files: member org:a\n${FILES}`, 'GET /files', 'GET /files'],
  ['GET /**: public\nGET /{page}: viewer page:{page}', 'GET /', 'GET /**'],
  ['GET /**: public\nGET /files/{id}: public', 'GET /files/', 'GET /**'],
  ['GET /**: public\nDELETE /files/{id}: viewer file:{id}', 'GET /files/', 'GET /**'],
  ['GET /**: viewer a:1\nGET /files/{id}: viewer a:1', 'GET /files/', 'GET /**'],
])('with %j, %s takes %s', (routes, line, route) => {
  expect(judge(routes, line)).toBe(route)
})
