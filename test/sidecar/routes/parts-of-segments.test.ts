/** A parameter with texts around it in its segment: custom methods, formats, versions. */
import { describe, expect, test } from 'vitest'
import { createExplainer } from '../../../sidecar/enforce/explain.ts'
import { parseRouteFile } from '../../../sidecar/route-file/route-file.ts'
import { routeWarnings } from '../../../sidecar/route-file/warnings.ts'
import { routeFile } from '../support/harness.ts'
import { judge, loadRoutes } from '../support/judge.ts'

const ROUTES = `
POST /v1/operations/{id}:cancel: editor op:{id}
POST /v1/operations/{id}:delete: owner op:{id}
POST /v1/operations/{id}: viewer op:{id}
GET /files/{file}.csv: exporter file:{file}
GET /files/{file}: viewer file:{file}
GET /v{n}/ping: viewer version:{n}
GET /pre-{x}-post: viewer both:{x}
`

function explain(line: string, routes = ROUTES): string {
  const [method = '', target = ''] = line.split(' ')
  const { asks, denial } = createExplainer(loadRoutes(routes))({ method, target, as: { sub: 'alice' } })
  return denial === null ? asks.join() : `${denial.status} ${denial.code}`
}

describe('a parameter in a part of a segment', () => {
  test.each([
    ['POST /v1/operations/7:cancel', 'editor op:7'],
    ['POST /v1/operations/7:delete', 'owner op:7'],
    ['POST /v1/operations/7', 'viewer op:7'],
    ['POST /v1/operations/7:other', 'viewer op:7:other'],
    ['POST /v1/operations/7:x:cancel', 'editor op:7:x'],
    ['GET /files/a.csv', 'exporter file:a'],
    ['GET /files/a.b.csv', 'exporter file:a.b'],
    ['GET /files/a', 'viewer file:a'],
    ['GET /files/a.json', 'viewer file:a.json'],
    ['GET /files/a.csv.csv', 'exporter file:a.csv'],
    ['GET /v2/ping', 'viewer version:2'],
    ['GET /v/ping', '404 route_unknown'],
    ['GET /w2/ping', '404 route_unknown'],
    ['GET /pre-x-post', 'viewer both:x'],
    ['GET /pre-post', '404 route_unknown'],
    ['GET /pre--post', '404 route_unknown'],
    ['GET /files/a%40b.csv', 'exporter file:a@b'],
  ])('has its value: %s', (line, asks) => {
    expect(explain(line)).toBe(asks)
  })

  test.each([
    ['POST /v1/operations/:cancel', 'POST /v1/{x}/**: public'],
    ['GET /files/.csv', ''],
    ['GET /v/ping', 'GET /{any}/ping: public'],
    ['GET /V/ping', 'GET /{any}/ping: public'],
    ['GET /pre--post', 'GET /{any}: public'],
    ['GET /pre--post', 'GET /**: scope a'],
    ['GET /v/ping/', 'GET /{any}/ping/: public'],
  ])('is not reached by a value that is empty, as Fastify would run it: %s beside %s', (line, other) => {
    expect(explain(line, `${ROUTES}${other}`)).toBe('400 request_invalid')
  })

  test.each([
    ['GET /pre-post', 'GET /{any}: viewer a:{any}', 'viewer a:pre-post'],
    ['GET /v', 'GET /{any}: viewer a:{any}', 'viewer a:v'],
    ['GET /v/pong', 'GET /{any}/pong: viewer a:{any}', 'viewer a:v'],
    ['GET /v/ping', 'GET /v/ping: scope a', ''],
  ])('%s beside %s has no such reading', (line, other, asks) => {
    expect(explain(line, `${ROUTES}${other}`)).toBe(asks)
  })

  test.each([
    ['another case', 'GET /files/a.CSV'],
    ['an encoded colon', 'POST /v1/operations/7%3Acancel'],
    ['a slash at the end', 'POST /v1/operations/7:cancel/'],
    ['path parameters', 'GET /files/a.csv;v=1'],
    ['a compatibility character', 'GET /files/a.%EF%BD%83sv'],
    ['a dot that Windows drops', 'GET /files/a.csv.'],
    ['a compressed copy', 'GET /files/a.csv.gz'],
    ['a script in front', 'GET /x.php/files/a.csv'],
  ])('is not reached by another spelling: %s', (_, line) => {
    expect(judge(`${ROUTES}GET /**: scope a\nPOST /**: scope a`, line), line).not.toMatch(/:cancel|\.csv$/)
    expect(explain(line, `${ROUTES}GET /**: scope a\nPOST /**: scope a`)).toMatch(/^400/)
  })

  test('is the more specific, the longer the texts around it, and overlaps where none is', () => {
    const routes =
      'GET /{a}: scope a\nGET /{a}.csv: scope b\nGET /{a}.x.csv: scope c\nGET /q.x.csv: scope d\nGET /v{a}: scope e'
    expect(judge(routes, 'GET /q.x.csv')).toBe('GET /q.x.csv')
    expect(judge(routes, 'GET /r.x.csv')).toBe('GET /{a}.x.csv')
    expect(judge(routes, 'GET /r.csv')).toBe('GET /{a}.csv')
    expect(judge(routes, 'GET /r')).toBe('GET /{a}')
    expect(judge(routes, 'GET /v1')).toBe('GET /v{a}')
    expect(judge(routes, 'GET /v1.csv')).toBe('overlap')
    expect(judge(routes, 'GET /v1.x.csv')).toBe('overlap')
    expect(routeWarnings(loadRoutes(routes).routes).join()).toContain('both match /v{a}.csv,')
  })

  test('passes a path that two have, where the values are the same', () => {
    const routes =
      'GET /{a}.csv/{x}/c: viewer doc:{a}\nGET /{b}.csv/d/{y}: viewer doc:{b}\nGET /v{c}/d/{y}: viewer doc:{c}'
    expect(explain('GET /7.csv/d/c', routes)).toBe('viewer doc:7')
    expect(explain('GET /v7.csv/d/c', routes)).toBe('400 route_ambiguous')
  })

  test('keeps twins of its value out', () => {
    expect(explain('POST /v1/operations/7:cancel?id=8')).toBe('400 request_invalid')
    expect(explain('POST /v1/operations/7:cancel?id=7')).toBe('editor op:7')
  })

  test('is what servers may add to a name that only ** has, and check says which route ends the refusal', () => {
    const routes = 'GET /files/{file}.csv: scope a\nGET /**: signed_in'
    expect(judge(routes, 'GET /files/report')).toBe('refused')
    expect(judge(routes, 'GET /files/report/x')).toBe('GET /**')
    expect(judge(routes, 'GET /other/report')).toBe('GET /**')
    expect(routeWarnings(loadRoutes(routes).routes).join()).toContain(
      'Add GET /files/{file} with the check of GET /files/{file}.csv',
    )
    const followed = `${routes}\nGET /files/{file}: scope b`
    expect(judge(followed, 'GET /files/report')).toBe('GET /files/{file}')
    expect(routeWarnings(loadRoutes(followed).routes).join()).not.toContain('format')
  })

  test('is no more to read where many routes have the same format', () => {
    const routes = Array.from({ length: 300 }, (_, n) => `GET /r${n}/{id}.json: scope a`).join('\n')
    expect(judge(`${routes}\nGET /**: signed_in`, 'GET /other/report')).toBe('GET /**')
    expect(judge(`${routes}\nGET /**: signed_in`, 'GET /r7/report')).toBe('refused')
  })

  test.each([
    ['/{a}{b}', 'a segment has one parameter at most'],
    ['/{a}-{b}', 'a segment has one parameter at most'],
    ['/x{', 'a segment has one parameter at most'],
    ['/{a}**', 'only ** as the last segment'],
    ['/{a}%2e', 'instead of its percent-encoding'],
    ['/{a}?', 'which has a character that a path cannot have'],
    ['/{a}#', 'which has a character that a path cannot have'],
    ['/{a}\\\\', 'which has a character that a path cannot have'],
    ['/{a}.csv/{a}', 'names {a} twice'],
    ['/{1a}', 'a segment has one parameter at most'],
  ])('is refused as %s', (path, message) => {
    const { issues } = parseRouteFile(routeFile(`"GET ${path}": signed_in`))
    expect(issues.map((issue) => issue.message).join()).toContain(message)
  })

  test('makes two routes the same only if all around it is', () => {
    const issues = (routes: string) => parseRouteFile(routeFile(routes)).issues.map(({ message }) => message)
    expect(issues('GET /{a}.csv: public\nGET /{b}.csv: public').join()).toContain('is the same route as GET /{a}.csv')
    expect(issues('GET /{a}.csv: public\nGET /{a}.txt: public').join()).not.toContain('the same route')
  })
})
