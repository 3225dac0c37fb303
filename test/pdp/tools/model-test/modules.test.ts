/** Models of several modules: what one may leave out, and whose fault it is when they do not fit together. */
import { describe, expect, test } from 'vitest'
import { compileModel } from '../../../../pdp/engine/decide/language/model-language.ts'
import { modelTextOf, readModelText, readSourceModel } from '../../../../pdp/tools/model-test/model-text.ts'
import { runStores } from './stores.ts'

const CORE = `module core
type user
type doc
  relations
    define viewer: [user with late] or editor
    define editor: [user]
`
const mod = (...names: readonly string[]): string =>
  `schema: '1.2'\ncontents:\n${names.map((name) => `  - ${name}\n`).join('')}`
const run = (files: Readonly<Record<string, string>>) =>
  runStores({ 'a.fga.yaml': 'model_file: fga.mod\n', 'fga.mod': mod(...Object.keys(files)), ...files })
const LATE = 'module core\ncondition late(hour: int) {\n  hour > 18\n}\n'

describe('a model of modules', () => {
  test.each<[string, Readonly<Record<string, string>>]>([
    ['a module of conditions alone', { 'core.fga': CORE, 'late.fga': LATE }],
    ['that is empty, or a comment', { 'core.fga': CORE, 'late.fga': LATE, 'empty.fga': '', 'talk.fga': '# later\n\n' }],
    ['with a header alone', { 'core.fga': CORE, 'late.fga': LATE, 'head.fga': 'module head\n' }],
    [
      'that extends a type',
      {
        'core.fga': CORE,
        'late.fga': LATE,
        'more.fga': 'module more\nextend type doc\n  relations\n    define owner: [user] or editor\n',
      },
    ],
    [
      'that extends a type of a later one',
      {
        'more.fga': 'module more\nextend type doc\n  relations\n    define owner: [user]\n',
        'core.fga': CORE,
        'late.fga': LATE,
      },
    ],
  ])('may have one %s', async (_, files) => {
    expect(await run(files)).toEqual({ status: 0, lines: ['0 passed, 0 failed'] })
    const read = async (path: string) => ({ 'fga.mod': mod(...Object.keys(files)), ...files })[path] ?? ''
    const source = { kind: 'file', file: 'fga.mod', line: 1, from: 'fga.mod' } as const
    const { document } = await readSourceModel(source, read)
    expect(compileModel(await readModelText(source, read))).toEqual(compileModel(JSON.stringify(document)))
  })

  test.each<[string, Readonly<Record<string, string>>, string]>([
    [
      'a condition that no module has',
      { 'core.fga': CORE },
      'core.fga:5:31: there is no condition "late"; define it below the types, or remove "with late" (relation "viewer" of type "doc")',
    ],
    [
      'a condition twice',
      { 'core.fga': CORE, 'late.fga': LATE, 'again.fga': LATE },
      'again.fga:2:1: condition "late" is defined in another module as well',
    ],
    [
      'a type twice',
      { 'core.fga': CORE, 'late.fga': `${LATE}`.replace('condition', 'type user\ncondition') },
      'late.fga:2:1: type "user" is declared twice; join its relations in one declaration',
    ],
    [
      'an extension of nothing',
      {
        'core.fga': CORE,
        'late.fga': LATE,
        'x.fga': 'module x\nextend type file\n  relations\n    define a: [user]\n',
      },
      'x.fga:2:1: type "file" is extended, and no module declares it',
    ],
    [
      'a relation twice',
      {
        'core.fga': CORE,
        'late.fga': LATE,
        'x.fga': 'module x\nextend type doc\n  relations\n    define editor: [user]\n',
      },
      'x.fga:4:5: relation "editor" of type "doc" is defined in core.fga as well',
    ],
    [
      'a mistake in an extension',
      { 'core.fga': CORE, 'late.fga': LATE, 'x.fga': 'module x\nextend type doc\n  relations\n    define a: [usr]\n' },
      'x.fga:4:16: there is no type "usr"; did you mean "user"? (relation "a" of type "doc")',
    ],
    [
      'a module that is none',
      { 'core.fga': CORE, 'x.fga': 'model\n  schema 1.1\ntype x\n' },
      'x.fga:1:1: it is not a module; begin it with "module <name>"',
    ],
    [
      'a module of wrong syntax',
      { 'core.fga': CORE, 'x.fga': 'module x\ntpe y\n' },
      'x.fga:2:1: "tpe y" is not understood; a line is "type <name>", "  relations" or "    define <relation>: <rule>", and a rule is such as "[user] or editor"',
    ],
    [
      'nothing in any',
      { 'core.fga': '', 'x.fga': '' },
      'fga.mod:1:1: the model declares no type; add one, such as "type doc"',
    ],
  ])('with %s is refused in its module', async (_, files, line) => {
    const { status, lines } = await run(files)
    expect([status, lines]).toEqual([2, expect.arrayContaining([line])])
  })
})

test('a model that the language can say becomes text again, and any other stays JSON', () => {
  const text =
    'model\n  schema 1.1\n\ntype user\n\ntype doc\n  relations\n    define a: [user]\n    define b: [user] or a\n'
  const documentOf = (rule: object) => ({
    schema_version: '1.1',
    type_definitions: [
      { type: 'user', relations: {}, metadata: { relations: {} } },
      {
        type: 'doc',
        relations: { a: { this: {} }, b: rule },
        metadata: {
          relations: {
            a: { directly_related_user_types: [{ type: 'user' }] },
            b: { directly_related_user_types: [{ type: 'user' }] },
          },
        },
      },
    ],
    conditions: {},
  })
  const a = { computedUserset: { relation: 'a' } }
  expect(modelTextOf(documentOf({ union: { child: [a, { this: {} }] } }))).toBe(text)
  for (const rule of [
    { union: { child: [a, { union: { child: [a, { this: {} }] } }] } },
    { difference: { base: a, subtract: { this: {} } } },
    { union: { child: [{ this: {} }, { this: {} }] } },
  ]) {
    const document = documentOf(rule)
    const kept = modelTextOf(document)
    expect(JSON.parse(kept)).toEqual(document)
    expect(compileModel(kept)).toEqual(compileModel(JSON.stringify(document)))
  }
})

test('many tuples that are refused for one reason are one line', async () => {
  const tuple = (i: number) => `  - {user: "user:u${i}", relation: member, object: "organization:o"}\n`
  const { lines } = await runStores({
    'a.fga.yaml': `model: |\n  model\n    schema 1.1\n  type user\n  type organization\n    relations\n      define member: [user]\ntuples:\n${[1, 2, 3].map(tuple).join('')}`,
  })
  expect(lines).toEqual([
    expect.stringMatching(/^REFUSED a\.fga\.yaml:9: .*memberships.* \(so are 2 more tuples\)$/),
    '0 passed, 0 failed, 1 refused by a PDP that serves',
  ])
})

test('an assertion without a value is false, as the fga tool reads it', async () => {
  const store = (value: string) =>
    `model: |\n  model\n    schema 1.1\n  type user\n  type doc\n    relations\n      define a: [user]\ntests:\n  - check: [{user: "user:x", object: "doc:1", assertions: {a: ${value}}}]\n`
  expect((await runStores({ 'a.fga.yaml': store('') })).lines).toEqual(['1 passed, 0 failed'])
})
