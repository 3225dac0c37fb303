/** Page frameworks serve the data of a page at a path of its own: it must not pass by another route's check. */
import { describe, expect, test } from 'vitest'
import { judge } from '../support/judge.ts'

describe('the data of a page', () => {
  const NEXT =
    'GET /_next/**: public\nGET /: scope home\nGET /about: public\nGET /admin/{id}: scope admin\nGET /admin: scope admin'
  const ASSETS = 'GET /_next/**: public\nGET /**: scope all'
  const DATA = `${ASSETS}\nGET /_next/data/**: scope all\nGET /admin: scope admin`
  test.each([
    [NEXT, 'GET /_next/data/b1/admin.json', 'refused'],
    [NEXT, 'GET /_next/data/b1/admin/7.json', 'refused'],
    [NEXT, 'GET /_next/data/b1/Admin.JSON', 'refused'],
    [NEXT, 'GET /_next/data/b1/index.json', 'refused'],
    [NEXT, 'GET /_next/data/b1/about.json', 'GET /_next/**'],
    [NEXT, 'GET /_next/static/admin.json', 'GET /_next/**'],
    [NEXT, 'GET /_next/data/admin.json', 'GET /_next/**'],
    [ASSETS, 'GET /_next/data/b1/admin.json', 'refused'],
    [ASSETS, 'GET /_next/static/chunks/main.js', 'GET /_next/**'],
    [DATA, 'GET /_next/data/b1/about.json', 'GET /_next/data/**'],
    [DATA, 'GET /_next/data/b1/admin.json', 'refused'],
    ['GET /**: public\nGET /app/admin: scope admin', 'GET /app/_next/data/b1/admin.json', 'refused'],
    ['GET /**: public\nGET /admin: scope admin', 'GET /admin/__data.json', 'refused'],
    ['GET /**: public\nGET /admin: scope admin', 'GET /admin/q-data.json', 'refused'],
    ['GET /**: public\nGET /admin: scope admin', 'GET /admin/_payload.json', 'refused'],
    ['GET /**: public\nGET /admin: scope admin', 'GET /admin/_.data', 'refused'],
    ['GET /**: public\nGET /admin: scope admin', 'GET /admin.data', 'refused'],
    ['GET /**: public\nGET /: scope home', 'GET /_root.data', 'refused'],
    ['GET /**: public\nGET /admin/**: scope admin', 'GET /admin/__data.json', 'GET /admin/**'],
  ])('%#: %s, %s is %s', (routes, line, outcome) => {
    expect(judge(routes, line)).toBe(outcome)
  })
})
