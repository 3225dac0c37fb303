import { describe, expect, test } from 'vitest'
import { type Edit, edited, one, saying } from '../../edited.ts'

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
    [
      'the same beside a refusal',
      ['location / {', 'error_page 401 502 = /ok;\n    location / {'],
      'fails_open: error_page 401 502 = /ok;',
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
    [
      'a rewrite under a condition',
      [APP, `if ($arg_x) { rewrite ^ /admin break; }\n${APP}`],
      'other_bytes: if ($arg_x) { rewrite ^ /admin break; }',
    ],
    [
      'the same in the server',
      ['location / {', 'if ($arg_x) { rewrite ^ /admin last; }\n    location / {'],
      'other_bytes: if ($arg_x) { rewrite ^ /admin last; }',
    ],
    [
      'a service that a condition replaces',
      [APP, 'set $s a; if ($http_t) { set $s $http_t; } proxy_pass http://$s;'],
      'other_bytes: set $s a; if ($http_t) { set $s $http_t; } proxy_pass http://$s;',
    ],
    [
      'a service in a variable with a path',
      [APP, 'set $s http://a/admin; proxy_pass $s;'],
      'other_bytes: set $s http://a/admin; proxy_pass $s;',
    ],
    [
      'a service in a variable that an expression sets, too',
      [APP, 'set $s a; if ($http_t ~ "(?<s>.+)") { set $b c; } proxy_pass http://$s;'],
      'other_bytes: set $s a; if ($http_t ~ "(?<s>.+)") { set $b c; } proxy_pass http://$s;',
    ],
    ...['404 /admin', '404 =200 $arg_a', '502 /a/b?c'].map((page): [string, Edit, string] => [
      `an error that becomes a request: ${page}`,
      [APP, `error_page ${page};\n${APP}`],
      `other_bytes: error_page ${page};`,
    ]),
    [
      'a socket that a field names',
      [APP, 'proxy_pass http://unix:/run/$http_a:;'],
      'other_bytes: proxy_pass http://unix:/run/$http_a:;',
    ],
    [
      'another service for some methods',
      [APP, `${APP}\n        limit_except GET { proxy_pass http://a/admin; }`],
      'other_bytes: limit_except GET { proxy_pass http://a/admin; }',
    ],
    ...['deny 10.0.0.1;', 'allow 10.0.0.1; deny all;', 'satisfy any; deny all;', 'if ($x) { return 404; }'].map(
      (rule): [string, Edit, string] => [
        `files behind ${rule}`,
        ['location / {', `location /f { auth_request off; ${rule} root /srv; }\n    location / {`],
        `skips_question: location /f { auth_request off; ${rule} root /srv; }`,
      ],
    ),
    [
      'files of a server without a location',
      ['server {\n', 'server { listen 81; root /srv; }\nserver {\n'],
      'skips_question: server { listen 81; root /srv; }',
    ],
    [
      'files of a server whose locations leave paths over',
      ['server {\n', 'server { listen 81; root /srv; location /a { return 404; } }\nserver {\n'],
      'skips_question: server { listen 81; root /srv; location /a { return 404; } }',
    ],
    [
      'an identity that is set twice',
      [APP, `proxy_set_header X-Auth-Subject $http_x_auth_subject;\n${APP}`],
      'forgeable: proxy_set_header X-Auth-Subject $http_x_auth_subject;',
    ],
    [
      'an identity that is set under another spelling',
      [APP, `proxy_set_header X_Auth_Subject root;\n${APP}`],
      'forgeable: proxy_set_header X_Auth_Subject root;',
    ],
    [
      'a target that is said twice',
      ['internal;', 'internal; proxy_set_header X-Original-Uri $http_a;'],
      'other_bytes: location = /_portcullis {',
    ],
    [
      'a stream that is passed to a server',
      ['server {\n', 'stream { server { listen 1; pass a:1; } }\nserver {\n'],
      'skips_question: stream { server { listen 1; pass a:1; } }',
    ],
    ...['more_set_input_headers "X: a";', 'post_action @a;', 'echo a;', 'proxy_wasm a;', 'internal_redirect /a;'].map(
      (unknown): [string, Edit, string] => [
        `${unknown} as something that is not understood`,
        [APP, `${unknown}\n${APP}`],
        `unseen: ${unknown}`,
      ],
    ),
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
    ['what refuses everybody', ['location / {', 'location /f { deny all; root /srv; }\n    location / {']],
    [
      'a server that redirects',
      ['server {\n', 'server { listen 81; root /srv; return 301 https://$host$request_uri; }\nserver {\n'],
    ],
    [
      'a server that shakes no hand',
      ['server {\n', 'server { listen 81 default_server; ssl_reject_handshake on; }\nserver {\n'],
    ],
    [
      'a page for errors that is a file',
      [
        'location / {',
        'location /errors/ { internal; auth_request /_portcullis; root /srv; }\n    location / {\n        error_page 500 502 /errors/50x.html;\n        error_page 413 https://a/b;\n        error_page 403 = /_portcullis_refused;',
      ],
    ],
    ...['401 = @sign_in', '404 =200 /index.html'].map((page): [string, Edit] => [
      `a page of the whole server for answers that nginx itself does not give the question: ${page}`,
      ['location / {', `error_page ${page};\n    location @sign_in { return 302 https://a/b; }\n    location / {`],
    ]),
    ['a second value that is empty', [APP, `proxy_set_header X-Auth-Subject "";\n${APP}`]],
    [
      'values of types and of geo',
      ['server {\n', 'types { text/html html; }\ngeo $a { default 0; 10.0.0.0/8 1; }\nserver {\n'],
    ],
    ['what compresses and logs', [APP, `gzip on; access_log off; add_header A b; proxy_buffer_size 8k;\n${APP}`]],
    [
      'quotes, comments and braces in words',
      ['location / {', '# { "\n    map "$http_a" $b { default "x;y{"; }\n    location / {'],
    ],
  ])('lets %s be', (_name, edit) => expect(saying(edited('nginx', edit))).toEqual([]))

  test('names a file without a server', () => {
    expect(saying(one('a.conf', 'upstream a { server b; }'))).toEqual(['unseen: upstream a { server b; }'])
  })
})
