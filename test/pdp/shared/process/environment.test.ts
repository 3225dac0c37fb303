import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { SETTINGS } from '../../../../pdp/server/runtime/settings-help.ts'
import { type EnvironmentReader, oneOf, readEnvironment } from '../../../../pdp/shared/process/environment.ts'
import { ConfigError } from '../../../../pdp/shared/process/exit.ts'
import { ALL_SETTINGS } from '../../../../pdp/shared/process/setting-names.ts'
import { CLIENT_SETTINGS } from '../../../../pdp/tools/commands/connection.ts'
import { SETTINGS as SIDECAR_SETTINGS } from '../../../../sidecar/config/config.ts'

const directory = mkdtempSync(join(tmpdir(), 'environment-'))
afterAll(() => rmSync(directory, { recursive: true }))

function problems(environment: NodeJS.ProcessEnv, read: (reader: EnvironmentReader) => unknown): readonly string[] {
  try {
    readEnvironment(environment, read)
  } catch (err) {
    if (err instanceof ConfigError) return err.problems
    throw err
  }
  return []
}
const file = (name: string, content: string): string => {
  const path = join(directory, name)
  writeFileSync(path, content)
  return path
}

describe('readEnvironment', () => {
  test('returns what is set and null for what is not', () => {
    const read = (reader: EnvironmentReader) => [reader.text('PORTCULLIS_A'), reader.text('PORTCULLIS_B')]
    expect(readEnvironment({ PORTCULLIS_A: 'x', HOME: '/' }, read)).toEqual(['x', null])
  })

  test('reports every mistake together', () => {
    const found = problems({ PORTCULLIS_A: '', PORTCULLIS_B: 'no', PORTCULLIS_TYPO: '1' }, (reader) => {
      reader.text('PORTCULLIS_A')
      reader.parsed('PORTCULLIS_B', oneOf(['yes']))
      reader.report('A and B contradict each other')
    })
    expect(found).toEqual([
      'PORTCULLIS_A is set but empty',
      'PORTCULLIS_B must be one of yes, not "no"',
      'A and B contradict each other',
      'PORTCULLIS_TYPO is not a known setting',
    ])
  })

  test('reads a secret from the file that _FILE names, without its last line break', () => {
    const environment = { PORTCULLIS_KEY_FILE: file('key', ' s3cret \n') }
    expect(readEnvironment(environment, (reader) => reader.secret('PORTCULLIS_KEY'))).toBe(' s3cret ')
  })

  test.each([
    ['both are set', { PORTCULLIS_KEY: 'a', PORTCULLIS_KEY_FILE: file('both', 'b') }, /both set/],
    ['the file is absent', { PORTCULLIS_KEY_FILE: join(directory, 'absent') }, /KEY_FILE: .*absent does not exist/],
    ['the file is empty', { PORTCULLIS_KEY_FILE: file('empty', '\n') }, /empty file/],
    ['the path is empty', { PORTCULLIS_KEY_FILE: '' }, /PORTCULLIS_KEY_FILE is set but empty/],
  ])('refuses a secret when %s', (_, environment, message) => {
    const found = problems(environment, (reader) => reader.secret('PORTCULLIS_KEY'))
    expect(found).toHaveLength(1)
    expect(found[0]).toMatch(message)
  })

  test('ignores the names that Kubernetes injects for a Service', () => {
    const names = [
      'PORTCULLIS_SERVICE_HOST',
      'PORTCULLIS_SERVICE_PORT',
      'PORTCULLIS_SERVICE_PORT_HTTP',
      'PORTCULLIS_PORT_8080_TCP',
      'PORTCULLIS_PORT_8080_TCP_PROTO',
      'PORTCULLIS_PORT_8080_TCP_PORT',
      'PORTCULLIS_PORT_8080_TCP_ADDR',
      'PORTCULLIS_PDP_SERVICE_HOST',
      'PORTCULLIS_PDP_PORT_9090_UDP_ADDR',
    ]
    const links = { PORTCULLIS_PORT: 'tcp://10.0.0.1:80', PORTCULLIS_PDP_PORT: 'udp://[fd00::1]:53' }
    const environment = { ...Object.fromEntries(names.map((name) => [name, 'x'])), ...links }
    expect(problems(environment, () => null)).toEqual([])
  })

  test.each([
    'PORTCULLIS_PORTS',
    'PORTCULLIS_',
    'PORTCULLIS_PORT',
    'PORTCULLIS_HTTP_PORT',
    'PORTCULLIS_PORT_8080',
    'PORTCULLIS_ISSUER_FILE',
  ])('refuses the unknown name %s', (name) => {
    expect(problems({ [name]: 'x' }, (reader) => reader.text('PORTCULLIS_ISSUER'))).toEqual([
      `${name} is not a known setting`,
    ])
  })

  test.each([
    ['PORTCULLIS_HTTP_LISTN', 'PORTCULLIS_HTTP_LISTEN'],
    ['PORTCULLIS_MASTERKEY_FILE', 'PORTCULLIS_MASTER_KEY_FILE'],
    ['PORTCULLIS_LGO_LEVEL', 'PORTCULLIS_LOG_LEVEL'],
  ])('names the setting that %s may mean', (name, meant) => {
    expect(problems({ [name]: 'x' }, () => null)).toEqual([`${name} is not a known setting; did you mean "${meant}"?`])
  })
})

describe('the settings of all programs', () => {
  test('are those that their help names, and no others', () => {
    const named = [...SETTINGS, ...SIDECAR_SETTINGS, ...CLIENT_SETTINGS].map(([name]) => name)
    const ours = named.filter((name) => name.startsWith('PORTCULLIS_'))
    expect([...ALL_SETTINGS].sort()).toEqual([...new Set(ours)].sort())
  })

  test('are known to each of them, with the files of secrets', () => {
    const environment = { PORTCULLIS_ROUTE_FILE: 'x', PORTCULLIS_CLIENT_SECRET_FILE: 'x' }
    expect(() => readEnvironment(environment, () => null)).not.toThrow()
  })
})
