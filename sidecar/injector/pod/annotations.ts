/** Reads the labels and annotations of a Pod that configure its sidecar; any other name with our prefix is an error. */
import type { Pod } from './pod.ts'
import { RESOURCES, type ResourceWishes, readAmounts } from './resources.ts'

export const PREFIX = 'portcullis.dev/'
export const LABEL_INJECT = `${PREFIX}inject`
/** The label's value is the number of sidecars and their first port (ports.ts), so that network policies open only the ports of existing sidecars. */
export const LABEL_INJECTED = `${PREFIX}injected`
/** The beginning of a label that ends in a port number: this port stays open on purpose, and network policies open it. */
export const LABEL_OPEN = `${PREFIX}open-`
export const ANNOTATION_PORTS = `${PREFIX}ports`
export const ANNOTATION_ROUTES = `${PREFIX}routes`
export const ANNOTATION_SECRETS = `${PREFIX}secrets`
export const ANNOTATION_UNPROTECTED = `${PREFIX}unprotected-ports`
/** The paths of the first port that the operator's scrapers may read without a token. */
export const ANNOTATION_SCRAPE = `${PREFIX}scrape`
export const ANNOTATION_STATUS = `${PREFIX}status`

/** The most ports per Pod: ports.ts has this many numbers for sidecars, and protected-namespaces.yaml as many network policies. */
export const PORTS_COUNT_MAX = 4
const UNPROTECTED_COUNT_MAX = 16
const SCRAPE_COUNT_MAX = 4
/** The same paths as `open_paths` of a route file accepts; a test compares the two. */
export const SCRAPE_PATH = /^\/[A-Za-z0-9._~-]+(?:\/[A-Za-z0-9._~-]+)*$/
const NONE = 'none'
const LABELS: readonly string[] = [LABEL_INJECT, LABEL_INJECTED]
const ANNOTATIONS: readonly string[] = [
  ANNOTATION_PORTS,
  ANNOTATION_ROUTES,
  ANNOTATION_SECRETS,
  ANNOTATION_UNPROTECTED,
  ANNOTATION_SCRAPE,
  ...RESOURCES.map((name) => `${PREFIX}${name}`),
  ANNOTATION_STATUS,
]
// The names of RFC 6335 section 5.1, as Kubernetes requires them for ports.
const PORT_NAME = /^(?=.{1,15}$)(?!.*--)(?=.*[a-z])[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/
const LABEL_PART = '[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?'
const OBJECT_NAME = new RegExp(`^(?=.{1,253}$)${LABEL_PART}(?:\\.${LABEL_PART})*$`)

export type Wishes = {
  readonly disabled: boolean
  /** The names of the ports to protect; null: there is no annotation. */
  readonly ports: readonly string[] | null
  /** The name of the ConfigMap that holds a route file `<port>.yaml` for each port; null: there is no annotation. */
  readonly routes: string | null
  /** The Secret with files for route files, such as the keys of sign-in; null: no annotation names one. */
  readonly secrets: string | null
  /** Names or numbers of ports. */
  readonly unprotected: ReadonlySet<string>
  /** Paths that scrapers may read. */
  readonly scrape: readonly string[]
  readonly resources: ResourceWishes
}

/** The wishes of the Pod's labels and annotations, or the first issue as a sentence. */
export function readWishes(pod: Pod): Wishes | { readonly issue: string } {
  for (const [kind, given, known] of [
    ['label', pod.labels, LABELS],
    ['annotation', pod.annotations, ANNOTATIONS],
  ] as const) {
    const stray = [...given.keys()].find(
      (name) => name.startsWith(PREFIX) && !known.includes(name) && !(kind === 'label' && name.startsWith(LABEL_OPEN)),
    )
    if (stray !== undefined) return { issue: `${kind} ${stray} is unknown; known are ${known.join(', ')}` }
  }
  const inject = pod.labels.get(LABEL_INJECT) ?? 'enabled'
  if (inject !== 'enabled' && inject !== 'disabled')
    return { issue: `label ${LABEL_INJECT} must be enabled or disabled` }
  const ports = readPorts(pod.annotations.get(ANNOTATION_PORTS))
  if (typeof ports === 'string') return { issue: `annotation ${ANNOTATION_PORTS} ${ports}` }
  const routes = pod.annotations.get(ANNOTATION_ROUTES) ?? null
  if (routes !== null && !OBJECT_NAME.test(routes))
    return { issue: `annotation ${ANNOTATION_ROUTES} must be the name of a ConfigMap of the Pod's namespace` }
  const secrets = pod.annotations.get(ANNOTATION_SECRETS) ?? null
  if (secrets !== null && !OBJECT_NAME.test(secrets))
    return { issue: `annotation ${ANNOTATION_SECRETS} must be the name of a Secret of the Pod's namespace` }
  const unprotected = new Set(split(pod.annotations.get(ANNOTATION_UNPROTECTED) ?? ''))
  const odd = [...unprotected].find((port) => !PORT_NAME.test(port) && !/^[1-9]\d{0,4}$/.test(port))
  if (odd !== undefined) return { issue: `annotation ${ANNOTATION_UNPROTECTED} must list port names or numbers` }
  if (unprotected.size > UNPROTECTED_COUNT_MAX)
    return { issue: `annotation ${ANNOTATION_UNPROTECTED} lists more than ${UNPROTECTED_COUNT_MAX} ports; remove some` }
  const scrape = split(pod.annotations.get(ANNOTATION_SCRAPE) ?? '')
  if (scrape.length > SCRAPE_COUNT_MAX || !scrape.every((path) => SCRAPE_PATH.test(path) && !DOTS.test(path)))
    return { issue: `annotation ${ANNOTATION_SCRAPE} must list at most ${SCRAPE_COUNT_MAX} paths such as /metrics` }
  const [cpu = null, memory = null] = RESOURCES.map((name) => readAmounts(pod.annotations.get(`${PREFIX}${name}`)))
  if (typeof cpu === 'string') return { issue: `annotation ${PREFIX}cpu ${cpu}` }
  if (typeof memory === 'string') return { issue: `annotation ${PREFIX}memory ${memory}` }
  const sized = { scrape, resources: { cpu, memory } }
  return { disabled: inject === 'disabled', ports, routes, secrets, unprotected, ...sized }
}

const DOTS = /(?:^|\/)\.{1,2}(?:\/|$)/

/** The names; null without the annotation; a text is an error message. */
function readPorts(text: string | undefined): readonly string[] | null | string {
  if (text === undefined) return null
  if (text.trim() === NONE) return []
  const names = split(text)
  if (names.length === 0) return `must list port names, or be ${NONE}`
  if (names.length > PORTS_COUNT_MAX) return `lists more than ${PORTS_COUNT_MAX} ports; remove some`
  if (!names.every((name) => PORT_NAME.test(name))) return 'must list names of container ports, not numbers'
  if (names.includes(NONE)) return `must be ${NONE} alone, or a list of port names`
  return new Set(names).size === names.length ? names : 'lists a port twice; remove one'
}

const split = (text: string): string[] =>
  text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
