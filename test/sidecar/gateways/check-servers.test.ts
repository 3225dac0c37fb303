import { describe, expect, test } from 'vitest'
import { type Edit, edited, one, saying } from './edited.ts'

const APP = 'proxy_pass http://127.0.0.1:3000;'

describe('check-gateway of nginx', () => {
  test.each<[string, Edit, string]>([
    [
      'a location that asks nobody',
      ['location / {', 'location /open { proxy_pass http://127.0.0.1:3000; }\n    location / {'],
      'skips_question: location /open { proxy_pass http://127.0.0.1:3000; }',
    ],
    [
      'a location that turns it off',
      ['location / {', 'location /a { auth_request off; proxy_pass http://b; }\n    location / {'],
      'skips_question: location /a { auth_request off; proxy_pass http://b; }',
    ],
    [
      'files without a question',
      ['location / {', 'location /static { root /srv; }\n    location / {'],
      'skips_question: location /static { root /srv; }',
    ],
    [
      'a nested location',
      [APP, `${APP} location ~ x { auth_request off; ${APP} }`],
      `skips_question: ${APP} location ~ x { auth_request off; ${APP} }`,
    ],
    ['satisfy any', ['auth_request /', 'satisfy any;\n        auth_request /'], 'skips_question: satisfy any;'],
    [
      'a path in proxy_pass',
      [APP, 'proxy_pass http://127.0.0.1:3000/;'],
      'other_bytes: proxy_pass http://127.0.0.1:3000/;',
    ],
    [
      '$uri in proxy_pass',
      [APP, 'proxy_pass http://127.0.0.1:3000$uri;'],
      'other_bytes: proxy_pass http://127.0.0.1:3000$uri;',
    ],
    [
      'a service that a field names',
      [APP, 'proxy_pass http://$http_x_service;'],
      'other_bytes: proxy_pass http://$http_x_service;',
    ],
    ['FastCGI', [APP, 'fastcgi_pass 127.0.0.1:9000;'], 'other_bytes: fastcgi_pass 127.0.0.1:9000;'],
    [
      'a rewrite',
      ['location / {', 'rewrite ^/a/(.*) /$1 break;\n    location / {'],
      'other_bytes: rewrite ^/a/(.*) /$1 break;',
    ],
    ['try_files', [APP, `try_files $uri /index.html;\n${APP}`], 'other_bytes: try_files $uri /index.html;'],
    ['another method', [APP, `proxy_method POST;\n${APP}`], 'other_bytes: proxy_method POST;'],
    ['an identity that is not set', [/proxy_set_header X-Auth-Scope .*\n/, '\n'], `forgeable: ${APP}`],
    [
      'an identity of the client',
      [/proxy_set_header X-Auth-Subject .*;/, 'proxy_set_header X-Auth-Subject $http_x_auth_subject;'],
      'forgeable: proxy_set_header X-Auth-Subject $http_x_auth_subject;',
    ],
    [
      'fields that a nested location forgets',
      [APP, `${APP}\n        location ~ x { proxy_set_header Host a; ${APP} }`],
      `forgeable: location ~ x { proxy_set_header Host a; ${APP} }`,
    ],
    [
      'WebSocket',
      [APP, `${APP}\n        proxy_set_header Upgrade $http_upgrade;`],
      'skips_question: proxy_set_header Upgrade $http_upgrade;',
    ],
    [
      'underscores',
      ['underscores_in_headers off;', 'underscores_in_headers on;'],
      'forgeable: underscores_in_headers on;',
    ],
    [
      'odd names',
      ['ignore_invalid_headers on;', 'ignore_invalid_headers off;'],
      'forgeable: ignore_invalid_headers off;',
    ],
    ['server-side includes', [APP, `ssi on;\n${APP}`], 'skips_question: ssi on;'],
    [
      'Lua',
      [APP, `access_by_lua_block { if a { return } }\n${APP}`],
      'unseen: access_by_lua_block { if a { return } }',
    ],
    [
      'a target that nginx cleaned',
      ['X-Original-Uri $request_uri', 'X-Original-Uri $uri'],
      'other_bytes: location = /_portcullis {',
    ],
    [
      'a target that the client names',
      [/proxy_set_header X-Original-Uri .*\n/, '\n'],
      'forgeable: location = /_portcullis {',
    ],
    [
      'a host in lower case',
      ['X-Original-Host $http_host', 'X-Original-Host $host'],
      'other_bytes: location = /_portcullis {',
    ],
    [
      'a method that is fixed',
      ['X-Original-Method $request_method', 'X-Original-Method GET'],
      'other_bytes: location = /_portcullis {',
    ],
    ['a public question', ['internal;', ''], 'forgeable: location = /_portcullis {'],
    [
      'a question from variables',
      ['https://portcullis_door/authorize', 'https://portcullis_door$uri'],
      'forgeable: location = /_portcullis {',
    ],
    ['a question with a body', ['proxy_pass_request_body off;', ''], 'other_bytes: location = /_portcullis {'],
    ['a cached answer', ['internal;', 'internal; proxy_cache a;'], 'skips_question: internal; proxy_cache a;'],
    [
      'a failure that becomes a success',
      ['internal;', 'internal; error_page 500 502 =200 /ok;'],
      'fails_open: internal; error_page 500 502 =200 /ok;',
    ],
    [
      'the same for the whole server',
      ['location / {', 'error_page 502 = /ok;\n    location / {'],
      'fails_open: error_page 502 = /ok;',
    ],
    ['an answer of nginx itself', ['internal;', 'internal; return 204;'], 'skips_question: internal; return 204;'],
    ['a gateway without a name', [/ {8}proxy_ssl_certificate .*\n/, '\n'], 'forgeable: location = /_portcullis {'],
    ['an unverified door', ['proxy_ssl_verify on;', ''], 'forgeable: location = /_portcullis {'],
    ['no location for the question', ['auth_request /_portcullis', 'auth_request /_elsewhere'], 'unseen: server {'],
    [
      'every address as a proxy',
      ['location / {', 'set_real_ip_from 0.0.0.0/0;\n    location / {'],
      'forgeable: set_real_ip_from 0.0.0.0/0;',
    ],
    [
      'a stream',
      ['server {\n', 'stream { server { listen 1; proxy_pass a; } }\nserver {\n'],
      'skips_question: stream { server { listen 1; proxy_pass a; } }',
    ],
  ])('names %s', (_name, edit, finding) => {
    expect(saying(edited('nginx', edit))).toContain(finding)
  })

  test.each<[string, Edit]>([
    ['a redirect', ['location / {', 'location /old { return 301 /new; }\n    location / {']],
    ['a permanent rewrite', ['location / {', 'rewrite ^/a /b permanent;\n    location / {']],
    [
      'the challenge of ACME',
      ['location / {', 'location /.well-known/acme-challenge/ { root /srv; }\n    location / {'],
    ],
    ['the raw target', [APP, 'proxy_pass http://127.0.0.1:3000$request_uri;']],
    ['a service in a variable that is fixed', [APP, 'set $app "http://127.0.0.1:3000"; proxy_pass $app;']],
    [
      'quotes, comments and braces in words',
      ['location / {', '# { "\n    map "$http_a" $b { default "x;y{"; }\n    location / {'],
    ],
  ])('lets %s be', (_name, edit) => expect(saying(edited('nginx', edit))).toEqual([]))

  test('names a file without a server', () => {
    expect(saying(one('a.conf', 'upstream a { server b; }'))).toEqual(['unseen: upstream a { server b; }'])
  })
})

