import { expect, test } from 'vitest'
import { parseTarget } from '../../../sidecar/request/target.ts'
import { createRouteTable } from '../../../sidecar/routes/route-table.ts'
import { loadFile, routeFile } from '../support/harness.ts'

const ROUTES = 'GET /**: public\nGET /admin/**: scope admin\nGET /admin: scope admin'
const text = routeFile(ROUTES).replace('UPSTREAM', 'http://127.0.0.1:1').replace('PDP', '127.0.0.1:1')
const table = createRouteTable(loadFile(text).routes)

test.each([
  ['/(S(x))/admin', 'ambiguous'],
  ['/(s(4hdk))/admin/users', 'ambiguous'],
  ['/(A(x)S(y)F(z))/Admin', 'ambiguous'],
  ['/%28S%28x%29%29/admin', 'ambiguous'],
  ['/(S(x))/(F(y))/admin/', 'ambiguous'],
  ['/(S())/admin', 'ambiguous'],
  ['/ad/(S(x))min', 'ambiguous'],
  ['/(S(x))admin', 'ambiguous'],
  ['/admin(S(x))/users', 'ambiguous'],
  ['/(S(x))/about', 'route'],
  ['/Products(1)/Name', 'route'],
  ['/wiki/Mercury_(planet)', 'route'],
])('a path with a session as ASP.NET reads it, %s, is %s', (path, kind) => {
  expect(table.match({ host: 'app.test', method: 'GET', path: parseTarget(path) }).kind).toBe(kind)
})
