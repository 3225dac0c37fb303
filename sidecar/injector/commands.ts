/** The injector's part of the command line. */

import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { fileProblem } from '../../pdp/shared/process/command/file-problem.ts'
import { ConfigError, runCommand } from '../../pdp/shared/process/exit.ts'
import { listenOption } from '../../pdp/shared/process/listen.ts'
import { createLog } from '../../pdp/shared/process/log.ts'
import { openLogOutput } from '../../pdp/shared/process/log-output.ts'
import { createShutdown } from '../../pdp/shared/process/shutdown.ts'
import { makeCertificate, secretManifest } from './certificate/certificate.ts'
import {
  addAuthority,
  addCertificate,
  addMaintainCertificate,
  readCertificateOptions,
  serviceNames,
} from './certificate/command.ts'
import type { CheckRoutes } from './check-cluster/asking.ts'
import { addCheckCluster } from './check-cluster/command.ts'
import { addStatus } from './check-cluster/status.ts'
import { injectFile } from './inject-file.ts'
import { addOnboardNamespaces } from './onboarding/command.ts'
import { loadInjectorConfig } from './pod/config.ts'
import { startInjector } from './start.ts'
import { askInjector } from './webhook/ask.ts'
import type { RouteFileReport } from './webhook/checks.ts'

/** Makes the reports of `check` about route files, at once or in a thread. */
export type RouteFiles = {
  readonly check: CheckRoutes
  readonly checkAside: (text: string, platform: string | null) => Promise<RouteFileReport>
  /** The errors in a platform's text for all route files. */
  readonly platformIssues: (text: string) => readonly string[]
}
type ServeOptions = {
  readonly config: string
  readonly certificate: string
  readonly listen: string
  readonly adminListen: string
}
type CertificateOptions = {
  readonly service: string
  readonly namespace: string
  readonly secret: string
  readonly days: string
  readonly ca?: string
}

const SHUTDOWN_TIMEOUT_MS = 10_000
const CERTIFICATE_CHECK_MS = 10_000

/** Adds `certificate`, `injector`, `injector certificate`, `injector maintain-certificate`, `injector onboard-namespaces`, `injector ask`, `inject`, `check-cluster` and `status`. */
export function addInjectorCommands(program: Command, io: NodeJS.Process, routeFiles: RouteFiles): void {
  const injector = program
    .command('injector')
    .description('Serve the admission webhook that adds sidecars to Pods.')
    .option('--config <path>', 'file with its settings', '/etc/portcullis/injector/injector.yaml')
    .option(
      '--certificate <folder>',
      'folder with tls.crt and tls.key, reloaded when they change',
      '/etc/portcullis/tls',
    )
    .option('--listen <host:port>', 'address of the webhook (TLS 1.3)', ':15443')
    .option('--admin-listen <host:port>', 'address of metrics and probes', ':15094')
    .action((options: ServeOptions) => runCommand(() => serve(options, io, routeFiles), io))
  injector
    .command('certificate')
    .description(
      'Print a Secret with a new certificate for the webhook, or with --service for the PDP, and its new certificate authority.',
    )
    .option('--service <name>', 'Service that presents the certificate', 'portcullis-injector')
    .option('--namespace <name>', 'namespace of the chart', 'portcullis')
    .option('--secret <name>', 'name of the Secret', 'portcullis-injector-tls')
    .option('--days <count>', 'days until the certificate expires', '365')
    .option('--ca <path>', 'file of authorities, for the value caBundle: the new one is added to those that still hold')
    .action((options: CertificateOptions) => runCommand(() => certificate(options, io), io))
  addMaintainCertificate(injector, io)
  addOnboardNamespaces(injector, io)
  injector
    .command('ask <url>')
    .description('Ask a running injector to add a sidecar to an example Pod; exit with 1 if it does not.')
    .requiredOption('--authority <path>', 'PEM file with the authority of its certificate')
    .action((url: string, options: { authority: string }) => runCommand(() => ask(url, options, io), io))
  program
    .command('inject <file>')
    .description('Print the manifests of a file (- is standard input) as the injector would change them.')
    .requiredOption('--config <path>', "file with the injector's settings, from the chart's ConfigMap")
    .option('--required', 'treat the namespace as one that requires the sidecar')
    .action((path: string, options: { config: string; required?: true }) =>
      runCommand(() => injectManifests(path, options, io), io),
    )
  addCheckCluster(program, io, routeFiles.check)
  addStatus(program, io)
  addCertificate(program, io)
}

async function serve(options: ServeOptions, io: NodeJS.Process, routeFiles: RouteFiles): Promise<void> {
  const config = loadInjectorConfig(options.config)
  const { platform } = config
  const issues = platform === null ? [] : routeFiles.platformIssues(platform)
  // With this platform text no sidecar would start, so neither does the injector.
  if (issues.length > 0) throw new ConfigError(issues.map((issue) => `${options.config}: platform: ${issue}`))
  const output = openLogOutput('portcullis-injector')
  const log = createLog({ service: 'portcullis-injector', level: 'info', destination: output })
  const shutdown = createShutdown({ log, timeoutMs: SHUTDOWN_TIMEOUT_MS })
  shutdown.onSignals((status) => io.exit(status))
  await startInjector(
    {
      config,
      certificateFolder: options.certificate,
      certificateCheckMs: CERTIFICATE_CHECK_MS,
      listen: listenOption(options.listen, '--listen'),
      adminListen: listenOption(options.adminListen, '--admin-listen'),
      checkRoutes: (text) => routeFiles.checkAside(text, platform),
    },
    { log, shutdown, droppedLines: output.droppedCount },
  )
}

async function certificate(options: CertificateOptions, io: NodeJS.Process): Promise<void> {
  const { service, namespace, secret } = options
  const { days, problems } = readCertificateOptions({ service, namespace, secret }, options.days)
  if (problems.length > 0) throw new ConfigError(problems)
  const nowMs = Date.now()
  const made = await makeCertificate({ names: serviceNames(service, namespace), days, nowMs })
  if (options.ca !== undefined) addAuthority(options.ca, made.authority, nowMs)
  io.stdout.write(secretManifest(made, { name: secret, namespace }))
}

async function ask(url: string, { authority }: { authority: string }, io: NodeJS.Process): Promise<void> {
  const origin = URL.parse(url)
  if (origin?.protocol !== 'https:') throw new ConfigError([`${JSON.stringify(url)} is not an https URL`])
  await askInjector(origin.origin, readBytes(authority))
  io.stdout.write('the injector adds a sidecar to the example Pod\n')
}

function readBytes(path: string): Buffer {
  try {
    return readFileSync(path)
  } catch (err) {
    throw new ConfigError([fileProblem(path, err)])
  }
}

async function injectManifests(
  path: string,
  options: { config: string; required?: true },
  io: NodeJS.Process,
): Promise<void> {
  const config = loadInjectorConfig(options.config)
  const text = await readManifests(path, io)
  const report = injectFile(text, { config, mode: options.required === true ? 'required' : 'enabled' })
  io.stderr.write(report.lines.map((line) => `${line}\n`).join(''))
  io.stdout.write(report.yaml)
  if (report.deniedCount > 0) io.exitCode = 1
}

async function readManifests(path: string, io: NodeJS.Process): Promise<string> {
  if (path !== '-') return readBytes(path).toString('utf8')
  return (await io.stdin.setEncoding('utf8').toArray()).join('')
}
