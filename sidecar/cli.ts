/** The command line of `portcullis-sidecar`. */
import { readFileSync, writeFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { Command, type CommanderError } from 'commander'
import { parseAddress } from '../pdp/process/addresses.ts'
import { ConfigError, EXIT_USAGE, runCommand } from '../pdp/process/exit.ts'
import { createLog } from '../pdp/process/log.ts'
import { openLogOutput } from '../pdp/process/log-output.ts'
import { createShutdown } from '../pdp/process/shutdown.ts'
import { parseJws, TOKEN_CHARS_MAX } from '../pdp/token/jws.ts'
import type { Explanation } from './commands/explain.ts'
import type { Asked, AskedRequest } from './commands/explain-token.ts'
import { addOpenApi } from './commands/openapi-command.ts'
import { loadConfig, loadRouteFile, readConfig, SETTINGS, type SidecarFlags } from './config/config.ts'
import { addGatewayCommands } from './gateways/commands.ts'

/** Must be longer than `drainMs`, the time that open requests get to finish. */
const SHUTDOWN_TIMEOUT_MS = 30_000

type Io = NodeJS.Process
type CheckOptions = { readonly pdp?: true; readonly token?: string }
type WithdrawOptions = { readonly control: string; readonly seconds: string }
type ExplainOptions = {
  readonly file: string
  readonly claim: string[]
  readonly header: string[]
  readonly body?: string
  readonly token?: string
  readonly from?: string
}

/** Runs one command. `run` keeps serving after the promise has resolved, until SIGINT or SIGTERM. */
export async function runSidecarCli(io: Io): Promise<void> {
  const program = new Command('portcullis-sidecar')
    .description('Reverse proxy that forwards only the requests that the policy decision point (PDP) allows.')
    .addHelpText('after', `\nEnvironment:\n${settings()}`)
    .showHelpAfterError('Try: portcullis-sidecar --help')
  addCommands(program, io)
  addControls(program, io)
  addGatewayCommands(program, io)
  addOpenApi(program, io)
  if (mayBeInjector(io.argv[2])) {
    const { addInjectorCommands } = await import('./injector/commands.ts')
    addInjectorCommands(program, io)
  }
  const nested = program.commands.flatMap(({ commands }) => commands)
  for (const command of [program, ...program.commands, ...nested]) command.exitOverride((err) => exitWith(err, io))
  await program.parseAsync(io.argv)
}

const OWN = new Set(
  'run init schema check routes test explain drain withdraw gateway-config check-gateway openapi'.split(' '),
)

/** The injector's commands are loaded only when needed, to save memory in pods. Help lists them. No command means `run`. */
const mayBeInjector = (word: string | undefined): boolean =>
  word !== undefined && !OWN.has(word) && (!word.startsWith('-') || word === '--help' || word === '-h')

function addCommands(program: Command, io: Io): void {
  program
    .command('run', { isDefault: true })
    .description('Serve until SIGINT or SIGTERM (the default).')
    .option('-f, --file <path>', 'the route file')
    .option('--listen <host:port>', 'address of the data port')
    .option('--admin-listen <host:port>', 'address of metrics and probes')
    .action((flags: SidecarFlags) => runCommand(() => run(flags, io), io))
  program
    .command('init [file]')
    .description('Write a first route file (default: portcullis.yaml). Never overwrites a file.')
    .option('--openapi <path>', 'an OpenAPI document: each operation becomes a route, with tests')
    .action((path: string | undefined, options: { openapi?: string }) =>
      runCommand(() => init(path ?? 'portcullis.yaml', options, io), io),
    )
  program
    .command('schema')
    .description('Print the JSON Schema of route files, for editors that cannot fetch it.')
    .action(() => runCommand(() => printSchema(io), io))
  program
    .command('check <file>')
    .description('Report every error in a route file (exit code 64 if there is any), and warn about similar routes.')
    .option('--pdp', 'also warn of relations and permissions that the PDP does not know; needs --token')
    .option('--token <file>', 'a file with an access token of any organization (- means standard input)')
    .action((path: string, options: CheckOptions) => runCommand(() => check(path, options, io), io))
  program
    .command('routes <file>')
    .description('List the routes of a route file, most specific first.')
    .action((path: string) => runCommand(() => listRoutes(path, io), io))
  program
    .command('test <file>')
    .description('Run the tests in the route file (exit code 1 if a test fails).')
    .action((path: string) => runCommand(() => test(path, io), io))
  program
    .command('explain <method> <url>')
    .description(
      'Show which route a request matches and what the PDP is asked. With --token, also ask the PDP and show its decision.',
    )
    .addHelpText(
      'after',
      '\nExit codes: 0 the request would be forwarded, 1 it would be denied, 64 an error in the route file or the options.',
    )
    .option('-f, --file <path>', 'the route file', 'portcullis.yaml')
    .option(
      '--claim <name=value>',
      'a claim of the access token; without --claim and --token the request has no token',
      collect,
      [],
    )
    .option('--header <name: value>', 'a header field of the request', collect, [])
    .option('--body <json>', 'the body of the request')
    .option('--from <address>', 'the address of the client')
    .option(
      '--token <file>',
      'a file with an access token (- means standard input); the command contacts the issuer and the PDP',
    )
    .action((method: string, url: string, options: ExplainOptions) =>
      runCommand(() => explain({ method, url }, options, io), io),
    )
}

function addControls(program: Command, io: Io): void {
  const socket = [
    '--control <path>',
    'path of the control socket of the running sidecar',
    io.env.PORTCULLIS_SIDECAR_CONTROL,
  ] as const
  program
    .command('drain')
    .description('Tell a running sidecar to finish its open requests and exit. Returns when the sidecar has finished.')
    .requiredOption(...socket)
    .action(({ control }: { control: string }) =>
      runCommand(async () => (await import('./runtime/control.ts')).sendCommand(control, 'drain'), io),
    )
  program
    .command('withdraw')
    .description(
      'Tell a running sidecar to report that it is not ready, while it keeps serving. Returns after --seconds.',
    )
    .requiredOption(...socket)
    .option('--seconds <count>', 'time for load balancers to stop sending requests', '5')
    .action((options: WithdrawOptions) => runCommand(() => withdraw(options), io))
}

async function withdraw({ control, seconds }: WithdrawOptions): Promise<void> {
  if (!/^\d{1,3}$/.test(seconds)) throw new ConfigError(['--seconds must be a whole number from 0 to 999'])
  const { sendCommand } = await import('./runtime/control.ts')
  await sendCommand(control, 'withdraw')
  await delay(Number(seconds) * 1_000)
}

const collect = (value: string, earlier: string[]): string[] => [...earlier, value]

/** Commander has printed the error. `--help` is not an error. */
function exitWith(err: CommanderError, io: Io): never {
  return io.exit(err.exitCode === 0 ? 0 : EXIT_USAGE)
}

async function run(flags: SidecarFlags, io: Io): Promise<void> {
  const config = readConfig(io.env, flags)
  const log = createLog({ service: 'portcullis-sidecar', level: config.logLevel, destination: openLogOutput() })
  const shutdown = createShutdown({ log, timeoutMs: SHUTDOWN_TIMEOUT_MS })
  shutdown.onSignals((status) => io.exit(status))
  const { startSidecar } = await import('./runtime/start.ts')
  await startSidecar(config, { log, shutdown })
}

async function init(path: string, { openapi }: { readonly openapi?: string }, io: Io): Promise<void> {
  const [{ firstRouteFile }, { readOpenApi }] = await Promise.all([
    import('./commands/init.ts'),
    import('./commands/openapi.ts'),
  ])
  const { text, leftOut } = firstRouteFile(openapi === undefined ? null : readOpenApi(readText(openapi), openapi))
  try {
    writeFileSync(path, text, { flag: 'wx' })
  } catch (err) {
    throw new ConfigError([`${path} cannot be written: ${err instanceof Error ? err.message : 'unknown error'}`])
  }
  for (const reason of leftOut) io.stdout.write(`${path}: warning: no route for ${reason}\n`)
  io.stdout.write(
    `${path}: written. Next: portcullis-sidecar check ${path}; portcullis-sidecar test ${path}; portcullis setup ORGANIZATION ${path}\n`,
  )
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (err) {
    throw new ConfigError([`${path} cannot be read: ${err instanceof Error ? err.message : 'unknown error'}`])
  }
}

async function printSchema(io: Io): Promise<void> {
  const { routeFileSchema } = await import('./route-file/format.ts')
  io.stdout.write(`${JSON.stringify(routeFileSchema(), null, 2)}\n`)
}

async function check(path: string, { pdp, token }: CheckOptions, io: Io): Promise<void> {
  if (pdp !== undefined && token === undefined) throw new ConfigError(['--pdp needs --token'])
  const file = loadRouteFile(path)
  const { routes, tests } = file
  const { servedHosts } = await import('./route-file/served-hosts.ts')
  const { methodWarnings, routeWarnings } = await import('./route-file/warnings.ts')
  const unknown = pdp === undefined ? [] : await askPdp(path, token ?? '')
  for (const warning of [...methodWarnings(routes), ...routeWarnings(routes), ...unknown])
    io.stdout.write(`${path}: warning: ${warning}\n`)
  io.stdout.write(
    `${path}: valid, ${routes.length} routes, ${tests.length} tests, hosts: ${servedHosts(file).join(', ')}\n`,
  )
}

async function askPdp(path: string, token: string): Promise<string[]> {
  const { pdpWarnings } = await import('./commands/check-pdp.ts')
  return pdpWarnings(loadConfig(path), { token: readToken(token), readToken })
}

async function listRoutes(path: string, io: Io): Promise<void> {
  const { describeRoutes } = await import('./commands/route-report.ts')
  io.stdout.write(`${describeRoutes(loadRouteFile(path)).join('\n')}\n`)
}

async function test(path: string, io: Io): Promise<void> {
  const { runRouteTests } = await import('./commands/route-report.ts')
  const report = runRouteTests(loadRouteFile(path), path)
  io.stdout.write(`${report.lines.join('\n')}\n`)
  if (report.failed > 0) io.exitCode = 1
}

async function explain(
  { method, url }: { method: string; url: string },
  options: ExplainOptions,
  io: Io,
): Promise<void> {
  const { createExplainer } = await import('./commands/explain.ts')
  const explainer = createExplainer(loadRouteFile(options.file))
  const token = options.token === undefined ? null : readToken(options.token)
  const given = options.claim.map((text) => pair(text, '=', '--claim'))
  const claims = given.length === 0 && token !== null ? claimsOf(token) : given
  const headers = options.header.map((text) => pair(text, ':', '--header'))
  const from = options.from === undefined ? null : parseAddress(options.from)
  if (options.from !== undefined && from === null)
    throw new ConfigError([`--from ${options.from} is not an IP address`])
  const explanation = explainer({
    method: method.toUpperCase(),
    target: url,
    as: claims.length === 0 ? null : Object.fromEntries(claims),
    headers,
    ...(options.body !== undefined && { body: options.body }),
    from,
  })
  io.stdout.write(`${describeExplanation(explanation).join('\n')}\n`)
  if (explanation.denial !== null) io.exitCode = 1
  if (token === null) return
  const asked = await ask(
    { method: method.toUpperCase(), url, token, from, headers, body: options.body ?? null },
    options,
  )
  io.stdout.write(`result      ${asked.verdict}\nreason      ${asked.reason}\n`)
  io.exitCode = asked.allowed ? 0 : 1
}

/** The token comes from a file, because every process can read command lines. */
function readToken(path: string): string {
  try {
    return readFileSync(path === '-' ? 0 : path, 'utf8').trim()
  } catch (err) {
    throw new ConfigError([`The token file cannot be read: ${err instanceof Error ? err.message : path}`])
  }
}

/** Unverified claims, used only to show the questions. The PDP's decision verifies the token. */
const claimsOf = (token: string): [string, unknown][] => Object.entries(parseJws(token, TOKEN_CHARS_MAX)?.payload ?? {})

async function ask(request: AskedRequest, { file }: ExplainOptions): Promise<Asked> {
  const [{ askAbout }, { commandLineDeps }] = await Promise.all([
    import('./commands/explain-token.ts'),
    import('./runtime/start.ts'),
  ])
  return askAbout(loadConfig(file), request, commandLineDeps())
}

function pair(text: string, mark: string, option: string): [string, string] {
  const at = text.indexOf(mark)
  if (at < 1) throw new ConfigError([`${option} ${JSON.stringify(text)} needs a name before ${mark}`])
  return [text.slice(0, at).trim(), text.slice(at + 1).trim()]
}

function describeExplanation({ route, parameters, asks, context, denial }: Explanation): string[] {
  const lines = [`route       ${route?.id ?? 'none'}`]
  for (const [name, value] of parameters) lines.push(`parameter   ${name} = ${value}`)
  if (denial !== null) return [...lines, `denied      ${denial.status} ${denial.code}: ${denial.detail}`]
  if (route?.check === null) return [...lines, 'public      forwarded without asking the PDP']
  for (const question of asks) lines.push(`asks        ${question}`)
  for (const [name, value] of Object.entries(context)) lines.push(`context     ${name} = ${JSON.stringify(value)}`)
  return asks.length === 0 ? [...lines, 'asks        only whether the access token is active'] : lines
}

function settings(): string {
  const width = Math.max(...SETTINGS.map(([name]) => name.length))
  return SETTINGS.map(([name, meaning]) => `  ${name.padEnd(width)}  ${meaning}`).join('\n')
}
