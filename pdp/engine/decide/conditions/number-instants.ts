/** Conditions that make an instant of a number: earlier versions took milliseconds where CEL takes seconds. */
import type { ConditionDefinition } from './condition.ts'
import { callOf, type Expression, operandsOf, parseExpression } from './expression.ts'
import { OVERLOADS } from './overloads.ts'
import { type ParameterReference, parseParameterType } from './parameters.ts'

type Parameters = { readonly [name: string]: ParameterReference }

/** False where what it takes is certainly a text or an instant. */
export function takesNumberAsInstant({ expression = '', parameters = {} }: ConditionDefinition): boolean {
  const mayBe = (one: Expression): boolean => {
    const call = callOf(one)
    const [first] = call?.args ?? []
    const isNumber = call?.name === 'timestamp' && first !== undefined && mayBeNumber(first, parameters)
    return isNumber || operandsOf(one).some(mayBe)
  }
  return mayBe(parseExpression(expression))
}

function mayBeNumber({ exprKind, ...rest }: Expression, parameters: Parameters): boolean {
  if (exprKind.case === 'constExpr') return exprKind.value.constantKind.case !== 'stringValue'
  if (exprKind.case === 'identExpr') {
    const reference = parameters[exprKind.value.name]
    const type = reference === undefined ? null : parseParameterType(reference)
    return type === null || typeof type === 'string' || !['string', 'timestamp'].includes(type.kind)
  }
  const results = OVERLOADS.get(callOf({ exprKind, ...rest })?.name ?? '')?.map(({ result }) => result) ?? ['dyn']
  return results.some((result) => result === 'int' || result === 'dyn')
}
