/**
 * What is right, worked out by brute force: every relation of every object is derived for one subject until nothing new
 * follows. Shares no code with the engine.
 */
import type { StoredManifest } from '../../pdp/shared/domain/manifest.ts'
import type { Membership } from '../../pdp/shared/domain/membership.ts'
import type { OrganizationRole, RoleGrant } from '../../pdp/shared/domain/role.ts'
import type { Tuple } from '../../pdp/shared/domain/tuple.ts'

/** Everything that answers depend on, at one moment. */
export type World = {
  readonly clockMs: number
  readonly organizations: ReadonlyMap<string, { readonly parent: string | null }>
  readonly content: ReadonlyMap<
    string,
    {
      readonly tuples: readonly Tuple[]
      readonly memberships: ReadonlyMap<string, Membership>
      readonly grants: readonly RoleGrant[]
    }
  >
  readonly environmentGrants: readonly RoleGrant[]
  readonly roles: readonly OrganizationRole[]
  readonly manifests: readonly StoredManifest[]
  /** type -> relation -> how it is defined. A type that is absent has no model. */
  readonly rules?: Rules
  /** Whether a tuple's condition holds; null where that cannot be told. A rule names it: `user with few`. */
  readonly holds?: (tuple: Tuple) => boolean | null
}
export type Rule =
  | { readonly direct: readonly string[] }
  | { readonly or: readonly Rule[] }
  | { readonly and: readonly Rule[] }
  | { readonly base: Rule; readonly butNot: Rule }
  | { readonly same: string }
  | { readonly from: string; readonly relation: string }
export type Rules = { readonly [type: string]: { readonly [relation: string]: Rule } }
type Question = {
  readonly organization: string
  readonly subject: string
  readonly relation: string
  readonly resource: string
  readonly app: string | null
}

const TIERS = ['owner', 'admin', 'developer', 'member', 'viewer']
const split = (text: string, mark: string): [string, string] => {
  const at = text.indexOf(mark)
  return [text.slice(0, at), text.slice(at + 1)]
}

/** Null: neither, since the answer would depend on its own absence, or on a condition of which nothing can be told. */
export function referenceAnswer(world: World, q: Question): boolean | null {
  const held = world.content.get(q.organization)
  if (!world.organizations.has(q.organization) || held === undefined) return false
  const active = (organization: string): boolean => {
    const [type, id] = split(q.subject, ':')
    const membership = type === 'user' ? world.content.get(organization)?.memberships.get(id) : undefined
    return membership === undefined || membership.status === 'active'
  }
  const [type, id] = split(q.resource, ':')
  // An app's keys are held through roles only.
  if (type !== 'app' && active(q.organization)) {
    const found = derived(world, q.organization, q.subject, world.rules ?? {})
    if (found.holding.has(`${q.resource}#${q.relation}`)) return true
    if (found.undefined.has(`${q.resource}#${q.relation}`)) return null
  }
  const own = q.resource === `organization:${q.organization}`
  if (
    own &&
    ([...TIERS, 'active_member'].includes(q.relation) || world.rules?.organization?.[q.relation] !== undefined)
  )
    return false
  if (type !== 'app' && !own) return false
  return permissions(world, q, { app: type === 'app' ? id : q.app, active }).has(q.relation)
}

function permissions(
  world: World,
  q: Question,
  by: { app: string | null; active: (organization: string) => boolean },
): ReadonlySet<string> {
  const grants: RoleGrant[] = [...world.environmentGrants.filter((g) => g.subject === q.subject)]
  for (let at: string | null = q.organization; at !== null; at = world.organizations.get(at)?.parent ?? null) {
    if (!by.active(at)) continue
    const groups = derived(world, at, q.subject, NO_RULES).holding
    for (const grant of world.content.get(at)?.grants ?? []) {
      if (grant.subject === q.subject || (grant.subject.startsWith('group:') && groups.has(`${grant.subject}#member`)))
        grants.push(grant)
    }
  }
  const keys = new Set<string>()
  for (const grant of grants) {
    if (grant.app !== null && grant.app !== by.app) continue
    const app = world.manifests.find((m) => m.app === grant.app)
    const role = grant.app === null ? world.roles.find((r) => r.key === grant.role) : app?.roles[grant.role]
    for (const key of role?.permissions ?? []) keys.add(key)
  }
  return keys
}

const NO_RULES: Rules = {}
/** Worlds never change, so that what follows in one is worked out once. */
const known = new WeakMap<World, Map<string, Derived>>()
function derived(world: World, organization: string, subject: string, rules: Rules): Derived {
  const ofWorld = known.get(world) ?? new Map<string, Derived>()
  known.set(world, ofWorld)
  const name = `${organization} ${subject} ${rules === NO_RULES ? 'groups' : ''}`
  const found = ofWorld.get(name) ?? derive(world, organization, subject, rules)
  ofWorld.set(name, found)
  return found
}

/** `object#relation` of everything that holds the subject, and of what can neither be said to hold it nor not to. */
type Derived = { readonly holding: ReadonlySet<string>; readonly undefined: ReadonlySet<string> }

/**
 * The well-founded solution by alternating fixpoints (Van Gelder, 1993): what is absent even where as much as can be is
 * derived is surely absent, and what follows from that alone surely holds.
 */
