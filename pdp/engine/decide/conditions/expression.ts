/** Parses expressions of the Common Expression Language (CEL), and refuses those that are too long or nested too deeply. */
import { parse } from '@bufbuild/cel'

export type Expression = ReturnType<typeof parse>['expr']

const CHARACTERS_MAX = 4_096
const NESTING_MAX = 50
const HALF_CHARACTER = 'has half of a character (a lone surrogate)'

/** A mistake that the author of an expression can correct. */
export class ExpressionMistake extends Error {
  override readonly name = 'ExpressionMistake'
}

/** @throws ExpressionMistake. */
export function parseExpression(text: string): Expression {
  if (text.length > CHARACTERS_MAX) throw new ExpressionMistake(`has more than ${CHARACTERS_MAX} characters`)
  if (!text.isWellFormed()) throw new ExpressionMistake(HALF_CHARACTER)
  // The parser is recursive, so a deeply nested text would exhaust the stack.
  let [nesting, prefixes] = [0, 0]
  for (const character of text) {
    if ('([{'.includes(character)) nesting++
    else if (')]}'.includes(character)) nesting--
    else if ('!-?'.includes(character)) prefixes++
    if (nesting > NESTING_MAX || prefixes > 10 * NESTING_MAX)
      throw new ExpressionMistake(`is nested more than ${NESTING_MAX} levels deep`)
  }
  let expression: Expression
  try {
    expression = parse(text).expr
  } catch (err) {
    const { location } = err as { location?: { start?: { line?: number; column?: number } } }
    const { line, column } = location?.start ?? {}
    throw new ExpressionMistake(
      line === undefined ? 'is not a CEL expression' : `is not a CEL expression at its ${line}:${column}`,
    )
  }
  rewrite(expression)
  return expression
}

/** The name under which `has(m.key)` becomes a function of a map and a key. */
export const HAS = '@has'

/**
 * Rewrites two constructs in which the library differs from CEL: its `has` is false for a key with the value null, and it has
 * `matches(text, pattern)` only as a method.
 */
function rewrite(expression: Expression): void {
  for (const operand of operandsOf(expression)) rewrite(operand)
  const { exprKind, id } = expression
  if (exprKind.case === 'selectExpr' && exprKind.value.testOnly && exprKind.value.operand !== undefined) {
    const { operand, field } = exprKind.value
    const constantKind = { case: 'stringValue', value: field } as const
    const key: Expression = {
      $typeName: 'cel.expr.Expr',
      id,
      exprKind: { case: 'constExpr', value: { $typeName: 'cel.expr.Constant', constantKind } },
    }
    const value = { $typeName: 'cel.expr.Expr.Call' as const, function: HAS, args: [operand, key] }
    expression.exprKind = { case: 'callExpr', value }
  } else if (exprKind.case === 'callExpr' && exprKind.value.function === 'matches') {
    const { target, args } = exprKind.value
    if (target === undefined && args.length === 2) exprKind.value.target = args.shift()
  } else if (exprKind.case === 'constExpr') {
    const { value } = exprKind.value.constantKind
    if (typeof value === 'string' && !value.isWellFormed()) throw new ExpressionMistake(HALF_CHARACTER)
  }
}

/** A call with its target as the first argument; null for another expression. */
export function callOf(
  expression: Expression,
): { readonly name: string; readonly method: boolean; readonly args: readonly Expression[] } | null {
  if (expression.exprKind.case !== 'callExpr') return null
  const { function: name, target, args } = expression.exprKind.value
  return { name, method: target !== undefined, args: target === undefined ? args : [target, ...args] }
}

export function operandsOf({ exprKind }: Expression): readonly Expression[] {
  const some = (...found: readonly (Expression | undefined)[]): readonly Expression[] =>
    found.filter((one) => one !== undefined)
  switch (exprKind.case) {
    case 'callExpr':
      return some(exprKind.value.target, ...exprKind.value.args)
    case 'selectExpr':
      return some(exprKind.value.operand)
    case 'listExpr':
      return exprKind.value.elements
    case 'structExpr':
      return exprKind.value.entries.flatMap(({ keyKind, value }) =>
        some(keyKind.case === 'mapKey' ? keyKind.value : undefined, value),
      )
    case 'comprehensionExpr': {
      const { iterRange, accuInit, loopCondition, loopStep, result } = exprKind.value
      return some(iterRange, accuInit, loopCondition, loopStep, result)
    }
    default:
      return []
  }
}
