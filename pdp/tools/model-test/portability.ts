/** Finds parts of a model that only we accept: OpenFGA's server would refuse them (its package typesystem). */
import type { ModelDocument, TypeDefinition, Userset } from '../../engine/decide/language/document.ts'
import { type DocumentIssue, partsOf } from '../../engine/decide/language/document-issues.ts'

const RELATION_CHARACTERS_MAX = 50
const CONDITION_CHARACTERS = /^.{2,50}$/s
const RESERVED = ['self', 'this']

export function portabilityIssues({ type_definitions, conditions }: ModelDocument): readonly DocumentIssue[] {
  const ofTypes = type_definitions.flatMap((definition) => {
    const { type, relations } = definition
    const own = RESERVED.includes(type) ? [{ spot: { type }, message: `a type cannot be called "${type}"` }] : []
    return [
      ...own,
      ...Object.entries(relations).flatMap(([relation, rule]) =>
        relationIssues(definition, relation, rule).map((message) => ({ spot: { type, relation }, message })),
      ),
    ]
  })
  const ofConditions = Object.keys(conditions).flatMap((condition) =>
    CONDITION_CHARACTERS.test(condition)
      ? []
      : [{ spot: { condition }, message: `condition "${condition}" needs a name of 2 to 50 characters` }],
  )
  return [...ofTypes, ...ofConditions]
}

function relationIssues(definition: TypeDefinition, relation: string, rule: Userset): readonly string[] {
  const name = `relation "${relation}" of type "${definition.type}"`
  const issues: string[] = []
  if (RESERVED.includes(relation)) issues.push(`a relation cannot be called "${relation}"`)
  if (relation.length > RELATION_CHARACTERS_MAX)
    issues.push(`${name} has a name of more than ${RELATION_CHARACTERS_MAX} characters`)
  if (hasEmptyUnion(rule)) issues.push(`${name} is held by nobody on purpose`)
  if (leadsBack(definition, relation)) issues.push(`${name} depends on itself within the type`)
  return issues
}

const hasEmptyUnion = (rule: Userset): boolean => rule.union?.child.length === 0 || partsOf(rule).some(hasEmptyUnion)

/** True if the relation leads back to itself through relations of the same object alone. */
function leadsBack({ relations }: TypeDefinition, relation: string): boolean {
  const seen = new Set<string>()
  const waiting = [relation]
  for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
    const named = computedIn(relations[at] ?? {})
    if (named.includes(relation)) return true
    for (const next of named) {
      if (!seen.has(next)) waiting.push(next)
      seen.add(next)
    }
  }
  return false
}

const computedIn = (rule: Userset): readonly string[] =>
  rule.computedUserset === undefined ? partsOf(rule).flatMap(computedIn) : [rule.computedUserset.relation]
