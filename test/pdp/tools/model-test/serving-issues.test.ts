/** What `model test` says of a store that a PDP would not serve as it is, and of files that it should not read. */
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runModelTests } from '../../../../pdp/tools/model-test/model-test.ts'
import { runStores, storeText } from './stores.ts'

describe('what serving would refuse', () => {
  const store = (model: string, tuples: readonly string[] = []) =>
    storeText({ model: `type user\n${model}`, tuples, expect: ['not user:anne viewer doc:1'] })
  const DOC = 'type doc\n  relations\n    define viewer: [user]'

  test.each<[string, string, readonly string[], RegExp]>([
    [
      'a tier that tuples give',
      `${DOC}\ntype organization\n  relations\n    define admin: [user, user:*]`,
      [],
      /^REFUSED a\.fga\.yaml:10: .*"admin" of type "organization".*rename/,
    ],
    [
      'a tier without brackets',
      `${DOC}\ntype organization\n  relations\n    define boss: [user]\n    define owner: boss`,
      [],
      /^REFUSED a\.fga\.yaml:11: .*"owner" of type "organization"/,
    ],
    [
      'a tuple on a tier',
      `${DOC}\ntype organization\n  relations\n    define member: [user]`,
      ['organization:x member user:anne'],
      /^REFUSED a\.fga\.yaml:12: .*memberships.*import openfga/,
    ],
    [
      'an app with relations',
      `${DOC}\ntype app\n  relations\n    define user: [user]`,
      [],
      /^REFUSED a\.fga\.yaml:8: .*type "app".*"application"/,
    ],
    [
      'an id that is too long',
      DOC,
      [`doc:${'é'.repeat(128)}${'x'.repeat(300)} viewer user:anne`],
      /object .* is not <type>:<id>/,
    ],
  ])('is told and fails the run, although the tests pass: %s', async (_, model, tuples, message) => {
    const { status, lines } = await runStores({ 'a.fga.yaml': store(model, tuples) })
    expect(status).toBeGreaterThan(0)
    expect(lines.join('\n')).toMatch(message)
  })

  test.each([
    `${DOC}\ntype organization\n  relations\n    define owner: [user]\n    define admin: [user] or owner\n    define can_pay: admin`,
    `${DOC}\ntype app`,
    'type doc\n  relations\n    define viewer: [user]\n    define parent: [organization]\ntype organization\n  relations\n    define member: [user]',
  ])('is nothing where the types of ours only get more to say: %s', async (model) => {
    const { status, lines } = await runStores({ 'a.fga.yaml': store(model) })
    expect([status, lines]).toEqual([0, ['1 passed, 0 failed']])
  })
})

describe('files outside of the folder of the store file', () => {
  let root: string
  beforeAll(async () => {
    root = await mkdtemp(join(tmpdir(), 'model-test-'))
    await mkdir(join(root, 'in'))
    await writeFile(
      join(root, 'm.fga'),
      'model\n  schema 1.1\ntype user\ntype doc\n  relations\n    define viewer: [user]\n',
    )
    await writeFile(join(root, 't.yaml'), '- {user: user:anne, relation: viewer, object: doc:1}\n')
    await symlink(join(root, 'm.fga'), join(root, 'in', 'link.fga'))
  })
  afterAll(() => rm(root, { recursive: true }))

  const run = async (text: string, allowExternalFiles = false) => {
    const file = join(root, 'in', 'a.fga.yaml')
    await writeFile(file, text)
    let out = ''
    const write = (part: string): void => {
      out += part
    }
    return [await runModelTests([file], { write, directory: root, allowExternalFiles }), out] as const
  }
  const TESTS = 'tests: [{check: [{user: user:anne, object: doc:1, assertions: {viewer: false}}]}]\n'

  test.each(['model_file: ../m.fga', 'model_file: link.fga', 'model_file: in/../../m.fga'])(
    'are not read by %s',
    async (line) => {
      const [status, out] = await run(`${line}\n${TESTS}`)
      expect([status, out]).toEqual([2, expect.stringMatching(/is outside of the folder.*--allow-external-files/)])
    },
  )

  test('are read when that is allowed', async () => {
    const [status, out] = await run(
      `model_file: ../m.fga\ntuple_file: ../t.yaml\n${TESTS.replace('false', 'true')}`,
      true,
    )
    expect([status, out]).toEqual([0, '1 passed, 0 failed\n'])
  })
})
