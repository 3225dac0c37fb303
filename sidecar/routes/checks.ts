/** The checks of a route: how they are written, which questions they ask of the PDP, and what the answers amount to. */
import type { PdpAnswer, PermissionQuestion } from '../pdp-client/question.ts'
import type { Source, Template } from './template.ts'

export type Check =
  | { readonly kind: 'all' | 'any'; readonly of: readonly Check[] }
  | { readonly kind: 'relation'; readonly relation: string; readonly type: string; readonly id: Template }
  | { readonly kind: 'permission'; readonly key: string }
  | { readonly kind: 'entitlement'; readonly key: string }
  | { readonly kind: 'scope'; readonly name: string }
  | { readonly kind: 'equals'; readonly source: Source; readonly value: string }

/** What a request offers to fill checks with. Null is a missing claim, and denies; anything else missing throws RequestError. */
export type CheckValues = {
  readonly read: (source: Source) => string | null
  readonly fill: (template: Template) => string | null
  readonly scopes: ReadonlySet<string>
  readonly organization: string | null
}

export type Refusal =
  | { readonly code: 'permission_denied' | 'pdp_unavailable'; readonly check: string }
  | { readonly code: 'scope_insufficient'; readonly scope: string }
  | { readonly code: 'entitlement_required'; readonly entitlement: string }
/** Null is an allow. */
export type Verdict = Refusal | null

export type Questions = {
  readonly permissions: readonly PermissionQuestion[]
  readonly entitlements: readonly string[]
  /** Allows only what the answer allows with boolean true. */
  readonly verdict: (answer: PdpAnswer) => Verdict
}

/** Throws RequestError when the request lacks a value. */
export function buildQuestions(check: Check, values: CheckValues): Questions {
  const permissions: PermissionQuestion[] = []
  const entitlements: string[] = []
  const verdict = build(check, { values, permissions, entitlements })
  return { permissions, entitlements, verdict }
}

type Building = {
  readonly values: CheckValues
  readonly permissions: PermissionQuestion[]
  readonly entitlements: string[]
}
type Judge = (answer: PdpAnswer) => Verdict

function build(check: Check, building: Building): Judge {
  const { values } = building
  switch (check.kind) {
    case 'all':
    case 'any': {
      const judges = check.of.map((part) => build(part, building))
      return check.kind === 'all' ? (answer) => judgeAll(judges, answer) : (answer) => judgeAny(judges, answer)
    }
    case 'relation': {
      const id = values.fill(check.id)
      return id === null ? deny(check) : ask(building, { relation: check.relation, resource: `${check.type}:${id}` })
    }
    case 'permission': {
      const { organization } = values
      if (organization === null) return deny(check)
      return ask(building, { relation: check.key, resource: `organization:${organization}` })
    }
    case 'entitlement':
      return askEntitlement(building, check.key)
    case 'scope': {
      const verdict: Verdict = values.scopes.has(check.name) ? null : { code: 'scope_insufficient', scope: check.name }
      return () => verdict
    }
    case 'equals':
      return values.read(check.source) === check.value ? () => null : deny(check)
  }
}

function deny(check: Check): Judge {
  const verdict: Verdict = { code: 'permission_denied', check: check.kind }
  return () => verdict
}

function ask({ permissions }: Building, question: PermissionQuestion): Judge {
  const known = permissions.findIndex(
    ({ relation, resource }) => relation === question.relation && resource === question.resource,
  )
  const index = known < 0 ? permissions.push(question) - 1 : known
  return ({ permissions: results }) => {
    const result = results[index]
    if (result === 'allowed') return null
    const check = `${question.relation} ${question.resource}`
    return { code: result === 'denied' ? 'permission_denied' : 'pdp_unavailable', check }
  }
}

function askEntitlement({ entitlements }: Building, key: string): Judge {
  if (!entitlements.includes(key)) entitlements.push(key)
  return (answer) => (answer.entitlements.get(key) === true ? null : { code: 'entitlement_required', entitlement: key })
}

/** A denial decides; without one, what could not be decided is not an allow. */
function judgeAll(judges: readonly Judge[], answer: PdpAnswer): Verdict {
  let undecided: Verdict = null
  for (const judge of judges) {
    const verdict = judge(answer)
    if (verdict === null) continue
    if (verdict.code !== 'pdp_unavailable') return verdict
    undecided ??= verdict
  }
  return undecided
}

/** One allow is enough; without one, something undecided might have been it. */
function judgeAny(judges: readonly Judge[], answer: PdpAnswer): Verdict {
  let refusal: Verdict = null
  for (const judge of judges) {
    const verdict = judge(answer)
    if (verdict === null) return null
    if (refusal === null || verdict.code === 'pdp_unavailable') refusal = verdict
  }
  // The file has no empty list; if it had, this is where it would deny.
  return refusal ?? { code: 'permission_denied', check: 'any' }
}

/** As in a route file: what `explain` prints and tests compare. */
export function describeQuestions({
  permissions,
  entitlements,
}: Pick<Questions, 'permissions' | 'entitlements'>): string[] {
  return [
    ...permissions.map(({ relation, resource }) => `${relation} ${resource}`),
    ...entitlements.map((key) => `entitlement ${key}`),
  ]
}

/** True when a check of the route takes a value from the body. */
export function usesBody(check: Check): boolean {
  if (check.kind === 'all' || check.kind === 'any') return check.of.some(usesBody)
  if (check.kind === 'relation') return check.id.some((part) => typeof part === 'object' && part.from === 'body')
  return check.kind === 'equals' && check.source.from === 'body'
}
