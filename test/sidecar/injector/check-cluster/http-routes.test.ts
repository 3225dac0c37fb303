import { describe, expect, test } from 'vitest'
import { checkCluster } from '../../../../sidecar/injector/check-cluster/check-cluster.ts'
import type { JsonObject } from '../../../../sidecar/injector/pod/json.ts'

const NO_REPORT = () => ({ errors: [], warnings: [] })
const named = (kind: string, name: string, rest: JsonObject = {}, metadata: JsonObject = {}): JsonObject => ({
  kind,
  metadata: { name, namespace: 'invoices', ...metadata },
  ...rest,
})
const codes = (...objects: readonly JsonObject[]): readonly string[] =>
  checkCluster(objects, NO_REPORT)
    .map(({ code }) => code)
    .filter((code) => code === 'route_unasked')

describe('a rule of an HTTPRoute', () => {
  const ASK: JsonObject = { type: 'ExternalAuth', externalAuth: { protocol: 'GRPC' } }
  const GATED = named('Service', 'app', { spec: {} }, { labels: { 'portcullis.dev/gated': 'true' } })
  const rule = (filters: readonly JsonObject[], to: JsonObject = { name: 'app', port: 80 }): JsonObject => ({
    filters,
    backendRefs: [to],
  })
  const route = (...rules: readonly JsonObject[]): JsonObject =>
    named('HTTPRoute', 'r', { spec: { parentRefs: [{ name: 'gateway' }], rules } })
  const securityPolicy = (over: JsonObject, kind = 'Gateway', name = 'gateway'): JsonObject =>
    named('SecurityPolicy', `p-${kind}`, { spec: { targetRefs: [{ kind, name }], extAuth: { grpc: {} }, ...over } })

  test.each<[string, readonly JsonObject[]]>([
    ['without the filter, to a Service with the label', [GATED, route(rule([]))]],
    [
      'to a Service with the label in another namespace',
      [
        { ...GATED, metadata: { name: 'app', namespace: 'x', labels: { 'portcullis.dev/gated': 'true' } } },
        route(rule([], { name: 'app', namespace: 'x' })),
      ],
    ],
    ['beside one that asks', [route(rule([ASK]), rule([{ type: 'URLRewrite' }]))]],
    ['below a policy that fails open', [GATED, route(rule([])), securityPolicy({ extAuth: { failOpen: true } })]],
    ['below a policy without extAuth', [GATED, route(rule([])), securityPolicy({ extAuth: null })]],
    ['below a policy of another Gateway', [GATED, route(rule([])), securityPolicy({}, 'Gateway', 'other')]],
    [
      'below a policy of one listener',
      [
        GATED,
        route(rule([])),
        securityPolicy({ targetRefs: [{ kind: 'Gateway', name: 'gateway', sectionName: 'http' }] }),
      ],
    ],
    [
      'whose own policy takes the place of the one that asks',
      [GATED, route(rule([])), securityPolicy({}), securityPolicy({ extAuth: null }, 'HTTPRoute', 'r')],
    ],
    ['of a GRPCRoute', [GATED, { ...route(rule([])), kind: 'GRPCRoute' }]],
  ])('%s is listed', (_what, objects) => {
    expect(codes(...objects)).toEqual(['route_unasked'])
  })

  test.each<[string, readonly JsonObject[]]>([
    ['with the filter', [GATED, route(rule([ASK]))]],
    ['to a Service that is not gated', [GATED, route(rule([], { name: 'other' }))]],
    ['to something else of that name', [GATED, route(rule([], { name: 'app', kind: 'Backend' }))]],
    ['below a policy of its Gateway', [GATED, route(rule([])), securityPolicy({})]],
    ['with a policy of its own', [GATED, route(rule([])), securityPolicy({}, 'HTTPRoute', 'r')]],
    [
      'whose own policy is merged into the one that asks',
      [
        GATED,
        route(rule([])),
        securityPolicy({}),
        securityPolicy({ extAuth: null, mergeType: 'StrategicMerge' }, 'HTTPRoute', 'r'),
      ],
    ],
  ])('%s is not', (_what, objects) => {
    expect(codes(...objects)).toEqual([])
  })

  test('is named by its number, with the Service', () => {
    expect(checkCluster([GATED, route(rule([ASK]), rule([]))], NO_REPORT)).toContainEqual(
      expect.objectContaining({
        object: 'HTTPRoute/r',
        message: expect.stringContaining('rule 2 leads to the gated Service invoices/app'),
      }),
    )
  })
})
