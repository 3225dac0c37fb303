/** Schemas of SpiceDB, the files in which they are kept, and their assertions, which must hold here as well. */
import { deflateRawSync } from 'node:zlib'
import { create, toBinary } from '@bufbuild/protobuf'
import { StructSchema } from '@bufbuild/protobuf/wkt'
import { describe, expect, test } from 'vitest'
import { compileModel } from '../../../../pdp/engine/decide/language/model-language.ts'
import { formatTuple } from '../../../../pdp/shared/domain/names.ts'
import { withRenames } from '../../../../pdp/tools/import/plan.ts'
import { uncompressed } from '../../../../pdp/tools/import/snappy.ts'
import { planSpiceDb } from '../../../../pdp/tools/import/spicedb.ts'
import { playAssertions } from '../../../../pdp/tools/import/spicedb-assertions.ts'
import { readSpiceDbFile } from '../../../../pdp/tools/import/spicedb-file.ts'
import { ValidationIssues } from '../../../../pdp/tools/model-test/located-yaml.ts'

const NOW = Date.parse('2030-01-01T00:00:00Z')

async function read(files: Readonly<Record<string, string | Uint8Array>>, name: string) {
  const issues = new ValidationIssues()
  const bytes = async (path: string): Promise<Uint8Array> => {
    const found = files[path]
    if (found === undefined) throw new Error(`${path} is not there`)
    return typeof found === 'string' ? Buffer.from(found) : found
  }
  return { file: await readSpiceDbFile(name, { read: bytes, issues }), issues: issues.lines }
}

/** Reads a validation file and plays it. */
async function played(text: string) {
  const { file, issues } = await read({ '/v.yaml': text }, '/v.yaml')
  const plan = planSpiceDb(file.schema, file.relationships)
  expect([issues, plan.refusals]).toEqual([[], []])
  return { plan, ...(await playAssertions(plan, file, NOW)) }
}

const permission = (expression: string): string =>
  `definition user {}\ndefinition d { relation a: user\n relation b: user\n relation c: user\n permission p = ${expression} }`
const HOLDERS = 'd:1#a@user:a\nd:1#b@user:b\nd:1#c@user:c\nd:1#a@user:ab\nd:1#b@user:ab\nd:1#a@user:ac\nd:1#c@user:ac'
const holdersOf = async (expression: string): Promise<readonly string[]> => {
  const plan = planSpiceDb(permission(expression), HOLDERS)
  expect(plan.refusals).toEqual([])
  const held: string[] = []
  for (const id of ['a', 'b', 'c', 'ab', 'ac']) {
    const assertion = { line: 1, what: `d:1#p@user:${id}`, expected: 'true' } as const
    const file = { schema: '', relationships: '', assertions: [assertion], expectations: [] }
    if ((await playAssertions(plan, file, NOW)).passed === 1) held.push(id)
  }
  return held
}

describe('a permission of SpiceDB', () => {
  // Exclusion binds most loosely, then intersection, then union: spicedb, pkg/schemadsl/parser/parser.go.
  test.each([
    ['a + b - c', '(a + b) - c', ['a', 'b', 'ab']],
    ['a - c + b', 'a - (c + b)', ['a']],
    ['a & b + c', 'a & (b + c)', ['ab', 'ac']],
    ['a - b & c', 'a - (b & c)', ['a', 'ab', 'ac']],
    ['(a - b) + c', null, ['a', 'c', 'ac']],
    ['a - b - c', null, ['a']],
    ['a + nil', null, ['a', 'ab', 'ac']],
    ['a & nil', null, []],
    ['nil - a', null, []],
    ['(a & b) - nil', null, ['ab']],
    ['nil', null, []],
  ])('%s means the same here', async (expression, reading, holders) => {
    expect(await holdersOf(expression)).toEqual(holders)
    const { notes } = planSpiceDb(permission(expression), '')
    expect(notes).toEqual(reading === null ? [] : [`permission "p" of "d" is read as ${reading}`])
  })
})

test('an arrow to what the sets of its relation name already is that relation', async () => {
  const { passed, failures } = await played(`schema: |-
  definition user {}
  definition list { relation member: user }
  definition event {
    relation blocked: list#member
    relation guest: user
    permission invited = guest - blocked->member
  }
relationships: |-
  list:l#member@user:bad
  event:e#blocked@list:l#member
  event:e#guest@user:bad
  event:e#guest@user:good
assertions: {assertTrue: ["event:e#invited@user:good"], assertFalse: ["event:e#invited@user:bad"]}
`)
  expect([passed, failures]).toEqual([2, []])
})