describe('check-gateway of Traefik', () => {
  test.each<[string, Edit, string]>([
    [
      'fields that the client may set',
      ['trustForwardHeader: false', 'trustForwardHeader: true'],
      'forgeable: trustForwardHeader: true',
    ],
    [
      'the old default',
      ['trustForwardHeader: false', 'maxBodySize: 1'],
      'forgeable: address: https://127.0.0.1:15081/authorize',
    ],
    [
      'some fields',
      ['trustForwardHeader: false', 'trustForwardHeader: false\n        authRequestHeaders: [Cookie]'],
      'other_bytes: authRequestHeaders: [Cookie]',
    ],
    [
      'an identity of the client',
      [/ +authResponseHeadersRegex: .*\n/, '\n'],
      'forgeable: address: https://127.0.0.1:15081/authorize',
    ],
    [
      'an expression that covers too little',
      [/authResponseHeadersRegex: .*\n/, 'authResponseHeadersRegex: "^X-Auth-"\n'],
      'forgeable: authResponseHeadersRegex: "^X-Auth-"',
    ],
    [
      'an upgrade that is carried',
      [/authResponseHeadersRegex: .*\n/, 'authResponseHeadersRegex: "^X-Auth-|[^A-Za-z0-9-]"\n'],
      'skips_question: authResponseHeadersRegex: "^X-Auth-|[^A-Za-z0-9-]"',
    ],
    [
      'an identity that is left out',
      [/authResponseHeaders:[\s\S]*$/m, 'authResponseHeaders: [X-Auth-Subject]\n'],
      'forgeable: authResponseHeaders: [X-Auth-Subject]',
    ],
    ['a gateway without a name', [/ {10}cert: .*\n/, '\n'], 'forgeable: address: https://127.0.0.1:15081/authorize'],
    [
      'an unverified door',
      ['tls:\n', 'tls:\n          insecureSkipVerify: true\n'],
      'forgeable: insecureSkipVerify: true',
    ],
    [
      'a router that asks nobody',
      ['routers:\n', 'routers:\n    open: {rule: "Path(`/a`)", service: service}\n'],
      'skips_question: open: {rule: "Path(`/a`)", service: service}',
    ],
    ['a middleware from elsewhere', ['- portcullis\n', '- other@docker\n'], 'unseen: entryPoints:'],
    ['a prefix that goes after it', ['- portcullis\n', '- portcullis\n        - strip\n'], 'unseen: entryPoints:'],
    ['clients that are believed', ['insecure: false', 'insecure: true'], 'forgeable: insecure: true'],
    ['everybody as a proxy', ['insecure: false', 'trustedIPs: [0.0.0.0/0]'], 'forgeable: trustedIPs: [0.0.0.0/0]'],
    [
      'a path that is not cleaned',
      ['forwardedHeaders:', 'http: {sanitizePath: false}\n    forwardedHeaders:'],
      'other_bytes: http: {sanitizePath: false}',
    ],
    [
      'a TCP router',
      ['routers:\n', 'none: {}\ntcp:\n  routers: {a: {rule: "HostSNI(`*`)"}}\nhttp:\n  routers:\n'],
      'skips_question: routers: {a: {rule: "HostSNI(`*`)"}}',
    ],
  ])('names %s', (name, edit, finding) => {
    const files =
      name === 'a TCP router'
        ? one('d.yaml', 'tcp:\n  routers: {a: {rule: "HostSNI(`*`)"}}\n')
        : edited('traefik', edit)
    expect(saying(files)).toContain(finding)
  })

  const dynamic = (middlewares: string): string => `
[http.routers.a]
rule = "PathPrefix(\`/\`)"
middlewares = ["all"]
service = "s"
[http.middlewares.all.chain]
middlewares = [${middlewares}]
[http.middlewares.strip.stripPrefix]
prefixes = ["/api"]
[http.middlewares.identity.headers.customRequestHeaders]
X-Auth-Subject = "root"
[http.middlewares.auth.forwardAuth]
address = "https://door:15081/authorize"
trustForwardHeader = false
authResponseHeadersRegex = '(?i)^x.auth.|^upgrade$'
[http.middlewares.auth.forwardAuth.tls]
cert = "a"
key = "b"
`

  test('reads TOML and chains, in which the order counts', () => {
    expect(saying(one('d.toml', dynamic('"strip", "auth"')))).toEqual([])
    expect(saying(one('d.toml', dynamic('"auth", "strip"')))).toEqual(['other_bytes: [http.routers.a]'])
    expect(saying(one('d.toml', dynamic('"auth", "identity"')))).toEqual(['forgeable: X-Auth-Subject = "root"'])
    expect(saying(one('d.toml', dynamic('"strip"')))).toEqual(['skips_question: [http.routers.a]'])
  })

  test('reads its objects in Kubernetes', () => {
    const route = (middlewares: string): string => `apiVersion: traefik.io/v1alpha1
kind: IngressRoute
metadata: {name: r}
spec:
  routes:
    - match: PathPrefix(\`/\`)
      middlewares: [${middlewares}]
---
apiVersion: traefik.io/v1alpha1
kind: Middleware
metadata: {name: auth}
spec:
  forwardAuth:
    trustForwardHeader: false
    authResponseHeadersRegex: "(?i)^x.auth.|^upgrade$"
    tls: {certSecret: s}
`
    expect(saying(one('r.yaml', route('{name: auth}')))).toEqual([])
    expect(saying(one('r.yaml', route('')))).toEqual(['skips_question: - match: PathPrefix(`/`)'])
  })
})
