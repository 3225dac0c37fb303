import { describe, expect, test } from 'vitest'
import { formOf } from '../../../../sidecar/injector/check-cluster/backstop.ts'
import { BACKSTOP } from '../../../../sidecar/injector/check-cluster/backstop-form.ts'
import { checkCluster } from '../../../../sidecar/injector/check-cluster/check-cluster.ts'
import { isObject, type Json, type JsonObject, listAt } from '../../../../sidecar/injector/pod/json.ts'
import { applyPatch, type PatchOperation } from '../../../../sidecar/injector/pod/patch.ts'
import { chartPolicies } from '../chart-policies.ts'
import { GUARD, pathTo } from './guard-objects.ts'

const NAMESPACES: readonly JsonObject[] = ['enabled', 'required'].map((mode) => ({
  kind: 'Namespace',
  metadata: { name: `ns-${mode}`, labels: { 'portcullis.dev/inject': mode, team: 'a' } },
}))
const check = (objects: readonly JsonObject[]) =>
  checkCluster([...objects, ...NAMESPACES], () => ({ errors: [], warnings: [] }))
const codes = (...changes: readonly PatchOperation[]): readonly string[] => [
  ...new Set(
    check(listAt(applyPatch({ items: GUARD }, changes).items, 'items').filter(isObject)).map(({ code }) => code),
  ),
]
const add = (path: string, value: Json): PatchOperation => ({ op: 'add', path, value })
const remove = (path: string): PatchOperation => ({ op: 'remove', path })

const HOOKS = pathTo('MutatingWebhookConfiguration', 'injector')
const HOOK = `${HOOKS}/webhooks/1`
const POLICY = 'ValidatingAdmissionPolicy'
const BINDING = 'ValidatingAdmissionPolicyBinding'
const NARROW = { matchLabels: { team: 'b' } }
const RULE = { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }

test('the digests of the backstop are those of the templates of the chart', () => {
  const forms = chartPolicies().map((policy) => formOf(policy))
  expect(BACKSTOP.map(({ form }) => form)).toEqual(forms)
})

test('a guard that is whole has no finding, whatever its objects are called', () => {
  expect(check(GUARD)).toEqual([])
})

test('without a guard each part is missing', () => {
  expect(codes(...GUARD.map(() => remove('/items/0')))).toEqual(['webhook_missing', 'backstop_missing'])
})

describe('is listed as missing, whatever the labels of others say:', () => {
  test.each(BACKSTOP.map(({ name }) => name))('the policy -%s, whose binding was left', (name) => {
    expect(codes(remove(pathTo(POLICY, `sidecar-${name}`)))).toEqual(['backstop_missing'])
  })
  test.each(BACKSTOP.map(({ name }) => name))('the binding of -%s', (name) => {
    expect(codes(remove(pathTo(BINDING, `sidecar-${name}`)))).toEqual(['backstop_missing'])
  })
  test.each([0, 1])('webhook %i of two', (at) => {
    expect(codes(remove(`${HOOKS}/webhooks/${at}`))).toEqual(['webhook_missing'])
  })
  test('the webhook, beside an empty one with its name and label', () => {
    const labels = { 'portcullis.dev/part': 'injector' }
    expect(codes(add(`${HOOKS}/webhooks`, []), add(`${HOOKS}/metadata/labels`, labels))).toEqual(['webhook_missing'])
  })
})

describe('is listed as open: a webhook', () => {
  test.each<[string, readonly PatchOperation[]]>([
    ['that fails open', [add(`${HOOK}/failurePolicy`, 'Ignore')]],
    ['that is asked of changes only', [add(`${HOOK}/rules/0/operations`, ['UPDATE'])]],
    ['that is asked of other objects', [add(`${HOOK}/rules/0/resources`, ['services'])]],
    ['that is asked of another group', [add(`${HOOK}/rules/0/apiGroups`, ['apps'])]],
    ['that is asked of what has no namespace', [add(`${HOOK}/rules/0/scope`, 'Cluster')]],
    ['without a rule', [add(`${HOOK}/rules`, [])]],
    ['of other Pods', [add(`${HOOK}/objectSelector`, { matchLabels: { protected: 'true' } })]],
    ['with a condition', [add(`${HOOK}/matchConditions`, [{ name: 'x', expression: 'false' }])]],
    [
      'of other namespaces',
      [add(`${HOOK}/namespaceSelector/matchExpressions/-`, { key: 'team', operator: 'In', values: ['b'] })],
    ],
    [
      'that leaves out one namespace by its name',
      [add(`${HOOK}/namespaceSelector/matchExpressions/1/values/-`, 'ns-required')],
    ],
    ['that goes elsewhere', [add(`${HOOK}/clientConfig/service/name`, 'other')]],
    ['that goes to the same name elsewhere', [add(`${HOOK}/clientConfig/service/namespace`, 'other')]],
    ['whose Service selects others', [add(`${pathTo('Service', 'injector')}/spec/selector`, { app: 'other' })]],
    [
      'whose Service leads to another program',
      [add(`${pathTo('Deployment', 'injector')}/spec/template/spec/containers/0/args`, [])],
    ],
  ])('%s', (_what, changes) => {
    expect(codes(...changes)).toEqual(['webhook_open'])
  })
})