describe('names of SpiceDB', () => {
  test('that are words of the language, of objects or long are kept or translated, never refused', async () => {
    const long = `a${'b'.repeat(62)}c`
    const { plan, passed, failures } = await played(`schema: |
  use typechecking
  caveat constructor(with_map map<any>) { with_map["a"] == {"b": 1}["b"] }
  caveat t/constructor(x list<any>) { x[0] == "a" }
  definition user {}
  definition constructor { relation self: user }
  definition t/define {
    relation define: user | constructor#self
    relation constructor: user with constructor | user with t/constructor
    relation ${long}: user
    permission from: user = define + ${long}
    permission self = from + constructor
  }
relationships: |
  t/define:1#define@user:ann
  t/define:1#define@constructor:c#self
  constructor:c#self@user:bob
  t/define:1#constructor@user:cy[constructor]
  t/define:1#${long}@user:dee
assertions:
  assertTrue:
    - t/define:1#from@user:ann
    - t/define:1#from@user:bob
    - 't/define:1#self@user:cy with {"with_map": {"a": 1}}'
    - t/define:1#self@user:dee
  assertCaveated: [t/define:1#self@user:cy]
  assertFalse: ['t/define:1#self@user:cy with {"with_map": {"a": 2}}', t/define:1#from@user:cy]
`)
    expect([passed, failures]).toEqual([7, []])
    expect([...compileModel(plan.model).keys()]).toEqual(['user', 'constructor_', 't_define'])
    expect(plan.tuples.map(formatTuple)).toContain('t_define:1#define@constructor_:c#self')
    expect(plan.notes.join('\n')).toMatch(/"constructor" is called "constructor_"/)
  })

  test('may be changed once more, and no two of them become one', () => {
    const plan = planSpiceDb(
      'definition user {}\ndefinition group { relation member: user | group#member }',
      'group:1#member@group:2#member',
    )
    const renamed = withRenames(plan, new Map([['group', 'team']]))
    expect(renamed.refusals).toEqual([])
    expect(renamed.tuples.map(formatTuple)).toEqual(['team:1#member@team:2#member'])
    expect(renamed.model).toContain('define member: [user, team#member]')
    for (const [names, message] of [
      [[['gruop', 'a']], /no type "gruop"; did you mean "group"/],
      [[['group', 'user']], /a type "user" already/],
      [[['group', 'a b']], /cannot be the name/],
      [
        [
          ['group', 'a'],
          ['user', 'a'],
        ],
        /the same name/,
      ],
    ] as const)
      expect(() => withRenames(plan, new Map(names))).toThrow(message)
  })
})

