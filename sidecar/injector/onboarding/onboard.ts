/**
 * Gives a namespace that labels itself the objects that its sidecars need: the PDP's authorities, network policies, and the right to ask
 * the PDP. Changes only objects that it made, and deletes none, so that removing the label opens nothing. A policy that is no longer wanted
 * is emptied instead of kept: policies add up, so its ports would stay open.
 */
import { createHash } from 'node:crypto'
import { messageOf } from '../../../pdp/shared/base/error-message.ts'
import type { KubeApi } from '../certificate/kube-api.ts'
import { LABEL_INJECT } from '../pod/annotations.ts'
import { MODES, type Mode } from '../pod/injection.ts'
import { equalJson, type JsonObject, listAt, objectAt, ShapeError, textAt, textsAt } from '../pod/json.ts'
import type { OnboardingSettings } from './settings.ts'

/** The value of the label that marks its own objects. */
export const PART = 'onboarding'
const LABEL_PART = 'portcullis.dev/part'
const PAGE = 500
const PAGES_MAX = 40
/** The time after which a finished namespace is checked again: its objects may have been changed meanwhile. */
const DONE_MS = 60_000

/** When each namespace was done, and with which settings; one map for a process. */
export type Done = Map<string, { readonly what: string; readonly atMs: number }>

/** Throws, without any change, when the namespaces or the authorities cannot be read. */
export async function onboard(
  api: KubeApi,
  settings: OnboardingSettings,
  { done, nowMs }: { readonly done: Done; readonly nowMs: number },
): Promise<{
  /** Namespaces whose objects were made or changed. */
  readonly changed: readonly string[]
  /** Objects of others that have our names, as `Kind namespace/name`. They stay as they are. */
  readonly foreign: readonly string[]
  readonly failed: readonly { readonly namespace: string; readonly reason: string }[]
  /** True when the list of callers has changed. */
  readonly callers: boolean
}> {
  const namespaces = (await listNamespaces(api)).filter(({ name, labels }) => mayOnboard(settings, name, labels))
  const bundle = settings.authorities === null ? null : await readBundle(api, settings)
  const [changed, foreign]: [string[], string[]] = [[], []]
  const failed: { readonly namespace: string; readonly reason: string }[] = []
  for (const { name, mode, uid } of namespaces) {
    const objects = [...(bundle === null ? [] : [bundle]), ...settings.policies[mode]]
    const what = createHash('sha256')
      .update(JSON.stringify([uid, objects]))
      .digest('hex')
    const before = done.get(name)
    if (before?.what === what && nowMs - before.atMs < DONE_MS) continue
    try {
      const results: Held[] = []
      for (const object of objects) results.push(await hold(api, name, object))
      results.push(await closeOthers(api, name, settings.policies[mode]))
      if (results.includes('changed')) changed.push(name)
      foreign.push(...objects.filter((_, at) => results[at] === 'foreign').map((object) => nameOf(name, object)))
      done.set(name, { what, atMs: nowMs })
    } catch (err) {
      failed.push({ namespace: name, reason: messageOf(err) })
    }
  }
  for (const name of done.keys()) if (!namespaces.some((one) => one.name === name)) done.delete(name)
  const names = namespaces.map(({ name }) => name)
  return { changed, foreign, failed, callers: await holdCallers(api, settings, names) }
}

type Namespace = {
  readonly name: string
  readonly uid: string
  readonly mode: Mode
  readonly labels: ReadonlyMap<string, string>
}

async function listNamespaces(api: KubeApi): Promise<readonly Namespace[]> {
  const found: Namespace[] = []
  const selector = encodeURIComponent(`${LABEL_INJECT} in (${MODES.join(',')})`)
  let next: string | null = ''
  for (let page = 0; next !== null; page += 1) {
    if (page === PAGES_MAX) throw new ShapeError(`more than ${PAGES_MAX * PAGE} namespaces have the label`)
    const more: string = next === '' ? '' : `&continue=${encodeURIComponent(next)}`
    const list: JsonObject = await api.get(`/api/v1/namespaces?labelSelector=${selector}&limit=${PAGE}${more}`)
    for (const item of Array.isArray(list.items) ? list.items : []) {
      const metadata = objectAt(objectAt(item, 'items').metadata, 'metadata')
      const labels = textsAt(metadata.labels, 'metadata.labels')
      const mode = MODES.find((known) => known === labels.get(LABEL_INJECT))
      const isEnding = metadata.deletionTimestamp !== undefined
      const name = textAt(metadata.name, 'metadata.name') ?? ''
      if (mode !== undefined && !isEnding) found.push({ name, uid: String(metadata.uid), mode, labels })
    }
    const mark = textAt(objectAt(list.metadata, 'metadata').continue, 'metadata.continue')
    next = mark === null || mark === '' ? null : mark
  }
  return found
}

