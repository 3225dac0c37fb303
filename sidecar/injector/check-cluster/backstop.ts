/** Checks the rules of the backstop: each needs a policy with exactly our text, and a binding that does not restrict it. */
import { createHash } from 'node:crypto'
import { type Json, type JsonObject, listAt, objectAt, textAt } from '../pod/json.ts'
import { BACKSTOP, type BackstopRule, SETTINGS } from './backstop-form.ts'
import { coversResources, isEmptySelector, matchesLabels } from './selector.ts'
import { type Finding, finding, type GuardedNamespace, type Named, nothing, ofKind } from './watched.ts'

const POLICY = 'ValidatingAdmissionPolicy'
const BINDING = 'ValidatingAdmissionPolicyBinding'
// Matches a literal. Settings must be literals, because a literal cannot change the policy's decision.
const LITERAL = /^(?:'[^'\\]*'|-?\d+|true|false)$/

type BackstopInput = {
  readonly any: GuardedNamespace
  readonly namespaces: readonly GuardedNamespace[]
  /** The images of the injectors. */
  readonly images: ReadonlySet<string>
}

/** Throws ShapeError. */
export function checkBackstop(
  objects: readonly JsonObject[],
  { any, namespaces, images }: BackstopInput,
): readonly Finding[] {
  const policies = ofKind(objects, POLICY)
  const bindings = ofKind(objects, BINDING)
  return BACKSTOP.flatMap((rule) => {
    const find = (namespace: GuardedNamespace): readonly Finding[] =>
      checkRule(rule, { policies, bindings, namespace, images })
    const inGeneral = find(any)
    return inGeneral.length > 0 || rule.everywhere ? inGeneral : namespaces.flatMap(find)
  })
}

type RuleInput = {
  readonly policies: readonly Named[]
  readonly bindings: readonly Named[]
  readonly namespace: GuardedNamespace
  readonly images: ReadonlySet<string>
}

/** Errors of the rule. Empty if one policy and one of its bindings enforce the rule; else those of the policy that comes nearest. */
function checkRule(rule: BackstopRule, { policies, bindings, namespace, images }: RuleInput): readonly Finding[] {
  const ours = policies.filter((policy) => formOf(policy.raw) === rule.form)
  const likely = ours.length > 0 ? ours : policies.filter(({ name }) => name.endsWith(`-${rule.name}`))
  const problems = likely.flatMap((policy) => {
    const wrong = findPolicyProblem(policy, rule, images)
    const open = (named: Named, kind: string, message: string): Finding =>
      finding('backstop_open', { ...named, namespace: namespace.name ?? '' }, kind, message)
    if (wrong !== null) return [[open(policy, POLICY, wrong)]]
    const bound = bindings.filter(({ raw }) => objectAt(raw.spec, 'spec').policyName === policy.name)
    return bound.map((binding) => {
      const narrow = findBindingProblem(binding, rule, namespace)
      return narrow === null ? [] : [open(binding, BINDING, narrow)]
    })
  })
  const held = problems.some((found) => found.length === 0)
  if (held) return []
  const [first] = problems
  return first ?? [nothing('backstop_missing', namespace.name, likely.length > 0 ? BINDING : POLICY, rule.without)]
}

function findPolicyProblem({ raw }: Named, rule: BackstopRule, images: ReadonlySet<string>): string | null {
  const spec = objectAt(raw.spec, 'spec')
  if (formOf(raw) !== rule.form) return "its rules differ from those of this version's chart"
  const constraints = objectAt(spec.matchConstraints, 'spec.matchConstraints')
  if ((spec.failurePolicy ?? 'Fail') !== 'Fail') return 'failurePolicy is not Fail'
  if (spec.paramKind !== undefined) return 'it has parameters'
  if (listAt(spec.matchConditions, 'spec.matchConditions').length > 0) return 'its matchConditions leave something out'
  if (!coversResources(constraints.resourceRules, rule.resources)) return 'its resourceRules leave something out'
  if (narrows(constraints) || !isEmptySelector(constraints.namespaceSelector))
    return 'its matchConstraints leave something out'
  const image = variablesOf(spec).find(({ name }) => name === 'image')?.expression
  if (image !== undefined && images.size > 0 && !images.has(image.slice(1, -1)))
    return `it admits sidecars with image ${image.slice(1, -1)}, but the injector uses ${[...images].join(' or ')}`
  return null
}

function findBindingProblem(
  { raw }: Named,
  rule: BackstopRule,
  { name, mode, labels }: GuardedNamespace,
): string | null {
  const spec = objectAt(raw.spec, 'spec')
  const resources = objectAt(spec.matchResources, 'spec.matchResources')
  if (!listAt(spec.validationActions, 'spec.validationActions').includes('Deny'))
    return 'its validationActions do not include Deny'
  if (spec.paramRef !== undefined) return 'it has parameters'
  if (narrows(resources) || listAt(resources.resourceRules, 'resourceRules').length > 0)
    return 'its matchResources leave something out'
  const selector = resources.namespaceSelector
  const where = name === null ? `namespaces with portcullis.dev/inject: ${mode}` : `namespace ${name}`
  const reaches = rule.everywhere ? isEmptySelector(selector) : matchesLabels(selector, labels)
  return reaches ? null : `its namespaceSelector leaves out ${rule.everywhere ? 'namespaces' : where}`
}

const narrows = ({ objectSelector, excludeResourceRules }: JsonObject): boolean =>
  !isEmptySelector(objectSelector) || listAt(excludeResourceRules, 'excludeResourceRules').length > 0

/** A digest of everything in a policy that decides, without the settings; null: a setting is no literal. */
export function formOf(policy: JsonObject): string | null {
  const spec = objectAt(policy.spec, 'spec')
  const variables = variablesOf(spec)
  const settings = variables.filter(({ name }) => SETTINGS.includes(name))
  if (!settings.every(({ expression }) => LITERAL.test(expression))) return null
  const fixed = variables.filter(({ name }) => !SETTINGS.includes(name))
  const validations = listAt(spec.validations, 'spec.validations').map((item) => textOf(item, 'expression'))
  const text = JSON.stringify([fixed.map(({ name, expression }) => [name, expression]), validations])
  return createHash('sha256').update(text).digest('hex').slice(0, 32)
}

const variablesOf = (spec: JsonObject): readonly { readonly name: string; readonly expression: string }[] =>
  listAt(spec.variables, 'spec.variables').map((item) => ({
    name: textOf(item, 'name'),
    expression: textOf(item, 'expression'),
  }))

/** The text with each run of white space as one space, since white space does not change an expression. */
const textOf = (item: Json, name: string): string =>
  (textAt(objectAt(item, name)[name], name) ?? '').trim().replace(/\s+/g, ' ')
