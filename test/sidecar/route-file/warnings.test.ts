/** What `check` says of routes that servers may confuse. */
import { describe, expect, test } from 'vitest'
import { routeWarnings } from '../../../sidecar/route-file/warnings.ts'
import { judge, loadRoutes } from '../support/judge.ts'

describe('warnings about a route file', () => {
  test.each([
    ['GET /{page}: public\nGET /admin/: scope a', ['Add GET /admin with the check of GET /admin/']],
    ['GET /{page}: public\nGET /admin: scope a\nGET /admin/: scope a', []],
    ['GET /{page}: public\n"* /mnt/**": scope a', []],
    ['"* /{page}": public\n"* /mnt/**": scope a', ['Add * /mnt with the check of * /mnt/**']],
    ['GET /{page}: scope b\nGET /mnt/**: scope a', ['Add GET /mnt with the check of GET /mnt/**']],
    ['GET /admin: scope a\nGET /admin/: scope b', ['Use the same check for both']],
    ['GET /Admin: scope a\nGET /admin: scope b', ['Use the same check for both']],
    ['GET /admin: scope a\nPOST /admin/: scope b', []],
    ['GET /f/{x}: scope a\nGET /f/**: public', ['Add GET /f/{x}/ with the check of GET /f/{x}']],
    ['GET /f/{x}: scope a\nGET /f/**: scope a', []],
    ['GET /a.test/x: public\n"GET a.test/b/": scope a\n"GET b.test/b": scope b', []],
    ['GET /: public\nGET /**: scope a\nGET /health: public', []],
    [
      'GET /**: public\nGET /admin.php: scope a',
      ['Add GET /admin.php/** with the check of GET /admin.php', 'Add GET /admin with the check of GET /admin.php'],
    ],
    ['GET /{p}: public\nGET /Admin.html: scope a', ['Add GET /Admin with the check of GET /Admin.html']],
    ['GET /{p}: public\nGET /admin: public\nGET /admin.html: scope a', []],
    ['GET /{p}: scope a\nGET /admin.html: public', []],
    ['GET /{p}: public\nGET /.env: scope a', []],
    [
      'GET /_next/**: public\nGET /admin: scope a',
      ['Make GET /_next/static/** public instead, and add GET /_next/data/** with the check of the pages'],
    ],
    ['GET /_next/static/**: public\nGET /admin: scope a', []],
    ['GET /_next/**: public\nGET /admin: public', []],
    ['GET /**: public\nGET /cgi-bin/x: scope a', ['Add GET /cgi-bin/x/** with the check of GET /cgi-bin/x']],
    [
      'GET /**: public\nGET /admin.php: scope a\nGET /admin.php/**: scope a\nGET /admin: scope a\nGET /admin/: scope a',
      [],
    ],
    ['GET /**: scope a\nGET /hook.php: public', []],
    ['GET /about: public\nGET /admin.php: scope a', []],
    ['GET /**: scope a\nGET /docs/{id}: scope b', ['Add GET /docs/{id}/ with the check of GET /docs/{id}']],
  ])('%#: %s', (routes, ends) => {
    const warnings = routeWarnings(loadRoutes(routes).routes)
    expect(warnings.map((warning) => ends.find((end) => warning.endsWith(end)) ?? warning)).toEqual(
      expect.arrayContaining(ends),
    )
    expect(warnings.length > 0).toBe(ends.length > 0)
  })

  test('say which request is refused, and the advice ends the refusal', () => {
    const routes = 'GET /{page}: public\nGET /admin/: scope a'
    expect(routeWarnings(loadRoutes(routes).routes)).toEqual([
      'GET /admin matches GET /{page}, but servers that ignore a trailing slash run GET /admin/ for it, so it is denied. Add GET /admin with the check of GET /admin/',
    ])
    expect(judge(routes, 'GET /admin')).toBe('refused')
    const followed = `${routes}\nGET /admin: scope a`
    expect([judge(followed, 'GET /admin'), judge(followed, 'GET /admin/')]).toEqual(['GET /admin', 'GET /admin/'])
    expect(routeWarnings(loadRoutes(followed).routes)).toEqual([])
  })
})