/** True within the operator's bounds. Elsewhere the API server refuses the label (charts/portcullis/templates/backstop-changes.yaml). */
export function mayOnboard(
  { namespaces, matchLabels, excluded }: Pick<OnboardingSettings, 'namespaces' | 'matchLabels' | 'excluded'>,
  name: string,
  labels: ReadonlyMap<string, string>,
): boolean {
  const isNamed = namespaces.some((pattern) => new RegExp(`^${pattern.replaceAll('*', '[a-z0-9-]*')}$`).test(name))
  const isLabelled = Object.entries(matchLabels).every(([key, value]) => labels.get(key) === value)
  return isNamed && isLabelled && !excluded.includes(name)
}

async function readBundle(api: KubeApi, { namespace, authorities }: OnboardingSettings): Promise<JsonObject> {
  const map = await api.get(`/api/v1/namespaces/${namespace}/configmaps/${authorities}`)
  const text = textsAt(map.data, 'data').get('ca.crt') ?? ''
  if (!text.includes('-----BEGIN CERTIFICATE-----'))
    throw new ShapeError(`ConfigMap ${namespace}/${authorities} has no authorities in ca.crt`)
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: authorities }, data: { 'ca.crt': text } }
}

type Held = 'held' | 'changed' | 'foreign'

/** Creates the object, or restores its content. */
async function hold(api: KubeApi, namespace: string, object: JsonObject): Promise<Held> {
  const metadata = objectAt(object.metadata, 'metadata')
  const [path, name] = [pathOf(object, namespace), textAt(metadata.name, 'metadata.name') ?? '']
  const wanted = { ...object, metadata: { name, namespace, labels: { [LABEL_PART]: PART } } }
  const found = await api.find(`${path}/${name}`)
  if (found === null) {
    await api.post(path, wanted)
    return 'changed'
  }
  const own = objectAt(found.metadata, 'metadata')
  if (textsAt(own.labels, 'metadata.labels').get(LABEL_PART) !== PART) return 'foreign'
  const member = 'spec' in object ? 'spec' : 'data'
  if (equalJson(found[member], object[member] ?? null)) return 'held'
  await api.put(`${path}/${name}`, { ...found, [member]: object[member] ?? null })
  return 'changed'
}

/** Empties those of our policies that are no longer wanted, such as those for old ports. */
async function closeOthers(api: KubeApi, namespace: string, wanted: readonly JsonObject[]): Promise<Held> {
  const path = pathOf({ kind: 'NetworkPolicy' }, namespace)
  const { items } = await api.get(`${path}?labelSelector=${encodeURIComponent(`${LABEL_PART}=${PART}`)}`)
  const names = wanted.map(({ metadata }) => objectAt(metadata, 'metadata').name)
  let result: Held = 'held'
  for (const item of listAt(items, 'items').map((one) => objectAt(one, 'items'))) {
    const { name } = objectAt(item.metadata, 'metadata')
    const { ingress, ...spec } = objectAt(item.spec, 'spec')
    if (names.includes(name) || listAt(ingress, 'spec.ingress').length === 0) continue
    // Objects from a list lack `kind` and `apiVersion`, which an update must have.
    await api.put(`${path}/${name}`, { ...item, ...NETWORK_POLICY, spec })
    result = 'changed'
  }
  return result
}

const NETWORK_POLICY = { apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy' }

const pathOf = ({ kind }: JsonObject, namespace: string): string =>
  kind === 'ConfigMap'
    ? `/api/v1/namespaces/${namespace}/configmaps`
    : `/apis/networking.k8s.io/v1/namespaces/${namespace}/networkpolicies`

const nameOf = (namespace: string, { kind, metadata }: JsonObject): string =>
  `${kind} ${namespace}/${objectAt(metadata, 'metadata').name}`

/** Writes the list of callers into the ConfigMap that the PDP reads as a file. */
async function holdCallers(
  api: KubeApi,
  { namespace, callers }: OnboardingSettings,
  names: readonly string[],
): Promise<boolean> {
  if (callers === null) return false
  const path = `/api/v1/namespaces/${namespace}/configmaps/${callers}`
  const map = await api.get(path)
  const text = names
    .toSorted()
    .map((name) => `${name}/*\n`)
    .join('')
  if ((textsAt(map.data, 'data').get('callers') ?? '') === text) return false
  await api.put(path, { ...map, data: { callers: text } })
  return true
}
