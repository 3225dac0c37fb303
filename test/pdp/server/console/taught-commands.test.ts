/** Every command that the console teaches is one that the command lines take. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runCli } from '../../../support/peers/sidecar-cli.ts'
import { runClient, runPdp } from '../../run-cli.ts'

const FOLDER = join(import.meta.dirname, '../../../../pdp/server/console')
const SOURCES = readdirSync(FOLDER, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'))
/** A tier where one is demanded, and some name elsewhere. */
const filled = (command: string): string =>
  command.replaceAll(/\$\{TIERS[^}]*\}/g, 'member').replaceAll(/\$\{[^}]*\}/g, 'x')
const COMMANDS = SOURCES.flatMap((file) =>
  Array.from(readFileSync(join(FOLDER, file), 'utf8').matchAll(/<code>(portcullis[^<]*)<\/code>/g), ([, text = '']) =>
    filled(text),
  ),
)
const [client, server, sidecar] = ['portcullis', 'portcullis-pdp', 'portcullis-sidecar'].map((program) =>
  [...new Set(COMMANDS)].filter((command) => command.split(' ', 1)[0] === program),
)
/** Nothing is listening there, and no home has a session. */
const env = { PORTCULLIS_URL: 'http://127.0.0.1:1', HOME: '/nonexistent' }
const words = (command: string): readonly string[] => command.split(/\s+/).slice(1)
const MISUSE = /error: |Try: /

test('the console teaches commands of every program', () => {
  expect([client?.length, server?.length, sidecar?.length].every((count) => count !== undefined && count > 0)).toBe(
    true,
  )
})

test.each(client ?? [])('%s is a command with its arguments', async (command) => {
  expect((await runClient(words(command), { env })).err).not.toMatch(MISUSE)
})
// Without running it, which would load the server: these have no arguments.
test.each(server ?? [])('%s is a command', async (command) => {
  expect((await runPdp([...words(command), '--help'], { env })).out).toContain(`Usage: ${command} [options]\n`)
})
test.each(sidecar ?? [])('%s is a command with its arguments', async (command) => {
  expect((await runCli(words(command), { env })).stderr).not.toMatch(MISUSE)
})

test.each(COMMANDS.filter((command) => command.includes('role grant')))('%s gives nothing everywhere', (command) => {
  expect(command).toMatch(/ -o \S/)
})

test('a misspelt command would be found', async () => {
  expect((await runClient(['issuer', 'show'], { env })).err).toMatch(MISUSE)
  expect((await runCli(['run', '--flie', 'x'], { env })).stderr).toMatch(MISUSE)
})
