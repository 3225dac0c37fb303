/** The forms of the names that stand in the paths of management calls. */
import { ENTITLEMENT_KEY, FORM, ID } from '../http/schemas.ts'
import { RequestProblem } from '../http/status.ts'

export const PARAMETERS: { readonly [name: string]: typeof ID } = {
  app: ID,
  org: ID,
  user: ID,
  client_id: ID,
  key: ENTITLEMENT_KEY,
}

/** Validates the names in the path before they are used in a query. Throws RequestProblem `request_invalid`. */
export function requireForms(params: unknown): void {
  if (typeof params !== 'object' || params === null) return
  const issues = Object.entries(params).flatMap(([name, value]: [string, unknown]) => {
    const { pattern, [FORM]: form } = PARAMETERS[name] ?? ID
    const valid = typeof value === 'string' && new RegExp(pattern).test(value)
    return valid ? [] : [{ place: `:${name}`, message: `must be ${form}` }]
  })
  if (issues.length === 0) return
  const message = issues.map(({ place, message }) => `${place} ${message}`).join('; ')
  throw new RequestProblem('request_invalid', message, { issues })
}
