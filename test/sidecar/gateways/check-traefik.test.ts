import { describe, expect, test } from 'vitest'
import { type Edit, edited, one, saying } from './edited.ts'

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
