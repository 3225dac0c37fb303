/** The form of the chart's policies, by which `check-cluster` tells them from others with the same names. */
import type { Resource } from './selector.ts'

export type BackstopRule = {
  /** The end of the policy's name. */
  readonly name: string
  /** Digest of its variables and validations; a test compares it with charts/portcullis/templates. */
  readonly form: string
  readonly resources: readonly Resource[]
  /** True: the policy is for namespaces without a mode, too. */
  readonly everywhere: boolean
  /** The harm that can happen without the policy. */
  readonly without: string
}

/** The policy's variables that come from the chart's values. Each value is a literal. */
export const SETTINGS: readonly string[] = [
  'authorities',
  'belongs',
  'bounds',
  'former',
  'image',
  'logLevel',
  'named',
  'native',
  'noProxy',
  'noncesKey',
  'noncesSecret',
  'platform',
  'port',
  'proxy',
  'redisKey',
  'redisSecret',
  'scrapers',
  'tracesEndpoint',
  'user',
]

export const BACKSTOP: readonly BackstopRule[] = [
  {
    name: 'pods',
    form: 'f893a86f9ba39f26662fefaeb4a4b333',
    resources: [{ group: '', resource: 'pods', operation: 'CREATE' }],
    everywhere: false,
    without: 'nothing refuses Pods without a sidecar while the injector is down',
  },
  {
    name: 'changes',
    form: 'd58f3ff8626a00e9674655a25cdcd714',
    resources: [
      { group: '', resource: 'pods', operation: 'UPDATE' },
      { group: '', resource: 'pods/status', operation: 'UPDATE' },
    ],
    everywhere: false,
    without: 'a user who may change a Pod can replace its sidecar or remove its label',
  },
  {
    name: 'bindings',
    form: 'eda0773fb23d354e790a6da73808c077',
    resources: [
      { group: '', resource: 'pods/binding', operation: 'CREATE' },
      { group: '', resource: 'bindings', operation: 'CREATE' },
    ],
    everywhere: false,
    without: 'a user who may bind a Pod to a node can change its labels',
  },
  {
    name: 'namespaces',
    form: '107f9ce26518ba463e0073d232dd2622',
    resources: [
      { group: '', resource: 'namespaces', operation: 'CREATE' },
      { group: '', resource: 'namespaces', operation: 'UPDATE' },
      { group: '', resource: 'namespaces/status', operation: 'UPDATE' },
      { group: '', resource: 'namespaces/finalize', operation: 'UPDATE' },
    ],
    everywhere: true,
    without: 'a namespace whose mode is misspelt or removed protects nothing, and no message says so',
  },
]
