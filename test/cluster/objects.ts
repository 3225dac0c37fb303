/** Objects as text, and what the API server makes of them. */
import { readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { parseAllDocuments } from 'yaml'
import { isObject, type Json, type JsonObject, objectAt, textAt } from '../../sidecar/injector/pod/json.ts'
import type { KubeClient } from './kube-client.ts'

/** Adds the CustomResourceDefinitions of a file, and returns when their objects are served. */
export async function define(kube: KubeClient, path: string): Promise<void> {
  // Some are themselves lines of a chart.
  for (const definition of objectsOf(readFileSync(path, 'utf8').replace(/^.*\{\{.*\n/gm, ''))) {
    const made = await kube.must('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', definition)
    const spec = objectAt(made.spec, 'spec')
    const versions = Array.isArray(spec.versions)
      ? spec.versions.map((one) => textAt(objectAt(one, '').name, 'name'))
      : []
    const served = `/apis/${spec.group}/${versions[0]}/${textAt(objectAt(spec.names, 'names').plural, 'plural')}`
    while ((await kube.send('GET', served)).status !== 200) await delay(100)
  }
}

export function objectsOf(text: string): readonly JsonObject[] {
  const documents = parseAllDocuments(text)
  if (!Array.isArray(documents)) return []
  return documents.map((document): unknown => document.toJS()).filter((value) => isObject(value))
}

/** Paths of what was asked for and is not stored as it was. */
export function missingFrom(asked: Json | undefined, stored: Json | undefined, path = ''): readonly string[] {
  if (Array.isArray(asked)) {
    if (!Array.isArray(stored) || stored.length !== asked.length) return [path]
    return asked.flatMap((item, at) => missingFrom(item, stored[at], `${path}[${at}]`))
  }
  if (!isObject(asked)) return asked === stored ? [] : [path]
  if (!isObject(stored)) return [path]
  return Object.entries(asked).flatMap(([name, value]) => missingFrom(value, stored[name], `${path}.${name}`))
}

/** Where the API server takes objects of this kind. */
export async function pathOf(kube: KubeClient, { apiVersion, kind, metadata }: JsonObject): Promise<string> {
  const root = apiVersion === 'v1' ? '/api/v1' : `/apis/${apiVersion}`
  const { resources } = await kube.must('GET', root)
  const found = Array.isArray(resources) ? resources.find((entry) => isObject(entry) && entry.kind === kind) : null
  if (!isObject(found)) throw new Error(`${apiVersion} ${kind} is not known to the API server`)
  const { namespace } = objectAt(metadata, 'metadata')
  return found.namespaced === true ? `${root}/namespaces/${namespace}/${found.name}` : `${root}/${found.name}`
}

const ROUTE_FILE = `portcullis: v1
resource: https://invoices.example.com
issuers: [{issuer: https://id.example.com}]
upstream: http://127.0.0.1:8080
pdp: {address: "127.0.0.1:9090", insecure: true}
routes: {GET /a: public}
`

/** The ConfigMap that the Pods of these suites name, with a file for each of their ports. */
export const storeRoutes = (kube: KubeClient, namespace: string): Promise<JsonObject> =>
  kube.must('POST', `/api/v1/namespaces/${namespace}/configmaps`, {
    metadata: { name: 'invoices-routes' },
    data: { 'http.yaml': ROUTE_FILE, 'grpc.yaml': ROUTE_FILE },
  })
