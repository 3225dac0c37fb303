/** The command line of `portcullis-sidecar`. */
import { readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { Command, type CommanderError } from 'commander'
import { ConfigError, EXIT_USAGE, runCommand } from '../pdp/process/exit.ts'
import { createLog } from '../pdp/process/log.ts'
import { openLogOutput } from '../pdp/process/log-output.ts'
import { createShutdown } from '../pdp/process/shutdown.ts'
import { parseJws } from '../pdp/token/jws.ts'
import type { Explanation } from './commands/explain.ts'
import type { Asked, AskedRequest } from './commands/explain-token.ts'
import { loadConfig, loadRouteFile, readConfig, SETTINGS, type SidecarFlags } from './config/config.ts'

/** Above the time that requests under way are given (limits.ts). */
const SHUTDOWN_TIMEOUT_MS = 30_000

/** As the verifier bounds it. */
const TOKEN_CHARS_MAX = 16_384

type Io = NodeJS.Process
type WithdrawOptions = { readonly control: string; readonly seconds: string }
type ExplainOptions = {
  readonly file: string
  readonly claim: string[]
  readonly header: string[]
  readonly body?: string
  readonly token?: string
}

/** Runs what the arguments say. `run` goes on after the promise has resolved, until SIGINT or SIGTERM. */
export async function runSidecarCli(io: Io): Promise<void> {
  const program = new Command('portcullis-sidecar')
    .description('Stands in front of a service and lets through what the policy decision point allows.')
    .addHelpText('after', `\nEnvironment:\n${settings()}`)
    .showHelpAfterError('Try: portcullis-sidecar --help')
  addCommands(program, io)
  addControls(program, io)
  if (mayBeInjector(io.argv[2])) {
    const { addInjectorCommands } = await import('./injector/commands.ts')
    addInjectorCommands(program, io)
  }
  const nested = program.commands.flatMap(({ commands }) => commands)
  for (const command of [program, ...program.commands, ...nested]) command.exitOverride((err) => exitWith(err, io))
  await program.parseAsync(io.argv)
}

const OWN = new Set(['run', 'check', 'routes', 'test', 'explain', 'drain', 'withdraw'])

/** Those commands are not loaded into every pod. Help names them; without a word, or with an option of it, it is `run`. */
const mayBeInjector = (word: string | undefined): boolean =>
  word !== undefined && !OWN.has(word) && (!word.startsWith('-') || word === '--help' || word === '-h')

function addCommands(program: Command, io: Io): void {
  program
    .command('run', { isDefault: true })
    .description('Serve until SIGINT or SIGTERM (the default).')
    .option('-f, --file <path>', 'the route file')
    .option('--listen <host:port>', 'the data port')
    .option('--admin-listen <host:port>', 'metrics and probes')
    .action((flags: SidecarFlags) => runCommand(() => run(flags, io), io))
  program
    .command('check <file>')
    .description('Say every mistake of a route file (exit 64 if there is one), and where routes come near each other.')
    .action((path: string) => runCommand(() => check(path, io), io))
  program
    .command('routes <file>')
    .description('List the routes of a route file, the most specific first.')
    .action((path: string) => runCommand(() => listRoutes(path, io), io))
  program
    .command('test <file>')
    .description("Run the route file's own tests; exit 1 if one fails.")
    .action((path: string) => runCommand(() => test(path, io), io))
  program
    .command('explain <method> <url>')
    .description('Say which route a request takes and what is asked about it, and with a token what comes out.')
    .addHelpText(
      'after',
      '\nEnds with 0 when the request could go on, 1 when it is refused, 64 for a mistake in the file or the options.',
    )
    .option('-f, --file <path>', 'the route file', 'portcullis.yaml')
    .option('--claim <name=value>', 'a claim of the token; without any, there is no token', collect, [])
    .option('--header <name: value>', 'a header field of the request', collect, [])
    .option('--body <json>', 'the body of the request')
    .option('--token <file>', 'a file with an access token (- is standard input): the issuer and the PDP are asked')
    .action((method: string, url: string, options: ExplainOptions) =>
      runCommand(() => explain({ method, url }, options, io), io),
    )
}

function addControls(program: Command, io: Io): void {
  const socket = ['--control <path>', 'its unix socket', io.env.PORTCULLIS_SIDECAR_CONTROL] as const
  program
    .command('drain')
    .description('Tell a running sidecar to finish what is under way and to end; return when it has.')
    .requiredOption(...socket)
    .action(({ control }: { control: string }) =>
      runCommand(async () => (await import('./runtime/control.ts')).sendCommand(control, 'drain'), io),
    )
  program
    .command('withdraw')
    .description('Tell a running sidecar to send its clients elsewhere while it serves on; return after some seconds.')
    .requiredOption(...socket)
    .option('--seconds <count>', 'until others have heard that it is not ready', '5')
    .action((options: WithdrawOptions) => runCommand(() => withdraw(options), io))
}

async function withdraw({ control, seconds }: WithdrawOptions): Promise<void> {
  if (!/^\d{1,3}$/.test(seconds)) throw new ConfigError(['--seconds must be 0 to 999'])
  const { sendCommand } = await import('./runtime/control.ts')
  await sendCommand(control, 'withdraw')
  await delay(Number(seconds) * 1_000)
}

const collect = (value: string, earlier: string[]): string[] => [...earlier, value]

/** Commander has said what is wrong; help that was asked for is no mistake. */
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

async function check(path: string, io: Io): Promise<void> {
  const { routes, tests } = loadRouteFile(path)
  const { routeWarnings } = await import('./route-file/warnings.ts')
  for (const warning of routeWarnings(routes)) io.stdout.write(`${path}: warning: ${warning}\n`)
  io.stdout.write(`${path}: valid, ${routes.length} routes, ${tests.length} tests\n`)
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
  const explanation = explainer({
    method: method.toUpperCase(),
    target: url,
    as: claims.length === 0 ? null : Object.fromEntries(claims),
    headers,
    ...(options.body !== undefined && { body: options.body }),
  })
  io.stdout.write(`${describeExplanation(explanation).join('\n')}\n`)
  if (explanation.denial !== null) io.exitCode = 1
  if (token === null) return
  const asked = await ask({ method: method.toUpperCase(), url, token, headers, body: options.body ?? null }, options)
  io.stdout.write(`verdict     ${asked.verdict}\nreason      ${asked.reason}\n`)
  io.exitCode = asked.allowed ? 0 : 1
}

/** A token on the command line would be there for every process to read. */
function readToken(path: string): string {
  try {
    return readFileSync(path === '-' ? 0 : path, 'utf8').trim()
  } catch (err) {
    throw new ConfigError([`The token cannot be read: ${err instanceof Error ? err.message : path}`])
  }
}

/** For the questions alone; whether they are true, and this a token at all, is the verdict's. */
function claimsOf(token: string): [string, string][] {
  const claims = parseJws(token, TOKEN_CHARS_MAX)?.payload ?? {}
  return Object.entries(claims).filter((entry): entry is [string, string] => typeof entry[1] === 'string')
}

async function ask(request: AskedRequest, { file }: ExplainOptions): Promise<Asked> {
  const [{ askAbout }, { commandLineDeps }] = await Promise.all([
    import('./commands/explain-token.ts'),
    import('./runtime/start.ts'),
  ])
  return askAbout(loadConfig(file), request, commandLineDeps())
}

function pair(text: string, mark: string, option: string): [string, string] {
  const at = text.indexOf(mark)
  if (at < 1) throw new ConfigError([`${option} ${JSON.stringify(text)} has no name before a ${mark}`])
  return [text.slice(0, at).trim(), text.slice(at + 1).trim()]
}

function describeExplanation({ route, parameters, asks, denial }: Explanation): string[] {
  const lines = [`route       ${route?.id ?? 'none'}`]
  for (const [name, value] of parameters) lines.push(`parameter   ${name} = ${value}`)
  if (denial !== null) return [...lines, `refused     ${denial.status} ${denial.code}: ${denial.detail}`]
  if (route?.check === null) return [...lines, 'public      forwarded without a question']
  for (const question of asks) lines.push(`asks        ${question}`)
  return asks.length === 0 ? [...lines, 'asks        only whether the token is active'] : lines
}

function settings(): string {
  const width = Math.max(...SETTINGS.map(([name]) => name.length))
  return SETTINGS.map(([name, meaning]) => `  ${name.padEnd(width)}  ${meaning}`).join('\n')
}
