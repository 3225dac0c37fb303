/** The store files that `portcullis-pdp model test` reads, and what it says of them. */
import { spawn } from 'node:child_process'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { runModelTests } from '../../../../pdp/tools/model-test/model-test.ts'
import { PROGRAM_ENV } from '../../../support/programs/environment.ts'
import { runStores } from './stores.ts'

const MODEL = `model: |
  model
    schema 1.1
  type user
  type doc
    relations
      define owner: [user]
      define viewer: [user] or owner
`
const CHECK = `tests:
  - name: one
    check:
      - user: user:anne
        object: doc:1
        assertions: {viewer: true}
`
const FGA = 'model\n  schema 1.1\ntype user\ntype doc\n  relations\n    define viewer: [user]\n'
const TUPLE = 'tuples: [{user: user:anne, relation: viewer, object: doc:1}]\n'
const MAIN = new URL('../../../../pdp/main.ts', import.meta.url).pathname
const SAMPLES = new URL('../../../../../shared/models/openfga-sample-stores/', import.meta.url).pathname

describe('model test', () => {
  test('says one line for each assertion that fails, where it stands, and exits 1', async () => {
    const { status, lines } = await runStores({
      'a.fga.yaml': `${MODEL}${TUPLE}${CHECK}  - name: two
    check:
      - user: user:bob
        object: doc:1
        assertions:
          viewer: true
          owner: false
    list_objects:
      - user: user:anne
        type: doc
        assertions:
          viewer: [doc:2]
    list_users:
      - object: doc:1
        user_filter: [{type: user}]
        assertions:
          viewer:
            users: [user:bob, user:anne]
`,
    })
    expect(lines).toEqual([
      'FAIL a.fga.yaml:21: two: check user:bob viewer doc:1: expected true, got false',
      'FAIL a.fga.yaml:27: two: list_objects user:anne viewer doc: missing doc:2; unexpected doc:1',
      'FAIL a.fga.yaml:33: two: list_users user viewer doc:1: missing user:bob',
      '2 passed, 3 failed',
    ])
    expect(status).toBe(1)
  })

  test('is a command', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'model-test-'))
    const run = async (...files: readonly string[]) => {
      const child = spawn(process.execPath, [MAIN, 'model', 'test', ...files], { cwd: directory, env: PROGRAM_ENV })
      let out = ''
      child.stdout.on('data', (chunk) => {
        out += chunk
      })
      const status = await new Promise((done) => child.once('close', done))
      return [status, out]
    }
    await writeFile(join(directory, 'good.fga.yaml'), `${MODEL}${TUPLE}${CHECK}`)
    await writeFile(join(directory, 'bad.fga.yaml'), `${MODEL}${CHECK}`)
    try {
      expect(await run('good.fga.yaml')).toEqual([0, '1 passed, 0 failed\n'])
      expect(await run('good.fga.yaml', 'bad.fga.yaml')).toEqual([
        1,
        'FAIL bad.fga.yaml:14: one: check user:anne viewer doc:1: expected true, got false\n1 passed, 1 failed\n',
      ])
      // A pattern in quotes, which no shell has replaced by the names that it means.
      expect(await run('g*.fga.yaml')).toEqual([0, '1 passed, 0 failed\n'])
      expect((await run('x*.fga.yaml'))[0]).toBe(2)
      expect(await run('gone.fga.yaml')).toEqual([
        2,
        'gone.fga.yaml does not exist\n0 passed, 0 failed, 1 of 1 files could not be used\n',
      ])
    } finally {
      await rm(directory, { recursive: true })
    }
  })

  test('keeps the tuples of a test to that test', async () => {
    const { lines } = await runStores({
      'a.fga.yaml': `${MODEL}tests:
  - check: [{user: user:anne, object: doc:1, assertions: {viewer: no}}]
  - tuples: [{user: user:anne, relation: owner, object: doc:1}]
    check: [{user: user:anne, object: doc:1, assertions: {viewer: yes}}]
  - check: [{user: user:anne, object: doc:1, assertions: {viewer: false}}]
`,
    })
    expect(lines).toEqual(['3 passed, 0 failed'])
  })

  test('asks about each of several users with each of several objects', async () => {
    const { lines } = await runStores({
      'a.fga.yaml': `${MODEL}${TUPLE}tests:
  - check:
      - {users: [user:anne, user:bob], objects: [doc:1, doc:2], assertions: {viewer: false}}
`,
    })
    expect(lines).toEqual([
      expect.stringContaining('check user:anne viewer doc:1: expected false, got true'),
      '3 passed, 1 failed',
    ])
  })

  test.each([
    ['yaml', '- user: user:anne\n  relation: viewer\n  object: doc:1\n'],
    ['json', '[{"user": "user:anne", "relation": "viewer", "object": "doc:1"}]'],
    ['jsonl', '{"user": "user:anne", "relation": "viewer", "object": "doc:1"}\n\n'],
    ['csv', 'user_type,user_id,user_relation,relation,object_type,object_id\nuser,"anne",,viewer,doc,1\n'],
  ])('reads tuples of a .%s file beside those in place', async (ending, text) => {
    const { lines } = await runStores({
      'a.fga.yaml': `${MODEL}tuple_file: ./tuples.${ending}\n${TUPLE.replace('doc:1', 'doc:2')}${CHECK}  - check: [{user: user:anne, object: doc:2, assertions: {viewer: true}}]\n`,
      [`tuples.${ending}`]: text,
    })
    expect(lines).toEqual(['2 passed, 0 failed'])
  })

  test('reads several tuple files, and those of a test', async () => {
    const tuple = (id: string) => `- {user: user:anne, relation: viewer, object: 'doc:${id}'}\n`
    const { lines } = await runStores({
      'a.fga.yaml': `${MODEL}tuple_files: [one.yaml, sub/two.yaml]
tests:
  - tuple_file: three.yaml
    list_objects: [{user: user:anne, type: doc, assertions: {viewer: [doc:3, doc:2, doc:1], owner: []}}]
`,
      'one.yaml': tuple('1'),
      'sub/two.yaml': tuple('2'),
      'three.yaml': tuple('3'),
    })
    expect(lines).toEqual(['2 passed, 0 failed'])
  })

  test.each([
    ['model.fga', FGA],
    [
      'model.json',
      JSON.stringify({
        schema_version: '1.1',
        type_definitions: [
          { type: 'user' },
          {
            type: 'doc',
            relations: { viewer: { this: {} } },
            metadata: { relations: { viewer: { directly_related_user_types: [{ type: 'user' }] } } },
          },
        ],
      }),
    ],
  ])('reads the model of %s', async (name, text) => {
    const { lines } = await runStores({ 'a.fga.yaml': `model_file: ./${name}\n${TUPLE}${CHECK}`, [name]: text })
    expect(lines).toEqual(['1 passed, 0 failed'])
  })

  test('reads a model of several modules', async () => {
    const { lines } = await runStores({
      'a.fga.yaml': `model_file: fga.mod\n${TUPLE}${CHECK}`,
      'fga.mod': "schema: '1.2'\ncontents: [core.fga, sub/docs.fga]\n",
      'core.fga': 'module core\ntype user\n',
      'sub/docs.fga': 'module docs\ntype doc\n  relations\n    define viewer: [user]\n',
    })
    expect(lines).toEqual(['1 passed, 0 failed'])
  })

  test('runs the other files when one cannot be used', async () => {
    const { status, lines } = await runStores({ 'a.fga.yaml': 'model: 7\n', 'b.fga.yaml': `${MODEL}${TUPLE}${CHECK}` })
    expect([status, lines.at(-1)]).toEqual([2, '1 passed, 0 failed, 1 of 2 files could not be used'])
  })

  test('fails an assertion that has no answer, and never holds it true', async () => {
    const { status, lines } = await runStores({
      'a.fga.yaml': `model: |
  model
    schema 1.1
  type user
  type g
    relations
      define next: [g]
      define named: [user]
      define caught: [user] or honest from next
      define honest: named but not caught
tuples:
  - {user: 'g:0', relation: next, object: 'g:0'}
  - {user: 'user:anne', relation: named, object: 'g:0'}
tests:
  - check: [{user: user:anne, object: 'g:0', assertions: {honest: false}}]
`,
    })
    expect([status, lines]).toEqual([1, [expect.stringContaining('depends on its own absence'), '0 passed, 1 failed']])
  })

  test.each([
    [
      'a condition of a tuple that the model does not allow',
      `${MODEL}tuples:\n  - {user: user:anne, relation: viewer, object: doc:1, condition: {name: on_duty}}\n`,
      'a.fga.yaml:10: relation "viewer" of type "doc" does not allow user with condition "on_duty"',
    ],
    [
      'a condition that comes with each tuple',
      `${MODEL.replace('[user] or', '[user with $expression] or')}${CHECK}`,
      'a.fga.yaml:8:33: the model uses condition "$expression"',
    ],
    ['no model', CHECK, 'there is neither a model nor a model_file'],
    ['a model file that is not there', `model_file: gone.fga\n${CHECK}`, 'gone.fga cannot be read'],
    ['a tuple file that is not there', `${MODEL}tuple_file: gone.yaml\n`, 'a.fga.yaml:9: the tuple file gone.yaml'],
    ['a tuple file of another kind', `${MODEL}tuple_file: a.fga.yaml.txt\n`, 'a.fga.yaml.txt:1: a tuple file ends in'],
    [
      'a mistake in the model',
      MODEL.replace('[user] or owner', '[user] or boss'),
      'a.fga.yaml:8:32: there is no relation "boss"',
    ],
    ['a syntax error in the model', MODEL.replace('define owner:', 'define owner'), 'a.fga.yaml:7:'],
    [
      'a type that only Portcullis knows',
      MODEL.replace('[user] or owner', '[service] or owner'),
      'there is no type "service"',
    ],
    ['a relation that is its own exclusion', MODEL.replace('[user] or owner', '[user] but not viewer'), 'viewer'],
    ['broken YAML', `${MODEL}tests: [\n`, 'a.fga.yaml:'],
    ['an unknown member', `${MODEL}test: []\n`, 'a.fga.yaml:9: the store file has the unknown member "test"'],
    ['an unknown member of a check', `${MODEL}${CHECK.replace('assertions', 'assertion')}`, '"assertion"'],
    [
      'a check without assertions',
      `${MODEL}${CHECK.replace(/ +assertions.*\n/, '')}`,
      'a.fga.yaml:12: assertions is missing',
    ],
    ['a check without an object', `${MODEL}${CHECK.replace(/ +object.*\n/, '')}`, 'a.fga.yaml:12: object is missing'],
    [
      'user and users at once',
      `${MODEL}${CHECK.replace('object:', 'users: []\n        object:')}`,
      'both user and users',
    ],
    ['an assertion that is no boolean', `${MODEL}${CHECK.replace('true', 'maybe')}`, 'neither true nor false'],
    ['tests that are no list', `${MODEL}tests: 5\n`, 'tests is not a list'],
    [
      'a tuple without a user',
      `${MODEL}tuples:\n  - {relation: viewer, object: doc:1}\n`,
      'a.fga.yaml:10: user is missing',
    ],
    [
      'a tuple on an unknown type',
      `${MODEL}tuples:\n  - {user: user:a, relation: viewer, object: dok:1}\n`,
      'no type "dok"',
    ],
    [
      'a tuple on an unknown relation',
      `${MODEL}tuples:\n  - {user: user:a, relation: view, object: doc:1}\n`,
      'no relation "view"',
    ],
    [
      'a tuple that the type restrictions forbid',
      `${MODEL}tuples:\n  - {user: doc:2, relation: viewer, object: doc:1}\n`,
      'does not allow doc',
    ],
    [
      'a wildcard that they forbid',
      `${MODEL}tuples:\n  - {user: 'user:*', relation: viewer, object: doc:1}\n`,
      'does not allow user:*',
    ],
    [
      'a userset that they forbid',
      `${MODEL}tuples:\n  - {user: 'doc:1#owner', relation: viewer, object: doc:1}\n`,
      'does not allow doc#owner',
    ],
    [
      'a wildcard as an object',
      `${MODEL}tuples:\n  - {user: user:a, relation: viewer, object: 'doc:*'}\n`,
      'is not <type>:<id>',
    ],
    [
      'an object with a space',
      `${MODEL}tuples:\n  - {user: user:a, relation: viewer, object: 'doc:1 2'}\n`,
      'is not <type>:<id>',
    ],
    [
      'a list of users without a filter',
      `${MODEL}tests:\n  - list_users:\n      - {object: doc:1, assertions: {viewer: {users: []}}}\n`,
      'user_filter is missing',
    ],
  ])('refuses %s, saying where', async (_, text, message) => {
    const { status, lines } = await runStores({ 'a.fga.yaml': text, 'a.fga.yaml.txt': '' })
    expect(lines.slice(0, -1).join('\n')).toContain(message)
    expect([status, lines.at(-1)]).toEqual([2, '0 passed, 0 failed, 1 of 1 files could not be used'])
  })

  test.each([
    [
      'a missing column',
      'user_type,user_id,relation,object_type\nuser,anne,viewer,doc\n',
      'column object_id is missing',
    ],
    [
      'an unknown column',
      'user_type,user_id,relation,object_type,object_id,x\nuser,anne,viewer,doc,1,1\n',
      'column x is unknown',
    ],
    ['a row that is too short', 'user_type,user_id,relation,object_type,object_id\nuser,anne,viewer\n', 't.csv:2'],
    [
      'a condition',
      'user_type,user_id,relation,object_type,object_id,condition_name\nuser,anne,viewer,doc,1,c9\n',
      'condition "c9"',
    ],
  ])('refuses a CSV file with %s', async (_, text, message) => {
    const { status, lines } = await runStores({ 'a.fga.yaml': `${MODEL}tuple_file: t.csv\n`, 't.csv': text })
    expect([status, lines[0]]).toEqual([2, expect.stringContaining(message)])
  })

  test('names the line of a JSON lines file that is wrong', async () => {
    const good = '{"user": "user:anne", "relation": "viewer", "object": "doc:1"}\n'
    const lines = async (text: string) =>
      (await runStores({ 'a.fga.yaml': `${MODEL}tuple_file: t.jsonl\n`, 't.jsonl': good + text })).lines[0]
    expect(await lines('{"relation": "viewer", "object": "doc:1"}')).toBe('t.jsonl:2: user is missing')
    expect(await lines('{"user": ')).toMatch(/^t\.jsonl:2: /)
    expect(await lines('\n{"user": "user:a", "relation": "x", "object": "doc:1"}')).toMatch(/^t\.jsonl:3: .*"x"/)
  })

  test('names the module that is wrong', async () => {
    const { lines } = await runStores({
      'a.fga.yaml': 'model_file: fga.mod\n',
      'fga.mod': "schema: '1.2'\ncontents: [core.fga]\n",
      'core.fga': 'module core\ntype user\ntype doc\n  relations\n    define viewer: [nobody]\n',
    })
    expect(lines[0]).toBe('core.fga:5:21: there is no type "nobody" (relation "viewer" of type "doc")')
  })

  test.each([
    [
      'a relation that the type does not have',
      'user: user:anne, object: doc:1, assertions: {see: false}',
      'no relation "see"',
    ],
    [
      'a type that the model does not have',
      'user: human:anne, object: doc:1, assertions: {viewer: false}',
      'no type "human"',
    ],
    ['a user without a type', 'user: anne, object: doc:1, assertions: {viewer: false}', 'user "anne" is not'],
    [
      'a userset of an unknown relation',
      "user: 'doc:1#x', object: doc:1, assertions: {viewer: false}",
      'no relation "x"',
    ],
    [
      'a wildcard as the object',
      "user: user:anne, object: 'doc:*', assertions: {viewer: false}",
      'object "doc:*" is not',
    ],
  ])('fails a check of %s, whatever it expects', async (_, check, message) => {
    const { status, lines } = await runStores({ 'a.fga.yaml': `${MODEL}tests:\n  - check: [{${check}}]\n` })
    expect([status, lines[0]]).toEqual([1, expect.stringContaining(message)])
  })

  test.skipIf(!existsSync(SAMPLES))(
    'passes every sample store but the one whose tuples bring their conditions along',
    async () => {
      const files = globSync(`${SAMPLES}**/*.fga.yaml`)
      expect(files.length).toBeGreaterThan(20)
      for (const file of files) {
        let out = ''
        const write = (text: string): void => {
          out += text
        }
        const status = await runModelTests([file], { write, directory: SAMPLES })
        const [name] = /with \$expression/.exec(readFileSync(file, 'utf8')) ?? []
        if (name === undefined)
          // Some have organizations of their own, which serving takes under another name.
          expect([file, status, out]).toEqual([
            file,
            out.startsWith('REFUSED ') ? 1 : 0,
            expect.stringMatching(/^(REFUSED .*organization.*\n)*[1-9]\d* passed, 0 failed.*\n$/),
          ])
        else expect([file, status, out]).toEqual([file, 2, expect.stringContaining('"$expression"')])
      }
    },
  )
})
