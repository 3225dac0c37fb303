/**
 * The check that a tool of an MCP server declares for its calls (COAZ-MCP, draft 1), in the form of a route file. It only helps people who
 * write rules: a server must not choose the checks of its own calls.
 */
import type { JsonMembers } from '../../pdp/shared/base/json-text.ts'
import { isJsonObject } from '../../pdp/shared/domain/json.ts'

const EVALUATIONS_MAX = 8
const WORD = /^[A-Za-z][A-Za-z0-9_.-]{0,63}$/
const ARGUMENT = /^\$params\.arguments\.([A-Za-z][A-Za-z0-9_]{0,63})$/
const CLAIM = /^\$token\.([A-Za-z][A-Za-z0-9_]{0,63})$/

/** The declared check as text; null: a route file cannot express it. */
export function declaredCheck(mapping: unknown): string | null {
  if (!isJsonObject(mapping) || Object.keys(mapping).length !== 1) return null
  const { evaluation, evaluations } = mapping
  if (isJsonObject(evaluation)) return checkOf(evaluation)
  if (!isJsonObject(evaluations)) return null
  const { evaluations: each, ...shared } = evaluations
  if (!Array.isArray(each) || each.length === 0 || each.length > EVALUATIONS_MAX) return null
  const checks = each.map((one: unknown) =>
    isJsonObject(one) && one.subject === undefined ? checkOf({ ...shared, ...one }) : null,
  )
  return checks.includes(null) ? null : checks.join(' and ')
}

/** About the subject of the token, as every check is. */
function checkOf({ subject, action, resource }: JsonMembers): string | null {
  const id = isJsonObject(subject) ? (subject.id ?? TOKEN_SUBJECT) : TOKEN_SUBJECT
  if (id !== TOKEN_SUBJECT || !isJsonObject(action) || !isJsonObject(resource)) return null
  const resourceId = idOf(resource.id)
  const isPlain = [action.name, resource.type].every((word) => typeof word === 'string' && WORD.test(word))
  return isPlain && resourceId !== null ? `${action.name} ${resource.type}:${resourceId}` : null
}

const TOKEN_SUBJECT = '$token.sub'

function idOf(value: unknown): string | null {
  const text = typeof value === 'string' ? value : ''
  const [argument, claim] = [ARGUMENT.exec(text)?.[1], CLAIM.exec(text)?.[1]]
  if (argument !== undefined) return `{arguments.${argument}}`
  if (claim !== undefined) return `{claims.${claim}}`
  return /^[A-Za-z0-9_.-]{1,64}$/.test(text) ? text : null
}
