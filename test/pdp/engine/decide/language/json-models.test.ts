/** Models in the JSON of OpenFGA's API: the same as in the language, and what the language has no words for. */
import { describe, expect, test } from 'vitest'
import { loadOpenfga } from '../../../../../pdp/engine/decide/language/document.ts'
import { boundIssues } from '../../../../../pdp/engine/decide/language/model-bounds.ts'
import { compileModel } from '../../../../../pdp/engine/decide/language/model-language.ts'
import { createPdp } from '../../../../../pdp/engine/decision-point/create-pdp.ts'
import { memoryStore } from '../../../../../pdp/engine/store/memory/memory.ts'
import { PdpError } from '../../../../../pdp/shared/domain/errors.ts'
import { ENVIRONMENT } from '../../../../../pdp/shared/domain/journal.ts'
import { context, given, put } from '../../../../support/tuples.ts'

const USER = { type: 'user' }
const computed = (relation: string) => ({ computedUserset: { relation } })
const kinds = (...types: readonly object[]) => ({ directly_related_user_types: types })

/** Relations by name, and the subjects of those that have some. */
function modelOf(
  relations: Readonly<Record<string, unknown>>,
  restrictions: Readonly<Record<string, unknown>> = {},
  rest: object = {},
): string {
  const doc = { type: 'doc', relations, metadata: { module: 'm', relations: restrictions } }
  return JSON.stringify({ id: '01', schema_version: '1.1', type_definitions: [USER, doc], ...rest }, null, 2)
}
const conditionOf = (type: object, expression = 'true') => ({
  conditions: { c: { name: 'c', expression, parameters: { x: type } } },
})

