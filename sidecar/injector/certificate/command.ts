/** `certificate`: certificates for machines outside of Kubernetes. `injector maintain-certificate`: keeps the webhook's valid. */
import { chownSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { join } from 'node:path'
import { type Command, Option } from 'commander'
import { messageOf } from '../../../pdp/shared/base/error-message.ts'
import { fileProblem } from '../../../pdp/shared/process/command/file-problem.ts'
import { ConfigError, runCommand } from '../../../pdp/shared/process/exit.ts'
import { createLog } from '../../../pdp/shared/process/log.ts'
import { openLogOutput } from '../../../pdp/shared/process/log-output.ts'
import { startRepeated } from '../../../pdp/shared/process/repeated-runs.ts'
import { createShutdown } from '../../../pdp/shared/process/shutdown.ts'
import { makeAuthority, withAuthority } from './certificate.ts'
import { apiServerProblem, openKubeApi } from './kube-api.ts'
import { type CertificateGoal, maintainCertificate } from './maintain.ts'

type Options = {
  readonly service: string
  readonly namespace: string
  readonly secret: string
  readonly webhook: string
  readonly bundles?: string
  readonly days: string
  readonly apiServer: string
  readonly tokenFile: string
}

const EVERY_MS = 60_000
const SHUTDOWN_TIMEOUT_MS = 10_000
const DAYS_MAX = 3_650

type PairOptions = { readonly out: string; readonly days: string; readonly owner?: string }

export function addCertificate(program: Command, io: NodeJS.Process): void {
  program
    .command('certificate <hosts...>')
    .description(
      'Make a certificate and a key for each host, of one new authority whose key is not kept: HOST/tls.crt, HOST/tls.key and HOST/ca.pem. A host may have other names behind commas: pdp,localhost. Where all are there, nothing changes.',
    )
    .requiredOption('--out <folder>', 'folder of the folders')
    .option('--days <count>', 'days until the certificates expire', '365')
    .option('--owner <uid>', 'number of the user who reads the keys; only root can give them away')
    .action((hosts: readonly string[], options: PairOptions) => runCommand(() => makePairs(hosts, options, io), io))
}

const NAME = /^(?=.{1,253}$)(?:\*\.)?[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?)*$/i

async function makePairs(hosts: readonly string[], options: PairOptions, io: NodeJS.Process): Promise<void> {
  const { days, problems } = readCertificateOptions({}, options.days)
  const wanted = hosts.map((host) => host.split(','))
  const odd = wanted.flat().filter((name) => isIP(name) === 0 && !NAME.test(name))
  problems.push(...odd.map((name) => `${JSON.stringify(name)} is no host name and no address`))
  if (new Set(wanted.map(([name]) => name)).size < wanted.length) problems.push('a host is named twice')
  const owner = options.owner === undefined ? null : Number(options.owner)
  if (owner !== null && !/^\d{1,10}$/.test(options.owner ?? '')) problems.push('--owner must be the number of a user')
  if (problems.length > 0) throw new ConfigError(problems)
  const paths = wanted.map(([name = '']) => join(options.out, name))
  const present = paths.flatMap((path) => FILES.map((name) => join(path, name))).map((path) => existsSync(path))
  if (present.every(Boolean)) {
    io.stdout.write(`kept: ${options.out} has them all; to renew them, remove the files tls.crt\n`)
    return
  }
  const nowMs = Date.now()
  const { authority, issue } = await makeAuthority({ days, nowMs })
  for (const [position, names] of wanted.entries()) {
    const folder = paths[position] ?? ''
    const made = await issue(names)
    written(folder, () => mkdirSync(folder, { recursive: true }))
    addAuthority(join(folder, 'ca.pem'), authority, nowMs)
    for (const [name, text, mode] of [
      ['tls.key', made.key, 0o600],
      ['tls.crt', made.certificate, 0o644],
    ] as const) {
      const path = join(folder, name)
      written(path, () => writeFileSync(path, text, { mode }))
      if (owner !== null) written(path, () => chownSync(path, owner, owner))
    }
    io.stdout.write(`${folder}: ${names.join(', ')}, for ${days} days\n`)
  }
}
const FILES = ['ca.pem', 'tls.crt', 'tls.key'] as const

/** Writes the authority into the file, after those there that have not expired. Throws ConfigError. */
export function addAuthority(path: string, authority: string, nowMs: number): void {
  written(path, () => {
    const before = existsSync(path) ? readFileSync(path, 'utf8') : ''
    writeFileSync(path, withAuthority(before, authority, nowMs))
  })
}

function written(path: string, write: () => void): void {
  try {
    write()
  } catch (err) {
    throw new ConfigError([fileProblem(path, err, 'written')])
  }
}

export function addMaintainCertificate(injector: Command, io: NodeJS.Process): void {
  injector
    .command('maintain-certificate')
    .description(
      "Keep the webhook's certificate valid: make it, renew it when a third of its time is left, and give the API server its authority.",
    )
    .option('--service <name>', 'Service that presents the certificate', 'portcullis-injector')
    .option('--namespace <name>', 'namespace of the chart', 'portcullis')
    .option('--secret <name>', 'Secret that holds the certificate; it must exist', 'portcullis-injector-tls')
    .option('--webhook <name>', 'webhook configurations that trust it; none: no webhook', 'zz-portcullis-injector')
    .option('--bundles <namespace/name,…>', 'ConfigMaps by whose ca.crt others trust it; they must exist')
    .option('--days <count>', 'days until a certificate expires', '90')
    .option('--api-server <origin>', 'the API server', 'https://kubernetes.default.svc')
    .addOption(
      new Option('--token-file <path>', 'token of the ServiceAccount').default(
        '/var/run/secrets/kubernetes.io/serviceaccount/token',
        'that of the Pod',
      ),
    )
    .action((options: Options) => runCommand(() => maintain(options, io), io))
}

async function maintain(options: Options, io: NodeJS.Process): Promise<void> {
  const service = 'portcullis-injector-certificate'
  const log = createLog({ service, level: 'info', destination: openLogOutput(service) })
  const goal = readGoal(options)
  const api = openKubeApi({ server: options.apiServer, tokenFile: options.tokenFile })
  const shutdown = createShutdown({ log, timeoutMs: SHUTDOWN_TIMEOUT_MS })
  shutdown.onSignals((status) => io.exit(status))
  const once = async (): Promise<void> => {
    const { renewed, published, notAfterMs } = await maintainCertificate(api, { ...goal, nowMs: Date.now() })
    const not_after = new Date(notAfterMs).toISOString()
    if (renewed !== null) log.info({ event: 'certificate_made', reason: renewed, not_after })
    if (published) log.info({ event: 'authorities_published', webhook: goal.webhook, bundles: goal.bundles.length })
  }
  const failed = (err: unknown): void => log.error({ event: 'certificate_not_maintained', reason: messageOf(err) })
  shutdown.add('certificate', startRepeated(once, { intervalMs: EVERY_MS, failed, isAlone: true }))
}

/** Throws ConfigError. */
function readGoal(options: Options): Omit<CertificateGoal, 'nowMs'> {
  const { service, namespace, secret, webhook } = options
  const { days, problems } = readCertificateOptions({ service, namespace, secret, webhook }, options.days)
  const problem = apiServerProblem(options.apiServer)
  if (problem !== null) problems.push(problem)
  const bundles = (options.bundles ?? '').split(',').filter((text) => text !== '')
  const named = bundles.flatMap((text) => {
    const [, at = '', name = ''] = /^([a-z0-9][-a-z0-9]{0,62})\/([a-z0-9][-a-z0-9.]{0,252})$/.exec(text) ?? []
    if (name === '') problems.push(`--bundles must list ConfigMaps as namespace/name, not ${JSON.stringify(text)}`)
    return name === '' ? [] : [{ namespace: at, name }]
  })
  if (problems.length > 0) throw new ConfigError(problems)
  const trusting = { webhook: webhook === 'none' ? null : webhook, bundles: named }
  return { namespace, secret, days, names: serviceNames(service, namespace), ...trusting }
}

/** Reads the options that all certificate commands have: names of Kubernetes objects, and days. */
export function readCertificateOptions(
  names: { readonly [option: string]: string },
  days: string,
): { readonly days: number; readonly problems: string[] } {
  const problems = Object.entries(names).flatMap(([option, value]) =>
    /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/.test(value) ? [] : [`--${option} must be a Kubernetes name`],
  )
  const count = Number(days)
  if (!Number.isInteger(count) || count < 1 || count > DAYS_MAX) problems.push(`--days must be 1 to ${DAYS_MAX}`)
  return { days: count, problems }
}

/** The DNS names of a Service inside the cluster. */
export const serviceNames = (service: string, namespace: string): readonly string[] => [
  `${service}.${namespace}.svc`,
  `${service}.${namespace}.svc.cluster.local`,
]
