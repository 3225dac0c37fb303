import { describe, expect, test } from 'vitest'
import { type Edit, edited, saying } from '../../edited.ts'

const ASK = 'internal;\n        proxy_pass https://portcullis_door/authorize;'
/** In the location of the question. */
const asking = (line: string): Edit => [ASK, `${line}\n        ${ASK}`]
/** In the location that forwards. */
const forwarding = (line: string): Edit => ['proxy_request_buffering off;', line]
/** In the place of the Host that the service gets. */
const host = (line: string): Edit => [/proxy_set_header Host \$http_host;/, line]

describe('check-gateway of the fields that nginx sends', () => {
  test.each<[string, Edit, string]>([
    ...[
      'proxy_pass_request_headers off;',
      'proxy_set_header Authorization "Bearer $cookie_token";',
      'proxy_set_header Authorization $http_x_token;',
      'proxy_set_header X-Forwarded-User "";',
      'proxy_set_header X-Tenant acme;',
    ].map((line): [string, Edit, string] => [`a question by other fields: ${line}`, asking(line), line]),
    ...[
      'proxy_set_header Host $host;',
      'proxy_set_header Host $host:$server_port;',
      'proxy_set_header Host $http_x_host;',
      'proxy_set_header host $arg_a.example.com;',
      `proxy_set_header Host \${cookie_a};`,
    ].map((line): [string, Edit, string] => [`another host: ${line}`, host(line), line]),
    [
      'another host for those who build links of it',
      [/proxy_set_header X-Forwarded-Host .*/, 'proxy_set_header X-Forwarded-Host $host;'],
      'proxy_set_header X-Forwarded-Host $host;',
    ],
    [
      'fields that a client has removed on the way',
      [
        /proxy_set_header Connection "";(\n\s+# The door)/,
        'proxy_set_header Connection "keep-alive, $http_connection";$1',
      ],
      'proxy_set_header Connection "keep-alive, $http_connection";',
    ],
  ])('names %s', (_name, edit, line) => {
    expect(saying(edited('nginx', edit))).toEqual([`other_bytes: ${line}`])
  })

  test.each<[string, Edit]>([
    ['what nginx adds to the question', asking('proxy_set_header X-Real-IP $remote_addr;')],
    ['a field that stays as it came', asking('proxy_set_header Cookie $http_cookie;')],
    ['the name of the service', host('proxy_set_header Host $proxy_host;')],
    ['a fixed host', host('proxy_set_header Host app.example.com:8443;')],
    ['a fixed host in a variable', host('set $app app.example.com; proxy_set_header Host $app;')],
    ['no Host at all', host('')],
    ['a variable in braces', ['X-Original-Uri $request_uri', `X-Original-Uri "\${request_uri}"`]],
    ['a field for the service', forwarding('proxy_set_header X-Tenant acme;')],
  ])('lets %s be', (_name, edit) => expect(saying(edited('nginx', edit))).toEqual([]))
})
