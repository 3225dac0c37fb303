/** `status`: reads from each sidecar's metrics which route file is in force, since when, and what it refused last. */
import { createHash } from 'node:crypto'
import type { Command } from 'commander'
import { ConfigError, runCommand } from '../../../pdp/shared/process/exit.ts'
import { readWishes } from '../pod/annotations.ts'
import { isObject, type JsonObject, listAt, textsAt } from '../pod/json.ts'
import { parsePod } from '../pod/pod.ts'
import { hasSidecarName } from '../pod/recognize-sidecar.ts'
import { type Kubectl, openKubectl } from './kubectl.ts'
import { hasEnded, type Named, ofKind } from './watched.ts'

type Options = { readonly kubectl: string; readonly namespace: string; readonly context?: string }
type SidecarStatus = {
  readonly hash: string
  readonly since: string
  /** False if a later version of the file was not valid. */
  readonly reloaded: boolean
  /** The last refusal; null: none since the sidecar's start. */
  readonly refusal: { readonly outcome: string; readonly route: string; readonly at: string } | null
}

const HASH_CHARS = 12

export function addStatus(program: Command, io: NodeJS.Process): void {
  program
    .command('status')
    .description('Say which route file each sidecar of a namespace has in force, since when, and its last refusal.')
    .requiredOption('-n, --namespace <name>', 'the namespace')
    .option('--kubectl <path>', 'path of kubectl; the account needs get on pods, configmaps and pods/proxy', 'kubectl')
    .option('--context <name>', 'context of the kubeconfig')
    .action((options: Options) => runCommand(() => report(options, io), io))
}

/** Exits with 1 if a sidecar cannot be read, or has another file than its ConfigMap. */
async function report({ kubectl, namespace, context }: Options, io: NodeJS.Process): Promise<void> {
  const ask = openKubectl(kubectl, context)
  const list = JSON.parse(ask('get', 'pods,configmaps', `--namespace=${namespace}`, '--output=json'))
  const objects = isObject(list) ? listAt(list.items, 'items').filter(isObject) : []
  const lines = statusLines(ofKind(objects, 'Pod'), { objects, ask })
  for (const { text, isWell } of lines) {
    io.stdout.write(`${text}\n`)
    if (!isWell) io.exitCode = 1
  }
  if (lines.length === 0) io.stdout.write(`no Pod of ${namespace} has a sidecar\n`)
}

type Line = { readonly text: string; readonly isWell: boolean }
type Asking = { readonly objects: readonly JsonObject[]; readonly ask: Kubectl }

/** One line for each sidecar. */
export const statusLines = (pods: readonly Named[], asking: Asking): readonly Line[] =>
  pods.flatMap((pod) => (hasEnded(pod) ? [] : linesOf(pod, asking)))

function linesOf(pod: Named, { objects, ask }: Asking): readonly Line[] {
  const parsed = parsePod(pod.raw)
  const wishes = readWishes(parsed)
  const routes = 'issue' in wishes ? null : wishes.routes
  return parsed.containers.filter(hasSidecarName).map(({ ports }) => {
    const [data, admin] = ports
    const file = `${data?.name ?? ''}.yaml`
    const about = `${pod.name}  ${file}`
    try {
      const path = `/api/v1/namespaces/${pod.namespace}/pods/http:${pod.name}:${admin?.number ?? 0}/proxy/metrics`
      return describe(about, readStatus(ask('get', '--raw', path)), hashIn(objects, { pod, routes, file }))
    } catch (err) {
      const why = err instanceof ConfigError ? err.message : 'its metrics are not those of a sidecar'
      return { text: `${about}  could not be read: ${why}`, isWell: false }
    }
  })
}

function describe(about: string, { hash, since, reloaded, refusal }: SidecarStatus, wanted: string | null): Line {
  const isCurrent = wanted === null || wanted === hash
  const state = !reloaded
    ? 'a later file is not valid: see its log'
    : isCurrent
      ? 'as in its ConfigMap'
      : `its ConfigMap has ${wanted.slice(0, HASH_CHARS)}, which takes a minute or two`
  const last =
    refusal === null
      ? 'no refusal'
      : `last refusal ${refusal.outcome} of ${refusal.route || 'no route'} at ${refusal.at}`
  return {
    text: `${about}  ${hash.slice(0, HASH_CHARS)} since ${since}  ${state}  ${last}`,
    isWell: reloaded && isCurrent,
  }
}

/** Throws for a text without these metrics. */
export function readStatus(metrics: string): SidecarStatus {
  const of = (name: string): { readonly labels: string; readonly value: number } | null => {
    const [, labels = '', value = ''] =
      new RegExp(`^portcullis_sidecar_${name}(?:\\{(.*)\\})? ([0-9.e+]+)$`, 'm').exec(metrics) ?? []
    return value === '' ? null : { labels, value: Number(value) }
  }
  const label = (labels: string, name: string): string =>
    new RegExp(`(?:^|,)${name}="((?:[^"\\\\]|\\\\.)*)"`).exec(labels)?.[1] ?? ''
  const time = (seconds: number): string => new Date(seconds * 1_000).toISOString()
  const [info, at, ok] = [
    of('config_info'),
    of('config_last_reload_timestamp_seconds'),
    of('config_last_reload_successful'),
  ]
  if (info === null || at === null) throw new Error('no sidecar')
  const last = of('last_refusal_timestamp_seconds')
  return {
    hash: label(info.labels, 'hash'),
    since: time(at.value),
    reloaded: ok?.value !== 0,
    refusal:
      last === null
        ? null
        : { outcome: label(last.labels, 'outcome'), route: label(last.labels, 'route'), at: time(last.value) },
  }
}

/** The hash of the route file in the ConfigMap; null: the ConfigMap lacks it. */
function hashIn(
  objects: readonly JsonObject[],
  { pod, routes, file }: { readonly pod: Named; readonly routes: string | null; readonly file: string },
): string | null {
  const map = ofKind(objects, 'ConfigMap').find(({ name, namespace }) => name === routes && namespace === pod.namespace)
  const text = textsAt(map?.raw.data, 'data').get(file)
  return text === undefined ? null : createHash('sha256').update(text).digest('hex')
}
