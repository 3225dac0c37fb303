/** Finds the type of an expression when a model is written, and refuses an expression that could never be evaluated. */
import { callOf, type Expression, ExpressionMistake, HAS } from './expression.ts'
import { OVERLOADS } from './overloads.ts'
import type { ParameterType } from './parameters.ts'

/** The type of a value. `dyn`: known only at the evaluation. */
export type ValueType =
  | { readonly kind: string }
  | { readonly kind: 'list'; readonly element: ValueType }
  | { readonly kind: 'map'; readonly key: ValueType; readonly element: ValueType }
type Variables = ReadonlyMap<string, ValueType>

const DYN: ValueType = { kind: 'dyn' }
const scalar = (kind: string): ValueType => ({ kind })
const elementOf = (type: ValueType): ValueType => ('element' in type ? type.element : DYN)

/** @throws ExpressionMistake unless the expression is true or false for all values of its parameters. */
export function assertBoolean(expression: Expression, parameters: ReadonlyMap<string, ParameterType>): void {
  const scope = new Map([...parameters].map(([name, type]) => [name, typeOfParameter(type)] as const))
  const type = typeOf(expression, scope)
  if (type.kind !== 'bool') throw new ExpressionMistake(`gives ${written(type)}, and must give bool`)
}

function typeOfParameter(type: ParameterType): ValueType {
  if (type.kind === 'list') return { kind: 'list', element: typeOfParameter(type.element) }
  if (type.kind === 'map') return { kind: 'map', key: scalar('string'), element: typeOfParameter(type.element) }
  return scalar(type.kind === 'any' ? 'dyn' : type.kind)
}

function written(type: ValueType): string {
  if ('key' in type) return `map<${written(type.key)}, ${written(type.element)}>`
  return 'element' in type ? `list<${written(type.element)}>` : type.kind
}

function typeOf(expression: Expression, scope: Variables): ValueType {
  const { exprKind } = expression
  switch (exprKind.case) {
    case 'constExpr':
      return typeOfConstant(exprKind.value.constantKind.case)
    case 'identExpr': {
      const type = scope.get(exprKind.value.name)
      if (type !== undefined) return type
      if (TYPE_NAMES.has(exprKind.value.name)) return scalar('type')
      throw new ExpressionMistake(`names ${exprKind.value.name}, which is not a parameter`)
    }
    case 'selectExpr':
      return typeOfSelection(exprKind.value, scope)
    case 'listExpr':
      return { kind: 'list', element: common(exprKind.value.elements.map((one) => typeOf(one, scope))) }
    case 'structExpr':
      return typeOfMap(exprKind.value, scope)
    case 'comprehensionExpr':
      return typeOfLoop(exprKind.value, scope)
    case 'callExpr':
      return typeOfCall(expression, scope)
    default:
      throw new ExpressionMistake('has a part that is not known')
  }
}

/** The types that may be compared with null: in CEL, those that are objects. */
const NULLABLE = new Set(['null_type', 'duration', 'timestamp', 'ipaddress'])
const TYPE_NAMES = new Set(['bool', 'int', 'uint', 'double', 'string', 'bytes', 'list', 'map', 'null_type', 'type'])
type Kind<C extends Expression['exprKind']['case']> =
  Extract<Expression['exprKind'], { case: C }> extends {
    value: infer V
  }
    ? V
    : never

function typeOfConstant(name: string | undefined): ValueType {
  return scalar(name === 'nullValue' ? 'null_type' : (name ?? '').replace('64', '').replace(/Value$/, ''))
}

function typeOfSelection({ operand, field }: Kind<'selectExpr'>, scope: Variables): ValueType {
  const type = operand === undefined ? DYN : typeOf(operand, scope)
  if (type.kind !== 'map' && type.kind !== 'dyn')
    throw new ExpressionMistake(`takes .${field} of ${written(type)}, which has no members`)
  return elementOf(type)
}

function typeOfMap({ messageName, entries }: Kind<'structExpr'>, scope: Variables): ValueType {
  if (messageName !== '') throw new ExpressionMistake(`makes a message ${messageName}, which is not supported`)
  const types = entries.map(({ keyKind, value, optionalEntry }) => {
    if (keyKind.case !== 'mapKey' || value === undefined || optionalEntry)
      throw new ExpressionMistake('has a map with an entry that is not key: value')
    return { key: typeOf(keyKind.value, scope), element: typeOf(value, scope) }
  })
  return { kind: 'map', key: common(types.map(({ key }) => key)), element: common(types.map((t) => t.element)) }
}

