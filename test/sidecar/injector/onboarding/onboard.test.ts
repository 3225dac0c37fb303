/** Namespaces that label themselves, before an API server that stores what it is told. */
import { describe, expect, test } from 'vitest'
import { StartError } from '../../../../pdp/shared/process/exit.ts'
import type { KubeApi } from '../../../../sidecar/injector/certificate/kube-api.ts'
import { type Done, mayOnboard, onboard } from '../../../../sidecar/injector/onboarding/onboard.ts'
import { type OnboardingSettings, parseOnboarding } from '../../../../sidecar/injector/onboarding/settings.ts'
import { type JsonObject, objectAt } from '../../../../sidecar/injector/pod/json.ts'

const PEM = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'
const policy = (name: string): JsonObject => ({ kind: 'NetworkPolicy', metadata: { name }, spec: { podSelector: {} } })
const SETTINGS: OnboardingSettings = {
  namespace: 'portcullis',
  namespaces: ['team-*', 'shop'],
  matchLabels: {},
  excluded: ['team-zero'],
  authorities: 'ca',
  callers: 'callers',
  policies: { enabled: [policy('sidecars')], required: [policy('sidecars'), policy('no-sidecar')] },
}
const CALLERS = '/api/v1/namespaces/portcullis/configmaps/callers'
const SOURCE = '/api/v1/namespaces/portcullis/configmaps/ca'
const copyIn = (namespace: string): string => `/api/v1/namespaces/${namespace}/configmaps/ca`
const policyIn = (namespace: string, name: string): string =>
  `/apis/networking.k8s.io/v1/namespaces/${namespace}/networkpolicies/${name}`

function startServer(modes: { readonly [namespace: string]: string }) {
  const objects = new Map<string, JsonObject>([
    [CALLERS, { metadata: { name: 'callers' } }],
    [SOURCE, { metadata: { name: 'ca' }, data: { 'ca.crt': PEM } }],
  ])
  const labels = new Map(Object.entries(modes))
  const refused = new Set<string>()
  const api: KubeApi = {
    async get(path) {
      const policies = /^(.*networkpolicies)\?labelSelector=portcullis.dev%2Fpart%3Donboarding$/.exec(path)?.[1]
      if (policies !== undefined)
        return { items: [...objects].flatMap(([at, object]) => (at.startsWith(`${policies}/`) ? [object] : [])) }
      const found = path.startsWith('/api/v1/namespaces?') ? list(path) : await api.find(path)
      if (found === null) throw new StartError(`GET ${path}: 404`)
      return found
    },
    find: async (path) => objects.get(path) ?? null,
    post: (path, object) => api.put(`${path}/${objectAt(object.metadata, '').name}`, object),
    async put(path, object) {
      if (refused.has(path)) throw new StartError(`PUT ${path}: 403`)
      objects.set(path, object)
      return object
    },
    patch: () => Promise.reject(new Error('it patches nothing')),
  }
  /** One at a time. */
  function list(path: string): JsonObject {
    const at = Number(/continue=(\d+)/.exec(path)?.[1] ?? 0)
    const [entry] = [...labels].slice(at)
    const items = entry === undefined ? [] : [namespaceOf(...entry)]
    return { items, metadata: at + 1 < labels.size ? { continue: String(at + 1) } : {} }
  }
  const namespaceOf = (name: string, mode: string): JsonObject => ({
    metadata: { name, uid: name, labels: { 'portcullis.dev/inject': mode } },
  })
  return { api, objects, labels, refused }
}

const run = (server: ReturnType<typeof startServer>, done: Done = new Map(), over: Partial<OnboardingSettings> = {}) =>
  onboard(server.api, { ...SETTINGS, ...over }, { done, nowMs: 1_000 })

test('a labelled namespace gets authorities, policies of its mode, and is a caller', async () => {
  const server = startServer({ 'team-a': 'enabled', shop: 'required' })
  expect(await run(server)).toEqual({ changed: ['team-a', 'shop'], foreign: [], failed: [], callers: true })
  expect(server.objects.get(copyIn('team-a'))).toMatchObject({
    metadata: { namespace: 'team-a', labels: { 'portcullis.dev/part': 'onboarding' } },
    data: { 'ca.crt': PEM },
  })
  expect(server.objects.has(policyIn('team-a', 'sidecars'))).toBe(true)
  expect(server.objects.has(policyIn('team-a', 'no-sidecar'))).toBe(false)
  expect(server.objects.has(policyIn('shop', 'no-sidecar'))).toBe(true)
  expect(server.objects.get(CALLERS)?.data).toEqual({ callers: 'shop/*\nteam-a/*\n' })
})

test('a namespace that is done is left alone until something changes, and what somebody changed is put back', async () => {
  const server = startServer({ 'team-a': 'enabled' })
  const done: Done = new Map()
  await run(server, done)
  expect(await run(server, done)).toMatchObject({ changed: [], callers: false })
  server.objects.set(SOURCE, { metadata: { name: 'ca' }, data: { 'ca.crt': `${PEM}${PEM}` } })
  expect(await run(server, done)).toMatchObject({ changed: ['team-a'] })
  expect(server.objects.get(copyIn('team-a'))?.data).toEqual({ 'ca.crt': `${PEM}${PEM}` })
  const path = policyIn('team-a', 'sidecars')
  server.objects.set(path, { ...server.objects.get(path), spec: { podSelector: {}, ingress: [{}] } })
  expect(await run(server)).toMatchObject({ changed: ['team-a'] })
  expect(server.objects.get(path)?.spec).toEqual({ podSelector: {} })
})

