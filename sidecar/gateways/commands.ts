/** The commands about gateways: `gateway-config` and `probe-gateway`. Their parts are loaded when they run. */
import { randomBytes } from 'node:crypto'
import type { Command } from 'commander'
import { ConfigError, runCommand } from '../../pdp/shared/process/exit.ts'
import { listenOption } from '../../pdp/shared/process/listen.ts'
import { readToken, unverifiedClaims } from '../commands/token-file.ts'
import { loadRouteFile } from '../config/config.ts'
import type { ConfigFile } from './plan.ts'

type ConfigOptions = {
  readonly listen: string
  readonly door?: string
  readonly ca: string
  readonly cert: string
  readonly key: string
}
type ProbeOptions = {
  readonly url: string
  readonly file: string
  readonly admin: readonly string[]
  readonly token?: string
  readonly doorStopped?: true
  readonly allMethods?: true
  readonly json?: true
}

export function addGatewayCommands(program: Command, io: NodeJS.Process): void {
  program
    .command('gateway-config <gateway> <file>')
    .description(
      'Print the configuration with which a gateway asks a door of a route file about every request: envoy, istio, gateway-api, envoy-gateway, nginx, traefik or caddy.',
    )
    .option('--listen <host:port>', 'where the gateway listens', '0.0.0.0:8080')
    .option('--door <host:port>', 'where the gateway reaches the door (default: where the route file says it listens)')
    .option(
      '--ca <path>',
      'authority of the door’s certificate, as the gateway sees the file',
      '/etc/portcullis/ca.crt',
    )
    .option('--cert <path>', 'certificate of the gateway', '/etc/portcullis/tls.crt')
    .option('--key <path>', 'its key', '/etc/portcullis/tls.key')
    .action((gateway: string, path: string, options: ConfigOptions) =>
      runCommand(() => print({ gateway, path, options }, io), io),
    )
  program
    .command('probe-gateway')
    .description(
      'Ask a running gateway for everything that a route file guards, in every known spelling, and report what the door did not refuse.',
    )
    .addHelpText(
      'after',
      '\nOnly GET and HEAD with made-up ids are sent, at most 5,000 in a run.\nExit status: 0 everything is held; 1 something is not, or the gateway or the sidecar does not answer; 64 an error in the options or a file.',
    )
    .requiredOption('--url <url>', 'the gateway, such as https://app.example.com')
    .requiredOption('-f, --file <path>', 'the route file')
    .option('--admin <url...>', 'the admin port of each sidecar that the gateway asks', ['http://127.0.0.1:15094'])
    .option('--token <file>', 'a file with an access token that is valid and holds nothing (- means standard input)')
    .option('--door-stopped', 'the second run, when you have stopped the sidecar: no guarded request may get through')
    .option('--all-methods', 'also POST, PUT, PATCH and DELETE, for a test instance')
    .option('--json', 'print JSON')
    .action((options: ProbeOptions) => runCommand(() => probe(options, io), io))
}

async function print(
  { gateway, path, options }: { readonly gateway: string; readonly path: string; readonly options: ConfigOptions },
  io: NodeJS.Process,
): Promise<void> {
  const { GATEWAYS, gatewayConfig, isGatewayName } = await import('./gateway-config.ts')
  const { PlanError } = await import('./plan-error.ts')
  if (!isGatewayName(gateway))
    throw new ConfigError([`${JSON.stringify(gateway)} is not one of ${Object.keys(GATEWAYS).join(', ')}`])
  const { ca, cert, key } = options
  const places = { listen: listenOption(options.listen, '--listen'), ca, cert, key }
  const door = options.door === undefined ? null : listenOption(options.door, '--door')
  try {
    io.stdout.write(joined(gatewayConfig(gateway, loadRouteFile(path), { ...places, door })))
  } catch (err) {
    throw err instanceof PlanError ? new ConfigError([`${path}: ${err.message}`]) : err
  }
}

/** The text of all files. Several files become documents of one stream, each below its name. */
const joined = (files: readonly ConfigFile[]): string =>
  files.length === 1 ? (files[0]?.text ?? '') : files.map(({ name, text }) => `# ${name}\n${text}`).join('---\n')

async function probe(options: ProbeOptions, io: NodeJS.Process): Promise<void> {
  const [{ planProbes }, { probeAll }, { describeReport, isHeld, reportOf }] = await Promise.all([
    import('./probe/plan.ts'),
    import('./probe/probe.ts'),
    import('./probe/report.ts'),
  ])
  const url = originOf(options.url, '--url')
  const admins = options.admin.map((text) => originOf(text, '--admin'))
  const file = loadRouteFile(options.file)
  const token = options.token === undefined ? null : readToken(options.token)
  const claims = token === null ? null : unverifiedClaims(token)
  if (token !== null && claims === null) throw new ConfigError(['--token must name a file with an access token (JWT)'])
  const madeUp = `probe-${randomBytes(6).toString('hex')}`
  const { probes, leftOut } = planProbes(file, { claims, allMethods: options.allMethods === true, madeUp })
  if (probes.length === 0)
    throw new ConfigError([`${options.file}: no route guards anything, so nothing can be probed`])
  const doorStopped = options.doorStopped === true
  const report = reportOf(await probeAll(probes, { url, admins, token, doorStopped }), leftOut)
  if (options.json === true) io.stdout.write(`${JSON.stringify(report, null, 2)}\n`)
  else io.stdout.write(`${describeReport(report).join('\n')}\n`)
  if (!isHeld(report)) io.exitCode = 1
}

function originOf(text: string, option: string): URL {
  const url = URL.parse(text)
  if (url !== null && /^https?:$/.test(url.protocol) && url.href === `${url.origin}/`) return url
  throw new ConfigError([`${option} ${JSON.stringify(text)} must be an http or https URL without a path`])
}
