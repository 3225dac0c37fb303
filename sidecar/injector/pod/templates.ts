/** Where the kinds that make Pods keep what their Pods are made from. */
import { isObject, type JsonObject } from './json.ts'

/** By API group; what is not here is left as it is. */
const TEMPLATES: { readonly [kind: string]: readonly string[] } = {
  Pod: [],
  PodTemplate: ['template'],
  ReplicationController: ['spec', 'template'],
  'apps/Deployment': ['spec', 'template'],
  'apps/ReplicaSet': ['spec', 'template'],
  'apps/StatefulSet': ['spec', 'template'],
  'apps/DaemonSet': ['spec', 'template'],
  'batch/Job': ['spec', 'template'],
  'batch/CronJob': ['spec', 'jobTemplate', 'spec', 'template'],
  'argoproj.io/Rollout': ['spec', 'template'],
}

/** Undefined: of an unknown kind, or without a Pod of its own, as a Rollout that names a Deployment. */
export function templatePath({ apiVersion, kind, spec }: JsonObject): readonly string[] | undefined {
  if (isObject(spec) && 'workloadRef' in spec) return undefined
  const group = String(apiVersion ?? '').replace(/[^/]*$/, '')
  return TEMPLATES[`${group}${kind}`]
}
