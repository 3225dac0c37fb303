import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { sendRaw } from '../../support/peers/raw-http.ts'
import { tuples } from '../../support/peers/scripted-pdp.ts'
import { type Harness, startHarness } from '../support/harness.ts'
import { judge } from '../support/judge.ts'

describe('a path that a lax router gives to another route', () => {
  const PAGES = 'GET /{page}: public\nGET /admin/: scope admin\n/mnt/**: x'.replace(
    '/mnt/**: x',
    '"* /mnt/**": scope mnt',
  )
  test.each([
    [PAGES, 'GET /admin', 'refused'],
    [PAGES, 'HEAD /admin', 'refused'],
    [PAGES, 'GET /ADMIN', 'refused'],
    [PAGES, 'GET /admin/', 'GET /admin/'],
    [PAGES, 'GET /mnt', 'refused'],
    [PAGES, 'GET /Mnt', 'refused'],
    [PAGES, 'GET /mnt/', '* /mnt/**'],
    [PAGES, 'POST /mnt', '405'],
    [PAGES, 'GET /about', 'GET /{page}'],
    [PAGES, 'GET /about/', '404'],
    ['GET /**: public\n"* /mnt/**": scope mnt', 'GET /mnt', 'refused'],
    ['GET /**: public\n"* /mnt/**": scope mnt', 'GET /mn', 'GET /**'],
    ['GET /{a}: scope a\n"* /mnt/**": scope mnt', 'GET /mnt/', 'refused'],
    ['GET /{a}: scope a\nGET /admin/: scope b', 'GET /admin/', 'refused'],
    ['GET /admin: scope a\nGET /{x}/: scope b', 'GET /admin', 'refused'],
  ])('%#: %s, %s is %s', (routes, line, outcome) => {
    expect(judge(routes, line)).toBe(outcome)
  })

  const FILES =
    'GET /files/{a}/**: public\nGET /files/secret/**: scope a\nGET /{page}: public\nGET /admin/users: scope a'
  test.each([
    ['nothing but a zero width space', 'GET /files/%E2%80%8B/secret/x'],
    ['nothing but a blank', 'GET /files/%20/secret/x'],
    ['a division slash', 'GET /admin%E2%88%95users'],
    ['a fraction slash', 'GET /admin%E2%81%84users'],
  ])('is refused with %s', (_, line) => {
    expect(judge(FILES, line)).toBe('refused')
  })

  test.each([
    ['GET /admin: scope a\nGET /admin/**: scope a', 'GET /admin/', 'GET /admin/**'],
    ['GET /admin: scope a\nGET /admin/: scope a', 'GET /Admin', '404'],
    ['GET /admin: scope a\nGET /admin/: scope a', 'GET /admin/', 'GET /admin/'],
    ['GET /admin: scope a\nGET /admin/: scope a\nGET /{page}: public', 'GET /admin/', 'GET /admin/'],
    ['GET /a/{x}: viewer doc:{x}\nGET /a/{x}/: viewer doc:{x}', 'GET /a/1/', 'GET /a/{x}/'],
    ['GET /Docs/{x}: viewer doc:{x}\nGET /docs/{x}: viewer doc:{x}', 'GET /Docs/1', 'GET /Docs/{x}'],
    // The other reading is for everybody anyway, or a wider route from which this one is excepted.
    ['GET /admin: scope a\nGET /admin/: public', 'GET /admin', 'GET /admin'],
    ['GET /health: public\nGET /**: scope a', 'GET /health', 'GET /health'],
    ['GET /health: public\nGET /**: scope a', 'GET /health/', 'GET /**'],
    // Two spellings of one path, each with methods of its own.
    ['GET /docs: scope a\nPOST /docs/: scope b', 'GET /docs', 'GET /docs'],
    ['GET /docs: scope a\nPOST /docs/: scope b', 'POST /docs/', 'POST /docs/'],
  ])('is judged when the checks are alike: %#, %s, %s is %s', (routes, line, outcome) => {
    expect(judge(routes, line)).toBe(outcome)
  })

  test.each([
    ['GET /a/{x}: viewer doc:{x}\nGET /{x}/: viewer doc:{x}', 'GET /a/1/', '404'],
    // The text of both checks is one, but its parameter stands elsewhere.
    ['GET /{x}/**: viewer doc:{x}\nGET /a/{x}: viewer doc:{x}', 'GET /a/1/', 'refused'],
    ['GET /admin: scope a\nGET /admin/: {check: scope a, step_up: {max_age: 60}}', 'GET /admin', 'refused'],
    ['GET /admin/: {check: scope a, mode: shadow}\nGET /admin: scope a', 'GET /admin/', 'refused'],
  ])('is refused when they only look alike: %#, %s, %s is %s', (routes, line, outcome) => {
    expect(judge(routes, line)).toBe(outcome)
  })

  const FORMATS =
    'GET /{page}: public\nGET /admin: scope admin\nGET /robots.txt: public\nGET /f/**: public\nGET /f/a: scope a'
  test.each([
    ['GET /admin.json', 'refused'],
    ['GET /ADMIN.JSON', 'refused'],
    ['GET /admin.', 'refused'],
    ['GET /admin%20', 'refused'],
    ['GET /admin%20.', 'refused'],
    ['GET /admin.json/', '404'],
    ['GET /f/a.csv', 'refused'],
    ['GET /f/b.csv', 'GET /f/**'],
    ['GET /robots.txt', 'GET /robots.txt'],
    ['GET /page.html', 'GET /{page}'],
    ['GET /...', 'GET /{page}'],
  ])('such as one with a format: %s is %s', (line, outcome) => {
    expect(judge(FORMATS, line)).toBe(outcome)
  })

  test.each([
    ['GET /admin.x-long.name', 'refused'],
    ['GET /admin.json.', 'refused'],
    ['GET /admin::$DATA', 'refused'],
    ['GET /admin:$i30:$INDEX_ALLOCATION', 'refused'],
    ['GET /ADMIN.%20.', 'refused'],
    ['GET /f/a./', 'refused'],
    ['GET /page::$DATA', 'GET /{page}'],
    ['GET /f/b:c', 'GET /f/**'],
  ])('such as one with more behind its name: %s is %s', (line, outcome) => {
    expect(judge(FORMATS, line)).toBe(outcome)
  })

  test.each([
    ['GET /admin%EF%BC%9Fx', 'refused'],
    ['GET /admin%EF%BC%83x', 'refused'],
    ['GET /admin%3Fx=1', 'refused'],
    ['GET /admin%23x', 'refused'],
    ['GET /f/a%3F', 'refused'],
    ['GET /what%3F', 'GET /{page}'],
    ['GET /f/%E4%BD%95%EF%BC%9F', 'GET /f/**'],
  ])('such as one that ends at a question mark to some: %s is %s', (line, outcome) => {
    expect(judge(FORMATS, line)).toBe(outcome)
  })

  const EXCEPTIONS = [
    'GET /**: scope a',
    'GET /pub/**: public',
    'GET /docs/{id}/public: public',
    'GET /files/{id}: viewer file:{id}',
    'GET /files/{id}.csv: public',
  ].join('\n')
  test.each([
    ['GET /pub/%E2%80%A5/secret', 'refused'],
    ['GET /pub/%EF%BC%8E%EF%BC%8E/secret', 'refused'],
    ['GET /pub/x%EF%BC%8F%E2%80%A5%EF%BC%8F%E2%80%A5%EF%BC%8Fsecret', 'refused'],
    ['GET /pub/what%3F', 'GET /pub/**'],
    ['GET /pub/a%EF%BC%8Fb', 'GET /pub/**'],
    ['GET /pub/a.php/secret', 'GET /pub/**'],
    ['GET /docs/secret%3F/public', 'refused'],
    ['GET /docs/secret%EF%BC%9F/public', 'refused'],
    ['GET /docs/x/public', 'GET /docs/{id}/public'],
    ['GET /files/secret%3F.csv', 'refused'],
    ['GET /files/secret%23.csv', 'refused'],
    ['GET /files/a.b.csv', 'GET /files/{id}.csv'],
  ])('such as one that leads out of an exception from a wider route: %s is %s', (line, outcome) => {
    expect(judge(EXCEPTIONS, line)).toBe(outcome)
  })

  const SCRIPTS = [
    'GET /**: public',
    'GET /admin/**: scope admin',
    'GET /settings: scope settings',
    'GET /report.php: scope report',
    'GET /cgi-bin/status: scope status',
    'GET /docs/index.html: scope docs',
    'GET /start/: scope start',
    'GET /files/{name}: viewer file:{name}',
    'GET /files/{name}/raw: reader file:{name}',
  ].join('\n')
  test.each([
    // Front controllers read what follows their own name.
    ['GET /index.php/admin/', 'refused'],
    ['GET /index.php/admin/users', 'refused'],
    ['GET /INDEX.PHP/Admin/users', 'refused'],
    ['GET /index.php/settings', 'refused'],
    ['GET /index.php/settings/', 'refused'],
    ['GET /index.php/settings.json', 'refused'],
    ['GET /app_dev.php/admin/users', 'refused'],
    ['GET /public/index.php/admin/users', 'refused'],
    ['GET /index.php/index.php/settings', 'refused'],
    ['GET /dispatch.fcgi/settings', 'refused'],
    ['GET /index.php5/settings', 'refused'],
    ['GET /index.php./settings', 'refused'],
    ['GET /index.php/files/1', 'refused'],
    // Scripts get the rest as PATH_INFO.
    ['GET /report.php/', 'refused'],
    ['GET /report.php/x', 'refused'],
    ['GET /REPORT.PHP/x.css', 'refused'],
    ['GET /cgi-bin/status/x', 'refused'],
    // Index files are the page of their folder.
    ['GET /docs/', 'refused'],
    ['GET /start/index.php', 'refused'],
    ['GET /start/Default.aspx', 'refused'],
    // Others read these as the route that they have.
    ['GET /report.php', 'GET /report.php'],
    ['GET /index.php', 'GET /**'],
    ['GET /index.php/about', 'GET /**'],
    ['GET /index.html', 'GET /**'],
    ['GET /', 'GET /**'],
    ['GET /v1.2/settings', 'GET /**'],
    ['GET /cgi-bin/other/x', 'GET /**'],
    ['GET /files/main.py', 'GET /files/{name}'],
    ['GET /files/main.php/raw', 'GET /files/{name}/raw'],
    ['GET /files/index.php', 'GET /files/{name}'],
    ['GET /admin/index.php', 'GET /admin/**'],
  ])('such as one with the name of a script: %s is %s', (line, outcome) => {
    expect(judge(SCRIPTS, line)).toBe(outcome)
  })

  test.each([
    // The operator names what follows, and the other route names the script.
    ['GET /{a}/{b}: public\nGET /admin.php: scope a', 'GET /admin.php/x', 'refused'],
    ['GET /{a}/settings: member organization:{a}\nGET /settings: scope a', 'GET /index.php/settings', 'refused'],
    ['GET /**: public\nGET /scripts/{name}: scope a', 'GET /scripts/x.php/y', 'refused'],
    [
      'GET /**: public\nGET /report.php: scope a\nGET /report.php/**: scope a',
      'GET /report.php/x',
      'GET /report.php/**',
    ],
    ['GET /index.php/**: scope a\nGET /admin/**: scope a', 'GET /index.php/admin/x', 'GET /index.php/**'],
    ['GET /index.php/**: scope a\nGET /admin/**: scope b', 'GET /index.php/admin/x', 'refused'],
    ['GET /index.php/{x}: viewer a:{x}\nGET /{x}: viewer a:{x}', 'GET /index.php/1', 'GET /index.php/{x}'],
    ['GET /**: scope a\nGET /index.php/health: public', 'GET /index.php/health', 'GET /index.php/health'],
  ])('such as one with a script: %#, %s, %s is %s', (routes, line, outcome) => {
    expect(judge(routes, line)).toBe(outcome)
  })

  const KEPT =
    'GET /m/{name}: {check: public, semicolon: keep}\nGET /m/secret: scope a\nGET /p/{name}: {check: public, encoded_slash: keep}\nGET /p/{a}/{b}: scope b'
  test.each([
    ['GET /m/a;v=1', 'GET /m/{name}'],
    ['GET /m/secret;v=1', 'refused'],
    ['GET /m/secret%3bv=1', 'refused'],
    ['GET /p/a', 'GET /p/{name}'],
    ['GET /p/a%2Fb', 'refused'],
  ])('such as one with a mark that its route keeps: %s is %s', (line, outcome) => {
    expect(judge(KEPT, line)).toBe(outcome)
  })

  const LITERALS =
    'GET /files/read@me: scope a\nGET /files/{name}: viewer file:{name}\nGET /x/a:b: scope a\nGET /x/é!: scope a'
  test.each([
    ['GET /files/read@me', 'GET /files/read@me'],
    // Some servers decode it before they look for the route, some do not.
    ['GET /files/read%40me', 'refused'],
    ['GET /files/me%40home', 'GET /files/{name}'],
    ['GET /x/a:b', 'GET /x/a:b'],
    ['GET /x/a%3Ab', '404'],
    ['GET /x/%C3%A9!', 'GET /x/é!'],
    ['GET /x/%C3%A9%21', '404'],
  ])('such as one that encodes a reserved character of a literal: %s is %s', (line, outcome) => {
    expect(judge(LITERALS, line)).toBe(outcome)
  })
})

describe('over a connection', () => {
  let h: Harness
  beforeAll(async () => {
    h = await startHarness({ routes: 'GET /{page}: public\nGET /admin/: scope admin', script: tuples([]) })
  })
  afterAll(() => h.close())
  beforeEach(() => {
    h.upstream.reached.length = 0
  })

  test.each(['/admin', '/ADMIN', '/admin.json', '/..%3b/', '/..%3B', '/%2e%2e;a', '/a;b', '/a%3bb', '/a%3Bb/'])(
    '%s is 400, and who asks is not told which route it nearly met',
    async (target) => {
      const answer = await sendRaw(h.port, `GET ${target} HTTP/1.1\r\nHost: app.test\r\n\r\n`)
      expect(answer.status).toBe(400)
      expect(answer.body).not.toContain('GET /admin/')
      expect(h.upstream.reached).toEqual([])
    },
  )

  test('the log names both routes', async () => {
    h.log.length = 0
    await h.send('GET /admin')
    expect(JSON.stringify(h.log)).toContain('of route GET /admin/, which has other rules')
  })
})
