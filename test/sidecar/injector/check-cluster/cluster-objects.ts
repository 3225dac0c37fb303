/** Objects of a cluster with one protected Pod, and what `check-cluster` finds in them. */
import { checkText } from '../../../../sidecar/commands/file-report.ts'
import { checkCluster as check } from '../../../../sidecar/injector/check-cluster/check-cluster.ts'
import type { FindingCode } from '../../../../sidecar/injector/check-cluster/watched.ts'
import { inject } from '../../../../sidecar/injector/pod/inject.ts'
import { type JsonObject, objectAt } from '../../../../sidecar/injector/pod/json.ts'
import { applyPatch } from '../../../../sidecar/injector/pod/patch.ts'
import { CONFIG, podWith } from '../pod/pods.ts'
import { GUARD } from './guard-objects.ts'

export const checkCluster = (objects: readonly JsonObject[]) => check(objects, checkText)

export const named = (kind: string, name: string, rest: JsonObject = {}, metadata: JsonObject = {}): JsonObject => ({
  kind,
  metadata: { name, namespace: 'invoices', ...metadata },
  ...rest,
})
export const namespace = (mode: string): JsonObject =>
  named('Namespace', 'invoices', {}, { namespace: null, labels: { 'portcullis.dev/inject': mode } })

export function protectedPod(over: JsonObject = {}, port = CONFIG.port): JsonObject {
  const pod = podWith({ labels: { app: 'invoices' }, ...over })
  const injection = inject(pod, { config: { ...CONFIG, port }, mode: 'enabled' })
  const made = injection.verdict === 'inject' ? applyPatch(pod, injection.operations) : pod
  return { ...made, metadata: { ...objectAt(made.metadata, ''), namespace: 'invoices' } }
}
/** The injector's settings as the chart stores them. */
export const settings = (over: JsonObject = {}, namespace = 'portcullis'): JsonObject =>
  named(
    'ConfigMap',
    'portcullis-injector',
    { data: { 'injector.yaml': JSON.stringify({ ...CONFIG, ...over }) } },
    { namespace },
  )
export const service = (name: string, port: JsonObject, selector: JsonObject = { app: 'invoices' }): JsonObject =>
  named('Service', name, { spec: { selector, ports: [port] } })
export const policy = (name: string, spec: JsonObject, metadata: JsonObject = {}): JsonObject =>
  named('NetworkPolicy', name, { spec }, metadata)
export const SIDECARS_ONLY = policy('sidecars', {
  podSelector: { matchLabels: { 'portcullis.dev/injected': '1' } },
  ingress: [{ ports: [{ port: 15_080, endPort: 15_080 }] }],
})
/** As the chart lets scrapers read sidecars, those of the version before too. */
export const SCRAPE = { ports: [{ port: 15_094 }, { port: 15_090 }], from: [{ podSelector: {} }] }
export const CLOSED = [...GUARD, namespace('enabled'), protectedPod(), SIDECARS_ONLY]
export const codes = (...objects: readonly JsonObject[]): readonly FindingCode[] =>
  checkCluster(objects).map(({ code }) => code)
