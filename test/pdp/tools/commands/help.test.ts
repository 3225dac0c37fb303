/** The help of every command, of all three programs, fits a terminal of 80 columns. */
import { PassThrough, Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
import { runPdpCli } from '../../../../pdp/cli.ts'
import { runClientCli } from '../../../../pdp/client-cli.ts'
import { fitted } from '../../../../pdp/shared/process/command/help.ts'
import { runSidecarCli } from '../../../../sidecar/cli.ts'

const COLUMNS = 80
/** The name of a command stands at the begin of its line. */
const COMMAND = /^ {2}([a-z][a-z0-9-]*)(?: {2,}.*)?$/gm

async function helpOf(run: (io: NodeJS.Process) => Promise<void>, path: readonly string[]): Promise<string> {
  const stdout = new PassThrough()
  const io = {
    argv: ['node', 'program', ...path, '--help'],
    env: {},
    platform: process.platform,
    cwd: () => '/',
    stdin: Readable.from([]),
    stdout,
    stderr: stdout,
    exitCode: 0,
    exit(status: number): never {
      throw new Error(`exit ${status}`)
    },
  }
  await expect(run(io as unknown as NodeJS.Process)).rejects.toThrow('exit 0')
  stdout.end()
  return text(stdout)
}

async function everyHelp(
  run: (io: NodeJS.Process) => Promise<void>,
  path: readonly string[],
): Promise<readonly string[]> {
  const help = await helpOf(run, path)
  const listed = help.slice(Math.max(0, help.indexOf('\n\n', help.indexOf('Options:')))).split(/\nEnvironment/)[0] ?? ''
  const isGroup = /^Usage: .*\[command\]/.test(help)
  const names = isGroup
    ? [...listed.matchAll(COMMAND)].map(([, name = '']) => name).filter((name) => name !== 'help')
    : []
  const inner: string[] = []
  for (const name of names) inner.push(...(await everyHelp(run, [...path, name])))
  return [`${path.join(' ')}\n${help}`, ...inner]
}

describe.each([
  ['portcullis', runClientCli, 60],
  ['portcullis-pdp', runPdpCli, 10],
  ['portcullis-sidecar', runSidecarCli, 12],
] as const)('%s', (_, run, count) => {
  test('says nothing wider than 80 columns in any help', async () => {
    const all = await everyHelp(run, [])
    expect(all.length).toBeGreaterThan(count)
    expect(all.flatMap((help) => help.split('\n').filter((line) => line.length > COLUMNS))).toEqual([])
  })
})

test('portcullis names each command in a group of its help', async () => {
  const help = await helpOf(runClientCli, [])
  expect(help).toContain('\nAsk:\n  check ')
  expect(help).not.toContain('\nCommands:\n')
})

test.each([
  ['a term and its meaning', `  --name <name>  ${'word '.repeat(20)}end`, '  --name <name>  word word'],
  [
    'a long term',
    `  ${'--a-very-long-name-of-an-option <with-an-argument>'}  ${'word '.repeat(20)}end`,
    '\n      word word',
  ],
  ['an example', `  portcullis ${'argument '.repeat(12)}end`, ' \\\n    argument'],
  ['a sentence', `${'word '.repeat(30)}end`, 'word\nword'],
])('%s is folded, and no word of it is lost', (_, line, part) => {
  const folded = fitted(line)
  expect(folded).toContain(part)
  expect(folded.split('\n').every((one) => one.length <= COLUMNS)).toBe(true)
  expect(folded.replaceAll(/(?: \\)?\s+/g, ' ')).toBe(line.replaceAll(/\s+/g, ' '))
})
