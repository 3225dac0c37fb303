/** The chart's own objects in a cluster that is closed, for the tests of its check. */
import { BACKSTOP } from '../../../../sidecar/injector/check-cluster/backstop-form.ts'
import type { JsonObject } from '../../../../sidecar/injector/pod/json.ts'
import { chartPolicies } from '../chart-policies.ts'
import { CONFIG } from '../pod/pods.ts'

const selectorFor = (modes: readonly string[]): JsonObject => ({
  matchExpressions: [
    { key: 'portcullis.dev/inject', operator: 'In', values: modes },
    { key: 'kubernetes.io/metadata.name', operator: 'NotIn', values: ['kube-system', 'portcullis'] },
  ],
})
const own = (kind: string, name: string, rest: JsonObject): JsonObject => ({
  kind,
  metadata: { name, namespace: 'portcullis' },
  ...rest,
})
const LABELS = { app: 'injector' }

/** In order: the webhooks, their Service, the injector, the policies and their bindings. None has a label that says so. */
export const GUARD: readonly JsonObject[] = [
  {
    kind: 'MutatingWebhookConfiguration',
    metadata: { name: 'injector' },
    webhooks: ['enabled', 'required'].map((mode) => ({
      failurePolicy: 'Fail',
      rules: [
        { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'], scope: 'Namespaced' },
      ],
      namespaceSelector: selectorFor([mode]),
      objectSelector: {},
      clientConfig: { service: { namespace: 'portcullis', name: 'injector', path: `/inject/${mode}` } },
    })),
  },
  own('Service', 'injector', { spec: { selector: LABELS, ports: [{ port: 443, targetPort: 'webhook' }] } }),
  own('Deployment', 'injector', {
    spec: {
      template: {
        metadata: { labels: LABELS },
        spec: { containers: [{ name: 'i', image: CONFIG.image, args: ['injector'] }] },
      },
    },
  }),
  ...chartPolicies(),
  ...BACKSTOP.map(({ name, everywhere }) => ({
    kind: 'ValidatingAdmissionPolicyBinding',
    metadata: { name: `sidecar-${name}` },
    spec: {
      policyName: `sidecar-${name}`,
      validationActions: ['Deny'],
      ...(!everywhere && {
        matchResources: { namespaceSelector: selectorFor(['enabled', 'required']), objectSelector: {} },
      }),
    },
  })),
]

/** Of the one object of that kind and name. */
export const pathTo = (kind: string, name: string): string => {
  const at = GUARD.findIndex((object) => object.kind === kind && JSON.stringify(object.metadata).includes(`"${name}"`))
  if (at < 0) throw new Error(`${kind}/${name}`)
  return `/items/${at}`
}
