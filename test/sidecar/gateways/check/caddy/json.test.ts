import { describe, expect, test } from 'vitest'
import { one, saying } from '../../edited.ts'

const NAMES = ['Subject', 'Subject-Type', 'Client', 'Issuer', 'Organization', 'Scope'].map((name) => `X-Auth-${name}`)
const clear = { handler: 'headers', request: { delete: ['*_*'] } }
const forward = { handler: 'reverse_proxy', upstreams: [{ dial: 'a:1' }] }
const fromAnswer = Object.fromEntries(NAMES.map((name) => [name, [`{http.reverse_proxy.header.${name}}`]]))
const remove = { handle: [{ handler: 'headers', request: { delete: NAMES } }] }
const ask = {
  handler: 'reverse_proxy',
  rewrite: { method: 'GET', uri: '/authorize' },
  upstreams: [{ dial: 'unix//run/door.sock' }],
  headers: {
    request: { set: { 'X-Forwarded-Method': ['{http.request.method}'], 'X-Forwarded-Uri': ['{http.request.uri}'] } },
  },
  handle_response: [
    {
      match: { status_code: [2] },
      routes: [
        { handle: [{ handler: 'vars' }] },
        remove,
        { match: [{ not: [{}] }], handle: [{ handler: 'headers', request: { set: fromAnswer } }] },
      ],
    },
  ],
}
const asked = (...handlers: readonly object[]): object => server([clear, ask, ...handlers, forward])
const server = (handle: readonly object[], extra: object = {}, top: object = {}): object => ({
  apps: { http: { servers: { a: { routes: [{ handle }], ...extra } }, ...top } },
})
const answered = (...routes: readonly object[]): object => ({
  ...ask,
  handle_response: [{ match: { status_code: [2] }, routes }],
})
const codes = (config: object): readonly string[] =>
  saying(one('caddy.json', JSON.stringify(config, null, 1))).map((line) => line.split(':')[0] ?? '')

