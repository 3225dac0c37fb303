/** Validates arguments, since a caller in JavaScript has no compiler to do so. Each shape adds an issue for a wrong value. */
import { PdpError, type PdpErrorCode, type ValidationIssue } from '../../shared/domain/errors.ts'
import { isJsonObject, pointer } from '../../shared/domain/json.ts'

export type Shape = (value: unknown, place: string, issues: ValidationIssue[]) => void
/** The shapes of a method's arguments. `place` is empty for a request as only argument. */
export type Shapes = readonly (readonly [place: string, shape: Shape])[]

/** The shape of values for which `holds`. The message tells what a value must be. */
export const shape =
  (holds: (value: unknown) => boolean, message: string): Shape =>
  (value, place, issues) =>
    void (holds(value) || issues.push({ place, message }))

export const text = shape((value) => typeof value === 'string', 'must be string')
export const boolean = shape((value) => typeof value === 'boolean', 'must be boolean')
export const map = shape(isJsonObject, 'must be an object')
export const optional =
  (inner: Shape): Shape =>
  (value, place, issues) =>
    value === undefined ? undefined : inner(value, place, issues)
export const nullable =
  (inner: Shape): Shape =>
  (value, place, issues) =>
    value === undefined || value === null ? undefined : inner(value, place, issues)

export const listOf =
  (inner: Shape, countMax = Number.POSITIVE_INFINITY): Shape =>
  (value, place, issues) => {
    if (!Array.isArray(value)) return void issues.push({ place, message: 'must be an array' })
    if (value.length > countMax) return void issues.push({ place, message: `has more than ${countMax} items` })
    for (const [i, item] of value.entries()) inner(item, pointer(place, i), issues)
  }

export const mapOf =
  (inner: Shape, message: string, countMax: number): Shape =>
  (value, place, issues) => {
    if (!isJsonObject(value) || Object.keys(value).length > countMax) return void issues.push({ place, message })
    for (const [key, item] of Object.entries(value)) inner(item, pointer(place, key), issues)
  }

/** An object with these members and no others. */
export const members =
  (known: { readonly [name: string]: Shape }): Shape =>
  (value, place, issues) => {
    if (!isJsonObject(value)) return void issues.push({ place, message: 'must be an object' })
    for (const name of Object.keys(value))
      if (!Object.hasOwn(known, name)) issues.push({ place: pointer(place, name), message: 'is not a known member' })
    for (const [name, inner] of Object.entries(known)) inner(value[name], pointer(place, name), issues)
  }

/** An object with these members and perhaps others, which the method itself validates. */
export const withMembers =
  (known: { readonly [name: string]: Shape }): Shape =>
  (value, place, issues) => {
    if (!isJsonObject(value)) return void issues.push({ place, message: 'must be an object' })
    for (const [name, inner] of Object.entries(known)) inner(value[name], pointer(place, name), issues)
  }

export function shapeIssues(shapes: Shapes, values: readonly unknown[]): readonly ValidationIssue[] {
  const issues: ValidationIssue[] = []
  for (const [i, [place, inner]] of shapes.entries()) inner(values[i], place, issues)
  return issues
}

/** An error with the first issue in its message, for callers that print nothing else. */
export function malformed(
  code: PdpErrorCode,
  issues: readonly ValidationIssue[],
  { before = '', cause }: { before?: string; cause?: unknown } = {},
): PdpError {
  const [first] = issues
  const more = issues.length > 1 ? ` (and ${issues.length - 1} more)` : ''
  const said = first === undefined ? '' : `${first.place} ${first.message}`.trim()
  return new PdpError(code, `${before}${said}${more}`, { issues, cause })
}

/** A question that validates its arguments first. */
export const asking =
  <Args extends unknown[], Result>(shapes: Shapes, ask: (...args: Args) => Promise<Result>) =>
  async (...args: Args): Promise<Result> => {
    const issues = shapeIssues(shapes, args)
    if (issues.length > 0) throw malformed('request_invalid', issues)
    return ask(...args)
  }

/** The error of a frequent question: only after an error are its arguments validated. */
export function faultOf(error: unknown, shapes: Shapes, values: readonly unknown[]): unknown {
  if (error instanceof PdpError) return error
  const issues = shapeIssues(shapes, values)
  return issues.length === 0 ? error : malformed('request_invalid', issues, { cause: error })
}
