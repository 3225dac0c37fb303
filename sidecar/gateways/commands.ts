/** The command line of gateways: `check-gateway` and `gateway-config`. What they need is loaded when they run. */

import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { messageOf } from '../../pdp/shared/base/error-message.ts'
import { fileProblem } from '../../pdp/shared/process/command/file-problem.ts'
import { ConfigError, runCommand } from '../../pdp/shared/process/exit.ts'
import { parseListenAddress } from '../../pdp/shared/process/listen.ts'
import { loadRouteFile } from '../config/config.ts'
import type { ConfigFile, HostAndPort } from './plan.ts'

type Io = NodeJS.Process
type ConfigOptions = {
  readonly listen: string
  readonly door?: string
  readonly ca: string
  readonly cert: string
  readonly key: string
}

export function addGatewayCommands(program: Command, io: Io): void {
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
    .command('check-gateway <file...>')
    .description(
      'Report each setting of a gateway that forwards other bytes than the door checked, does not ask the door, or fails open. Reads Envoy, Istio, Gateway API, Envoy Gateway, nginx (*.conf), Traefik and Caddy.',
    )
    .addHelpText(
      'after',
      '\nExit status: 0 no findings, or all are accepted; 1 there are other findings; 64 a file cannot be read or is of no known kind.\nA comment on the line, or right above it, accepts a finding: # portcullis: accept CODE: the reason',
    )
    .option('--json', 'print the findings as JSON')
    .action((paths: string[], options: { readonly json?: true }) => runCommand(() => check(paths, options, io), io))
}

async function print(
  { gateway, path, options }: { readonly gateway: string; readonly path: string; readonly options: ConfigOptions },
  io: Io,
): Promise<void> {
  const { GATEWAYS, gatewayConfig, isGatewayName } = await import('./gateway-config.ts')
  const { PlanError } = await import('./plan-error.ts')
  if (!isGatewayName(gateway))
    throw new ConfigError([`${JSON.stringify(gateway)} is not one of ${Object.keys(GATEWAYS).join(', ')}`])
  const { ca, cert, key } = options
  const places = { listen: addressOf(options.listen, '--listen'), ca, cert, key }
  const door = options.door === undefined ? null : addressOf(options.door, '--door')
  try {
    io.stdout.write(joined(gatewayConfig(gateway, loadRouteFile(path), { ...places, door })))
  } catch (err) {
    throw err instanceof PlanError ? new ConfigError([`${path}: ${err.message}`]) : err
  }
}

/** Several files become documents of one stream, each under its name. */
const joined = (files: readonly ConfigFile[]): string =>
  files.length === 1 ? (files[0]?.text ?? '') : files.map(({ name, text }) => `# ${name}\n${text}`).join('---\n')

function addressOf(text: string, option: string): HostAndPort {
  try {
    return parseListenAddress(text)
  } catch (err) {
    throw new ConfigError([`${option} ${messageOf(err)}`])
  }
}

async function check(paths: readonly string[], { json }: { readonly json?: true }, io: Io): Promise<void> {
  const { checkGateways } = await import('./check/check-gateway.ts')
  const { FINDING_CODES } = await import('./check/finding.ts')
  const { UnreadableError } = await import('./read/source.ts')
  try {
    const { findings, accepted } = checkGateways(paths.map((file) => ({ file, text: textOf(file) })))
    if (json === true) io.stdout.write(`${JSON.stringify({ findings, accepted }, null, 2)}\n`)
    else {
      const lines = findings.map(
        ({ file, line, code, message, fix }) => `${file}:${line}: ${code}: ${message}\n    ${fix}`,
      )
      const known = accepted.map(
        ({ file, line, code, message, reason }) =>
          `${file}:${line}: accepted ${code}: ${message}\n    because: ${reason}`,
      )
      const codes = [...new Set(findings.map(({ code }) => code))].map((code) => `${code}: ${FINDING_CODES[code]}`)
      const counted = `${findings.length} unsafe setting${findings.length === 1 ? '' : 's'}${accepted.length > 0 ? `, ${accepted.length} accepted` : ''}`
      io.stdout.write(`${[...lines, ...known, ...codes, counted].join('\n')}\n`)
    }
    if (findings.length > 0) io.exitCode = 1
  } catch (err) {
    throw err instanceof UnreadableError ? new ConfigError([err.message]) : err
  }
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (err) {
    throw new ConfigError([fileProblem(path, err)])
  }
}
