/** `--json` means the same in every command of the three programs. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runCli } from '../../../../support/peers/sidecar-cli.ts'
import { runClient, runPdp } from '../../../run-cli.ts'

type Ended = { readonly status: number; readonly out: string; readonly err: string }
const sidecar = async (args: readonly string[]): Promise<Ended> => {
  const { status, stdout, stderr } = await runCli(args)
  return { status, out: stdout, err: stderr }
}
const PROGRAMS: { readonly [name: string]: (args: readonly string[]) => Promise<Ended> } = {
  portcullis: (args) => runClient(args, { env: { HOME: folder } }),
  'portcullis-pdp': (args) => runPdp(args),
  'portcullis-sidecar': sidecar,
}

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'portcullis-json-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

/** The commands of its help stand in groups, each indented by two columns; what continues a description by more. */
async function leaves(run: (args: readonly string[]) => Promise<Ended>, path: readonly string[]): Promise<string[][]> {
  const { out } = await run([...path, '--help'])
  if (!/^Usage: .*\[command\]/.test(out)) return [[...path]]
  const groups = out.split('\n\n').filter((part) => /^[A-Z].*:\n/.test(part) && !/^(?:Options|Arguments):/.test(part))
  const names = groups.flatMap((group) => [...group.matchAll(/^ {2}([a-z][\w-]*)/gm)].map(([, name = '']) => name))
  const inner = names.filter((name) => name !== 'help')
  return (await Promise.all(inner.map((name) => leaves(run, [...path, name])))).flat()
}

describe.each(Object.entries(PROGRAMS))('each command of %s', (_, run) => {
  test('takes --json, and answers a wrong option by one JSON object on the standard error', async () => {
    const commands = await leaves(run, [])
    expect(commands.length).toBeGreaterThan(8)
    for (const path of commands) {
      expect([path, (await run([...path, '--help'])).out]).toEqual([path, expect.stringContaining('--json')])
      const { status, out, err } = await run([...path, '--nonsense', '--json'])
      expect([path, status === 2 || status === 64, out]).toEqual([path, true, ''])
      expect(JSON.parse(err)).toEqual({
        error: {
          code: 'usage',
          message: expect.stringMatching(/^unknown option '--nonsense'$|^required option/),
          issues: expect.any(Array),
        },
      })
    }
  })
})

describe('with --json an error is {error: {code, message, issues}}', () => {
  test.each<[string, string, object]>([
    ['portcullis', 'chekc user:a viewer doc:1', { code: 'usage', issues: ['(Did you mean check?)'] }],
    ['portcullis', 'check user:a viewer doc:1 --url http://127.0.0.1:1 --client-id x', { code: 'failed' }],
    ['portcullis', 'tuple write doc:1#viewer@user:a', { message: 'name the organization with --organization' }],
    ['portcullis-pdp', 'serv', { code: 'usage' }],
    ['portcullis-sidecar', 'check nowhere.yaml', { code: 'configuration_invalid', issues: [] }],
    ['portcullis-sidecar', 'inject nowhere.yaml --config nowhere', { code: 'configuration_invalid' }],
  ])('%s %s', async (program, line, expected) => {
    const { status, out, err } = (await PROGRAMS[program]?.([...line.split(' '), '--json'])) ?? { err: '' }
    expect([status, out]).toEqual([program === 'portcullis-sidecar' ? 64 : 2, ''])
    expect(JSON.parse(err)).toMatchObject({ error: expected })
  })

  test('and each problem of a route file is an issue', async () => {
    const file = join(folder, 'bad.yaml')
    writeFileSync(file, 'portcullis: v1\nrouts: {}\n')
    const { error } = JSON.parse((await sidecar(['check', file, '--json'])).err)
    expect(error.message).toMatch(/^\d+ problems$/)
    expect(error.issues).toContainEqual(expect.stringMatching(/bad\.yaml:2:1: .*routs/))
  })
})