/** The type of a macro (`all`, `exists`, `exists_one`, `map` or `filter`), which the parser expands into a loop. */
function typeOfLoop(loop: Kind<'comprehensionExpr'>, scope: Variables): ValueType {
  const { iterVar, iterRange, accuVar, accuInit, loopStep, result } = loop
  if (iterRange === undefined || accuInit === undefined || loopStep === undefined || result === undefined)
    throw new ExpressionMistake('has a macro that is not complete')
  const range = typeOf(iterRange, scope)
  if (!['list', 'map', 'dyn'].includes(range.kind))
    throw new ExpressionMistake(`goes through ${written(range)}, which is neither a list nor a map`)
  const inner = new Map(scope).set(iterVar, 'key' in range ? range.key : elementOf(range))
  const started = typeOf(accuInit, scope)
  const stepped = typeOf(loopStep, new Map(inner).set(accuVar, started))
  if (!alike(started, stepped)) throw new ExpressionMistake('has a macro whose condition is not true or false')
  return typeOf(result, new Map(scope).set(accuVar, stepped))
}

function typeOfCall(expression: Expression, scope: Variables): ValueType {
  const call = callOf(expression)
  if (call === null) return DYN
  const types = call.args.map((arg) => typeOf(arg, scope))
  const [first = DYN, second = DYN, third = DYN] = types
  const mismatch = (): ExpressionMistake =>
    new ExpressionMistake(`applies ${spoken(call.name)} to (${types.map(written).join(', ')}), which is not defined`)
  const when = (holds: boolean, type: ValueType): ValueType => {
    if (!holds) throw mismatch()
    return type
  }
  switch (call.name) {
    case '_==_':
    case '_!=_':
      return when(alike(first, second) || (isNumber(first) && isNumber(second)), scalar('bool'))
    case '_?_:_':
      return when(alike(first, scalar('bool')) && alike(second, third), joined(second, third))
    case HAS:
      return when(['map', 'dyn'].includes(first.kind), scalar('bool'))
    case '@in':
      if (second.kind === 'map' && 'key' in second) return when(alike(first, second.key), scalar('bool'))
      return when(['list', 'dyn'].includes(second.kind) && alike(first, elementOf(second)), scalar('bool'))
    case '_[_]':
      if ('key' in first) return when(alike(second, first.key), first.element)
      return when(['list', 'dyn'].includes(first.kind) && (first.kind === 'dyn' || isNumber(second)), elementOf(first))
    case '_+_':
      if (first.kind === 'list' || second.kind === 'list') return when(alike(first, second), joined(first, second))
      break
  }
  const found = (OVERLOADS.get(call.name) ?? []).filter(
    ({ method, args }) =>
      (method === null || method === call.method) &&
      args.length === types.length &&
      args.every((arg, i) => arg === 'dyn' || types[i]?.kind === 'dyn' || types[i]?.kind === arg),
  )
  if (!OVERLOADS.has(call.name)) throw new ExpressionMistake(`calls ${spoken(call.name)}, which is not a function`)
  const results = new Set(found.map(({ result }) => result))
  const [only] = results
  return when(found.length > 0, only !== undefined && results.size === 1 ? scalar(only) : DYN)
}

/** The name of a function in users' words: `<` for `_<_`. */
const spoken = (name: string): string =>
  name.replace('@', '').replaceAll('_', name.startsWith('_') || name.endsWith('_') ? '' : '_')
const isNumber = ({ kind }: ValueType): boolean => ['int', 'uint', 'double', 'dyn'].includes(kind)

/** True if values of both types may have the same type. */
function alike(a: ValueType, b: ValueType): boolean {
  if (a.kind === 'dyn' || b.kind === 'dyn') return true
  if (a.kind === 'null_type' || b.kind === 'null_type') return NULLABLE.has(a.kind) && NULLABLE.has(b.kind)
  if (a.kind !== b.kind) return false
  return alike(elementOf(a), elementOf(b)) && ('key' in a && 'key' in b ? alike(a.key, b.key) : true)
}

/** The common type; `dyn` when the types differ. */
function common(types: readonly ValueType[]): ValueType {
  const [first = DYN, ...others] = types
  return others.every((type) => alike(first, type)) ? first : DYN
}

/** The more precise of two types that are alike; otherwise `dyn`. */
function joined(a: ValueType, b: ValueType): ValueType {
  if (!alike(a, b)) return DYN
  if (a.kind === 'dyn') return b
  return 'element' in a && a.element.kind === 'dyn' && b.kind !== 'dyn' ? b : a
}
