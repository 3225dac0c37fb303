/** Finds conditions that convert a number to an instant: earlier versions read milliseconds where CEL reads seconds. */
import type { ConditionDefinition } from './condition.ts'
import { callOf, type Expression, operandsOf, parseExpression } from './expression.ts'
import { OVERLOADS } from './overloads.ts'
import { type ParameterReference, parseParameterType } from './parameters.ts'

/** False when every argument of `timestamp` is certainly a text or an instant. */
export function takesNumberAsInstant({ expression = '', parameters = {} }: ConditionDefinition): boolean {
  const mayBe = (one: Expression): boolean => {
    const call = callOf(one)
    const [first] = call?.args ?? []
    const isNumber = call?.name === 'timestamp' && first !== undefined && mayBeNumber(first, parameters)
    return isNumber || operandsOf(one).some(mayBe)
  }
  return mayBe(parseExpression(expression))
}

function mayBeNumber(
  { exprKind, ...rest }: Expression,
  parameters: { readonly [name: string]: ParameterReference },
): boolean {
  if (exprKind.case === 'constExpr') return exprKind.value.constantKind.case !== 'stringValue'
  if (exprKind.case === 'identExpr') {
    const reference = parameters[exprKind.value.name]
    const type = reference === undefined ? null : parseParameterType(reference)
    return type === null || typeof type === 'string' || !['string', 'timestamp'].includes(type.kind)
  }
  const results = OVERLOADS.get(callOf({ exprKind, ...rest })?.name ?? '')?.map(({ result }) => result) ?? ['dyn']
  return results.some((result) => result === 'int' || result === 'dyn')
}