describe('a validation file', () => {
  const SCHEMA = `schema: |-
  caveat open(hour int) { hour < 18 }
  definition user {}
  definition group { relation member: user }
  definition doc {
    relation reader: user | user:* | group#member | user with open
    relation banned: user
    permission view = reader - banned
  }
`
  test('is played: assertions, expected relations, and relationships that are over', async () => {
    const { passed, failures } = await played(`${SCHEMA}relationships: >-
  doc:1#reader@user:ann doc:1#reader@group:g#member

  group:g#member@user:bob
  doc:1#reader@user:eve[open]
  doc:1#reader@user:old[expiration:2029-01-01T00:00:00Z]
  doc:2#reader@user:*
  doc:2#banned@user:bad
assertions:
  assertTrue: ["doc:1#view@user:ann", "doc:1#view@group:g#member", 'doc:1#view@user:eve with {"hour": 9}']
  assertFalse: ["doc:1#view@user:old", "doc:2#view@user:bad"]
validation:
  doc:1#view:
    - "[user:ann] is <doc:1#reader>"
    - "[user:bob] is <group:g#member>"
    - "[user:eve[...]] is <doc:1#reader>"
    - "[group:g#member] is <doc:1#reader>"
  doc:2#view:
    - "[user:* - {user:bad}] is <doc:2#reader>"
`)
    expect([passed, failures]).toEqual([7, []])
  })

  test.each([
    ['assertTrue: ["doc:1#view@user:bob"]', '14: doc:1#view@user:bob: expected true, got false'],
    ['assertFalse: ["doc:1#view@user:ann"]', '14: doc:1#view@user:ann: expected false, got true'],
    ['assertCaveated: ["doc:1#view@user:ann"]', '14: doc:1#view@user:ann: expected caveated, got true'],
    ['assertTrue: ["doc:1#view"]', /^14: doc:1#view: .*not a tuple/],
    [
      "assertTrue: ['doc:1#view@user:ann with {x']",
      '14: doc:1#view@user:ann with {x: the context is not a JSON object',
    ],
    ['{}\nvalidation: {"doc:1#view": []}', '15: doc:1#view: user:ann: expected false, got true'],
    [
      '{}\nvalidation: {"doc:1#view": ["[user:ann] is a", "[user:bob] is a"]}',
      '15: doc:1#view: user:bob: expected true, got false',
    ],
    ['{}\nvalidation: {"doc:1#view": ["user:ann"]}', '15: doc:1#view: "user:ann" is not a subject in brackets'],
  ])('fails where %s does not hold, with its line', async (assertion, failure) => {
    const { passed, failures } = await played(`${SCHEMA}relationships: |
  doc:1#reader@user:ann

assertions:
  ${assertion}
`)
    expect(passed).toBe(0)
    expect(failures).toEqual([typeof failure === 'string' ? failure : expect.stringMatching(failure)])
  })

  test('may name its schema, and is refused with what is not known or cannot be read', async () => {
    const schema = 'definition user {}'
    const { file } = await read({ '/a/v.yaml': 'schemaFile: ../s.zed\n', '/s.zed': schema }, '/a/v.yaml')
    expect(file).toMatchObject({ schema, relationships: '', assertions: [], expectations: [] })
    const issuesOf = async (text: string) => (await read({ '/v.yaml': text }, '/v.yaml')).issues
    expect(await issuesOf('schemaFile: gone.zed')).toEqual([
      '/v.yaml:1: the schema file gone.zed cannot be read',
      '/v.yaml:1: there is neither a schema nor a schemaFile',
    ])
    expect(await issuesOf('relationships: ""')).toEqual(['/v.yaml:1: there is neither a schema nor a schemaFile'])
    expect(await issuesOf('schema: a\nassertion: {}')).toEqual([expect.stringContaining('unknown member "assertion"')])
    expect(await issuesOf('schema: a\nassertions: {assertMaybe: []}')).toEqual([
      expect.stringContaining('"assertMaybe"'),
    ])
    expect(await issuesOf('schema: [')).not.toEqual([])
  })
})

test('relationships are read as zed prints them', () => {
  const plan = planSpiceDb(
    'caveat open(hour int) { hour < 18 }\ndefinition user {}\ndefinition note { relation parent: note\n relation reader: user | note#reader | user with open }',
    'note:1 parent note:2\nnote:1  reader  note:2#reader\nnote:1 reader user:ann#...\nnote:1 reader user:eve[open:{"hour": 9}][expiration:2040-01-01T00:00:00Z]\n',
  )
  expect(plan.refusals).toEqual([])
  expect(plan.tuples.map(formatTuple)).toEqual([
    'note:1#parent@note:2',
    'note:1#reader@note:2#reader',
    'note:1#reader@user:ann',
    'note:1#reader@user:eve',
  ])
  expect(plan.tuples[3]).toMatchObject({
    condition: { name: 'open', context: { hour: 9 } },
    expiresAtMs: Date.parse('2040-01-01'),
  })
  expect(planSpiceDb('definition user {}', 'note:1 parent note:2 x').refusals).toEqual([
    expect.stringContaining('line 1:'),
  ])
})

describe('a backup of zed', () => {
  const zigzag = (value: number): Buffer => {
    const bytes: number[] = []
    for (let rest = value >= 0 ? BigInt(value) * 2n : BigInt(-value) * 2n - 1n; ; rest >>= 7n) {
      bytes.push(Number(rest & 0x7fn) | (rest > 0x7fn ? 0x80 : 0))
      if (rest <= 0x7fn) return Buffer.from(bytes)
    }
  }
  const text = (value: string | Uint8Array): Buffer =>
    Buffer.concat([zigzag(Buffer.from(value).length), Buffer.from(value)])
  const fields = [
    'object_type',
    'object_id',
    'relation',
    'subject_object_type',
    'subject_object_id',
    'subject_relation',
    'caveat_name',
  ]
  const avroSchema = JSON.stringify([
    {
      type: 'record',
      name: 'relationship_v1',
      fields: [
        ...fields.map((name) => ({ name, type: 'string' })),
        { name: 'caveat_context', type: 'bytes' },
        { name: 'expiration', type: { type: 'long', logicalType: 'timestamp-millis' } },
      ],
    },
    { type: 'record', name: 'schema_v1', fields: [{ name: 'schema_text', type: 'string' }] },
  ])
  const sync = Buffer.alloc(16, 7)
  const relationship = (values: readonly string[], context: Uint8Array, expiresAtMs: number): Buffer =>
    Buffer.concat([zigzag(0), ...values.map(text), text(context), zigzag(expiresAtMs)])
  const NEVER = -62_135_596_800_000
  const struct = toBinary(
    StructSchema,
    create(StructSchema, { fields: { hour: { kind: { case: 'numberValue', value: 9 } } } }),
  )
  const schema =
    'caveat open(hour int) { hour < 18 }\ndefinition user {}\ndefinition doc { relation reader: user | user with open | doc#reader }'
  const records = [
    Buffer.concat([zigzag(1), text(schema)]),
    relationship(['doc', '1', 'reader', 'user', 'ann', '', ''], new Uint8Array(), NEVER),
    relationship(['doc', '1', 'reader', 'user', 'eve', '', 'open'], struct, Date.parse('2040-01-01')),
    relationship(['doc', '1', 'reader', 'doc', '2', 'reader', ''], new Uint8Array(), 0),
  ]
  /** Snappy's form of a text without any repetition that is used, and its checksum, which readers of ours skip. */
  const literals = (bytes: Buffer): Buffer => {
    const length = bytes.length
    const varint = length < 128 ? [length] : [(length & 0x7f) | 0x80, length >> 7]
    return Buffer.concat([
      Buffer.from([...varint, 61 << 2, (length - 1) & 0xff, (length - 1) >> 8]),
      bytes,
      Buffer.alloc(4),
    ])
  }
  const backup = (codec: string, encode: (block: Buffer) => Buffer, kinds = avroSchema): Buffer => {
    const block = encode(Buffer.concat(records))
    const metadata = Buffer.concat([
      zigzag(2),
      text('avro.schema'),
      text(kinds),
      text('avro.codec'),
      text(codec),
      zigzag(0),
    ])
    return Buffer.concat([
      Buffer.from('Obj\u0001'),
      metadata,
      sync,
      zigzag(records.length),
      zigzag(block.length),
      block,
      sync,
    ])
  }

  test.each([
    ['null', (block: Buffer) => block],
    ['deflate', (block: Buffer) => deflateRawSync(block)],
    ['snappy', literals],
  ])('is read with codec %s', async (codec, encode) => {
    const { file } = await read({ '/b': backup(codec, encode) }, '/b')
    expect(file.schema).toBe(schema)
    expect(file.relationships.split('\n')).toEqual([
      'doc:1#reader@user:ann',
      'doc:1#reader@user:eve[open:{"hour":9}][expiration:2040-01-01T00:00:00.000Z]',
      'doc:1#reader@doc:2#reader',
    ])
    expect(planSpiceDb(file.schema, file.relationships).refusals).toEqual([])
  })

  test('is refused when it is damaged, at every byte, or of another form', async () => {
    const good = backup('deflate', (block) => deflateRawSync(block))
    for (let end = 4; end < good.length - 1; end++)
      await expect(read({ '/b': good.subarray(0, end) }, '/b'), `cut at ${end}`).rejects.toMatchObject({
        code: 'request_invalid',
      })
    const refused = (bytes: Buffer) => expect(read({ '/b': bytes }, '/b')).rejects
    await refused(backup('zstandard', (block) => block)).toThrow(/compressed by zstandard/)
    await refused(backup('null', (block) => block, '{}')).toThrow(/no union/)
    await refused(backup('null', (block) => block, '[{"fields":[{"name":"x","type":"float"}]}]')).toThrow(/field x/)
  })

  test('is expanded as Snappy says, and refused where a copy leads elsewhere', () => {
    const bytes = (...all: readonly number[]) => Buffer.from(all)
    // A literal of "ab", then a copy of 6 bytes from 2 before, which repeats itself.
    expect(uncompressed(bytes(8, 1 << 2, 0x61, 0x62, 1 | (2 << 2), 2)).toString()).toBe('abababab')
    expect(uncompressed(bytes(4, 1 << 2, 0x61, 0x62, 2 | (1 << 2), 2, 0)).toString()).toBe('abab')
    expect(uncompressed(bytes(0)).toString()).toBe('')
    for (const damaged of [
      [],
      [2, 0, 0x61],
      [9, 4],
      [1, 4, 0x61, 0x62],
      [8, 4, 0x61, 0x62, 9, 3],
      [8, 4, 0x61, 0x62, 9, 0],
      [255, 255, 255, 255, 255, 1],
      [4, 4, 0x61, 0x62],
    ])
      expect(() => uncompressed(bytes(...damaged)), String(damaged)).toThrow(RangeError)
  })
})