test('a model of eighty relations in JSON is the same as in the language, whatever its server adds', () => {
  const names = Array.from({ length: 80 }, (_, i) => `r${i}`)
  const dsl = `model\n  schema 1.1\ntype user\ntype doc\n  relations\n${names.map((name) => `    define ${name}: [user, doc#r0]\n`).join('')}`
  const userset = { type: 'doc', relation: 'r0', condition: '' }
  const json = modelOf(
    Object.fromEntries(names.map((name) => [name, { this: {} }])),
    Object.fromEntries(names.map((name) => [name, { module: 'm', source_info: null, ...kinds(USER, userset) }])),
  )
  expect(boundIssues(json)).toEqual([])
  expect(compileModel(json)).toEqual(compileModel(dsl))
  expect(compileModel(loadOpenfga().transformer.transformDSLToJSON(dsl))).toEqual(compileModel(dsl))
})

test('own tuples may count deeper than in the first operand, and the model decides', async () => {
  const inner = { union: { child: [computed('f'), { this: {} }] } }
  const text = modelOf(
    { e: { this: {} }, f: { this: {} }, x: { intersection: { child: [computed('e'), inner] } } },
    { e: kinds(USER), f: kinds(USER), x: kinds(USER) },
  )
  const store = memoryStore()
  await store.write(
    ENVIRONMENT,
    [{ kind: 'manifest', manifest: { app: 'a', audiences: [], permissions: {}, roles: {}, model: text } }],
    { context },
  )
  await given(
    store,
    'acme',
    ...['doc:1#e@user:ann', 'doc:1#x@user:ann', 'doc:1#e@user:bob', 'doc:1#x@user:cy'].map((tuple) => put(tuple)),
  )
  const pdp = createPdp({ store })
  const asked = ['ann', 'bob', 'cy'].map((id) => pdp.can('acme', { type: 'user', id }, 'x', 'doc:1'))
  expect(await Promise.all(asked)).toEqual([true, false, false])
})

const LONG = 'a'.repeat(64)
describe('a model in JSON may have', () => {
  test.each<readonly [string, string]>([
    [
      'names that the language has as words',
      modelOf({ define: { this: {} }, from: computed('define') }, { define: kinds(USER) }),
    ],
    ['relations called self and this', modelOf({ self: { this: {} }, this: computed('self') }, { self: kinds(USER) })],
    ['names of 64 bytes', modelOf({ [LONG]: { this: {} } }, { [LONG]: kinds(USER) })],
    [
      'an operand twice',
      modelOf({ a: { this: {} }, b: { union: { child: [computed('a'), computed('a')] } } }, { a: kinds(USER, USER) }),
    ],
    ['a relation that nobody has on purpose', modelOf({ a: { union: { child: [] } }, b: computed('a') })],
    [
      'members in the other form of their names',
      modelOf(
        {
          p: { this: {} },
          a: { this: {} },
          b: { tuple_to_userset: { tupleset: { relation: 'p' }, computed_userset: { relation: 'a' } } },
        },
        { p: kinds({ type: 'doc' }), a: kinds(USER) },
      ),
    ],
    ...['any', 'TYPE_NAME_ANY'].map(
      (type_name) =>
        [
          `a parameter of type ${type_name}`,
          modelOf({ a: { this: {} } }, { a: kinds({ ...USER, condition: 'c' }) }, conditionOf({ type_name })),
        ] as const,
    ),
    [
      'a list of lists',
      modelOf(
        {},
        {},
        conditionOf(
          {
            type_name: 'TYPE_NAME_LIST',
            generic_types: [{ type_name: 'TYPE_NAME_LIST', generic_types: [{ type_name: 'TYPE_NAME_STRING' }] }],
          },
          'x[0][0] == "a"',
        ),
      ),
    ],
    ['a condition that nothing uses', modelOf({}, {}, conditionOf({ type_name: 'TYPE_NAME_INT' }, 'x > 1'))],
  ])('%s', (_, text) => {
    expect(boundIssues(text)).toEqual([])
    expect(compileModel(text).has('doc')).toBe(true)
  })
})

const issuesOf = (text: string): readonly string[] => {
  try {
    compileModel(text)
    return []
  } catch (err) {
    if (err instanceof PdpError && err.code === 'request_invalid')
      return err.issues.map((m) => `${m.place} ${m.message}`)
    throw err
  }
}

describe('a model in JSON is refused', () => {
  const one = { a: kinds(USER) }
  const deep = (depth: number): object => (depth === 0 ? { this: {} } : { union: { child: [deep(depth - 1)] } })
  test.each<[string, string, RegExp]>([
    ['with text that ends', '{\n  "schema_version": ', /^2:\d+ this is not JSON/],
    ['without types', '{"schema_version":"1.1"}', /^1:1 the model declares no type/],
    ['without a schema', '{"type_definitions":[{"type":"a"}]}', /schema is not one/],
    ['of another schema', '{\n"schema_version":"1.0","type_definitions":[{"type":"a"}]}', /^2:1 the schema is not one/],
    [
      'with types that are no list',
      '{"schema_version":"1.1","type_definitions":{}}',
      /type_definitions has something that is not a list/,
    ],
    [
      'with a type that is text',
      '{"schema_version":"1.1","type_definitions":["user"]}',
      /type_definitions\[0\] is not an object/,
    ],
    [
      'with a type that has a number for a name',
      '{"schema_version":"1.1","type_definitions":[{"type":1}]}',
      /not text where a name/,
    ],
    [
      'with an empty rule',
      modelOf({ a: {} }),
      /relation "a" of type "doc" has a rewrite that this version does not know/,
    ],
    ['with a rule that is null', modelOf({ a: null }), /relation "a" of type "doc" is not an object/],
    [
      'with operands that are no list',
      modelOf({ a: { union: { child: {} } } }),
      /relation "a" of type "doc" has something/,
    ],
    [
      'with a difference of one',
      modelOf({ a: { difference: { base: { this: {} } } } }),
      /relation "a" of type "doc" is not an object/,
    ],
    ['nested beyond all use', modelOf({ a: deep(200) }, one), /relation "a" of type "doc" is nested more than/],
    [
      'with subjects that are no list',
      modelOf({ a: { this: {} } }, { a: { directly_related_user_types: USER } }),
      /relation "a" of type "doc"/,
    ],
    ['with no subjects', modelOf({ a: { this: {} } }), /^\d+:\d+ the brackets are empty.*relation "a" of type "doc"/],
    [
      'with subjects of no tuples',
      modelOf({ a: { this: {} }, b: computed('a') }, { ...one, b: kinds(USER) }),
      /"this" is missing \(relation "b" of type "doc"\)/,
    ],
    [
      'with an unknown type',
      modelOf({ a: { this: {} } }, { a: kinds({ type: 'usr' }) }),
      /there is no type "usr"; did you mean "user"\? \(relation "a" of type "doc"\)/,
    ],
    [
      'with an unknown relation',
      modelOf({ a: { this: {} }, b: computed('aa') }, one),
      /there is no relation "aa"; did you mean "a"\? \(relation "b" of type "doc"\)/,
    ],
    [
      'with a wildcard of a set',
      modelOf({ a: { this: {} } }, { a: kinds({ ...USER, relation: 'x', wildcard: {} }) }),
      /both \* and a relation/,
    ],
    [
      'with a condition that is not there',
      modelOf({ a: { this: {} } }, { a: kinds({ ...USER, condition: 'late' }) }),
      /there is no condition "late".*relation "a" of type "doc"/,
    ],
    [
      'with a condition of two names',
      modelOf({}, {}, { conditions: { c: { name: 'd', expression: 'true' } } }),
      /condition "c" has another name inside: "d"/,
    ],
    [
      'with a parameter that is text',
      modelOf({}, {}, { conditions: { c: { name: 'c', expression: 'x', parameters: { x: 'int' } } } }),
      /condition "c" is not an object/,
    ],
    [
      'with a type of a parameter that is a number',
      modelOf({}, {}, conditionOf({ type_name: 1 })),
      /condition "c" has something that is not text/,
    ],
    [
      'with types of a parameter that are no list',
      modelOf({}, {}, conditionOf({ type_name: 'list', generic_types: {} })),
      /condition "c" has something that is not a list/,
    ],
    [
      'with an unknown type of a parameter',
      modelOf({}, {}, conditionOf({ type_name: 'bytes' })),
      /condition "c" has a parameter x: type bytes is not known/,
    ],
    [
      'with a relation of 65 bytes',
      modelOf({ [`${LONG}a`]: { this: {} } }, { [`${LONG}a`]: kinds(USER) }),
      /the name "a+" cannot be one: it is longer than 64 bytes/,
    ],
    [
      'with a relation that has a blank',
      modelOf({ 'a b': { this: {} } }, { 'a b': kinds(USER) }),
      /the name "a b" cannot be one: it .*has white space/,
    ],
    [
      'with a relation that every object has',
      modelOf({ constructor: { this: {} } }),
      /"constructor" is a name that every object/,
    ],
    [
      'with a relation that leads back to itself',
      modelOf({ a: computed('b'), b: computed('a') }),
      /nobody can ever have relation "a" of type "doc"/,
    ],
    [
      'with a parent that has sets',
      modelOf(
        { a: { this: {} }, b: { tupleToUserset: { tupleset: { relation: 'a' }, computedUserset: { relation: 'a' } } } },
        { a: kinds({ type: 'doc', relation: 'a' }, { type: 'doc' }) },
      ),
      /"a" comes after "from"/,
    ],
  ])('%s', (_, text, message) => {
    expect(issuesOf(text).join('\n')).toMatch(message)
  })

  test('where it is wrong', () => {
    const text = modelOf({ a: { this: {} }, b: computed('c') }, one)
    expect(issuesOf(text)).toEqual([
      `${text.split('\n').findIndex((line) => line.includes('"b"')) + 1}:9 there is no relation "c"; did you mean "a"? (relation "b" of type "doc")`,
    ])
  })
})
