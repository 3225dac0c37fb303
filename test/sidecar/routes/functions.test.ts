/**
 * Page frameworks run functions of a page at paths that do not name the page. Measured: functions of the guarded page ran, or showed
 * its texts, in TanStack Start 1.169.5, SolidStart 2.0.5, Nuxt 4.5.2 (islands; Content 3.16.1), Astro 7.3.5 (actions) and SvelteKit
 * 3.2.0 (remote functions). The path of Waku's functions is read from the source of 0.27.5. Islands of Astro (`_server-islands`) need a
 * text that the page encrypts, and run for everybody who has it; SolidStart takes such a path for one of its own.
 */
import { describe, expect, test } from 'vitest'
import { parseAuthority, parseTarget } from '../../../sidecar/request/target.ts'
import { createRouting, routeRequest } from '../../../sidecar/routes/route-request.ts'
import { loadRoutes } from '../support/judge.ts'

const ROUTES = `"* /**": public
GET /admin: scope admin`
const SHOP = `"* /**": public
GET /shop/admin: scope admin`
const NAMED = `${ROUTES}
POST /_serverFn/**: public
"* /_server": signed_in
GET /_app/**: public
"* /_actions/newsletter": public
POST /form: {check: public, query: keep}`
const TENANTS = `"* /{tenant}/**": public
GET /{tenant}/admin: scope admin`
const KEPT = `"* /**": {check: public, encoded_slash: keep, semicolon: keep}
GET /admin: scope admin`
const EQUAL = `"* /**": scope admin
GET /admin: scope admin
GET /about: public`

/** The route's id, or what is wrong. */
function judge(routes: string, line: string): string {
  const [method = '', path = ''] = line.split(' ')
  const request = {
    host: parseAuthority('app.test'),
    namedHost: null,
    clientAddress: '',
    target: parseTarget(path),
    method,
  }
  try {
    const match = routeRequest(createRouting(loadRoutes(routes)), { ...request, raw: [], names: [], bodyBytes: 0 })
    return match.kind === 'route' ? match.route.id : match.kind
  } catch (err) {
    return err instanceof Error ? err.message : ''
  }
}
const BY_PATH = 'This path may run functions of any page'
const BY_QUERY = 'The query may name a function of any page'

describe('a request that may run a function of a guarded page', () => {
  test.each([
    'POST /_serverFn/c30a15a04253d79f',
    'GET /_serverFn/c30a15a04253d79f/x/admin',
    'POST /_server',
    'GET /_server?id=b52aced2-0',
    'GET /_server/x/y?id=b52aced2-0',
    'GET /_serverless-blog?id=b52aced2-0',
    'GET /_server-islands?id=b52aced2-0',
    'GET /_server-islands/Secret?e=x&p=x&s=',
    'GET /__nuxt_island/SecretBox_S3u5.json?props=%7B%22n%22%3A1%7D',
    'POST /__nuxt_content/content/query',
    'GET /__nuxt_content/content/sql_dump.txt',
    'POST /_actions/admin.del',
    'POST /_actions/secret/',
    'GET /_app/remote/15uzqee/secret',
    'POST /RSC/F/afdd94bbbb30/del.txt',
    'POST /RSC/_F/afdd94bbbb30/del.txt',
  ])('is refused by its path where a wide route matches it: %s', (line) => {
    expect(judge(ROUTES, line)).toBe(BY_PATH)
  })

  test.each([
    'POST /about?_action=secret',
    'POST /about?x=1&%5Faction=secret',
    'POST /about?/remote=15uzqee/fo',
    'POST /about?%2Fremote=15uzqee%2Ffo',
  ])('is refused by its query: %s', (line) => {
    expect(judge(ROUTES, line)).toBe(BY_QUERY)
  })

  test.each([
    [SHOP, 'POST /shop/_serverFn/c30a', BY_PATH],
    [SHOP, 'POST /_serverFn/c30a', BY_PATH],
    [SHOP, 'POST /blog/_serverFn/c30a', '* /**'],
    [NAMED, 'POST /_serverFn/c30a', 'POST /_serverFn/**'],
    [NAMED, 'GET /_serverFn/c30a', 'method'],
    [NAMED, 'POST /_server', '* /_server'],
    [NAMED, 'POST /_server/x', BY_PATH],
    [NAMED, 'GET /_app/immutable/start.js', 'GET /_app/**'],
    [NAMED, 'GET /_app/remote/15uzqee/secret', BY_PATH],
    [NAMED, 'POST /_actions/newsletter', '* /_actions/newsletter'],
    [NAMED, 'POST /_actions/secret', BY_PATH],
    [NAMED, 'POST /form?_action=newsletter', 'POST /form'],
    [TENANTS, 'POST /acme/_serverFn/c30a', BY_PATH],
    [TENANTS, 'POST /acme/_actions/x', BY_PATH],
    [KEPT, 'POST /RSC%2fF%2fx', BY_PATH],
    [KEPT, 'POST /_actions;x=1/foo', BY_PATH],
    [KEPT, 'POST /about%2ftext', '* /**'],
    [ROUTES, 'POST /%EF%BC%BFserver', BY_PATH],
    [EQUAL, 'POST /_serverFn/c30a', '* /**'],
    ['"* /**": public', 'POST /_serverFn/c30a', '* /**'],
  ])(
    '%#: below a folder without guarded pages, by its own route, or where nothing is gained, is judged: %s, %s is %s',
    (routes, line, outcome) => {
      expect(judge(routes, line)).toBe(outcome)
    },
  )

  test.each([
    'GET /about?_action=secret',
    'POST /about?action=secret',
    'POST /about?q=_action',
    'POST /about?/login',
    'GET /_next/static/chunks/main.js',
    'GET /_app/immutable/start.js',
    'GET /_astro/about.css',
    'GET /server/x',
    'GET /rsc/fonts/a.woff',
    'GET /docs/_servers',
  ])('is not what looks like one: %s', (line) => {
    expect(judge(ROUTES, line)).toBe('* /**')
  })
})
