/** What a model may not say of the types that mean something here. Judged when it is written, never when it is in force. */
import type { ValidationIssue } from '../domain/errors.ts'
import { MEMBERSHIP_RELATIONS } from '../domain/membership.ts'
import type { Model } from './model.ts'
import { directOf } from './restrictions.ts'

/** Each with the line of the text where it stands, and what to rename. */
export function reservedTypeIssues(model: Model, text: string): readonly ValidationIssue[] {
  const issues: ValidationIssue[] = []
  const app = model.get('app')
  if (app !== undefined && app.size > 0)
    issues.push({
      place: placeOf(text, 'app', null),
      message:
        'type "app" cannot have relations, since what is held on an app comes from roles; rename the type, for example to "application"',
    })
  for (const [relation, expression] of model.get('organization') ?? []) {
    if (!MEMBERSHIP_RELATIONS.has(relation)) continue
    const direct = directOf(expression)
    const isOurs =
      direct !== null &&
      direct.types.size === 1 &&
      direct.types.has('user') &&
      direct.wildcards.size + direct.usersets.size === 0
    if (isOurs) continue
    issues.push({
      place: placeOf(text, 'organization', relation),
      message: `relation "${relation}" of type "organization" comes from memberships, so that its brackets must be [user] (more may follow after "or"); rename the type, for example to "org", or the relation`,
    })
  }
  return issues
}

/** `line:column`, from 1. */
function placeOf(text: string, type: string, relation: string | null): string {
  const lines = text.split('\n')
  const start = lines.findIndex((line) => new RegExp(`^\\s*(?:extend\\s+)?type\\s+${type}\\s*(?:#.*)?$`).test(line))
  const at =
    relation === null
      ? start
      : lines.findIndex((line, i) => i > start && new RegExp(`^\\s*define\\s+${relation}\\s*:`).test(line))
  const line = lines[at] ?? ''
  return `${Math.max(at, 0) + 1}:${line.length - line.trimStart().length + 1}`
}