describe('is listed as open: a rule of the backstop', () => {
  test.each(BACKSTOP.map(({ name }) => name))('-%s, in each way in which a policy can be narrowed', (name) => {
    const spec = `${pathTo(POLICY, `sidecar-${name}`)}/spec`
    const ways: readonly (readonly PatchOperation[])[] = [
      [add(`${spec}/failurePolicy`, 'Ignore')],
      [add(`${spec}/matchConditions`, [{ name: 'x', expression: 'false' }])],
      [add(`${spec}/paramKind`, { apiVersion: 'v1', kind: 'ConfigMap' })],
      [add(`${spec}/matchConstraints/resourceRules`, [{ ...RULE, resources: ['services'] }])],
      [add(`${spec}/matchConstraints/resourceRules/0/operations`, ['DELETE'])],
      [add(`${spec}/matchConstraints/resourceRules/0/resourceNames`, ['x'])],
      [add(`${spec}/matchConstraints/namespaceSelector`, NARROW)],
      [add(`${spec}/matchConstraints/objectSelector`, NARROW)],
      [add(`${spec}/matchConstraints/excludeResourceRules`, [RULE])],
      [remove(`${spec}/validations/0`)],
      [add(`${spec}/validations/0/expression`, 'true')],
      [add(`${spec}/variables`, [{ name: 'containers', expression: '[]' }])],
    ]
    for (const way of ways) expect([way, codes(...way)]).toEqual([way, ['backstop_open']])
  })

  test.each(BACKSTOP.map(({ name }) => name))('-%s, in each way in which a binding can be narrowed', (name) => {
    const spec = `${pathTo(BINDING, `sidecar-${name}`)}/spec`
    const ways: readonly JsonObject[] = [
      { objectSelector: NARROW },
      { namespaceSelector: NARROW },
      { resourceRules: [{ ...RULE, resourceNames: ['x'] }] },
      { excludeResourceRules: [RULE] },
    ]
    for (const way of ways) expect([way, codes(add(`${spec}/matchResources`, way))]).toEqual([way, ['backstop_open']])
    expect(codes(add(`${spec}/validationActions`, ['Warn', 'Audit']))).toEqual(['backstop_open'])
    expect(codes(add(`${spec}/paramRef`, { name: 'x' }))).toEqual(['backstop_open'])
    expect(codes(add(`${spec}/policyName`, 'other'))).toEqual(['backstop_missing'])
  })

  test('whose variable was replaced, be it a setting that decides more than a setting may', () => {
    const variables = `${pathTo(POLICY, 'sidecar-pods')}/spec/variables`
    expect(codes(add(`${variables}/0/expression`, "object.metadata.labels['image']"))).toEqual(['backstop_open'])
    expect(codes(add(`${variables}/6/expression`, 'false'))).toEqual(['backstop_open'])
  })

  test('that admits sidecars of another image than the injector makes', () => {
    const path = `${pathTo(POLICY, 'sidecar-pods')}/spec/variables/0/expression`
    expect(codes(add(path, "'evil/sidecar:1'"))).toEqual(['backstop_open'])
  })

  test('whose binding leaves out one namespace by its name, which is said', () => {
    const path = `${pathTo(BINDING, 'sidecar-pods')}/spec/matchResources/namespaceSelector/matchExpressions/1/values/-`
    const changed = listAt(applyPatch({ items: GUARD }, [add(path, 'ns-enabled')]).items, 'items').filter(isObject)
    expect(check(changed)).toEqual([
      {
        code: 'backstop_open',
        namespace: 'ns-enabled',
        object: 'ValidatingAdmissionPolicyBinding/sidecar-pods',
        message: 'its namespaceSelector leaves out namespace ns-enabled',
      },
    ])
  })

  test('but not where a second binding holds it', () => {
    const second = { ...GUARD.find(({ kind }) => kind === BINDING), metadata: { name: 'second' } }
    expect(
      codes(add(`${pathTo(BINDING, 'sidecar-pods')}/spec/validationActions`, ['Warn']), add('/items/-', second)),
    ).toEqual([])
  })
})
