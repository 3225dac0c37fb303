/** `check-cluster`: reads the cluster through kubectl, whose contexts and log-ins are the operator's own. */

import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { fileProblem } from '../../../pdp/shared/process/command/file-problem.ts'
import { ConfigError, runCommand } from '../../../pdp/shared/process/exit.ts'
import { isObject, type JsonObject, listAt } from '../pod/json.ts'
import type { CheckRoutes } from './asking.ts'
import { checkCluster } from './check-cluster.ts'

type Io = NodeJS.Process
type Options = {
  readonly kubectl: string
  readonly context?: string
  readonly namespace?: string
  readonly from?: string
  readonly json?: true
}

const KINDS = [
  'namespaces',
  'pods',
  'services',
  'endpointslices.discovery.k8s.io',
  'configmaps',
  'deployments.apps',
  'statefulsets.apps',
  'daemonsets.apps',
  'cronjobs.batch',
  'networkpolicies.networking.k8s.io',
  'mutatingwebhookconfigurations.admissionregistration.k8s.io',
  'validatingadmissionpolicies.admissionregistration.k8s.io',
  'validatingadmissionpolicybindings.admissionregistration.k8s.io',
]
/** Only where the cluster knows them: kubectl refuses a kind that it does not know. */
const OPTIONAL_KINDS = [
  'rollouts.argoproj.io',
  'httproutes.gateway.networking.k8s.io',
  'grpcroutes.gateway.networking.k8s.io',
  'securitypolicies.gateway.envoyproxy.io',
]
const OUTPUT_BYTES_MAX = 512 * 1024 * 1024

export function addCheckCluster(program: Command, io: Io, checkRoutes: CheckRoutes): void {
  program
    .command('check-cluster')
    .description(
      'List what leads past a sidecar, who asks for one in vain, and wrong route files; exit with 1 if there is any.',
    )
    .option('--kubectl <path>', 'path of kubectl', 'kubectl')
    .option('--context <name>', 'context of the kubeconfig')
    .option('-n, --namespace <name>', 'only this namespace')
    .option('--from <file>', `read this file instead, the output of: kubectl get -A -o json ${KINDS.join(',')}`)
    .option('--json', 'print JSON')
    .action((options: Options) => runCommand(() => check(options, io, checkRoutes), io))
}

async function check(options: Options, io: Io, checkRoutes: CheckRoutes): Promise<void> {
  const findings = checkCluster(read(options), checkRoutes).filter(
    ({ namespace }) => options.namespace === undefined || namespace === null || namespace === options.namespace,
  )
  const lines = findings.map(({ code, namespace, object, message }) =>
    [code, `${namespace === null ? '' : `${namespace}/`}${object}`, message].join('  '),
  )
  const text = [...lines, `${findings.length} findings`].join('\n')
  io.stdout.write(`${options.json === true ? JSON.stringify({ findings }, null, 2) : text}\n`)
  if (findings.length > 0) io.exitCode = 1
}

function read({ kubectl, context, from }: Options): readonly JsonObject[] {
  const text = from === undefined ? ask(kubectl, context) : textOf(from)
  try {
    const list: unknown = JSON.parse(text)
    if (isObject(list)) return listAt(list.items, 'items').filter(isObject)
  } catch {
    // Reported below.
  }
  throw new ConfigError(['the input is not a JSON list of Kubernetes objects'])
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (err) {
    throw new ConfigError([fileProblem(path, err)])
  }
}

function ask(kubectl: string, context: string | undefined): string {
  const chosen = context === undefined ? [] : [`--context=${context}`]
  const known = new Set(output(kubectl, ['api-resources', '--output=name', ...chosen]).split('\n'))
  const kinds = [...KINDS, ...OPTIONAL_KINDS.filter((kind) => known.has(kind))]
  return output(kubectl, ['get', '--all-namespaces', '--output=json', kinds.join(','), ...chosen])
}

/** Standard output of kubectl. Throws ConfigError. */
export function output(kubectl: string, words: readonly string[]): string {
  const { status, stdout, stderr, error } = spawnSync(kubectl, words, {
    encoding: 'utf8',
    maxBuffer: OUTPUT_BYTES_MAX,
  })
  if (error !== undefined) {
    const isMissing = 'code' in error && error.code === 'ENOENT'
    const reason = isMissing ? 'it is not installed here; --kubectl names another program' : error.message
    throw new ConfigError([`${kubectl} could not be started: ${reason}`])
  }
  if (status !== 0) throw new ConfigError([`${kubectl} failed: ${stderr.trim()}`])
  return stdout
}
