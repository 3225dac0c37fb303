/** `model diff` and `model lint` as a person runs them. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runClient } from '../../run-cli.ts'

async function run(args: readonly string[], files: Readonly<Record<string, string>>) {
  const cwd = await mkdtemp(join(tmpdir(), 'model-'))
  try {
    for (const [name, text] of Object.entries(files)) await writeFile(join(cwd, name), text)
    return await runClient(['model', ...args], { cwd })
  } finally {
    await rm(cwd, { recursive: true })
  }
}
const TEXT = `model
  schema 1.1
type user
type doc
  relations
    define owner: [user]
    define banned: [user]
    define viewer: [user] or owner
`
const JSON_MODEL = JSON.stringify({
  schema_version: '1.1',
  type_definitions: [
    { type: 'user' },
    {
      type: 'doc',
      relations: { owner: { this: {} } },
      metadata: { relations: { owner: { directly_related_user_types: [{ type: 'user' }] } } },
    },
  ],
})

test('diff names who can gain, by tuples, and exits with 1', async () => {
  const changed = TEXT.replace('[user] or owner', '[user, user:*] or owner')
  const { status, out } = await run(['diff', 'a.fga', 'b.fga'], { 'a.fga': TEXT, 'b.fga': changed })
  expect(status).toBe(1)
  expect(out).toBe(
    'doc#viewer: a user can gain it. Example: user:anne on doc:1, with\n    doc:1#viewer@user:*\n' +
      'Nobody can gain or lose any of the other 2 of 3 relations, whatever the tuples are.\n',
  )
})

test('diff of what means the same says so, also between a text and JSON, and exits with 0', async () => {
  const text = 'model\n  schema 1.1\ntype user\ntype doc\n  relations\n    define owner: [user]\n'
  const { status, out } = await run(['diff', 'a.fga', 'b.json'], { 'a.fga': text, 'b.json': JSON_MODEL })
  expect([status, out]).toEqual([0, 'Nobody can gain or lose any of the 1 relations, whatever the tuples are.\n'])
})

test('diff as JSON has a verdict for each relation', async () => {
  const { out } = await run(['diff', 'a.fga', 'b.fga', '--json'], { 'a.fga': TEXT, 'b.fga': TEXT })
  expect(JSON.parse(out)).toContainEqual({
    type: 'doc',
    relation: 'owner',
    subject: 'user',
    gain: { verdict: 'nobody' },
    lose: { verdict: 'nobody' },
  })
})

test.each([
  ['diff', ['a.fga', 'none.fga'], 'none.fga'],
  ['diff', ['a.fga', 'broken.fga'], 'broken.fga:7:'],
  ['lint', ['broken.fga'], 'broken.fga:7:'],
  ['lint', ['empty.fga.yaml'], 'there is neither a model nor a model_file'],
])('%s of %j says what is wrong with which file, and exits with 2', async (command, files, message) => {
  const broken = TEXT.replace('banned: [user]', 'banned: [usr]')
  const given = { 'a.fga': TEXT, 'broken.fga': broken, 'empty.fga.yaml': 'name: x\n' }
  const { status, err, out } = await run([command, ...files], given)
  expect([status, out]).toEqual([2, ''])
  expect(err).toContain(message)
})

test.each([
  ['odd: owner and (banned but not banned)', '9: doc#odd: nobody can ever have it'],
  ['odd: (owner but not banned) and banned', '9: doc#odd: nobody can ever have it'],
  ['odd: owner and [group#member]', ''],
])('lint of "%s" finds %j', async (rule, finding) => {
  const text = `${TEXT}    define ${rule}\ntype group\n  relations\n    define member: [user]\n`
  const { status, out } = await run(['lint', 'a.fga'], {
    'a.fga': text.replace('owner and [', '[').replace(']\ntype group', '] and owner\ntype group'),
  })
  expect(status).toBe(finding === '' ? 0 : 1)
  expect(out).toContain(finding === '' ? 'nothing found' : `a.fga:${finding}`)
})

test('lint finds types and conditions that nothing uses, with their lines, in a store file too', async () => {
  const text = `${TEXT}type unused\ncondition small(size: int) {\n  size < 5\n}\n`
  const store = `model: |\n${text.replace(/^/gm, '  ')}\n`
  const { status, out } = await run(['lint', 'a.fga', 's.fga.yaml'], { 'a.fga': text, 's.fga.yaml': store })
  expect(status).toBe(1)
  expect(out.split('\n')).toEqual([
    'a.fga:9: type unused has no relation, and no relation names it',
    'a.fga:10: condition small: no relation uses it',
    's.fga.yaml:10: type unused has no relation, and no relation names it',
    's.fga.yaml:11: condition small: no relation uses it',
    '',
  ])
})
