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
      const said = /^in\/a\.fga\.yaml:1: .*is outside of the folder.*--allow-external-files\n0 passed.*\n$/
      expect([status, out]).toEqual([2, expect.stringMatching(said)])
    },
  )

  test('are not read by a tuple file either, and its line says so', async () => {
    const [status, out] = await run(`model: |\n  model\n    schema 1.1\n  type user\ntuple_file: ../t.yaml\n`)
    expect([status, out]).toEqual([2, expect.stringMatching(/^in\/a\.fga\.yaml:5: \.\.\/t\.yaml is outside.*\n0 /)])
  })

  test('are read when that is allowed', async () => {
    const [status, out] = await run(
      `model_file: ../m.fga\ntuple_file: ../t.yaml\n${TESTS.replace('false', 'true')}`,
      true,
    )
    expect([status, out]).toEqual([0, '1 passed, 0 failed\n'])
  })
})

describe('a model that only we take', () => {
  const store = (model: string) => `model: |\n  model\n    schema 1.1\n  type user\n${model}`
  const REF = 'metadata: {relations: {r: {directly_related_user_types: [{type: user}]}}}'
  test.each<[string, string, RegExp]>([
    [
      'one in itself',
      '  type d\n    relations\n      define viewer: [user] or viewer\n',
      /:7: .*relation "viewer" of type "d" depends on itself/,
    ],
    [
      'three that take each other away',
      '  type d\n    relations\n      define x: [user] but not y\n      define y: [user] but not z\n      define z: [user] or x\n',
      /:7: .*"x".*\nWARNING .*:8: .*"y".*\nWARNING .*:9: .*"z"/,
    ],
    ['a long name', `  type d\n    relations\n      define ${'a'.repeat(51)}: [user]\n`, /more than 50 characters/],
    [
      'a condition of one letter',
      '  type d\n    relations\n      define a: [user with c]\n  condition c(x: int) {\n    x > 1\n  }\n',
      /:8: .*condition "c" needs/,
    ],
    ['a reserved name', '  type self\n', /a type cannot be called "self"/],
  ])('is warned of: %s', async (_, model, warning) => {
    const { status, lines } = await runStores({ 'a.fga.yaml': store(model) })
    expect([status, lines.at(-1)]).toEqual([0, '0 passed, 0 failed'])
    expect(lines.slice(0, -1).join('\n')).toMatch(warning)
    expect(lines.slice(0, -1).every((line) => line.startsWith('WARNING a.fga.yaml:'))).toBe(true)
  })

  test('in JSON is warned of where it stands', async () => {
    const json = `{"schema_version": "1.1", "type_definitions": [{type: user},\n {type: d, relations: {r: {this: {}},\n this: {union: {child: []}}}, ${REF}}]}`
    const quoted = json.replaceAll(/([{ ,])(\w+)(?=[:,}])/g, '$1"$2"')
    const { lines } = await runStores({ 'a.fga.yaml': 'model_file: m.json\n', 'm.json': quoted })
    expect(lines).toEqual([
      'WARNING m.json:3: OpenFGA refuses this: a relation cannot be called "this"',
      'WARNING m.json:3: OpenFGA refuses this: relation "this" of type "d" is held by nobody on purpose',
      '0 passed, 0 failed',
    ])
  })

  test('is not what everybody takes: relations that lead back over other objects', async () => {
    const model =
      '  type d\n    relations\n      define up: [d]\n      define v: [user, d#v] or w or v from up\n      define w: [user] but not x\n      define x: [user]\n'
    expect(await runStores({ 'a.fga.yaml': store(model) })).toEqual({ status: 0, lines: ['0 passed, 0 failed'] })
  })
})

test('a model alone is a store without tests, and a file of SpiceDB is named as one', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'model-test-'))
  const run = async (name: string, text: string) => {
    await writeFile(join(folder, name), text)
    let out = ''
    const write = (part: string): void => {
      out += part
    }
    return [await runModelTests([join(folder, name)], { write, directory: folder }), out]
  }
  const DSL = 'model\n  schema 1.1\ntype user\n'
  expect(await run('m.fga', DSL)).toEqual([0, '0 passed, 0 failed\n'])
  expect(await run('m.json', '{"schema_version":"1.1","type_definitions":[{"type":"user"}]}')).toEqual([
    0,
    '0 passed, 0 failed\n',
  ])
  expect(await run('bad.fga', `${DSL}type user\n`)).toEqual([
    2,
    expect.stringMatching(/^bad\.fga:4:1: type "user" is declared twice/),
  ])
  for (const [name, text] of [
    ['s.zed', 'definition user {}'],
    ['v.yaml', 'schema: |-\n  definition user {}\nrelationships: ""\n'],
  ] as const)
    expect(await run(name, text)).toEqual([
      2,
      expect.stringMatching(/:1: this is of SpiceDB: "portcullis import spicedb"/),
    ])
  await rm(folder, { recursive: true })
})
