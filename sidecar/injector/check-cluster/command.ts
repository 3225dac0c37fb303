/** `check-cluster`: reads the cluster by kubectl, with the operator's own contexts and credentials. */

import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { fileProblem } from '../../../pdp/shared/process/command/file-problem.ts'
import { ConfigError, runCommand } from '../../../pdp/shared/process/exit.ts'
import { isObject, type JsonObject, listAt } from '../pod/json.ts'
import type { CheckRoutes } from './asking.ts'
import { checkCluster } from './check-cluster.ts'
import { type Kubectl, openKubectl } from './kubectl.ts'
import { statusLines } from './status.ts'
import { ofKind } from './watched.ts'

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
/** Kinds that a cluster may lack. They are read only if it has them, because kubectl refuses an unknown kind. */
const OPTIONAL_KINDS = [
  'rollouts.argoproj.io',
  'httproutes.gateway.networking.k8s.io',
  'grpcroutes.gateway.networking.k8s.io',
  'securitypolicies.gateway.envoyproxy.io',
]

export function addCheckCluster(program: Command, io: NodeJS.Process, checkRoutes: CheckRoutes): void {
  program
    .command('check-cluster')
    .description(
      'List what leads past a sidecar, who asks for one in vain, and wrong route files; exit with 1 if there is any. With --namespace also what status says.',
    )
    .option('--kubectl <path>', 'path of kubectl', 'kubectl')
    .option('--context <name>', 'context of the kubeconfig')
    .option('-n, --namespace <name>', 'only this namespace')
    .option('--from <file>', 'read this file instead: what kubectl get -A -o json prints of the kinds below')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      `\nKinds, which kubectl takes with commas between:\n${KINDS.map((kind) => `  ${kind}\n`).join('')}`,
    )
    .action((options: Options) => runCommand(() => check(options, io, checkRoutes), io))
}

async function check(options: Options, io: NodeJS.Process, checkRoutes: CheckRoutes): Promise<void> {
  const { namespace: only, from } = options
  const kubectl = openKubectl(options.kubectl, options.context)
  const objects = read(kubectl, from)
  const findings = checkCluster(objects, checkRoutes).filter(
    ({ namespace }) => only === undefined || namespace === null || namespace === only,
  )
  // The sidecars of one namespace only are asked, one by one: a whole cluster would take long.
  const pods = only === undefined || from !== undefined ? [] : ofKind(objects, 'Pod')
  const own = pods.filter(({ namespace }) => namespace === only)
  const status = statusLines(own, { objects, ask: kubectl })
  const lines = findings.map(({ code, namespace, object, message }) =>
    [code, `${namespace === null ? '' : `${namespace}/`}${object}`, message].join('  '),
  )
  const text = [...lines, `${findings.length} findings`, ...status.map((line) => `status  ${line.text}`)].join('\n')
  const asJson = { findings, status: status.map((line) => line.text) }
  io.stdout.write(`${options.json === true ? JSON.stringify(asJson, null, 2) : text}\n`)
  if (findings.length > 0) io.exitCode = 1
}

function read(kubectl: Kubectl, from: string | undefined): readonly JsonObject[] {
  const text = from === undefined ? ask(kubectl) : textOf(from)
  try {
    const list: unknown = JSON.parse(text)
    if (isObject(list)) return listAt(list.items, 'items').filter(isObject)
  } catch {
    // A text that is not JSON is reported below.
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

function ask(kubectl: Kubectl): string {
  const known = new Set(kubectl('api-resources', '--output=name').split('\n'))
  const kinds = [...KINDS, ...OPTIONAL_KINDS.filter((kind) => known.has(kind))]
  return kubectl('get', '--all-namespaces', '--output=json', kinds.join(','))
}
