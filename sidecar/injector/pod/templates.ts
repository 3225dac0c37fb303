/** The kinds that make Pods, and the path to the template of their Pods. */
import { isObject, type JsonObject } from './json.ts'

/** Paths by API group and kind. Objects of other kinds are left as they are. */
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

/** The path to the Pod template. Undefined for an unknown kind or an object without one, such as a Rollout that names a Deployment. */
export function templatePath({ apiVersion, kind, spec }: JsonObject): readonly string[] | undefined {
  if (isObject(spec) && 'workloadRef' in spec) return undefined
  const group = String(apiVersion ?? '').replace(/[^/]*$/, '')
  return TEMPLATES[`${group}${kind}`]
}
