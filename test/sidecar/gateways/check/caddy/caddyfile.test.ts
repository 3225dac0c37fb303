import { describe, expect, test } from 'vitest'
import { type Edit, edited, one, saying } from '../../edited.ts'

const ASK = 'forward_auth 127.0.0.1:15081 {'
const FORWARD = 'reverse_proxy 127.0.0.1:3000 {'

describe('check-gateway of Caddy', () => {
  test.each<[string, Edit, string]>([
    [
      'a matcher of a path',
      [ASK, 'forward_auth /api/* 127.0.0.1:15081 {'],
      'skips_question: forward_auth /api/* 127.0.0.1:15081 {',
    ],
    [
      'a named matcher',
      [ASK, 'forward_auth @api 127.0.0.1:15081 {'],
      'skips_question: forward_auth @api 127.0.0.1:15081 {',
    ],
    [
      'a service before the question',
      ['request_header -Portcullis-*', 'reverse_proxy /open a:1\n\t\trequest_header -Portcullis-*'],
      'skips_question: reverse_proxy /open a:1',
    ],
    [
      'a site that asks nobody',
      [/^http/m, 'http://b.example {\n\treverse_proxy a:1\n}\nhttp'],
      'skips_question: reverse_proxy a:1',
    ],
    [
      'files without a question',
      [/^http/m, 'http://b.example {\n\tfile_server\n}\nhttp'],
      'skips_question: file_server',
    ],
    [
      'errors that are answered by the service',
      ['\troute {', '\thandle_errors {\n\t\treverse_proxy a:1\n\t}\n\troute {'],
      'fails_open: reverse_proxy a:1',
    ],
    [
      'an answer of the door that is handled',
      ['uri /authorize', 'uri /authorize\n\t\t\thandle_response @x {\n\t\t\t}'],
      'fails_open: handle_response @x {',
    ],
    ['a rewrite after it', [FORWARD, `rewrite * /x\n\t\t${FORWARD}`], 'other_bytes: rewrite * /x'],
    [
      'a prefix that goes after it',
      [FORWARD, `uri strip_prefix /api\n\t\t${FORWARD}`],
      'other_bytes: uri strip_prefix /api',
    ],
    [
      'handle_path after it',
      [FORWARD, `handle_path /api/* {\n\t\t}\n\t\t${FORWARD}`],
      'other_bytes: handle_path /api/* {',
    ],
    ['a rewrite in the proxy', [FORWARD, `${FORWARD}\n\t\t\trewrite /x`], 'other_bytes: rewrite /x'],
    ['PHP', [FORWARD, `php_fastcgi a:9000\n\t\t${FORWARD}`], 'other_bytes: php_fastcgi a:9000'],
    [
      'an identity that is set',
      [FORWARD, `${FORWARD}\n\t\t\theader_up X-Auth-Subject root`],
      'forgeable: header_up X-Auth-Subject root',
    ],
    [
      'an identity that is set before',
      [FORWARD, `request_header X-Auth-Scope all\n\t\t${FORWARD}`],
      'forgeable: request_header X-Auth-Scope all',
    ],
    [
      'a target that is replaced',
      [FORWARD, `${FORWARD}\n\t\t\theader_up X-Original-URL {uri} /admin`],
      'other_bytes: header_up X-Original-URL {uri} /admin',
    ],
    [
      'a Host that is replaced',
      [FORWARD, `${FORWARD}\n\t\t\theader_up Host {host} {header.X}`],
      'other_bytes: header_up Host {host} {header.X}',
    ],
    [
      'an identity that is not copied',
      [/copy_headers .*/, 'copy_headers X-Auth-Subject'],
      'forgeable: copy_headers X-Auth-Subject',
    ],
    [
      'a renamed identity',
      ['copy_headers X-Auth-Subject ', 'copy_headers X-Auth-Subject>X-User '],
      'forgeable: copy_headers X-Auth-Subject>X-User X-Auth-Subject-Type X-Auth-Client X-Auth-Issuer X-Auth-Organization X-Auth-Scope X-Request-Id',
    ],
    ['underscores', ['\t\trequest_header -*_*\n', ''], `forgeable: ${FORWARD}`],
    ['another path of the door', ['uri /authorize', 'uri /verify'], 'forgeable: uri /verify'],
    ['a gateway without a name', [/tls_client_auth .*/, ''], `forgeable: ${ASK}`],
    ['an unverified door', [/tls_trust_pool .*/, 'tls_insecure_skip_verify'], 'forgeable: tls_insecure_skip_verify'],
    [
      'a target of its own',
      ['uri /authorize', 'uri /authorize\n\t\t\theader_up X-Forwarded-Uri /'],
      'forgeable: header_up X-Forwarded-Uri /',
    ],
    [
      'everybody as a proxy',
      [/^http/m, '{\n\tservers {\n\t\ttrusted_proxies static 0.0.0.0/0\n\t}\n}\nhttp'],
      'forgeable: trusted_proxies static 0.0.0.0/0',
    ],
    ['another order', [/^http/m, '{\n\torder forward_auth last\n}\nhttp'], 'skips_question: order forward_auth last'],
    ['a plugin', [FORWARD, `some_plugin on\n\t\t${FORWARD}`], 'unseen: some_plugin on'],
  ])('names %s', (_name, edit, finding) => {
    expect(saying(edited('caddy', edit))).toContain(finding)
  })

  const site = (body: string): string => `app.example {
	request_header -*_*
${body}
}
`
  const asks = `	forward_auth unix//run/door.sock {
		uri /authorize
		copy_headers X-Auth-Subject X-Auth-Subject-Type X-Auth-Client X-Auth-Issuer X-Auth-Organization X-Auth-Scope
	}`

  test('knows the order in which Caddy runs what a block has', () => {
    expect(saying(one('Caddyfile', site(`	reverse_proxy a:1\n${asks}`)))).toEqual([])
    expect(saying(one('Caddyfile', site(`	rewrite * /x\n	reverse_proxy a:1\n${asks}`)))).toEqual([])
    expect(saying(one('Caddyfile', site(`	route {\n		reverse_proxy a:1\n	${asks}\n	}`)))).toEqual([
      'skips_question: reverse_proxy a:1',
    ])
    expect(
      saying(one('Caddyfile', site(`${asks}\n	handle /a/* {\n		rewrite * /b\n		reverse_proxy a:1\n	}`))),
    ).toEqual(['other_bytes: rewrite * /b'])
    const asking = `	route {\n	${asks}\n	}`
    for (const matcher of ['/admin/*', '@admin'])
      expect(saying(one('Caddyfile', site(`${asking}\n	route ${matcher} {\n		reverse_proxy a:1\n	}`)))).toEqual([
        'skips_question: reverse_proxy a:1',
      ])
    expect(saying(one('Caddyfile', site(`${asking}\n	route {\n		reverse_proxy a:1\n	}`)))).toEqual([])
  })

  test('reads past a byte order mark', () => {
    expect(saying(edited('caddy', [/^/, '\uFEFF']))).toEqual([])
  })

  test('reads snippets, quotes, and a site without braces', () => {
    const bare = `app.example\n\nrequest_header "-*_*"\nimport door # a snippet\nreverse_proxy a:1\n`
    expect(saying(one('Caddyfile', `(door) {\n${asks}\n}\n${bare}`))).toEqual([])
    expect(saying(one('Caddyfile', bare.replace('import door', 'respond /x `{`')))).toEqual([
      'skips_question: reverse_proxy a:1',
    ])
  })

  const json = (handlers: readonly object[], extra: object = {}): string =>
    JSON.stringify({ apps: { http: { servers: { a: { routes: [{ handle: handlers }], ...extra } } } } }, null, 1)
  const names = [
    'X-Auth-Subject',
    'X-Auth-Subject-Type',
    'X-Auth-Client',
    'X-Auth-Issuer',
    'X-Auth-Organization',
    'X-Auth-Scope',
  ]
  const clear = { handler: 'headers', request: { delete: ['*_*'] } }
  const forward = { handler: 'reverse_proxy', upstreams: [{ dial: 'a:1' }] }
  const ask = (status = [2], uri = '/authorize') => ({
    handler: 'reverse_proxy',
    rewrite: { method: 'GET', uri },
    upstreams: [{ dial: 'unix//run/door.sock' }],
    headers: {
      request: { set: { 'X-Forwarded-Method': ['{http.request.method}'], 'X-Forwarded-Uri': ['{http.request.uri}'] } },
    },
    handle_response: [
      { match: { status_code: status }, routes: [{ handle: [{ handler: 'headers', request: { delete: names } }] }] },
    ],
  })

  test('reads its JSON, where the order counts', () => {
    const codes = (text: string) => saying(one('caddy.json', text)).map((line) => line.split(':')[0])
    expect(codes(json([clear, ask(), forward]))).toEqual([])
    expect(codes(json([clear, { handler: 'subroute', routes: [{ handle: [ask()] }, { handle: [forward] }] }]))).toEqual(
      [],
    )
    expect(
      codes(json([clear, { handler: 'subroute', routes: [{ match: [{}], handle: [ask()] }, { handle: [forward] }] }])),
    ).toEqual(['skips_question'])
    expect(codes(json([clear, forward, ask()]))).toEqual(['skips_question'])
    expect(codes(json([clear, ask([2, 5]), forward]))).toEqual(['fails_open'])
    expect(codes(json([clear, ask([2], '/other'), forward]))).toEqual(['forgeable'])
    expect(codes(json([clear, ask(), { handler: 'rewrite', uri: '/' }, forward]))).toEqual(['other_bytes'])
    expect(codes(json([ask(), forward]))).toEqual(['forgeable'])
    expect(codes(json([clear, ask(), { handler: 'exec' }, forward]))).toEqual(['unseen'])
    expect(codes(json([clear, ask(), forward], { errors: { routes: [{ handle: [forward] }] } }))).toEqual([
      'fails_open',
    ])
  })
})
