/** The command line of `portcullis-sidecar`. */
import { setTimeout as delay } from 'node:timers/promises'
import { Command, type CommanderError } from 'commander'
import { addHelpCommand, refuseUnknownHelp } from '../pdp/shared/process/command/help.ts'
import { finishCommands } from '../pdp/shared/process/command/json-errors.ts'
import { endWithReader } from '../pdp/shared/process/command/output.ts'
import { readVersion } from '../pdp/shared/process/command/version.ts'
import { trustAuthorities, useProxy } from '../pdp/shared/process/egress.ts'
import { ConfigError, EXIT_USAGE, runCommand } from '../pdp/shared/process/exit.ts'
import { createLog } from '../pdp/shared/process/log.ts'
import { openLogOutput } from '../pdp/shared/process/log-output.ts'
import { createShutdown } from '../pdp/shared/process/shutdown.ts'
import { addRouteFileCommands } from './commands/route-file-commands.ts'
import { PLATFORM_OPTION, readConfig, SETTINGS, type SidecarFlags } from './config/config.ts'
import { addGatewayCommands } from './gateways/commands.ts'

/** Must be longer than `drainMs`, the time that open requests get to finish. */
const SHUTDOWN_TIMEOUT_MS = 30_000

type WithdrawOptions = { readonly control: string; readonly seconds: string }

/** Runs one command. `run` keeps serving after the promise has resolved, until SIGINT or SIGTERM. */
export async function runSidecarCli(io: NodeJS.Process): Promise<void> {
  endWithReader(io)
  const program = new Command('portcullis-sidecar')
    .description('Reverse proxy that forwards only the requests that the policy decision point (PDP) allows.')
    .addHelpText('after', `\nEnvironment:\n${settings()}`)
    .version(readVersion())
    .configureOutput({
      writeOut: (text) => void io.stdout.write(text),
      writeErr: (text) => void io.stderr.write(text),
    })
  addRun(program, io)
  addRouteFileCommands(program, io)
  addControls(program, io)
  addGatewayCommands(program, io)
  if (mayBeInjector(io.argv[2])) {
    const { addInjectorCommands } = await import('./injector/commands.ts')
    const { platformIssues } = await import('./route-file/words/platform.ts')
    const { checkAside, checkText } = await import('./commands/file-report.ts')
    addInjectorCommands(program, io, { check: checkText, checkAside, platformIssues })
  }
  addHelpCommand(program)
  finishCommands(program, program.name(), io)
  const nested = program.commands.flatMap(({ commands }) => commands)
  for (const command of [program, ...program.commands, ...nested]) command.exitOverride((err) => exitWith(err, io))
  refuseUnknownHelp(program, io.argv.slice(2))
  await program.parseAsync(withCommand(io.argv))
}

/** The words with `run` where no command is given. As Commander's default command, `run` would take a misspelt command as its argument. */
function withCommand([node = '', script = '', ...words]: readonly string[]): readonly string[] {
  const [first] = words
  const isRun = first === undefined || (first.startsWith('-') && !/^(?:--help|-h|--version|-V)$/.test(first))
  return [node, script, ...(isRun ? ['run'] : []), ...words]
}

const OWN = new Set(
  'run init schema check routes test explain drain withdraw gateway-config probe-gateway openapi'.split(' '),
)

/** True if the word may be an injector's command. Those are loaded only when needed or for help, to save memory in pods. */
const mayBeInjector = (word: string | undefined): boolean =>
  word !== undefined && !OWN.has(word) && (!word.startsWith('-') || word === '--help' || word === '-h')

function addRun(program: Command, io: NodeJS.Process): void {
  program
    .command('run')
    .description('Serve until SIGINT or SIGTERM (the default).')
    .option('-f, --file <path>', 'the route file')
    .option('--listen <host:port>', 'address of the data port')
    .option('--admin-listen <host:port>', 'address of metrics and probes')
    .option('--open <path=peers>', 'as open_paths of the route file: /metrics=10.0.0.0/8', collect)
    .option(...PLATFORM_OPTION)
    .action((flags: SidecarFlags) => runCommand(() => run(flags, io), io))
}

const collect = (value: string, before: readonly string[] = []): readonly string[] => [...before, value]

function addControls(program: Command, io: NodeJS.Process): void {
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

/** Exits after Commander has printed the error. `--help` is not an error. */
function exitWith(err: CommanderError, io: NodeJS.Process): never {
  return io.exit(err.exitCode === 0 ? 0 : EXIT_USAGE)
}

async function run(flags: SidecarFlags, io: NodeJS.Process): Promise<void> {
  trustAuthorities(io.env)
  useProxy(io.env)
  const config = readConfig(io.env, flags)
  const output = openLogOutput('portcullis-sidecar')
  const log = createLog({ service: 'portcullis-sidecar', level: config.logLevel, destination: output })
  const shutdown = createShutdown({ log, timeoutMs: SHUTDOWN_TIMEOUT_MS })
  shutdown.onSignals((status) => io.exit(status))
  const { startSidecar } = await import('./runtime/start.ts')
  await startSidecar(config, { log, shutdown, droppedLines: output.droppedCount })
}

function settings(): string {
  const width = Math.max(...SETTINGS.map(([name]) => name.length))
  return SETTINGS.map(([name, meaning]) => `  ${name.padEnd(width)}  ${meaning}`).join('\n')
}
