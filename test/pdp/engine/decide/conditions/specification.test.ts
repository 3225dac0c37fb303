/** The conformance tests of the CEL specification, as far as conditions have their types. */
import { tests } from '@bufbuild/cel-spec/testdata/conformance.js'
import { expect, test } from 'vitest'
import { ExpressionMistake } from '../../../../../pdp/engine/decide/conditions/expression.ts'
import { compile, told } from './told.ts'

type Suite = typeof tests
type Original = NonNullable<Suite['tests']>[number]['original']

/** The other files are about messages, extensions of the language, and optional values. */
const FILES = [
  'basic',
  'comparisons',
  'conversions',
  'dynamic',
  'fields',
  'fp_math',
  'integer_math',
  'lists',
  'logic',
].concat(['macros', 'parse', 'plumbing', 'string', 'timestamps'])
/** Refused when the model is written, or an answer that nobody can reach with values of a context. */
const DIFFERENT: ReadonlySet<string> = new Set([
  // Operands of which only one can ever be of the right type.
  'not_eq_list_length',
  'eq_list_elem_mixed_types',
  'mixed_type',
  'short_circuit_type_left',
  'short_circuit_type_right',
  'map_key_int64',
  // Names in backticks.
  ...[
    'field_access_slash',
    'field_access_dash',
    'field_access_dot',
    'has_field_slash',
    'has_field_dash',
    'has_field_dot',
  ],
  // A literal with one key twice.
  'map_value_repeat_key_heterogeneous',
])

/** As an expression; null for a message. */
function literalOf(value: unknown): string | null {
  const [[kind, found] = ['', null]] = Object.entries(value ?? {})
  switch (kind) {
    case 'boolValue':
    case 'int64Value':
    case 'typeValue':
      return String(found)
    case 'uint64Value':
      return `${found}u`
    case 'nullValue':
      return 'null'
    case 'stringValue':
      return JSON.stringify(found)
    case 'doubleValue':
      return Number.isFinite(Number(found)) ? `${found}${/[.e]/.test(String(found)) ? '' : '.0'}` : null
    case 'bytesValue':
      return `b"${[...Buffer.from(String(found), 'base64')].map((byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('')}"`
    default:
      return null
  }
}

/** Null: it has types that no condition has. */
function outcome({ expr, value, evalError, typeEnv, bindings, container }: Original): string | null {
  if (typeEnv !== undefined || bindings !== undefined || container !== undefined) return null
  const literal = evalError === undefined ? literalOf(value ?? { boolValue: true }) : expr
  if (literal === null) return null
  try {
    // Compared with itself, an error stays an error.
    const found = told(compile(`(${expr}) == (${literal})`), {})
    return evalError === undefined ? String(found) : typeof found === 'string' ? 'true' : 'no error'
  } catch (err) {
    if (!(err instanceof ExpressionMistake)) throw err
    if (evalError !== undefined) return 'true'
    return /^(makes a message|names|calls) /.test(err.message) ? null : err.message
  }
}

const flat = ({ tests: own = [], suites = [] }: Suite): readonly Original[] => [
  ...own.map(({ original }) => original),
  ...suites.flatMap(flat),
]

test.each(FILES)('the tests of %s hold', (name) => {
  const suite = tests.suites?.find((one) => one.name === name)
  const outcomes = (suite === undefined ? [] : flat(suite)).map((one) => ({
    name: one.name ?? '',
    expr: one.expr,
    found: outcome(one),
  }))
  const known = outcomes.filter(({ found }) => found !== null)
  expect(known.length).toBeGreaterThan(0)
  expect(known.filter((one) => one.found !== 'true' && !DIFFERENT.has(one.name))).toEqual([])
})
