/** What the chart's text must agree on with the programs that it runs. What Helm and the API server make of it: test/cluster. */
import { readdirSync, readFileSync } from 'node:fs'
import { setGlobalProxyFromEnv } from 'node:http'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { SETTINGS as PDP_SETTINGS } from '../../../pdp/server/runtime/settings-help.ts'
import { NODE_FLAGS } from '../../../pdp/shared/process/command/node-flags.ts'
import { useProxy } from '../../../pdp/shared/process/egress.ts'
import { SETTINGS as SIDECAR_SETTINGS } from '../../../sidecar/config/config.ts'
import { PORTS_COUNT_MAX } from '../../../sidecar/injector/pod/annotations.ts'
import { parseInjectorConfig } from '../../../sidecar/injector/pod/config.ts'
import { isObject, type Json, type JsonObject, listAt, objectAt } from '../../../sidecar/injector/pod/json.ts'
import { DEFAULT_PORT, MESH_PORTS } from '../../../sidecar/injector/pod/ports.ts'
import { ADJUSTABLE, buildSidecars, buildVolumes, COMMAND } from '../../../sidecar/injector/pod/sidecar-container.ts'
import { parseRouteFile } from '../../../sidecar/route-file/route-file.ts'
import { INJECTION_ATTACKS } from '../../attacks/kubernetes.ts'
import { CONFIG } from './pod/pods.ts'

const SECRET = { name: 'shared', key: 'key' }
const CHART = 'charts/portcullis'
const read = (...path: readonly string[]): string => readFileSync(join(CHART, ...path), 'utf8')
const templates = readdirSync(join(CHART, 'templates')).filter((name) => name.endsWith('.yaml'))
const all = templates.map((name) => read('templates', name)).join('\n')
const values: Json = parse(read('values.yaml'))
const schema: Json = JSON.parse(read('values.schema.json'))

describe('each setting of', () => {
  const unset: { readonly [name: string]: string } = {
    PORTCULLIS_DATA_DIR: 'holds what is generated and the embedded PostgreSQL: the chart has neither',
    PORTCULLIS_DATABASE_SCHEMA: 'is for a database that an application shares: the chart asks for one of its own',
  }
  const deployment = read('templates', 'pdp-deployment.yaml')
  test.each(PDP_SETTINGS)('the PDP is made by the chart, or has no place in a cluster: %s', (name) => {
    const set = [name, `${name}_FILE`].some((variable) => deployment.includes(`name: ${variable}`))
    expect([name, set]).toEqual([name, unset[name] === undefined])
  })

  const byArgument: { readonly [name: string]: string } = {
    PORTCULLIS_ROUTE_FILE: '--file=',
    PORTCULLIS_SIDECAR_LISTEN: '--listen=',
    PORTCULLIS_SIDECAR_ADMIN_LISTEN: '--admin-listen=',
  }
  const ofTheOperator: { readonly [name: string]: string } = {
    SSL_CERT_FILE: 'names a file outside of the container: authorities come in the ConfigMap of the namespace',
  }
  test.each(SIDECAR_SETTINGS.filter(([name]) => ofTheOperator[name] === undefined))(
    'the sidecar is made by the injector: %s',
    (name) => {
      const [sidecar] = buildSidecars(
        { ports: ['http'], secrets: null },
        {
          ...CONFIG,
          redis: SECRET,
          dpopNonces: SECRET,
          tracesEndpoint: 'http://c:4318',
          egressProxy: { url: 'http://p:3128', noProxy: '.svc' },
          platform: '{}',
        },
      )
      const variables = listAt(sidecar?.container.env, 'env').map((item) => objectAt(item, 'env').name)
      const args = listAt(sidecar?.container.args, 'args').map(String)
      const flag = byArgument[name]
      expect(flag === undefined ? variables.includes(name) : args.some((arg) => arg.startsWith(flag))).toBe(true)
    },
  )
})

