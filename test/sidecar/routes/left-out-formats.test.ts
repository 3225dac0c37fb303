/** Web servers serve `/admin.html` for `/admin`, and `/admin/index.html` too: a path without the format must not pass by its check. */
import { describe, expect, test } from 'vitest'
import { judge } from '../support/judge.ts'

const open = (guarded: string): string => `GET /**: public\nGET ${guarded}: scope a`
const page = (guarded: string): string => `GET /{p}: public\nGET ${guarded}: scope a`

describe('a path without the format of a guarded file', () => {
  test.each([
    [open('/admin.html'), '/admin'],
    [open('/admin.html'), '/Admin'],
    [open('/admin.html'), '/admin/'],
    [page('/admin.html'), '/admin'],
    [open('/admin.php'), '/admin'],
    [open('/admin.php'), '/admin/x'],
    [open('/admin.php/**'), '/admin/x'],
    [open('/api/users.json'), '/api/users'],
    [open('/backup.tar.gz'), '/backup'],
    [open('/backup.tar.gz'), '/backup.tar'],
    [open('/admin/index.html'), '/admin'],
    [page('/admin/index.html'), '/admin'],
  ])('%#: %s, %s is refused', (routes, path) => expect(judge(routes, `GET ${path}`)).toBe('refused'))

  test.each([
    ['GET /admin: public\nGET /admin.html: scope a', '/admin', 'GET /admin'],
    ['GET /admin/**: public\nGET /admin.html: scope a', '/admin/x', 'GET /admin/**'],
    ['GET /{p}: scope a\nGET /admin.html: scope a', '/admin', 'GET /{p}'],
    ['GET /{p}: scope a\nGET /admin.html: public', '/admin', 'GET /{p}'],
    [page('/admin.html'), '/about', 'GET /{p}'],
    [page('/.well-known'), '/about', 'GET /{p}'],
    [open('/v1.0/x'), '/v1/x', 'GET /**'],
  ])('is itself where a route says so, or nothing is gained. %#: %s, %s is %s', (routes, path, outcome) =>
    expect(judge(routes, `GET ${path}`)).toBe(outcome),
  )
})
