import { describe, expect, test } from 'vitest'
import { type Edit, edited, saying } from '../edited.ts'

type Name = Parameters<typeof edited>[0]
/** What sets a field of the request when the door was asked, in the words of each gateway. */
const SETS: { readonly [name: string]: readonly [gateway: Name, edit: (name: string, value: string) => Edit] } = {
  Envoy: [
    'envoy',
    (name, value) => [
      '- match:\n',
      `- request_headers_to_add: [{header: {key: ${name}, value: "${value}"}}]\n                          match:\n`,
    ],
  ],
  nginx: [
    'nginx',
    (name, value) => [/( +)proxy_pass http:\/\/(?!unix|portcullis)/, `$1proxy_set_header ${name} "${value}";\n$&`],
  ],
  Caddy: ['caddy', (name, value) => [/\t\treverse_proxy /, `\t\trequest_header ${name} "${value}"\n$&`]],
  Traefik: [
    'traefik',
    (name, value) => [
      /( +)middlewares:\n( +)- portcullis\n([\s\S]*?)\n {2}middlewares:\n/,
      `$1middlewares:\n$2- portcullis\n$2- fields\n$3\n  middlewares:\n    fields: {headers: {customRequestHeaders: {${name}: "${value}"}}}\n`,
    ],
  ],
  'the Gateway API': [
    'gateway-api',
    (name, value) => [
      'filters:\n',
      `filters:\n        - {type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: ${name}, value: "${value}"}]}}\n`,
    ],
  ],
}

describe.each(Object.entries(SETS))('check-gateway of %s', (_gateway, [gateway, edit]) => {
  const codes = (name: string, value: string): readonly string[] =>
    saying(edited(gateway, edit(name, value))).map((line) => line.split(':')[0] ?? '')

  test.each([
    ['X-HTTP-Method-Override', 'DELETE'],
    ['x_http_method', 'PUT'],
    ['X-Original-URL', '/admin'],
    ['x-rewrite-url', '/admin'],
  ])('names %s: %s, which services obey', (name, value) => {
    expect(codes(name, value)).toContain('other_bytes')
  })

  test.each(['X-Auth-Subject', 'x_auth_scope', 'X-AUTH-ORGANIZATION'])('names the identity %s', (name) => {
    expect(codes(name, 'root')).toContain('forgeable')
  })

  test('leaves fields that decide nothing', () => {
    expect(codes('X-Environment', 'production')).toEqual([])
  })
})

test.each<[Name, Edit]>([
  ['envoy', SETS.Envoy?.[1]('X-Original-URL', '%REQ(:PATH)%') ?? ['', '']],
  ['nginx', SETS.nginx?.[1]('X-Original-URL', '$$scheme://$$http_host$$request_uri') ?? ['', '']],
  ['caddy', SETS.Caddy?.[1]('X-Original-URL', '{uri}') ?? ['', '']],
])('check-gateway of %s leaves a field that repeats what the client sent', (gateway, edit) => {
  expect(saying(edited(gateway, edit))).toEqual([])
})
