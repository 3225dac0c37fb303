import { afterEach, describe, expect, test } from 'vitest'
import { compileModel } from '../../../../../pdp/engine/decide/language/model-language.ts'

/** The parser keeps what a model declares in plain objects, where these names are taken. */
const NAMES = Object.getOwnPropertyNames(Object.prototype)
const before = ownKeys()
function ownKeys(): readonly (readonly string[])[] {
  return [Object.prototype, Object, Function.prototype].map((one) => Object.getOwnPropertyNames(one))
}
afterEach(() => expect(ownKeys(), 'what all objects have').toEqual(before))

const model = (lines: string): string => `model\n  schema 1.1\n${lines}\n`
const PLACES: readonly (readonly [string, (name: string) => string])[] = [
  ['a type', (name) => `type ${name}\n  relations\n    define viewer: [user]`],
  ['a type without relations', (name) => `type ${name}`],
  ['a relation', (name) => `type doc\n  relations\n    define ${name}: [user]`],
  ['a relation of a rule', (name) => `type doc\n  relations\n    define viewer: ${name}`],
  ['a relation of a parent', (name) => `type doc\n  relations\n    define up: [doc]\n    define v: ${name} from up`],
  ['a parent', (name) => `type doc\n  relations\n    define v: v from ${name}`],
  ['a kind of subject', (name) => `type doc\n  relations\n    define v: [${name}]`],
  ['a set of subjects', (name) => `type doc\n  relations\n    define v: [doc#${name}]`],
  [
    'a condition',
    (name) => `type doc\n  relations\n    define v: [user with ${name}]\ncondition ${name}(x: int) {\n  x == 1\n}`,
  ],
  [
    'a parameter',
    (name) => `type doc\n  relations\n    define v: [user with c]\ncondition c(${name}: int) {\n  ${name} == 1\n}`,
  ],
]

describe.each(NAMES)('a model that uses the name %s', (name) => {
  test.each(PLACES)('for %s is refused with the line, and changes nothing of all objects', (_, lines) => {
    expect(() => compileModel(model(lines(name)))).toThrow(
      expect.objectContaining({
        code: 'request_invalid',
        issues: expect.arrayContaining([
          { place: expect.stringMatching(/^\d+:\d+$/), message: expect.stringContaining(`"${name}" is a name that`) },
        ]),
      }),
    )
  })
})

test.each(['"constructor"', "'toString'", '"a \\" valueOf"'])('a text in a condition may be any: %s', (text) => {
  const lines = `type doc\n  relations\n    define v: [user with c]\ncondition c(x: string) {\n  x == ${text}\n}`
  expect(() => compileModel(model(lines))).not.toThrow()
})

test.each([
  'type doc\n  relations\n    define v: [user with c]\ncondition c(x: string) { x == "a\r}\rtype __proto__\r" }',
  'type doc\n  relations\n    define v: [user with c]\ncondition c(x: string) { x == "a" && __proto__ == "b" }',
  'type "a __proto__ b"\n  relations\n    define v: [user]',
  'type a\t# __proto__\n  relations\n    define v: [user]',
  'type a\u2028type __proto__\n  relations\n    define v: [user]',
  'type a\rtype __proto__\r  relations\r    define v: [user]',
  'type doc\n  relations\n    define v: [user with c]\ncondition c(x: string) { x == "\t#" } condition __proto__(y: int) { y == 1 }',
])('what the parser takes for no comment hides none: %j', (lines) => {
  expect(() => compileModel(model(lines))).toThrow(expect.objectContaining({ code: 'request_invalid' }))
})

test('a comment may have such a name, and names that only contain one are good', () => {
  const text = model('# constructor\ntype doc # valueOf\n  relations\n    define constructor_of: [user]')
  expect([...(compileModel(text).get('doc')?.keys() ?? [])]).toEqual(['constructor_of'])
})