test('a policy that is not wanted any more admits nothing, and others stay as they are', async () => {
  const server = startServer({ 'team-a': 'required' })
  const opening = (name: string): JsonObject => ({
    kind: 'NetworkPolicy',
    metadata: { name },
    spec: { podSelector: {}, policyTypes: ['Ingress'], ingress: [{ ports: [{ port: 15_080 }] }] },
  })
  const policies = { ...SETTINGS.policies, required: [...SETTINGS.policies.required, opening('former')] }
  const done: Done = new Map()
  await run(server, done, { policies })
  expect(await run(server, done)).toMatchObject({ changed: ['team-a'], failed: [] })
  expect(server.objects.get(policyIn('team-a', 'former'))?.spec).toEqual({ podSelector: {}, policyTypes: ['Ingress'] })
  for (const name of ['sidecars', 'no-sidecar'])
    expect(server.objects.get(policyIn('team-a', name))?.spec).toEqual({ podSelector: {} })
  expect(await run(server)).toMatchObject({ changed: [] })
  await run(server, done, { policies })
  expect(server.objects.get(policyIn('team-a', 'former'))?.spec).toEqual(opening('former').spec)
})

describe('without the label', () => {
  test('a namespace keeps its policies, and its Pods may no longer ask the PDP', async () => {
    const server = startServer({ 'team-a': 'required' })
    await run(server)
    server.labels.clear()
    expect(await run(server)).toMatchObject({ changed: [], callers: true })
    for (const name of ['sidecars', 'no-sidecar']) expect(server.objects.has(policyIn('team-a', name))).toBe(true)
    expect(server.objects.get(CALLERS)?.data).toEqual({ callers: '' })
  })
})

test('objects of others stay as they are, and are named', async () => {
  const server = startServer({ 'team-a': 'enabled' })
  const other = { metadata: { name: 'ca', labels: {} }, data: { 'ca.crt': 'of an issuer' } }
  server.objects.set(copyIn('team-a'), other)
  expect(await run(server)).toMatchObject({ changed: ['team-a'], foreign: ['ConfigMap team-a/ca'] })
  expect(server.objects.get(copyIn('team-a'))).toEqual(other)
})

test('a namespace that fails holds up no other, and is tried again', async () => {
  const server = startServer({ 'team-a': 'enabled', 'team-b': 'enabled' })
  server.refused.add(policyIn('team-a', 'sidecars'))
  const done: Done = new Map()
  expect(await run(server, done)).toMatchObject({
    changed: ['team-b'],
    failed: [{ namespace: 'team-a', reason: expect.stringContaining('403') }],
  })
  server.refused.clear()
  expect(await run(server, done)).toMatchObject({ changed: ['team-a'], failed: [] })
})

test('nothing is written while the authorities cannot be read', async () => {
  const server = startServer({ 'team-a': 'enabled' })
  for (const data of [{}, { 'ca.crt': '' }, { 'ca.crt': 'none' }]) {
    server.objects.set(SOURCE, { metadata: { name: 'ca' }, data })
    await expect(run(server)).rejects.toThrow('has no authorities in ca.crt')
  }
  expect(server.objects.get(CALLERS)?.data).toBeUndefined()
  expect(server.objects.has(policyIn('team-a', 'sidecars'))).toBe(false)
})

describe('the bounds of the operator', () => {
  test.each(['other', 'xteam-a', 'team', 'shop2', 'myshop', 'team-zero', 'shop\n', ''])(
    'leave out %j',
    async (name) => {
      expect(mayOnboard(SETTINGS, name, new Map())).toBe(false)
      const server = startServer({ [name]: 'enabled' })
      expect(await run(server)).toEqual({ changed: [], foreign: [], failed: [], callers: false })
    },
  )
  test('leave out a namespace without a label that they want', () => {
    const bounds = { ...SETTINGS, matchLabels: { tenant: 'true' } }
    expect(mayOnboard(bounds, 'team-a', new Map([['tenant', 'true']]))).toBe(true)
    expect(mayOnboard(bounds, 'team-a', new Map([['tenant', 'false']]))).toBe(false)
    expect(mayOnboard(bounds, 'team-a', new Map())).toBe(false)
  })
})

test.each([
  ['nothing', ''],
  ['no names', 'namespaces: []'],
  ['a name with a dot', 'namespaces: [team.*]'],
  ['a name that is a regular expression', 'namespaces: ["(a|b)"]'],
  ['a number for a name', 'namespaces: [1]'],
  ['policies that are none', 'namespaces: [a]\npolicies: {enabled: [1]}'],
])('settings with %s are refused', (_, text) => {
  expect(() => parseOnboarding(text)).toThrow()
})
