/** Parts that the configurations for Kubernetes share: names of the chart's authorizer, and several documents in one file. */
import { stringify } from 'yaml'
import type { ConfigFile } from '../plan.ts'

/** The authorizer's Service under the names that the chart gives it. */
export const AUTHORIZER = { service: 'portcullis-authorizer', namespace: 'portcullis', port: 15081 } as const
/** The gateway and its namespace in the printed example. */
export const GATEWAY = { name: 'gateway', namespace: 'default' } as const

export const authorizerHost = `${AUTHORIZER.service}.${AUTHORIZER.namespace}.svc.cluster.local`

export function manifests(name: string, objects: readonly object[]): readonly ConfigFile[] {
  return [{ name, text: objects.map((object) => stringify(object, { lineWidth: 0 })).join('---\n') }]
}
