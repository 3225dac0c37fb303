/** Computes an expression's highest possible cost, in steps, before its evaluation, because an evaluation cannot be interrupted. */
import { callOf, type Expression, operandsOf } from './expression.ts'
import { type ParameterType, type Size, VALUE_BOUNDS } from './parameters.ts'

/** The bound with the largest allowed values: two nested loops over parameters fit, and three do not. */
export const WORST_STEPS_MAX = 20_000_000
/** The bound of one evaluation with its actual values. A step takes a microsecond at most. */
export const EVALUATION_STEPS_MAX = 10_000
/** The bound of all evaluations for one request. */
export const REQUEST_STEPS_MAX = 100_000

/** A value: the most `elements` and `characters` that it may have, and its `item` (null: assumed to be like the value itself). */
type Estimate = Size & { readonly steps: number; readonly item: Estimate | null }
type Variables = ReadonlyMap<string, Estimate>

const SMALL: Estimate = { steps: 1, elements: 0, characters: 0, item: null }

export const worstSteps = (expression: Expression, parameters: ReadonlyMap<string, ParameterType>): number =>
  stepsOf(expression, parameters, VALUE_BOUNDS)

/** The cost when no parameter has more elements or characters than `size`. */
export function stepsOf(expression: Expression, parameters: ReadonlyMap<string, ParameterType>, size: Size): number {
  const scope = new Map([...parameters].map(([name, type]) => [name, parameterSize(type, size)] as const))
  return estimate(expression, scope).steps
}

function parameterSize(type: ParameterType, { elements, characters }: Size): Estimate {
  if ('element' in type) {
    const item = parameterSize(type.element, { elements, characters })
    const keys = type.kind === 'map' ? characters : 0
    return { steps: 1, elements, characters: Math.max(keys, item.characters), item }
  }
  if (type.kind === 'any') return { steps: 1, elements, characters, item: null }
  return type.kind === 'string' ? { ...SMALL, characters } : SMALL
}

function estimate(expression: Expression, scope: Variables): Estimate {
  const { exprKind } = expression
  switch (exprKind.case) {
    case 'constExpr': {
      const { value } = exprKind.value.constantKind
      return { ...SMALL, characters: typeof value === 'string' || value instanceof Uint8Array ? value.length : 0 }
    }
    case 'identExpr':
      return { ...(scope.get(exprKind.value.name) ?? SMALL), steps: 1 }
    case 'comprehensionExpr':
      return loop(exprKind.value, scope)
    case 'callExpr':
      return call(
        callOf(expression)?.name ?? '',
        operandsOf(expression).map((one) => estimate(one, scope)),
      )
    case 'selectExpr': {
      const [of = SMALL] = operandsOf(expression).map((one) => estimate(one, scope))
      return { ...itemOf(of), steps: 1 + of.steps }
    }
    default: {
      const parts = operandsOf(expression).map((one) => estimate(one, scope))
      const item = { ...SMALL, elements: most(parts, 'elements'), characters: most(parts, 'characters') }
      return { steps: 1 + sum(parts, 'steps'), elements: parts.length, characters: item.characters, item }
    }
  }
}

const itemOf = (value: Estimate): Estimate => value.item ?? value

function call(name: string, parts: readonly Estimate[]): Estimate {
  const steps = 1 + sum(parts, 'steps')
  const [elements, characters] = [most(parts, 'elements'), most(parts, 'characters')]
  const [first = SMALL, second = SMALL, third = SMALL] = parts
  switch (name) {
    // The time for a pattern grows with its length times the length of the text.
    case 'matches':
      return { ...SMALL, steps: steps + (first.characters * (1 + second.characters)) / 10 }
    case '_+_': {
      const size = { elements: sum(parts, 'elements'), characters: sum(parts, 'characters') }
      return { ...size, steps: steps + (elements + characters) / 100, item: larger(first.item, second.item) }
    }
    case '_==_':
    case '_!=_':
    case '@in':
      return { ...SMALL, steps: steps + elements * (1 + characters / 1_000) + characters / 1_000 }
    case '_[_]':
      return { ...itemOf(first), steps }
    case '_?_:_':
      return { ...(larger(second, third) ?? SMALL), steps }
    default:
      return { steps: steps + characters / 100, elements, characters, item: null }
  }
}

function larger(a: Estimate | null, b: Estimate | null): Estimate | null {
  if (a === null || b === null) return a ?? b
  const [elements, characters] = [Math.max(a.elements, b.elements), Math.max(a.characters, b.characters)]
  return { steps: Math.max(a.steps, b.steps), elements, characters, item: larger(a.item, b.item) }
}

function loop(
  { iterVar, accuVar, ...parts }: Extract<Expression['exprKind'], { case: 'comprehensionExpr' }>['value'],
  scope: Variables,
): Estimate {
  const of = (one: Expression | undefined, within: Variables): Estimate =>
    one === undefined ? SMALL : estimate(one, within)
  const range = of(parts.iterRange, scope)
  const started = of(parts.accuInit, scope)
  const inner = new Map(scope).set(iterVar, itemOf(range)).set(accuVar, started)
  const [condition, step] = [of(parts.loopCondition, inner), of(parts.loopStep, inner)]
  // The library builds a list as a chain with one link per element, so reading an element walks along the chain.
  const gathers = parts.accuInit?.exprKind.case === 'listExpr'
  const gathered: Estimate = gathers ? { ...step, steps: 1, elements: range.elements } : SMALL
  const end = of(parts.result, new Map(scope).set(accuVar, gathered))
  const eachSteps = condition.steps + step.steps + 2 + (gathers ? range.elements / 10 : 0)
  return { ...end, steps: range.steps + started.steps + end.steps + range.elements * eachSteps }
}

const sum = (parts: readonly Estimate[], of: 'steps' | keyof Size): number =>
  parts.reduce((all, part) => all + part[of], 0)
const most = (parts: readonly Estimate[], of: keyof Size): number =>
  parts.reduce((highest, part) => Math.max(highest, part[of]), 0)
