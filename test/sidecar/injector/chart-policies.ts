/** The policies of the chart's backstop as the API server holds them, read from the templates without Helm. */
import { readFileSync } from 'node:fs'
import { parseAllDocuments } from 'yaml'
import { ofKind } from '../../../sidecar/injector/check-cluster/watched.ts'
import { isObject, type JsonObject, objectAt } from '../../../sidecar/injector/pod/json.ts'
import { CONFIG } from './pod/pods.ts'

const FILES = ['backstop-pods.yaml', 'backstop-changes.yaml']
const SETTINGS = [
  { name: 'image', expression: `'${CONFIG.image}'` },
  { name: 'logLevel', expression: "'info'" },
]

/** Named `sidecar-…`. The settings of the policy for Pods are those of `pods.ts`. */
export function chartPolicies(): readonly JsonObject[] {
  const documents = FILES.flatMap((name) => {
    const text = readFileSync(`charts/portcullis/templates/${name}`, 'utf8')
      .replaceAll('{{ $name }}', 'sidecar')
      // The settings; those that are left are decided by the cluster.
      .replace(/^ *\{\{- range \$setting[\s\S]*?\{\{- end \}\}\n/m, '')
      .replace(/expression: \{\{.*$/gm, "expression: '1'")
      .replace(/^.*\{\{.*\n/gm, '')
    const parsed = parseAllDocuments(text)
    return Array.isArray(parsed) ? parsed.map((document): unknown => document.toJS()) : []
  })
  return ofKind(documents.filter(isObject), 'ValidatingAdmissionPolicy').map(({ name, raw }) => {
    const spec = objectAt(raw.spec, 'spec')
    const variables = Array.isArray(spec.variables) ? spec.variables : []
    return name === 'sidecar-pods' ? { ...raw, spec: { ...spec, variables: [...SETTINGS, ...variables] } } : raw
  })
}
