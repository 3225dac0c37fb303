/** Image endpoints of page frameworks fetch a path of the same service that the query names. */
import { describe, expect, test } from 'vitest'
import { parseAuthority, parseTarget } from '../../../sidecar/request/target.ts'
import { createRouting, routeRequest } from '../../../sidecar/routes/route-request.ts'
import { loadRoutes } from '../support/judge.ts'

const ROUTES = `GET /_next/**: public
GET /logo.png: public
GET /_image: public
GET /mine/_next/image: scope mine
GET /mine/{id}: scope mine
GET /ours/{id}/_next/image: "viewer photo:{id}"
GET /ours/{id}: "viewer photo:{id}"
GET /api/photo/{id}: "viewer photo:{id}"
POST /upload: public`
const routing = createRouting(loadRoutes(ROUTES))
/** The route's id, or what is wrong. */
function judge(path: string): string {
  const request = {
    host: parseAuthority('app.test'),
    namedHost: null,
    clientAddress: '',
    target: parseTarget(path),
    method: 'GET',
  }
  try {
    const match = routeRequest(routing, { ...request, raw: [], names: [], bodyBytes: 0 })
    return match.kind === 'route' ? match.route.id : match.kind
  } catch (err) {
    return err instanceof Error ? err.message : ''
  }
}
const NESTED = 'The query names paths that the service may fetch, more than 4 within each other'
const REFUSED = 'The query names a path that this service may fetch'

describe('an image endpoint', () => {
  test.each([
    ['/_next/image?url=%2Flogo.png&w=64&q=75', 'GET /_next/**'],
    ['/_next/image?url=/logo.png?v=2', 'GET /_next/**'],
    ['/_next/image?url=https%3A%2F%2Fcdn.example%2Fapi%2Fphoto%2F7', 'GET /_next/**'],
    ['/_next/image?w=64', 'GET /_next/**'],
    ['/_next/static/x.js?url=/api/photo/7', 'GET /_next/**'],
    ['/_next/image?url=%2Fapi%2Fphoto%2F7&w=64&q=75', REFUSED],
    ['/_next/image?url=/api/photo/7', REFUSED],
    ['/_next/image/?url=/api/photo/7', REFUSED],
    ['/_NEXT/image?url=/api/photo/7', 'none'],
    ['/_next/Image?url=/api/photo/7', REFUSED],
    ['/_next/image?URL=/api/photo/7', REFUSED],
    ['/_next/image?url[]=/api/photo/7', REFUSED],
    ['/_next/image?u%72l=/api/photo/7', REFUSED],
    ['/_next/image?url=/logo.png&url=/api/photo/7', REFUSED],
    ['/_next/image?url=api/photo/7', REFUSED],
    ['/_next/image?url=%20/api/photo/7', REFUSED],
    ['/_next/image?url=/not/served', REFUSED],
    ['/_next/image?url=/upload', REFUSED],
    ['/_next/image?url=//app.test/api/photo/7', 'The path has an empty segment'],
    ['/_next/image?url=/x/../api/photo/7', 'The path has a dot segment'],
    ['/_next/image?url=/_next%252Fstatic', REFUSED],
    ['/_next/image?url=/_next/static;v=1', 'The query has a semicolon'],
    ['/_next/image?url=/_next/static%3Bv=1', REFUSED],
    ['/_image?href=/_next/image%3Furl=/api/photo/7', REFUSED],
    ['/_next/image?url=/logo.png;url=/api/photo/7', 'The query has a semicolon'],
    ['/_image?href=/api/photo/7', REFUSED],
    ['/_image?href=/logo.png', 'GET /_image'],
    [`/${'_image?href=/'.repeat(4)}logo.png`, 'GET /_image'],
    [`/${'_image?href=/'.repeat(4)}api/photo/7`, REFUSED],
    [`/${'_image?href=/'.repeat(5)}logo.png`, NESTED],
    [`/${'_image?href=/'.repeat(600)}logo.png`, NESTED],
    ['/mine/_next/image?url=/mine/1', 'GET /mine/_next/image'],
    ['/mine/_next/image?url=/api/photo/7', REFUSED],
    ['/ours/1/_next/image?url=/ours/2', REFUSED],
  ])('%s is %s', (path, outcome) => {
    expect(judge(path)).toBe(outcome)
  })
})
