import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { checkGateways } from '../../../../sidecar/gateways/check/check-gateway.ts'
import { GATEWAYS, isGatewayName } from '../../../../sidecar/gateways/gateway-config.ts'
import { edited, one, saying } from '../edited.ts'
import { DOORS, printed } from '../printed.ts'

const NAMES = Object.keys(GATEWAYS).filter(isGatewayName)

describe('check-gateway', () => {
  test.each(NAMES)('finds nothing in what gateway-config prints for %s', (name) => {
    const folder = mkdtempSync(join(tmpdir(), 'portcullis-'))
    const secret = join(folder, 'secret')
    writeFileSync(secret, 'proxy_set_header X-Portcullis-Caller "a secret";\n')
    for (const [kind, door] of Object.entries(DOORS)) {
      if (name === 'traefik' && kind !== 'a certificate') continue
      const lines =
        name === 'nginx' || name === 'traefik' || name === 'caddy' ? '' : '  POST /orders: editor order:{body.id}\n'
      const files = printed(name, { door: door.replace('/etc/portcullis/door-secret', secret), lines })
      expect(checkGateways(files.map(({ name: file, text }) => ({ file, text }))).findings).toEqual([])
    }
  })

  test.each<[string, string, RegExp]>([
    ['an empty file', 'a.yaml', /^a.yaml:1: this is not a configuration/],
    ['another YAML file', 'a.yaml', /^a.yaml:1: this is not a configuration/],
    ['a template', 'a.yaml', /^a.yaml:\d: this is neither YAML nor JSON.* helm template$/],
    ['a template in a value', 'a.yaml', /^a.yaml:2: the map has a key that is not a string.* helm template$/],
    ['TOML that is nested too deeply', 'a.toml', /^a.toml: the file is nested too deeply$/],
    [
      'a doubled key',
      'a.yaml',
      /^a.yaml:2: this is neither YAML nor JSON: the key "http" is written twice; the first one is in line 1$/,
    ],
    ['a line that begins with a tab', 'a.yaml', /^a.yaml:2: .*the line is indented with a tab, but YAML needs spaces/],
    ['only other objects of Kubernetes', 'a.yaml', /^a.yaml:1: this is not a configuration/],
    ['broken JSON', 'a.json', /^a.json:\d+: this is neither YAML nor JSON/],
    ['broken TOML', 'a.toml', /^a.toml:\d: this is not TOML/],
    ['an nginx file that does not end', 'a.conf', /^a.conf:1: the block of server does not end/],
    ['an nginx file with a missing include', 'a.conf', /^a.conf:1: the included file .* cannot be read/],
    ['an nginx file that is empty', 'a.conf', /^a.conf: the file is empty/],
    ['an nginx file with a stray brace', 'a.conf', /^a.conf:1: this is not a configuration of nginx/],
    ['a Caddyfile that does not end', 'Caddyfile', /^Caddyfile:1: the block does not end/],
    ['a Caddyfile with a missing import', 'Caddyfile', /the imported file .* cannot be read/],
    ['an anchor within itself', 'a.yaml', /the anchor contains itself/],
  ])('refuses %s', (name, file, message) => {
    const texts: { readonly [name: string]: string } = {
      'an empty file': '',
      'another YAML file': 'a: 1\n',
      'a template': '{{ .Values.a }}: {\n',
      'a template in a value': 'metadata:\n  name: {{ .Release.Name }}\n',
      'TOML that is nested too deeply': `a = ${'['.repeat(20_000)}${']'.repeat(20_000)}`,
      'a doubled key': 'http: {}\nhttp: {}\n',
      'a line that begins with a tab': 'http:\n\trouters: {}\n',
      'only other objects of Kubernetes': 'apiVersion: v1\nkind: Service\nmetadata: {name: a}\n',
      'broken JSON': '{"a": ',
      'broken TOML': 'a = \n',
      'an nginx file that does not end': 'server { listen 80;',
      'an nginx file with a missing include': 'include /nowhere/at.all;',
      'an nginx file that is empty': '# nothing\n',
      'an nginx file with a stray brace': '}',
      'a Caddyfile that does not end': 'a.example {\n',
      'a Caddyfile with a missing import': 'a.example {\n\timport nowhere\n}\n',
      'an anchor within itself': 'http: &a\n  routers: *a\n',
    }
    expect(() => checkGateways(one(file, texts[name] ?? ''))).toThrow(message)
  })

  test('reads Kubernetes objects beside those of a gateway, and lists of kubectl', () => {
    const [istio] = edited('istio')
    const others = `apiVersion: v1\nkind: Service\nmetadata: {name: a}\n---\n${istio?.text}`
    expect(saying(one('all.yaml', others))).toEqual([])
    const list = {
      apiVersion: 'v1',
      kind: 'List',
      items: [{ apiVersion: 'traefik.io/v1alpha1', kind: 'IngressRouteTCP' }],
    }
    expect(saying(one('list.json', JSON.stringify(list)))[0]).toMatch(/^skips_question/)
  })

  test('names configurations of gateways in a ConfigMap beside it', () => {
    const [istio] = edited('istio')
    const map = (text: string): string =>
      `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  key: |\n    ${text}\n`
    const found = (text: string): readonly string[] => saying(one('all.yaml', `${istio?.text}---\n${map(text)}`))
    expect(found('location / { proxy_pass http://app; }')).toEqual(['unseen: key: |'])
    expect(found('reverse_proxy app:3000')).toEqual(['unseen: key: |'])
    expect(found('maxmemory 1gb')).toEqual([])
  })

  test.each<[string, string]>([
    ['data', 'kind: ConfigMap\ndata: {README: a, readme: b}'],
    ['labels', 'kind: Service\nmetadata: {labels: {app: a, App: b}}'],
    ['annotations', 'kind: Service\nmetadata: {annotations: {a_b: a, ab: b}}'],
    ['labels of a template', 'kind: Pod\nspec: {template: {metadata: {labels: {app: a, App: b}}}}'],
    ['data in a list', 'kind: List\nitems: [{apiVersion: v1, kind: ConfigMap, data: {README: a, readme: b}}]'],
  ])('takes keys of %s of an object as they are written', (_name, object) => {
    const [istio] = edited('istio')
    expect(saying(one('all.yaml', `${istio?.text}---\napiVersion: v1\n${object}\n`))).toEqual([])
  })

  test.each<[string, string]>([
    ['the spec of an object', 'apiVersion: v1\nkind: Service\nspec: {action: a, Action: b}'],
    ['labels that are not metadata', 'apiVersion: v1\nkind: Service\nspec: {labels: {app: a, App: b}}'],
    ['data that lies deeper', 'apiVersion: v1\nkind: Service\nspec: {data: {app: a, App: b}}'],
    ['data outside an object', 'data: {a: 1, A: 2}\nhttp: {}'],
    ['labels outside an object', 'http: {metadata: {labels: {a: 1, A: 2}}}'],
    ['two data', 'apiVersion: v1\nkind: ConfigMap\ndata: {}\nData: {}'],
  ])('refuses keys that some readers take for one another in %s', (_name, text) => {
    expect(() => saying(one('all.yaml', text))).toThrow(/in one map are one key to some readers/)
  })

  test.each<[string, string, readonly string[]]>([
    ['somebody else', 'name: other', []],
    ['nobody', 'namespace: a', []],
    ['Istio', 'name: istio', ['unseen: mesh: "{{ a"']],
    ['a revision of Istio', 'name: istio-canary', ['unseen: mesh: "{{ a"']],
  ])('reads on past a mesh configuration of %s that is not YAML', (_name, metadata, findings) => {
    const [istio] = edited('istio')
    const map = `apiVersion: v1\nkind: ConfigMap\nmetadata: {${metadata}}\ndata:\n  mesh: "{{ a"\n`
    expect(saying(one('all.yaml', `${istio?.text}---\n${map}`))).toEqual(findings)
  })

  test('reads by the ending of the name, also where it begins with another gateway', () => {
    const ingress = 'apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: a}\n'
    for (const file of ['nginx-ingress.yaml', 'Caddyfile.yml', 'nginx.YAML'])
      expect(saying(one(file, ingress))).toEqual(['skips_question: apiVersion: networking.k8s.io/v1'])
    expect(() => saying(one('nginx.TOML', 'a = \n'))).toThrow(/is not TOML/)
  })

  test('reads files of other objects beside those of a gateway', () => {
    const [istio] = edited('istio')
    const deployment = { file: 'deployment.yaml', text: 'apiVersion: apps/v1\nkind: Deployment\n' }
    expect(saying([{ file: 'istio.yaml', text: istio?.text ?? '' }, deployment])).toEqual([])
    expect(() => saying([deployment])).toThrow(/^deployment.yaml:1: this is not a configuration/)
  })

  test('names file, line and fix', () => {
    const [first] = checkGateways(edited('envoy', ['failure_mode_allow: false', 'failure_mode_allow: true'])).findings
    expect(first).toMatchObject({ file: 'envoy.yaml', fix: 'set failure_mode_allow: false' })
    expect(first?.line).toBeGreaterThan(10)
  })
})