function derive(world: World, organization: string, subject: string, rules: Rules): Derived {
  const content = world.content.get(organization)
  const tuples = (content?.tuples ?? []).filter((t) => t.expiresAtMs === null || world.clockMs < t.expiresAtMs)
  const named = new Map<string, Tuple[]>()
  for (const t of tuples) {
    const node = `${t.object}#${t.relation}`
    named.set(node, [...(named.get(node) ?? []), t])
  }
  const nodes = new Set(named.keys())
  for (const t of tuples) if (t.subject.includes('#')) nodes.add(t.subject)
  const objects = new Set(
    tuples.flatMap((t) => [t.object, t.subject.includes('#') ? split(t.subject, '#')[0] : t.subject]),
  )
  for (const object of objects)
    for (const relation of Object.keys(rules[split(object, ':')[0]] ?? {})) nodes.add(`${object}#${relation}`)
  const [subjectType, subjectId] = split(subject, ':')
  // A userset is in itself, and in no wildcard.
  const isUserset = subject.includes('#')
  if (isUserset)
    for (const relation of Object.keys(rules[subjectType] ?? {})) nodes.add(`${split(subject, '#')[0]}#${relation}`)
  if (isUserset) nodes.add(subject)
  const membership = subjectType === 'user' ? content?.memberships.get(subjectId) : undefined
  const tiers = membership?.status === 'active' ? [membership.role, 'active_member'] : []
  for (const tier of [...TIERS, 'active_member']) nodes.add(`organization:${organization}#${tier}`)

  /** Null where it depends on a condition of which nothing can be told. */
  const counts = (t: Tuple, allowed: readonly string[] | null, kind: string): boolean | null => {
    if (t.condition === undefined) return allowed === null || allowed.includes(kind)
    if (allowed?.includes(`${kind} with ${t.condition.name}`) !== true) return false
    return world.holds?.(t) ?? null
  }
  /** What cannot be told counts where as much as can be is derived. */
  const leads = (counting: boolean | null, on: boolean, optimistic: boolean): boolean => (counting ?? optimistic) && on
  const direct = (
    node: string,
    allowed: readonly string[] | null,
    holding: ReadonlySet<string>,
    optimistic: boolean,
  ): boolean => {
    const [object, relation] = split(node, '#')
    if (object === `organization:${organization}` && [...TIERS, 'active_member'].includes(relation)) {
      return tiers.includes(relation) && (allowed === null || allowed.includes('user'))
    }
    return (named.get(node) ?? []).some((t) => {
      const [type] = split(t.subject, ':')
      if (t.subject.endsWith(':*'))
        return (
          allowed !== null &&
          type === subjectType &&
          !isUserset &&
          leads(counts(t, allowed, `${type}:*`), true, optimistic)
        )
      if (!t.subject.includes('#')) return t.subject === subject && leads(counts(t, allowed, type), true, optimistic)
      const [, inner] = split(t.subject, '#')
      return leads(counts(t, allowed, `${type}#${inner}`), holding.has(t.subject), optimistic)
    })
  }
  /** `excluding`: what is taken to hold wherever it is subtracted. */
  const follows = (
    node: string,
    rule: Rule,
    holding: ReadonlySet<string>,
    excluding: ReadonlySet<string>,
    optimistic: boolean,
  ): boolean => {
    const [object] = split(node, '#')
    const part = (of: Rule): boolean => follows(node, of, holding, excluding, optimistic)
    if ('direct' in rule) return direct(node, rule.direct, holding, optimistic)
    if ('or' in rule) return rule.or.some(part)
    if ('and' in rule) return rule.and.every(part)
    if ('butNot' in rule) return part(rule.base) && !follows(node, rule.butNot, excluding, holding, !optimistic)
    if ('same' in rule) return holding.has(`${object}#${rule.same}`)
    const own = rules[split(object, ':')[0]]?.[rule.from]
    const parents = own !== undefined && 'direct' in own ? own.direct : []
    return (named.get(`${object}#${rule.from}`) ?? []).some((t) =>
      leads(counts(t, parents, split(t.subject, ':')[0]), holding.has(`${t.subject}#${rule.relation}`), optimistic),
    )
  }
  const fixpoint = (excluding: ReadonlySet<string>, optimistic: boolean): ReadonlySet<string> => {
    const holding = new Set<string>(isUserset ? [subject] : [])
    for (let grown = true; grown; ) {
      grown = false
      for (const node of nodes) {
        if (holding.has(node)) continue
        const [object, relation] = split(node, '#')
        const relations = rules[split(object, ':')[0]]
        const rule = relations?.[relation]
        const tier = object === `organization:${organization}` && [...TIERS, 'active_member'].includes(relation)
        const holds =
          rule !== undefined
            ? follows(node, rule, holding, excluding, optimistic)
            : relations === undefined || tier
              ? direct(node, null, holding, optimistic)
              : false
        if (holds) {
          holding.add(node)
          grown = true
        }
      }
    }
    return holding
  }
  let holding: ReadonlySet<string> = new Set()
  for (;;) {
    const atMost = fixpoint(holding, true)
    const next = fixpoint(atMost, false)
    if (next.size === holding.size) return { holding, undefined: new Set([...atMost].filter((n) => !next.has(n))) }
    holding = next
  }
}
