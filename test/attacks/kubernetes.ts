/** Where each attack on injection is played: they need Pods and an API server, which the runner here does not have. */

type Played = {
  /** The test that plays it has its id in its name or beside its steps. */
  readonly file: string
  /** What in the chart answers it: a template, and how it names the object. */
  readonly object?: readonly [template: string, text: string]
}

const ADMISSION = 'test/cluster/admission.suite.ts'
const AROUND = 'test/cluster/around.suite.ts'
const OUTAGE = 'test/cluster/outage.suite.ts'
const IMAGE = 'test/image/image.test.ts'
const WEBHOOK = 'test/sidecar/injector/webhook.test.ts'
const WEBHOOKS = ['injector-objects.yaml', 'kind: MutatingWebhookConfiguration'] as const
const PODS = ['backstop-pods.yaml', 'name: {{ $name }}-pods'] as const

export const INJECTION_ATTACKS: { readonly [id: string]: Played } = {
  'K8S-001': { file: AROUND, object: ['gated-namespaces.yaml', 'name: portcullis-gates'] },
  'K8S-002': { file: AROUND, object: ['backstop-access.yaml', 'name: {{ $name }}-services'] },
  'K8S-003': { file: IMAGE },
  'K8S-004': { file: IMAGE },
  'K8S-005': { file: OUTAGE, object: PODS },
  'K8S-006': { file: WEBHOOK, object: WEBHOOKS },
  'K8S-007': { file: ADMISSION, object: PODS },
  'K8S-008': { file: ADMISSION, object: PODS },
  'K8S-009': { file: ADMISSION },
  'K8S-010': { file: ADMISSION, object: PODS },
  'K8S-011': { file: ADMISSION },
  'K8S-012': { file: ADMISSION },
  'K8S-013': { file: OUTAGE, object: WEBHOOKS },
  'K8S-014': { file: AROUND, object: ['backstop-access.yaml', 'name: {{ $name }}-debug'] },
  'K8S-015': { file: ADMISSION, object: ['backstop-changes.yaml', 'name: {{ $name }}-changes'] },
  'K8S-016': { file: OUTAGE },
  'K8S-017': { file: IMAGE },
  'K8S-018': { file: IMAGE },
  'K8S-019': { file: WEBHOOK },
  'K8S-020': { file: IMAGE },
  'K8S-021': { file: 'test/cluster/gate.suite.ts' },
}
