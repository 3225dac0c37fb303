/** What says who may do what: tuples, models in both forms, and conditions. */
import openfga from '@openfga/syntax-transformer'
import { answerCheck, isUndecided } from '../../../pdp/engine/decide/check.ts'
import { Condition } from '../../../pdp/engine/decide/conditions/condition.ts'
import { REQUEST_STEPS_MAX } from '../../../pdp/engine/decide/conditions/cost.ts'
import { ExpressionMistake } from '../../../pdp/engine/decide/conditions/expression.ts'
import { isLight } from '../../../pdp/engine/decide/language/model-bounds.ts'
import { compileModel } from '../../../pdp/engine/decide/language/model-language.ts'
import type { Model } from '../../../pdp/engine/decide/model.ts'
import { memoryStore } from '../../../pdp/engine/store/memory/memory.ts'
import { PdpError } from '../../../pdp/shared/domain/errors.ts'
import { ENVIRONMENT } from '../../../pdp/shared/domain/journal.ts'
import type { JsonObject } from '../../../pdp/shared/domain/json.ts'
import { formatTuple, parseTuple } from '../../../pdp/shared/domain/names.ts'
import { context, organization, put } from '../../support/tuples.ts'
import { must, type Parser, readOrRefused } from '../play.ts'

const isInvalid = (error: unknown): boolean => error instanceof PdpError && error.code === 'request_invalid'
/** Stricter and apart from ours: one type and id, one relation, one subject. */
const TUPLE = /^[^\s:#@*]+:[^\s#]+#[^\s:#@*]+@[^\s:#@*]+:(?:[^\s#]+(?:#[^\s:#@*]+)?)$/u

const tuple: Parser = {
  name: 'tuple',
  seeds: [
    'doc:1#viewer@user:ann',
    'doc:1#viewer@group:g#member',
    'doc:1#viewer@user:*',
    'a:b:c@d#r@user:x@y',
    'é:1#ö@ü:ß',
  ],
  words: [':', '#', '@', '*', 'user:', '#member', ':*', '\u00a0', '\ufffd', '\ufeff'],
  read(text) {
    const found = readOrRefused(() => parseTuple(text), isInvalid)
    if (found === undefined) return false
    must(formatTuple(found) === text, 'it is not printed as it was read')
    must(TUPLE.test(text), 'it has not the shape of a tuple')
    return true
  },
}

const MODELS = [
  `model
  schema 1.1
type user
type folder
  relations
    define parent: [folder]
    define viewer: [user, user:*] or viewer from parent
type doc
  relations
    define parent: [folder]
    define blocked: [user]
    define editor: [user, group#member] or owner
    define owner: [user]
    define viewer: (editor or viewer from parent) but not blocked
    define signer: editor and owner
`,
  `model
  schema 1.1
type user
type team
  relations
    define member: [user with open, team#member]
type doc
  relations
    define viewer: [team#member, user with until]
condition open(ip: ipaddress, range: string) {
  ip.in_cidr(range)
}
condition until(now: timestamp, end: timestamp) {
  now < end
}
`,
] as const

const store = memoryStore()
await store.write(ENVIRONMENT, [organization('acme')], { context })
await store.write(
  'acme',
  [
    'doc:1#parent@folder:1',
    'folder:1#viewer@user:*',
    'doc:1#editor@user:ann',
    'doc:1#viewer@team:a#member',
    'team:a#member@team:a#member',
  ].map((text) => put(text)),
  { context },
)

/** Whatever compiles can be asked about. */
function judgeModel(model: Model): void {
  for (const [type, relations] of model)
    for (const relation of [...relations.keys()].slice(0, 20)) {
      const asked = { organization: 'acme', subject: 'user:ann', app: null, tuplesMax: 500 }
      readOrRefused(
        () => answerCheck(store.currentView(), model, asked, { relation, resource: `${type}:1` }),
        isUndecided,
      )
    }
}

/** Sets and maps as JSON, to compare by. */
const shown = (model: Model): string =>
  JSON.stringify([...model], (_, value) => (value instanceof Map || value instanceof Set ? [...value] : value))

const WORDS = [
  'or',
  'and',
  'but not',
  'from',
  'define ',
  'relations',
  'type ',
  '[user]',
  '#member',
  ':*',
  ' with open',
  '(',
  ')',
  ': ',
  'condition ',
  '{',
  '}',
  'model',
  'schema 1.1',
  '\n  ',
  'self',
  'this',
]

const model: Parser = {
  name: 'model',
  seeds: MODELS,
  words: WORDS,
  read(text) {
    // What is long is read in a thread of its own, which ends in time.
    if (!isLight(text)) return false
    const found = readOrRefused(() => compileModel(text), isInvalid)
    if (found === undefined) return false
    judgeModel(found)
    const again = compileModel(openfga.transformer.transformDSLToJSON(text))
    must(shown(again) === shown(found), 'its JSON form means something else')
    must(shown(compileModel(`${text}\n`)) === shown(found), 'a line break at the end changes it')
    return true
  },
}

const modelJson: Parser = {
  name: 'model-json',
  seeds: MODELS.map((text) => JSON.stringify(openfga.transformer.transformDSLToJSONObject(text))),
  words: ['"this"', '"union"', '"child"', '"computedUserset"', '"difference"', '"type"', 'null', '{}', '[]'],
  read(text) {
    if (!isLight(text)) return false
    const found = readOrRefused(() => compileModel(text), isInvalid)
    if (found === undefined) return false
    judgeModel(found)
    return true
  },
}

const PARAMETERS = {
  n: { type_name: 'TYPE_NAME_INT' },
  s: { type_name: 'TYPE_NAME_STRING' },
  b: { type_name: 'TYPE_NAME_BOOL' },
  ip: { type_name: 'TYPE_NAME_IPADDRESS' },
  now: { type_name: 'TYPE_NAME_TIMESTAMP' },
  l: { type_name: 'TYPE_NAME_LIST', generic_types: [{ type_name: 'TYPE_NAME_STRING' }] },
  m: { type_name: 'TYPE_NAME_MAP', generic_types: [{ type_name: 'TYPE_NAME_INT' }] },
}
const LONG = 'a'.repeat(2_000)
const CONTEXTS = [
  { n: 3, s: 'abc', b: true, ip: '10.0.0.1', l: ['a', 'b'], m: { a: 1 } },
  { n: -(2 ** 53), s: LONG, b: false, ip: '::1', l: Array.from({ length: 500 }, (_, at) => `${at}`), m: { '': 0 } },
  {},
]

function evaluated(of: Condition, values: JsonObject): string {
  let steps = 0
  const spend = (more: number): boolean => {
    steps += more
    return steps <= REQUEST_STEPS_MAX
  }
  const evaluation = of.evaluate(of.argumentsOf({}), of.argumentsOf(values), { nowMs: () => 1_800_000_000_000, spend })
  return JSON.stringify(evaluation)
}

/** An expression over parameters of each type. */
const condition: Parser = {
  name: 'condition',
  seeds: [
    'n < 10 && s.startsWith("a")',
    'b || l.exists(x, x == s)',
    'ip.in_cidr("10.0.0.0/8") ? n > 1 : !b',
    'now > timestamp("2026-01-01T00:00:00Z") || m["a"] == 1',
    'l.all(x, x.matches("^[a-z0-9]+$")) && size(s) in [1, 2, 3]',
  ],
  words: [
    'n',
    's',
    'l',
    'm',
    'now',
    'size(',
    'matches(',
    '.exists(x, ',
    '.map(x, x)',
    '(a+)+$',
    ' && ',
    ' || ',
    ' in ',
    '1u',
    '1e9',
    '[',
    ']',
    '"',
    'has(',
    'timestamp(',
    'duration("1h")',
    'string(',
    'b',
  ],
  read(text) {
    const found = readOrRefused(
      () => new Condition('c', { expression: text, parameters: PARAMETERS }),
      (error) => error instanceof ExpressionMistake,
    )
    if (found === undefined) return false
    for (const values of CONTEXTS) {
      const [once, twice] = [evaluated(found, values), evaluated(found, values)]
      must(once === twice, 'it is not evaluated alike twice')
    }
    return true
  },
}

export const RELATIONSHIPS: readonly Parser[] = [tuple, model, modelJson, condition]
