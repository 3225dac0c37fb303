/**
 * `npm run demo`: the whole product on real parts. `npm run demo -- --check` plays the story itself and ends;
 * `npm run demo -- token alice` prints a token of the demo that runs.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { ConfigError, runCommand, StartError } from '../../pdp/shared/process/exit.ts'
import { createLog } from '../../pdp/shared/process/log.ts'
import { createShutdown } from '../../pdp/shared/process/shutdown.ts'
import { choosePorts, type DemoStack, startStack } from '../../test/e2e/demo-stack.ts'
import { playStory } from '../../test/e2e/demo-story.ts'
import {
  ALICE_READS,
  CONSOLE_PERSON,
  createWorld,
  GATE,
  ORGANIZATION,
  PASSWORD,
  PEOPLE,
  tokenOf,
} from '../../test/e2e/demo-world.ts'

const PORTS = { http: 8080, grpc: 9090, metrics: 9091, sidecar: 15_080 }
const SHUTDOWN_TIMEOUT_MS = 30_000

type Arguments = { readonly check: boolean; readonly token: string | null }

function readArguments(args: readonly string[]): Arguments {
  const [word = '', name = '', ...rest] = args
  if (word === 'token' && PEOPLE.includes(name) && rest.length === 0) return { check: false, token: name }
  const unknown = args.filter((arg) => arg !== '--check')
  if (unknown.length === 0) return { check: args.length > 0, token: null }
  throw new ConfigError([`unknown argument ${unknown.join(' ')}; there are --check and token ${PEOPLE.join('|')}`])
}

const USAGE = `npm run demo                        the product on real parts, until Ctrl-C
npm run demo -- --check             play the story and end
npm run demo -- token ${PEOPLE.join('|')}   print a token of the demo that runs
`

async function demo(): Promise<void> {
  if (process.argv.includes('--help')) return void process.stdout.write(USAGE)
  const { check, token } = readArguments(process.argv.slice(2))
  if (token !== null) return printToken(token)
  const startedMs = performance.now()
  const log = createLog({ service: 'demo', level: 'silent' })
  const shutdown = createShutdown({ log, timeoutMs: SHUTDOWN_TIMEOUT_MS })
  shutdown.onSignals((status) => process.exit(status))
  // The terminal was closed, or whoever read the output is gone (`npm run demo | head`): as Ctrl-C.
  const interrupt = (): void => void process.kill(process.pid, 'SIGINT')
  process.once('SIGHUP', interrupt)
  // The story is played to its end all the same: its exit status is the answer.
  for (const output of [process.stdout, process.stderr]) endWithReader(output, check ? () => undefined : interrupt)
  const say = (line: string): void => {
    if (process.stdout.writable) process.stdout.write(`${line}\n`)
  }
  try {
    const ports = await choosePorts(check ? {} : PORTS)
    const dataDirectory = resolve(import.meta.dirname, '../..', '.data', check ? 'demo-check' : 'demo')
    const stack = await shutdown.hold(startStack({ dataDirectory, ports, shutdown }))
    const world = await createWorld(stack)
    say(`PostgreSQL, PDP, sidecar and the invoices API are up (${Math.round(performance.now() - startedMs)} ms).`)
    if (!check) {
      noteRunning(stack)
      return say(instructions(stack))
    }
    const failedCount = await playStory(stack, world, say)
    const clean = await shutdown.run('story ended')
    say(failedCount === 0 && clean ? 'The story holds.' : `The story does not hold: ${failedCount} steps failed.`)
    process.exit(failedCount === 0 && clean ? 0 : 1)
  } catch (err) {
    await shutdown.run('failed')
    throw isInUse(err) ? new StartError(ALREADY_RUNNING, { cause: err }) : err
  }
}

const ALREADY_RUNNING =
  'A demo runs in this folder already, and its data serve one at a time. Stop that one with Ctrl-C, or start this one in another clone.'
const isInUse = (err: unknown): boolean => err instanceof StartError && err.message.includes('is in use by another')

/** Writing to a pipe that nobody reads is an error event each time; the first ends the demo. */
function endWithReader(output: NodeJS.WriteStream, end: () => void): void {
  let ended = false
  output.on('error', () => {
    if (!ended) end()
    ended = true
  })
}

function instructions({ sidecarUrl, issuer }: DemoStack): string {
  return `
The console is at ${issuer}/console. Sign in as ${CONSOLE_PERSON.email} with the password "${PASSWORD}".
Send some of the calls below first: under Decisions each is a question that says why.

The sidecar at ${sidecarUrl} guards an API that knows nothing of authorization. The PDP is at ${issuer}.
Paste into another terminal, in this folder:

export PATH="$PWD/bin:$PATH" PORTCULLIS_URL=${issuer} PORTCULLIS_DATA_DIR="$PWD/.data/demo"
token() { npm run -s demo -- token "$1"; }

# Alice may read invoice 1, and not invoice 2, which Bob may read through a group in a group.
curl -i ${sidecarUrl}/invoices/1 -H "Authorization: Bearer $(token alice)"
curl -i ${sidecarUrl}/invoices/2 -H "Authorization: Bearer $(token alice)"
curl -i ${sidecarUrl}/invoices/2 -H "Authorization: Bearer $(token bob)"
curl -i ${sidecarUrl}/invoices/1
curl -i ${sidecarUrl}/public/status

# Why, or why not?
portcullis explain user:bob viewer invoice:2 -o ${ORGANIZATION}
portcullis explain user:alice viewer invoice:2 -o ${ORGANIZATION}
portcullis list resources user:bob viewer invoice -o ${ORGANIZATION}

# Take the relationship away, and the very next call is refused. Give it back, and it is served.
portcullis tuple delete ${ALICE_READS} -o ${ORGANIZATION}
portcullis tuple write ${ALICE_READS} -o ${ORGANIZATION}

# Exports need an entitlement of the organization as well; turn it off and on.
curl -i ${sidecarUrl}/invoices/1/export -H "Authorization: Bearer $(token alice)"
portcullis entitlement put ${GATE} false -o ${ORGANIZATION}
portcullis entitlement put ${GATE} true -o ${ORGANIZATION}

Next: your own service behind the sidecar, with your own identity provider, in ten minutes: docs/start.md.
In your own process, without a server: docs/embed.md. All books: docs/README.md. portcullis --help lists what else there is to try.
The route file of this demo is .data/demo/routes.yaml, its log .data/demo/demo.log. Ctrl-C stops everything; the data stays.`
}

/** A new token of the demo that runs in another process. */
async function printToken(of: string): Promise<void> {
  const { issuer, adminSecret } = readRunning()
  process.stdout.write(`${await tokenOf(of, { issuer, adminSecret })}\n`)
}

/** Where the running demo is, for the command above; readable by its owner alone. */
const RUNNING = resolve(import.meta.dirname, '../../.data/demo/running.json')

function noteRunning({ issuer, adminSecret }: DemoStack): void {
  writeFileSync(RUNNING, JSON.stringify({ issuer, adminSecret }), { mode: 0o600 })
}

function readRunning(): { issuer: string; adminSecret: string } {
  try {
    return JSON.parse(readFileSync(RUNNING, 'utf8'))
  } catch (err) {
    throw new StartError('no demo is running here: npm run demo', { cause: err })
  }
}

await runCommand(demo, process)
