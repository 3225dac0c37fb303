import { describe, expect, test } from 'vitest'
import { type Edit, edited, one, saying } from '../../edited.ts'

/** Middlewares that no router uses are no fault. */
const WITH_ERRORS: Edit = [
  '  middlewares:\n    portcullis:',
  '  middlewares:\n    err: {errors: {status: ["400-599"], service: service, query: /}}\n    portcullis:',
]
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
    [
      'clients that are believed by the PROXY protocol',
      ['address: :8080\n', 'address: :8080\n    proxyProtocol: {insecure: true}\n'],
      'forgeable: proxyProtocol: {insecure: true}',
    ],
    [
      'an identity that a client has removed on the way',
      ['insecure: false', 'connection: [x-auth-subject]'],
      'other_bytes: connection: [x-auth-subject]',
    ],
    [
      'an unknown part of the question',
      ['trustForwardHeader: false', 'trustForwardHeader: false\n        shadow: true'],
      'unseen: shadow: true',
    ],
    ['everybody as a proxy', ['insecure: false', 'trustedIPs: [0.0.0.0/0]'], 'forgeable: trustedIPs: [0.0.0.0/0]'],
    [
      'a path that is not cleaned',
      ['forwardedHeaders:', 'http: {sanitizePath: false}\n    forwardedHeaders:'],
      'other_bytes: http: {sanitizePath: false}',
    ],
    ['another address than that of the door', ['15081/authorize', '15081/auth'], 'skips_question: entryPoints:'],
    [
      'a question in the clear',
      ['https://127.0.0.1:15081', 'http://127.0.0.1:15081'],
      'forgeable: address: http://127.0.0.1:15081/authorize',
    ],
    ['a page for errors before it', ['- portcullis\n', '- err\n        - portcullis\n'], 'fails_open: entryPoints:'],
    ...['basicAuth: {headerField: X-Auth-Subject}', 'digestAuth: {headerField: x-auth-scope}'].map(
      (other): [string, Edit, string] => [
        `an identity that is set after it by ${other}`,
        [
          /- portcullis\n([\s\S]*) {2}middlewares:\n/,
          `- portcullis\n        - other\n$1  middlewares:\n    other: {${other}}\n`,
        ],
        `forgeable: other: {${other}}`,
      ],
    ),
    ...['authResponseHeaders: [X-Auth-Subject]', 'authResponseHeadersRegex: ^X-'].map(
      (copied): [string, Edit, string] => [
        `an identity that somebody else answers by ${copied}`,
        [
          /- portcullis\n([\s\S]*) {2}middlewares:\n/,
          `- portcullis\n        - other\n$1  middlewares:\n    other: {forwardAuth: {address: "http://a/b", ${copied}}}\n`,
        ],
        `forgeable: other: {forwardAuth: {address: "http://a/b", ${copied}}}`,
      ],
    ),
    ...['plugin: {a: {}}', 'neverHeardOf: {}'].map((other): [string, Edit, string] => [
      `a middleware that is not understood: ${other}`,
      [
        /- portcullis\n([\s\S]*) {2}middlewares:\n/,
        `- other\n        - portcullis\n$1  middlewares:\n    other: {${other}}\n`,
      ],
      'unseen: entryPoints:',
    ]),
    [
      'a key of a router that is not understood',
      ['service: service\n', 'service: service\n      parentRefs: [a]\n'],
      'unseen: parentRefs: [a]',
    ],
    [
      'a part of http that is not understood',
      ['http:\n  routers', 'http:\n  models: {a: {}}\n  routers'],
      'unseen: models: {a: {}}',
    ],
    ['routers from elsewhere', ['providers:\n', 'providers:\n  docker: {}\n'], 'unseen: docker: {}'],
  ])('names %s', (_name, edit, finding) => {
    expect(saying(edited('traefik', WITH_ERRORS, edit))).toContain(finding)
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
    address: https://door:15081/authorize
    trustForwardHeader: false
    authResponseHeadersRegex: "(?i)^x.auth.|^upgrade$"
    tls: {certSecret: s}
`
    expect(saying(one('r.yaml', route('{name: auth}')))).toEqual([])
    expect(saying(one('r.yaml', route('')))).toEqual(['skips_question: - match: PathPrefix(`/`)'])
  })

  test.each(['tcp', 'udp'])('names a router of %s', (part) => {
    const [, dynamic] = edited('traefik')
    const router = 'a: {rule: "HostSNI(`*`)"}'
    const files = one('d.yaml', `${part}:\n  routers:\n    ${router}\n${dynamic?.text}`)
    expect(saying(files)).toEqual([`skips_question: ${router}`])
  })

  const points = (first: string, second: string, own: string): readonly string[] => {
    const [, dynamic] = edited(
      'traefik',
      ['      entryPoints:\n        - web\n', own],
      [/ {6}middlewares:\n {8}- portcullis\n/, ''],
    )
    const entry = `entryPoints:\n  web: {address: ":80"${first}}\n  other: {address: ":81"${second}}\n`
    return saying([...one('s.yaml', entry), { file: 'd.yaml', text: dynamic?.text ?? '' }]).map(
      (line) => line.split(':')[0] ?? '',
    )
  }
  const ASKS = ', http: {middlewares: [portcullis@file]}'

  test.each<[string, string, string, string, string[]]>([
    ['the point of the router asks', ASKS, '', '      entryPoints: [web]\n', []],
    ['only another point asks', '', ASKS, '      entryPoints: [web]\n', ['skips_question']],
    ['one of two asks', ASKS, '', '      entryPoints: [web, other]\n', ['skips_question']],
    ['one of all asks', ASKS, '', '', ['skips_question']],
    ['all ask', ASKS, ASKS, '', []],
    ['the default point asks', `${ASKS}, asDefault: true`, '', '', []],
    ['the default point does not ask', ', asDefault: true', ASKS, '', ['skips_question']],
    ['the point is not in the files', ASKS, ASKS, '      entryPoints: [third]\n', ['skips_question']],
  ])('counts the middlewares of entry points where %s', (_name, first, second, own, findings) => {
    expect(points(first, second, own)).toEqual(findings)
  })

  const object = (kind: string, name: string, spec: string): string =>
    `---\napiVersion: traefik.io/v1alpha1\nkind: ${kind}\nmetadata: ${name}\nspec: ${spec}\n`
  const auth =
    '{forwardAuth: {address: "https://a/authorize", trustForwardHeader: false, authResponseHeadersRegex: "(?i)^x.auth.|^upgrade$", tls: {certSecret: s}}}'
  const cluster = (reference: string): readonly string[] =>
    saying(
      one(
        'k.yaml',
        object('IngressRoute', '{name: r, namespace: app}', `{routes: [{match: a, middlewares: [${reference}]}]}`) +
          object('Middleware', '{name: auth, namespace: doors}', auth) +
          object('Middleware', '{name: all, namespace: doors}', '{chain: {middlewares: [{name: auth}]}}') +
          object('Middleware', '{name: auth, namespace: app}', '{headers: {}}'),
      ),
    ).map((line) => line.split(':')[0] ?? '')

  test.each<[string, string[]]>([
    ['{name: auth, namespace: doors}', []],
    ['{name: all, namespace: doors}', []],
    ['{name: doors-auth@kubernetescrd}', []],
    ['{name: auth}', ['skips_question']],
    ['{name: all}', ['unseen']],
    ['{name: auth@file}', ['unseen']],
    ['{name: auth, namespace: other}', ['unseen']],
  ])('finds the middleware %s in its namespace', (reference, findings) => {
    expect(cluster(reference)).toEqual(findings)
  })

  test('names objects of Kubernetes that are not understood, and connections that are passed on', () => {
    const asked = object('Middleware', '{name: auth}', auth)
    expect(saying(one('k.yaml', asked + object('NeverHeardOf', '{name: a}', '{}')))).toEqual([
      'unseen: apiVersion: traefik.io/v1alpha1',
    ])
    expect(saying(one('k.yaml', asked + object('IngressRouteUDP', '{name: a}', '{}')))).toEqual([
      'skips_question: apiVersion: traefik.io/v1alpha1',
    ])
    const child = object(
      'IngressRoute',
      '{name: r}',
      '{parentRefs: [{name: a}], routes: [{match: a, middlewares: [{name: auth}]}]}',
    )
    expect(saying(one('k.yaml', asked + child)).map((line) => line.split(':')[0])).toEqual(['unseen'])
  })

  test.each<[string, Edit]>([
    ['a page for errors after it', ['- portcullis\n', '- portcullis\n        - err\n']],
    [
      'another service that is asked, too',
      [
        /- portcullis\n([\s\S]*) {2}middlewares:\n/,
        '- other\n        - portcullis\n$1  middlewares:\n    other: {forwardAuth: {address: "http://a/b"}}\n',
      ],
    ],
    [
      'a limit of requests',
      [
        /- portcullis\n([\s\S]*) {2}middlewares:\n/,
        '- other\n        - portcullis\n$1  middlewares:\n    other: {rateLimit: {average: 1}}\n',
      ],
    ],
  ])('lets %s be', (_name, edit) => expect(saying(edited('traefik', WITH_ERRORS, edit))).toEqual([]))
})