describe('check-gateway of the JSON of Caddy', () => {
  test.each<[string, object]>([
    ['what forward_auth becomes', asked()],
    [
      'options of the service',
      server([clear, ask, { ...forward, headers: { request: { set: { Host: ['{http.request.host}'] } } } }]),
    ],
    [
      'other fields of the answer',
      server([
        clear,
        answered(remove, {
          handle: [
            { handler: 'headers', request: { set: { 'X-Request-Id': ['{http.reverse_proxy.header.X-Request-Id}'] } } },
          ],
        }),
        forward,
      ]),
    ],
    [
      'an error page',
      server([clear, ask, forward], {
        errors: {
          routes: [
            { handle: [{ handler: 'rewrite', uri: '/{http.error.status_code}.html' }, { handler: 'file_server' }] },
          ],
        },
      }),
    ],
    [
      'a group of one, as rewriting has it',
      server([clear, ask, forward], {
        errors: {
          routes: [
            { group: 'g', handle: [{ handler: 'rewrite', uri: '/error.html' }] },
            { handle: [{ handler: 'file_server' }] },
          ],
        },
      }),
    ],
    [
      'servers as Caddy writes them',
      server([clear, ask, forward], {
        listen: [':443'],
        automatic_https: { disable: true },
        trusted_proxies: { source: 'static', ranges: ['10.0.0.0/8', 'fc00::/7'] },
      }),
    ],
  ])('finds nothing in %s', (_name, config) => {
    expect(codes(config)).toEqual([])
  })

  test.each<[string, object, string]>([
    [
      'errors of a subroute',
      asked({ handler: 'subroute', routes: [], errors: { routes: [{ handle: [forward] }] } }),
      'fails_open',
    ],
    [
      'a refusal that is intercepted',
      server([clear, { handler: 'intercept', handle_response: [{ routes: [{ handle: [forward] }] }] }, ask, forward]),
      'fails_open',
    ],
    [
      'a question in one of a group',
      server([
        clear,
        {
          handler: 'subroute',
          routes: [
            { group: 'g', handle: [ask] },
            { group: 'g', handle: [forward] },
          ],
        },
      ]),
      'skips_question',
    ],
    [
      'a question after the service',
      server([clear, { handler: 'subroute', routes: [{ handle: [forward] }, { handle: [ask] }] }]),
      'skips_question',
    ],
    ['a named route', asked({ handler: 'invoke', name: 'x' }), 'unseen'],
    [
      'another app',
      { ...server([clear, ask, forward]), apps: { ...Reflect.get(server([clear, ask, forward]), 'apps'), layer4: {} } },
      'unseen',
    ],
    ['another key of a server', server([clear, ask, forward], { experimental: true }), 'unseen'],
    ['another listener', server([clear, ask, forward], { listener_wrappers: [{ wrapper: 'layer4' }] }), 'unseen'],
    [
      'an identity that is set',
      asked({ handler: 'headers', request: { set: { 'X-Auth-Subject': ['root'] } } }),
      'forgeable',
    ],
    [
      'an identity that the proxy sets',
      server([clear, ask, { ...forward, headers: { request: { add: { x_auth_subject: ['root'] } } } }]),
      'forgeable',
    ],
    ['an identity that is removed', asked({ handler: 'headers', request: { delete: ['X-Auth-*'] } }), 'other_bytes'],
    [
      'an identity from the client',
      server([
        clear,
        answered(remove, {
          handle: [{ handler: 'headers', request: { set: { 'X-Auth-Subject': ['{http.request.header.X-User}'] } } }],
        }),
        forward,
      ]),
      'forgeable',
    ],
    [
      'an identity that is deleted sometimes',
      server([clear, answered({ match: [{}], ...remove }), forward]),
      'forgeable',
    ],
    [
      'a rewrite in the answer',
      server([clear, answered(remove, { handle: [{ handler: 'rewrite', uri: '/x' }] }), forward]),
      'other_bytes',
    ],
    ...[
      { set: { 'X-HTTP-Method-Override': ['DELETE'] } },
      { add: { X_Original_Url: ['/admin'] } },
      { replace: { 'X-Rewrite-Url': [{ search_regexp: '.*', replace: '/admin' }] } },
      { set: { Host: ['{http.request.header.X}'] } },
      { replace: { Host: [{ search: 'a', replace: '{http.request.header.X}' }] } },
    ].map((request): [string, object, string] => [
      `another target in the answer by ${JSON.stringify(request)}`,
      server([clear, answered(remove, { handle: [{ handler: 'headers', request }] }), forward]),
      'other_bytes',
    ]),
    ['another option of the question', server([clear, { ...ask, mangle: true }, forward]), 'unseen'],
    [
      'a question with another query',
      server([clear, { ...ask, rewrite: { ...ask.rewrite, query: {} } }, forward]),
      'other_bytes',
    ],
    [
      'a question with the method of the client',
      server([clear, { ...ask, rewrite: { uri: '/authorize' } }, forward]),
      'other_bytes',
    ],
    [
      'a field that only the door gets',
      server([
        clear,
        { ...ask, headers: { request: { set: { ...ask.headers.request.set, Authorization: ['x'] } } } },
        forward,
      ]),
      'other_bytes',
    ],
    [
      'a field that the door does not get',
      server([clear, { ...ask, headers: { request: { ...ask.headers.request, delete: ['X-Tenant'] } } }, forward]),
      'other_bytes',
    ],
    [
      'a Host of the client',
      server([clear, ask, { ...forward, headers: { request: { set: { Host: ['{http.request.header.X}'] } } } }]),
      'other_bytes',
    ],
    [
      'a service of the client',
      server([clear, ask, { ...forward, upstreams: [{ dial: '{http.request.header.X}' }] }]),
      'other_bytes',
    ],
    [
      'a secret that is empty',
      server([
        clear,
        {
          ...ask,
          upstreams: [{ dial: '127.0.0.1:1' }],
          headers: { request: { set: { ...ask.headers.request.set, 'X-Portcullis-Caller': [''] } } },
        },
        forward,
      ]),
      'forgeable',
    ],
    ['FastCGI', server([clear, ask, { ...forward, transport: { protocol: 'fastcgi' } }]), 'other_bytes'],
    ['a body that is replaced', asked({ handler: 'request_body', set: 'a' }), 'other_bytes'],
    [
      'an X-Accel-Redirect',
      server([
        clear,
        ask,
        {
          ...forward,
          handle_response: [{ routes: [{ handle: [{ handler: 'rewrite', uri: '{http.reverse_proxy.header.X}' }] }] }],
        },
      ]),
      'other_bytes',
    ],
    [
      'half of all addresses',
      server([clear, ask, forward], { trusted_proxies: { source: 'static', ranges: ['0.0.0.0/1'] } }),
      'forgeable',
    ],
    ['proxies from elsewhere', server([clear, ask, forward], { trusted_proxies: { source: 'cloudflare' } }), 'unseen'],
    ['an open administration', { admin: { listen: ':2019' }, ...server([clear, ask, forward]) }, 'forgeable'],
    [
      'a configuration from elsewhere',
      { admin: { config: { load: { module: 'http' } } }, ...server([clear, ask, forward]) },
      'unseen',
    ],
    [
      'underscores of some requests',
      {
        apps: { http: { servers: { a: { routes: [{ match: [{}], handle: [clear] }, { handle: [ask, forward] }] } } } },
      },
      'forgeable',
    ],
  ])('names %s', (_name, config, code) => {
    expect(codes(config)).toContain(code)
  })

  test('refuses keys that Caddy takes for one another', () => {
    const text = '{"apps": {"http": {"servers": {"a": {"routes": [], "Routes": []}}}}}'
    expect(() => saying(one('caddy.json', text))).toThrow(/Routes/)
  })
})
