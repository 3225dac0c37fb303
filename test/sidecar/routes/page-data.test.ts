/**
 * Page frameworks serve the data of a page at a path of its own: it must not pass by another route's check. Measured in Nuxt 4.5.2,
 * Qwik City 1.20.1, React Router 8.4.0 (`.rsc`: in its RSC mode; `_root.rsc` is of 7), Vike 0.4.266, Gatsby 5 and Waku 0.27.5, in files that Next.js 16.4.6
 * exported, and, for compressed copies, in files of SvelteKit 3.2.0 behind nginx 1.22.1.
 */
import { describe, expect, test } from 'vitest'
import { judge } from '../support/judge.ts'

describe('the data of a page', () => {
  const NEXT =
    'GET /_next/**: public\nGET /: scope home\nGET /about: public\nGET /admin/{id}: scope admin\nGET /admin: scope admin'
  const ASSETS = 'GET /_next/**: public\nGET /**: scope all'
  const DATA = `${ASSETS}\nGET /_next/data/**: scope all\nGET /admin: scope admin`
  const OPEN = 'GET /**: public\nGET /admin: scope admin\nGET /users/{id}: scope users'
  const HTML = 'GET /**: public\nGET /report.html: scope report'
  const BELOW = 'GET /**: public\nGET /rsc/admin: scope admin'
  const HOME = 'GET /**: public\nGET /: scope home'
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
    [OPEN, 'GET /admin/.data', 'refused'],
    [OPEN, 'GET /Admin/.data', 'refused'],
    [OPEN, 'GET /users/7/.data', 'refused'],
    [OPEN, 'GET /admin/.rsc', 'refused'],
    [OPEN, 'GET /admin/_.rsc', 'refused'],
    [OPEN, 'GET /admin/.manifest', 'refused'],
    [OPEN, 'GET /admin/_payload-json', 'refused'],
    [OPEN, 'GET /admin/_payloadXjson', 'refused'],
    [OPEN, 'GET /admin/_payload/json', 'refused'],
    [OPEN, 'GET /admin/_payload?json', 'refused'],
    [OPEN, 'GET /admin/_payload?json?x', 'refused'],
    [OPEN, 'GET /admin/_root.rsc', 'refused'],
    [OPEN, 'GET /admin_root.rsc', 'refused'],
    [HOME, 'GET /_root.rsc', 'refused'],
    [HTML, 'GET /report.html__data.json', 'refused'],
    [OPEN, 'GET /rsc/RSC/R/users/7.txt', 'GET /**'],
    [BELOW, 'GET /rsc/RSC/R/admin.txt', 'refused'],
    [OPEN, 'GET /about/_payload?json', 'GET /**'],
    [OPEN, 'GET /about_root.rsc', 'GET /**'],
    [OPEN, 'GET /admin/_payload/js', 'refused'],
    [OPEN, 'GET /admin/index.pageContext.json', 'refused'],
    [OPEN, 'GET /admin/__next._full.txt', 'refused'],
    [OPEN, 'GET /admin/__next.admin.__PAGE__.txt', 'refused'],
    [OPEN, 'GET /page-data/admin/page-data.json', 'refused'],
    [OPEN, 'GET /page-data/users/7/page-data.json', 'refused'],
    [OPEN, 'GET /RSC/R/admin.txt', 'refused'],
    [OPEN, 'GET /RSC/_R/admin_.txt', 'refused'],
    [OPEN, 'GET /RSC/R/admin/_.txt', 'refused'],
    [OPEN, 'GET /RSC/R/admin/.txt', 'refused'],
    [HOME, 'GET /RSC/R/_root.txt', 'refused'],
    [HOME, 'GET /page-data/index/page-data.json', 'refused'],
    [HOME, 'GET /.data', 'refused'],
    [HOME, 'GET /_payload/json', 'refused'],
    ['GET /**: public\nGET /app/admin: scope admin', 'GET /app/page-data/admin/page-data.json', 'refused'],
    ['GET /**: public\nGET /app/admin: scope admin', 'GET /app/RSC/R/admin.txt', 'refused'],
    [OPEN, 'GET /admin/index.html.gz', 'refused'],
    [OPEN, 'GET /admin/__data.json.br', 'refused'],
    [OPEN, 'GET /page-data/admin/page-data.json.zst', 'refused'],
    [OPEN, 'GET /about/index.html.gz', 'GET /**'],
    [OPEN, 'GET /backup.tar.gz', 'GET /**'],
    [
      'GET /**: public\nGET /backup.tar.gz: public\nGET /backup.tar: scope a',
      'GET /backup.tar.gz',
      'GET /backup.tar.gz',
    ],
    [OPEN, 'GET /about/.data', 'GET /**'],
    [OPEN, 'GET /about/_payload-json', 'GET /**'],
    [OPEN, 'GET /RSC/R/about.txt', 'GET /**'],
    [OPEN, 'GET /page-data/about/page-data.json', 'GET /**'],
    [OPEN, 'GET /page-data/app-data.json', 'GET /**'],
    [OPEN, 'GET /.well-known/admin', 'GET /**'],
    [HOME, 'GET /.well-known/security.txt', 'GET /**'],
    [HOME, 'GET /robots.txt', 'GET /**'],
  ])('%#: %s, %s is %s', (routes, line, outcome) => {
    expect(judge(routes, line)).toBe(outcome)
  })
})
