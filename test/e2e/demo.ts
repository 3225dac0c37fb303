/** `npm run demo`: the whole product on real parts. `npm run demo -- --check` plays the story itself and ends. */
import { resolve } from 'node:path'
import { ConfigError, runCommand } from '../../pdp/process/exit.ts'
import { createLog } from '../../pdp/process/log.ts'
import { createShutdown } from '../../pdp/process/shutdown.ts'
import { choosePorts, type DemoStack, startStack } from './demo-stack.ts'
import { playStory } from './demo-story.ts'
import { ALICE_READS, createWorld, GATE, ORGANIZATION, type World } from './demo-world.ts'

const PORTS = { http: 8080, grpc: 9090, metrics: 9091, sidecar: 15_080 }
const SHUTDOWN_TIMEOUT_MS = 30_000

function readArguments(args: readonly string[]): { check: boolean } {
  const unknown = args.filter((arg) => arg !== '--check')
  if (unknown.length > 0) throw new ConfigError([`unknown argument ${unknown.join(' ')}; there is only --check`])
  return { check: args.includes('--check') }
}

async function demo(): Promise<void> {
  const { check } = readArguments(process.argv.slice(2))
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
    if (!check) return say(instructions(stack, world))
    const failedCount = await playStory(stack, world, say)
    const clean = await shutdown.run('story ended')
    say(failedCount === 0 && clean ? 'The story holds.' : `The story does not hold: ${failedCount} steps failed.`)
    process.exit(failedCount === 0 && clean ? 0 : 1)
  } catch (err) {
    await shutdown.run('failed')
    throw err
  }
}

/** Writing to a pipe that nobody reads is an error event each time; the first ends the demo. */
function endWithReader(output: NodeJS.WriteStream, end: () => void): void {
  let ended = false
  output.on('error', () => {
    if (!ended) end()
    ended = true
  })
}

function instructions({ sidecarUrl, issuer }: DemoStack, { tokens }: World): string {
  const api = `${issuer}/v1/organizations/${ORGANIZATION}`
  const json = `-H "Authorization: Bearer $ADMIN" -H 'Content-Type: application/json'`
  return `
The sidecar at ${sidecarUrl} guards an API that knows nothing of authorization. The PDP is at ${issuer}.
Paste into another terminal (the tokens live for 15 minutes):

ALICE=${tokens.alice}
BOB=${tokens.bob}
ADMIN=${tokens.admin}

# Alice may read invoice 1, and not invoice 2, which Bob may read through a group in a group.
curl -i ${sidecarUrl}/invoices/1 -H "Authorization: Bearer $ALICE"
curl -i ${sidecarUrl}/invoices/2 -H "Authorization: Bearer $ALICE"
curl -i ${sidecarUrl}/invoices/2 -H "Authorization: Bearer $BOB"
curl -i ${sidecarUrl}/invoices/1
curl -i ${sidecarUrl}/public/status

# Take the relationship away, and the very next call is refused. Give it back, and it is served.
curl -sS ${api}/relationships ${json} -d '{"delete": ["${ALICE_READS}"]}'
curl -sS ${api}/relationships ${json} -d '{"write": ["${ALICE_READS}"]}'

# Exports need a capability of the organization as well; turn its gate off and on.
curl -i ${sidecarUrl}/invoices/1/export -H "Authorization: Bearer $ALICE"
curl -sS -X PUT ${api}/entitlements/${GATE} ${json} -d '{"value": false}'
curl -sS -X PUT ${api}/entitlements/${GATE} ${json} -d '{"value": true}'

# Ask the PDP itself.
curl -sS ${issuer}/oauth/decisions -H "Authorization: Bearer $ALICE" -H 'Content-Type: application/json' -d '{"permissions": [{"relation": "viewer", "resource": "invoice:1"}], "entitlements": ["${GATE}"]}'

Ctrl-C stops everything.`
}

await runCommand(demo, process)
