import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { edited, one, saying } from '../../edited.ts'

const COPIED = 'X-Auth-Subject X-Auth-Subject-Type X-Auth-Client X-Auth-Issuer X-Auth-Organization X-Auth-Scope'
const ASK = `forward_auth unix//run/door.sock {
		uri /authorize
		copy_headers ${COPIED}
	}`
const CLEAR = 'request_header -*_*'
const asking = (...lines: readonly string[]): string => ASK.replace('uri', `${lines.join('\n\t\t')}\n\t\turi`)
/** A site that asks, with these lines before what forwards. */
const site = (lines: string, proxy = 'reverse_proxy app:3000'): string =>
  `app.example {\n\troute {\n\t${CLEAR}\n\t${ASK}\n\t${lines}\n\t${proxy}\n\t}\n}\n`
const proxied = (...options: readonly string[]): string =>
  site('', `reverse_proxy app:3000 {\n\t\t${options.join('\n\t\t')}\n\t}`)
const plain = (body: string): string => `app.example {\n\t${body}\n}\n`
const global = (option: string): string => `{\n\t${option}\n}\n${site('')}`

const PAST: readonly (readonly [name: string, text: string, finding: string])[] = [
  // Who is not asked.
  [
    'an order that puts the service first',
    global('order reverse_proxy first'),
    'skips_question: order reverse_proxy first',
  ],
  ['an order that puts handle first', global('order handle first'), 'skips_question: order handle first'],
  [
    'a second site by import',
    `(app) {\n\treverse_proxy app:3000\n}\n${site('')}\nb.example {\n\timport app\n}\n`,
    'skips_question: reverse_proxy app:3000',
  ],
  [
    'a matcher that an import gives',
    `(door) {\n\t${ASK.replace('unix//', '{args[0]} unix//')}\n}\n${plain(`${CLEAR}\n\timport door /api/*\n\treverse_proxy app:3000`)}`,
    'skips_question: forward_auth {args[0]} unix//run/door.sock {',
  ],
  [
    'a service in the block of an import',
    `(wrap) {\n\troute {\n\t{block}\n\t${CLEAR}\n\t${ASK}\n\treverse_proxy app:3000\n\t}\n}\n${plain('import wrap {\n\treverse_proxy /open/* app:3001\n\t}')}`,
    'skips_question: reverse_proxy /open/* app:3001',
  ],
  [
    'a service in a named block of an import',
    `(wrap) {\n\troute {\n\t{blocks.before}\n\t${CLEAR}\n\t${ASK}\n\treverse_proxy app:3000\n\t}\n}\n${plain('import wrap {\n\tbefore {\n\treverse_proxy /open/* app:3001\n\t}\n\t}')}`,
    'skips_question: reverse_proxy /open/* app:3001',
  ],
  [
    'a question in a handle of some requests',
    plain(`${CLEAR}\n\thandle /api/* {\n\t${ASK}\n\t}\n\treverse_proxy app:3000`),
    'skips_question: reverse_proxy app:3000',
  ],
  [
    'a question in a route of some requests',
    plain(`route {\n\t${CLEAR}\n\troute /api/* {\n\t${ASK}\n\t}\n\treverse_proxy app:3000\n\t}`),
    'skips_question: reverse_proxy app:3000',
  ],
  [
    'a question with much space before its matcher',
    plain(
      `route {\n\t${CLEAR}\n\t${ASK.replace('unix', `${' '.repeat(5_000)}/api/* unix`)}\n\treverse_proxy app:3000\n\t}`,
    ),
    `skips_question: forward_auth ${' '.repeat(5_000)}/api/* unix//run/door.sock {`,
  ],
  [
    'a question whose words are in the environment',
    site('').replace('unix//run/door.sock', '{$DOOR}'),
    'unseen: forward_auth {$DOOR} {',
  ],
  [
    'a question in a route of what the environment says',
    plain(`route {\n\t${CLEAR}\n\troute {$SOME} {\n\t${ASK}\n\t}\n\treverse_proxy app:3000\n\t}`),
    'skips_question: reverse_proxy app:3000',
  ],
  ['a named route', `&(app) {\n\treverse_proxy app:3000\n}\n${plain('invoke app')}`, 'unseen: invoke app'],
  ['a directive of the environment', site('{$EXTRA}'), 'unseen: {$EXTRA}'],
  ['connections of another app', global('layer4 {\n\t:443 {\n\t\troute {\n\t\t}\n\t}\n\t}'), 'unseen: layer4 {'],
  [
    'another listener',
    global('servers {\n\t\tlistener_wrappers {\n\t\t\tlayer4 {\n\t\t\t}\n\t\t}\n\t}'),
    'unseen: layer4 {',
  ],
  // What comes of a refusal.
  [
    'a refusal that is intercepted',
    plain(
      `${CLEAR}\n\tintercept {\n\t@no status 401 403\n\thandle_response @no {\n\t\treverse_proxy app:3001\n\t}\n\t}\n\t${ASK}\n\treverse_proxy app:3000`,
    ),
    'fails_open: reverse_proxy app:3001',
  ],
  [
    'files for whatever path when the door is gone',
    `${site('').slice(0, -2)}\thandle_errors {\n\t\trewrite * {uri}.html\n\t\tfile_server\n\t}\n}\n`,
    'fails_open: file_server',
  ],
  [
    'an answer that is replaced',
    site('').replace('uri', 'replace_status @x 200\n\t\turi'),
    'fails_open: replace_status @x 200',
  ],
  // Other bytes.
  ['a method that changes', site('method * GET'), 'other_bytes: method * GET'],
  ['a query that changes', site('uri query admin 1'), 'other_bytes: uri query admin 1'],
  ['a path that changes', site('uri path_regexp /{2,} /'), 'other_bytes: uri path_regexp /{2,} /'],
  ['a file that is tried', site('try_files {path} /index.php'), 'other_bytes: try_files {path} /index.php'],
  ['a body that is replaced', site('request_body {\n\t\tset "a=1"\n\t}'), 'other_bytes: set "a=1"'],
  [
    'a service that the client chooses',
    site('', 'reverse_proxy {header.X-Backend}'),
    'other_bytes: reverse_proxy {header.X-Backend}',
  ],
  ['a service that the path chooses', proxied('to {path.0}:80'), 'other_bytes: to {path.0}:80'],
  ['a dynamic service of a plugin', proxied('dynamic by_header X-Backend'), 'unseen: dynamic by_header X-Backend'],
  ['another transport', proxied('transport smb'), 'unseen: transport smb'],
  ['an unknown option', proxied('mangle on'), 'unseen: mangle on'],
  [
    'an X-Accel-Redirect',
    proxied(
      '@x header X-Accel-Redirect *',
      'handle_response @x {',
      '\trewrite * {rp.header.X-Accel-Redirect}',
      '\tfile_server',
      '}',
    ),
    'other_bytes: rewrite * {rp.header.X-Accel-Redirect}',
  ],
  ['a Host of the client', proxied('header_up Host {header.X-Host}'), 'other_bytes: header_up Host {header.X-Host}'],
  [
    'another method by a field',
    site('request_header X-HTTP-Method-Override DELETE'),
    'other_bytes: request_header X-HTTP-Method-Override DELETE',
  ],
  [
    'another target by a field',
    proxied('header_up X-Original-URL /admin'),
    'other_bytes: header_up X-Original-URL /admin',
  ],
  [
    'a token that only the door sees',
    plain(`${CLEAR}\n\t${asking('header_up Authorization "Bearer t"')}\n\treverse_proxy app:3000`),
    'other_bytes: header_up Authorization "Bearer t"',
  ],
  [
    'a field that the door does not see',
    plain(`${CLEAR}\n\t${asking('header_up -X-Tenant')}\n\treverse_proxy app:3000`),
    'other_bytes: header_up -X-Tenant',
  ],
  [
    'what the door said, removed',
    plain(`${CLEAR}\n\t${ASK}\n\trequest_header -X-Auth-*\n\treverse_proxy app:3000`),
    'other_bytes: request_header -X-Auth-*',
  ],
  // Who is believed.
  [
    'an identity that is written before a second question, and set after it',
    proxied(
      '@x header A *',
      'handle_response @x {',
      `request_header X-Auth-Subject root\n${ASK}`,
      'reverse_proxy b:1',
      '}',
    ),
    'forgeable: request_header X-Auth-Subject root',
  ],
  [
    'an identity with underscores',
    proxied('header_up X_Auth_Subject root'),
    'forgeable: header_up X_Auth_Subject root',
  ],
  ['an identity that is added', proxied('header_up +x-auth-scope all'), 'forgeable: header_up +x-auth-scope all'],
  [
    'an identity where there is none',
    site('request_header ?X-Auth-Subject {query.user}'),
    'forgeable: request_header ?X-Auth-Subject {query.user}',
  ],
  [
    'an identity that is replaced',
    site('request_header X-Auth-Subject ^.*$ root'),
    'forgeable: request_header X-Auth-Subject ^.*$ root',
  ],
  [
    'an identity after another matcher',
    site('@x path /x\n\trequest_header @x X-Auth-Subject root'),
    'forgeable: request_header @x X-Auth-Subject root',
  ],
  ['a field without a name', site('request_header {header.N} root'), 'unseen: request_header {header.N} root'],
  [
    'an identity that is copied from another',
    site('').replace(COPIED, `${COPIED} X-Auth-Client>X-Auth-Subject`),
    `forgeable: copy_headers ${COPIED} X-Auth-Client>X-Auth-Subject`,
  ],
  [
    'underscores of some requests',
    site('').replace(CLEAR, 'request_header /api/* -*_*'),
    'forgeable: reverse_proxy app:3000',
  ],
  [
    'underscores of another path',
    plain(`handle /x {\n\t${CLEAR}\n\t}\n\t${ASK}\n\treverse_proxy app:3000`),
    'forgeable: reverse_proxy app:3000',
  ],
  [
    'a second door that is no socket',
    site('').replace('uri', 'to 10.0.0.1:80\n\t\turi'),
    'forgeable: forward_auth unix//run/door.sock {',
  ],
  ['a second path', site('').replace('uri /authorize', 'uri /authorize\n\t\turi /healthz'), 'forgeable: uri /healthz'],
  [
    'a secret without a value',
    plain(
      `${CLEAR}\n\t${asking('header_up X-Portcullis-Caller').replace('unix//run/door.sock', '127.0.0.1:1')}\n\treverse_proxy app:3000`,
    ),
    'forgeable: forward_auth 127.0.0.1:1 {',
  ],
  [
    'half of all addresses',
    global('servers {\n\t\ttrusted_proxies static 0.0.0.0/1 128.0.0.0/1\n\t}'),
    'forgeable: trusted_proxies static 0.0.0.0/1 128.0.0.0/1',
  ],
  [
    'proxies of the environment',
    global('servers {\n\t\ttrusted_proxies static {$PROXIES}\n\t}'),
    'unseen: trusted_proxies static {$PROXIES}',
  ],
  ['an open administration', global('admin :2019'), 'forgeable: admin :2019'],
  ['an option that is not known', global('frankenphp'), 'unseen: frankenphp'],
]

describe('check-gateway of a Caddyfile that leads past the door', () => {
  test.each(PAST)('names %s', (_name, text, finding) => {
    expect(saying(one('Caddyfile', text))).toContain(finding)
  })

  test.each([
    ['a route in a route', plain(`route {\n\troute {\n\t${CLEAR}\n\t${ASK}\n\t}\n\treverse_proxy app:3000\n\t}`)],
    [
      'an error page',
      `${site('').slice(0, -2)}\thandle_errors {\n\t\troot * /srv\n\t\trewrite * /{err.status_code}.html\n\t\tfile_server\n\t}\n}\n`,
    ],
    ['a message for errors', `${site('').slice(0, -2)}\thandle_errors {\n\t\trespond "{err.status_code}"\n\t}\n}\n`],
    [
      'a prefix that goes before the question',
      plain(
        `${CLEAR}\n\thandle_path /api/* {\n\t${ASK}\n\treverse_proxy app:3000\n\t}\n\thandle {\n\trespond 404\n\t}`,
      ),
    ],
    [
      'several handles below one question',
      plain(`${CLEAR}\n\t${ASK}\n\thandle /a/* {\n\treverse_proxy a:1\n\t}\n\thandle {\n\treverse_proxy b:1\n\t}`),
    ],
    [
      'usual options',
      `{\n\temail a@b.example\n\tadmin off\n\tservers {\n\t\ttrusted_proxies static private_ranges\n\t\tclient_ip_headers X-Forwarded-For\n\t}\n}\n${site('encode gzip\n\theader X-Frame-Options DENY\n\tlog_append a b')}`,
    ],
    [
      'options of the service',
      proxied(
        'header_up Host {upstream_hostport}',
        'header_up X-Real-IP {remote_host}',
        'header_up -Cookie',
        'lb_policy round_robin',
        'health_uri /up',
        'flush_interval -1',
        'transport http {',
        '\ttls',
        '}',
      ),
    ],
    [
      'a snippet with arguments',
      `(app) {\n\t${CLEAR}\n\t${ASK.replace('/run/door.sock', '{args[0]}')}\n\treverse_proxy {args[1]}\n}\n${plain('import app /run/door.sock app:3000')}`,
    ],
    ['a door of the environment at run time', site('').replace('unix//run/door.sock', 'unix//{env.DOOR}')],
    ['fields in quotes and backticks', site('request_header X-Tenant `a "b"`\n\trequest_header "X-Other" "c \\"d\\""')],
    ['a heredoc', site('respond /x <<END\n\treverse_proxy app:3001\n\tEND')],
  ])('finds nothing in %s', (_name, text) => {
    expect(saying(one('Caddyfile', text))).toEqual([])
  })

  test('knows snippets of an imported file', () => {
    const folder = mkdtempSync(join(tmpdir(), 'portcullis-'))
    writeFileSync(join(folder, 'snippets.caddy'), `(door) {\n\t${ASK}\n}\n`)
    const main = `import ${folder}/*.caddy\n${plain(`${CLEAR}\n\timport door\n\treverse_proxy app:3000`)}`
    expect(saying(one('Caddyfile', main))).toEqual([])
    expect(() => saying(one('Caddyfile', main.replace('import door', 'import other')))).toThrow(/other cannot be read/)
  })

  test('reads words that continue in the next line', () => {
    const text = edited('caddy')[0]?.text.replace('forward_auth ', 'forward_auth \\\n\t\t\t/api/* ') ?? ''
    expect(saying(one('Caddyfile', text))[0]).toMatch(/^skips_question/)
  })
})