describe('values', () => {
  test('are closed at every level of the schema: a name that is misspelt is refused', () => {
    const open = objectsIn(schema, 'schema').filter(
      ([, object]) => isObject(object.properties) && object.additionalProperties !== false,
    )
    // A chart that includes this one has globals of its own.
    expect(open.map(([path]) => path)).toEqual(['schema.properties.global'])
  })

  test('each have a description in the schema, which editors show', () => {
    const definitions = objectAt(isObject(schema) ? schema.$defs : null, '$defs')
    const describe = (entry: JsonObject): unknown =>
      entry.description ?? objectAt(definitions[String(entry.$ref).split('/').at(-1) ?? ''], '$ref').description
    const silent = objectsIn(schema, 'schema').flatMap(([path, object]) =>
      Object.entries(objectAt(object.properties, 'properties')).flatMap(([name, entry]) =>
        typeof describe(objectAt(entry, name)) === 'string' ? [] : [`${path}.${name}`],
      ),
    )
    expect(silent).toEqual([])
  })

  test('in the table of the operator’s guide are values that exist', () => {
    const rows = [...read('README.md').matchAll(/^\| (`[^|]*) \|/gm)].flatMap(([, cell = '']) =>
      [...cell.matchAll(/`(\w+(?:\.\w+)+)`/g)].map(([, path = '']) => path),
    )
    expect(rows.length).toBeGreaterThan(10)
    const gone = rows.filter(
      (row) => row.includes('.') && !leavesOf(values).some((leaf) => `${leaf}.`.startsWith(`${row}.`)),
    )
    expect(gone).toEqual([])
  })
})

test('the route files of the operator’s guide have no mistake, that for gRPC among them', () => {
  const [http = '', grpc = ''] = [
    ...read('README.md').matchAll(/^```yaml\n((?:portcullis|upstream):[^`]+)^```$/gm),
  ].map(([, text = '']) => text)
  const upstream = http.replace(/^upstream:.*\n/m, '').replace(/^routes:[^`]*/m, '')
  for (const source of [http, `${upstream}${grpc}`]) expect(parseRouteFile(source)).toMatchObject({ issues: [] })
})

const policy = read('templates', 'backstop-pods.yaml')
describe('the backstop', () => {
  test('knows the command of a sidecar, and every member that the injector writes', () => {
    expect(policy).toContain(`dyn([${COMMAND.map((word) => `'${word}'`).join(', ')}])`)
    const [sidecar] = buildSidecars(
      { ports: ['http'], secrets: 'keys' },
      {
        ...CONFIG,
        authorities: 'ca',
        redis: SECRET,
        dpopNonces: SECRET,
        tracesEndpoint: 'http://c:4318',
        egressProxy: { url: 'http://p:3128', noProxy: '.svc' },
        platform: '{}',
      },
    )
    const members = Object.keys(sidecar?.container ?? {})
    const known = [...(policy.split('name: wantedVolumes')[0] ?? '').matchAll(/^ {10}'(\w+)': dyn\(/gm)].map(
      ([, name]) => name,
    )
    expect([...known, ...ADJUSTABLE, 'restartPolicy'].toSorted()).toEqual(members.toSorted())
    expect(policy).toContain(`['${[...ADJUSTABLE, 'restartPolicy'].join("', '")}']`)
  })
  test('knows the folder of each volume that a sidecar mounts, and how each is mounted', () => {
    const [sidecar] = buildSidecars({ ports: ['http'], secrets: 'keys' }, { ...CONFIG, authorities: 'ca' })
    for (const item of listAt(sidecar?.container.volumeMounts, 'volumeMounts')) {
      const { name, mountPath } = objectAt(item, 'volumeMount')
      expect(policy.replaceAll(/\s+/g, ' ')).toContain(`{'name': dyn('${name}'), 'mountPath': dyn('${mountPath}')`)
    }
    for (const { name } of buildVolumes({ routes: 'r', secrets: 'keys' }, { ...CONFIG, authorities: 'ca' }))
      expect(policy.split('name: wantedVolumes')[1]).toContain(`{'name': dyn('${name}'),`)
  })
  test('knows the numbers of as many sidecars as a Pod may have', () => {
    const sidecars = buildSidecars(
      { ports: Array.from({ length: PORTS_COUNT_MAX }, (_, at) => `p${at}`), secrets: null },
      CONFIG,
    )
    expect(policy).toContain(`[${sidecars.map((_, at) => at).join(', ')}].filter(i,`)
    expect(read('templates', 'protected-namespaces.yaml')).toContain(
      `$sidecar := list ${sidecars.map((_, at) => at + 1).join(' ')} }}`,
    )
    for (const [at, { adminPort, dataPort }] of sidecars.entries())
      expect([dataPort - CONFIG.port, adminPort - dataPort]).toEqual([at, 14])
  })
})

describe('the flags of Node are the same', () => {
  const scripts: { readonly [name: string]: string } = JSON.parse(readFileSync('package.json', 'utf8')).scripts
  test.each(['pdp', 'sidecar'] as const)('however the %s is started', (name) => {
    const flags = NODE_FLAGS[name].join(' ')
    expect(readFileSync(`${name}/bin.ts`, 'utf8')).toMatch(new RegExp(`^#!/usr/bin/env -S node ${flags}( .*)?\n`))
    expect(readFileSync(`bin/portcullis-${name}`, 'utf8')).toContain(`/node" ${flags} "$root/${name}/main.ts"`)
    expect(scripts[name]).toBe(`node ${flags} ${name}/main.ts`)
  })

  test('in the images, and in a Pod', () => {
    const dockerfile = readFileSync('Dockerfile', 'utf8')
    const pdp = ['node', ...NODE_FLAGS.pdp, '/app/pdp/bin.js']
    for (const words of [pdp, COMMAND]) expect(dockerfile).toContain(`ENTRYPOINT ["${words.join('", "')}"]\n`)
    expect(COMMAND).toEqual(expect.arrayContaining([...NODE_FLAGS.sidecar]))
  })
})

describe('each of the 21 attacks on injection is played by a test, and answered by the object that is named for it:', () => {
  const ids = Array.from({ length: 21 }, (_, at) => `K8S-${String(at + 1).padStart(3, '0')}`)
  test.each(ids)('%s', (id) => {
    const { file, object } = INJECTION_ATTACKS[id] ?? {}
    expect(readFileSync(file ?? '', 'utf8')).toMatch(new RegExp(`${id}\\b`))
    if (object !== undefined) expect(read('templates', object[0])).toContain(object[1])
  })
  test('and no other', () => {
    expect(Object.keys(INJECTION_ATTACKS)).toEqual(ids)
  })
})

test('no template makes anything by chance, which would drift from one rendering to the next', () => {
  expect(all.match(/\b(?:rand\w+|gen\w*Cert\w*|genCA\w*|genPrivateKey|uuidv4|now|lookup)\b/g)).toBeNull()
})

test('chart and program have one version', () => {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8'))
  expect(parse(read('Chart.yaml'))).toMatchObject({ appVersion: version })
})

function objectsIn(value: Json | undefined, path: string): readonly (readonly [string, JsonObject])[] {
  if (Array.isArray(value)) return value.flatMap((item, at) => objectsIn(item, `${path}[${at}]`))
  if (!isObject(value)) return []
  return [[path, value], ...Object.entries(value).flatMap(([name, member]) => objectsIn(member, `${path}.${name}`))]
}

function leavesOf(value: Json, path = ''): readonly string[] {
  if (!isObject(value) || Object.keys(value).length === 0) return [path]
  return Object.entries(value).flatMap(([name, member]) => leavesOf(member, path === '' ? name : `${path}.${name}`))
}

test.each<[string, boolean]>([
  ['.svc,10.96.0.1,[fd00::1],*.example.com:443', true],
  ['10.0.0.0/8', false],
  ['.svc,fd00::/8', false],
])('with the exception %s of the proxy a sidecar starts, and chart and injector agree: %s', (noProxy, starts) => {
  const url = 'http://127.0.0.1:9'
  const passes = (read: () => unknown): boolean => {
    try {
      read()
      return true
    } catch {
      return false
    }
  }
  const restore = setGlobalProxyFromEnv({})
  expect(passes(() => useProxy({ HTTPS_PROXY: url, NO_PROXY: noProxy }))).toBe(starts)
  restore()
  const settings = { ...CONFIG, egressProxy: { url, noProxy } }
  expect(passes(() => parseInjectorConfig(JSON.stringify(settings), 'x'))).toBe(starts)
  const sidecar = ['injector', 'sidecar', 'egressProxy', 'noProxy']
  const { pattern } = sidecar.reduce(
    (parent, name) => objectAt(objectAt(parent.properties, '')[name], name),
    objectAt(schema, ''),
  )
  expect(new RegExp(String(pattern)).test(noProxy)).toBe(starts)
})

describe('the ports of sidecars', () => {
  const helpers = read('templates', '_helpers.tpl')
  test('have the same first one in the chart, in the injector and in policies for Pods of the version before', () => {
    expect(values).toMatchObject({ injector: { sidecar: { port: DEFAULT_PORT, formerPort: DEFAULT_PORT } } })
    expect(read('templates', 'protected-namespaces.yaml').match(/1508\d/g)).toEqual(['15080', '15080'])
    expect(policy).toContain(`variables.first == ${DEFAULT_PORT}`)
  })

  test.each(Object.entries(MESH_PORTS))('the chart knows those of %s', (mesh, ports) => {
    expect(helpers).toContain(`"${mesh}" (list ${ports.join(' ')})`)
  })
})
