/** The checks of a route: their text, the questions that they ask the PDP, and how the answers decide. */
import { createNetworks, type Network } from '../../pdp/shared/base/addresses.ts'
import { type PdpAnswer, type PermissionQuestion, questionText } from '../pdp-client/question.ts'
import { missing, ValueError } from '../request/errors.ts'
import { type ContextValues, isReadAlike, type ReadContext, type RouteContext, readContext } from './context.ts'
import { describeSource, type Source, sourceText, type Template, templateText } from './template.ts'

export type Check =
  | { readonly kind: 'all' | 'any'; readonly of: readonly Check[] }
  | { readonly kind: 'relation'; readonly relation: string; readonly type: string; readonly id: Template }
  /** The relation on any resource of the type. It exists only for lists of MCP: it denies every request. */
  | { readonly kind: 'some'; readonly relation: string; readonly type: string }
  /** A check that any active access token passes. */
  | { readonly kind: 'signed_in' }
  | { readonly kind: 'permission'; readonly key: string }
  | { readonly kind: 'entitlement'; readonly key: string }
  | { readonly kind: 'scope'; readonly name: string }
  /** `network`: contains the client's address. `part`: `value` is only the start or end of a claim. `flag`: `value` is a boolean. `as`: the claim equals this value of the request. */
  | {
      readonly kind: 'equals'
      readonly source: Source
      readonly value: string
      readonly network?: Network
      readonly part?: TextPart
      readonly flag?: boolean
      readonly as?: Source
    }

export const TEXT_PARTS = ['starts_with', 'ends_with'] as const
export type TextPart = (typeof TEXT_PARTS)[number]

/**
 * The values that a request offers for checks. A missing claim is null, so its check denies. Any other missing value throws ValueError, and
 * a repeated one throws another RequestError.
 */
export type CheckValues = ContextValues & {
  readonly read: (source: Source) => string | null
  readonly fill: (template: Template) => string | null
  readonly scopes: ReadonlySet<string>
  readonly organization: string | null
  /** True: the request has no token, so every check of a claim, a scope or a sign-in fails. */
  readonly isGuest: boolean
}

const CODES = {
  denied: 'permission_denied',
  condition_failed: 'condition_failed',
  evaluation_limit: 'evaluation_limit',
  undecided: 'pdp_unavailable',
} as const
/** The reason for which an answer does not satisfy the checks. */
export type CheckDenial =
  | {
      /** `pdp_unavailable` where the PDP does not say why. */
      readonly code: 'permission_denied' | 'condition_failed' | 'evaluation_limit' | 'pdp_unavailable'
      readonly check: string
      readonly why?: string
      /** The question behind the denial; absent: the PDP was not asked. */
      readonly question?: PermissionQuestion
    }
  | { readonly code: 'scope_insufficient'; readonly scope: string }
  | { readonly code: 'entitlement_required'; readonly entitlement: string }

export type Questions = {
  readonly permissions: readonly PermissionQuestion[]
  readonly entitlements: readonly string[]
  /** Values of parameters of conditions, as JSON; empty without parameters. */
  readonly context: string
  /** The denial by the PDP's answer; null: it satisfies the checks. Only `allowed` and boolean true count. */
  readonly evaluate: Evaluate
  /** One function like `evaluate` for each further check that was put to the PDP. */
  readonly parts: readonly Evaluate[]
}

/**
 * Throws RequestError when the request lacks a value that every alternative needs. `further`: checks that do not decide about the
 * request; one that lacks a value is denied.
 */
export function buildQuestions(
  { check, context }: Asking,
  values: CheckValues,
  further: readonly Check[] = [],
): Questions {
  const permissions: PermissionQuestion[] = []
  const entitlements: string[] = []
  let read: ReadContext | null = null
  const contextOf = (): ReadContext => {
    read ??= readContext(context, values)
    return read
  }
  const building = { values, permissions, entitlements, contextOf, isShowing: false }
  const { evaluate } = build(check, building)
  const showing = { ...building, isShowing: true }
  const parts = further.map((part) => build({ kind: 'any', of: [part, NOBODY] }, showing).evaluate)
  const scopes = requiredScopes(check)
  return {
    permissions,
    entitlements,
    context: permissions.length === 0 ? '' : contextOf().text,
    evaluate: scopes.length < 2 ? evaluate : (answer) => withScopes(evaluate(answer), scopes),
    parts,
  }
}

/**
 * The questions of one check about each of `items`, given by their values; at most as many as one question takes. Throws RequestError
 * when an item lacks a value.
 */
export function buildItemQuestions({ check, context }: Asking, items: readonly CheckValues[]): Questions {
  const permissions: PermissionQuestion[] = []
  const entitlements: string[] = []
  const places = new Map<string, number>()
  let read: ReadContext | null = null
  const parts = items.map((values) => {
    const contextOf = (): ReadContext => {
      read ??= readContext(context, values)
      return read
    }
    return build(check, { values, permissions, entitlements, places, contextOf, isShowing: false }).evaluate
  })
  return { permissions, entitlements, context: read === null ? '' : contextText(read), evaluate: HOLDS.evaluate, parts }
}

const contextText = ({ text }: ReadContext): string => text

/** How many single checks the check is made of, without `all` and `any` themselves. */
export const leavesOf = (check: Check): number =>
  check.kind === 'all' || check.kind === 'any' ? check.of.reduce((sum, part) => sum + leavesOf(part), 0) : 1

/** A check that denies everybody. */
export const NOBODY: Check = { kind: 'any', of: [] }

/** The scopes that a token must always have, whichever alternative of the check is used. */
export function requiredScopes(check: Check): readonly string[] {
  if (check.kind === 'scope') return [check.name]
  return check.kind === 'all' ? [...new Set(check.of.flatMap(requiredScopes))] : []
}

/** A challenge names all scopes of the operation (RFC 6750 section 3.1): with only the first one, the next token would lack the next. */
const withScopes = (denial: CheckDenial | null, scopes: readonly string[]): CheckDenial | null =>
  denial?.code === 'scope_insufficient'
    ? { ...denial, scope: [...new Set([...scopes, denial.scope])].join(' ') }
    : denial

export type Asking = { readonly check: Check; readonly context: RouteContext }

type Building = {
  readonly values: CheckValues
  readonly permissions: PermissionQuestion[]
  readonly entitlements: string[]
  /** The index of each question by its text, so that many are found fast; absent: they are few, and the list is searched. */
  readonly places?: Map<string, number>
  /** Reads the context. Runs only if a question is asked. Throws RequestError. */
  readonly contextOf: () => ReadContext
  readonly isShowing: boolean
}
export type Evaluate = (answer: PdpAnswer) => CheckDenial | null
/** `fails`: denied whatever the PDP answers, because a comparison does not hold. */
type Built = { readonly evaluate: Evaluate; readonly fails: boolean }

function build(check: Check, building: Building): Built {
  const { values } = building
  switch (check.kind) {
    case 'all':
      return buildAll(check.of, building)
    case 'any':
      return buildAny(check.of, building)
    case 'equals':
      return isEqual(check, values) ? HOLDS : { ...denied(check), fails: true }
    case 'signed_in':
      return values.isGuest ? denied(check) : HOLDS
    case 'relation': {
      const id = values.fill(check.id)
      if (id === null) return denied(check)
      return open(ask(building, { relation: check.relation, resource: `${check.type}:${id}` }))
    }
    case 'some':
      if (!building.isShowing) return denied(check)
      return open(ask(building, { relation: check.relation, resource: check.type, any: true }))
    case 'permission': {
      const { organization } = values
      if (organization === null) return denied(check)
      return open(ask(building, { relation: check.key, resource: `organization:${organization}` }))
    }
    case 'entitlement':
      return values.isGuest ? denied(check) : open(askEntitlement(building, check.key))
    case 'scope':
      return open(() => (values.scopes.has(check.name) ? null : { code: 'scope_insufficient', scope: check.name }))
  }
}

/** A claim equals the value if it, or one item of its list, does. An empty value of the request never does, nor a full-width 4. */
function isEqual(check: Extract<Check, { kind: 'equals' }>, values: CheckValues): boolean {
  const { source, network, part, flag, as } = check
  const value = as === undefined ? check.value : values.read(as)
  if (value === null || (as !== undefined && (value === '' || !isReadAlike(value)))) return false
  if (network !== undefined) return createNetworks([network]).has(values.read(source) ?? '')
  if (source.from !== 'claims') return values.readTyped(source, flag === true ? 'flag' : 'string') === value
  const claim = values.claim(source.name)
  const holds = (item: unknown): boolean => (part === undefined ? isScalar(item, value) : hasPart(item, part, value))
  return Array.isArray(claim) ? claim.some(holds) : holds(claim)
}

const hasPart = (claim: unknown, part: TextPart, value: string): boolean =>
  typeof claim === 'string' && (part === 'starts_with' ? claim.startsWith(value) : claim.endsWith(value))

const isScalar = (claim: unknown, value: string): boolean =>
  typeof claim === 'string' ? claim === value : isNumberOrFlag(claim) && String(claim) === value

const isNumberOrFlag = (claim: unknown): claim is number | boolean =>
  typeof claim === 'boolean' || (typeof claim === 'number' && (Number.isSafeInteger(claim) || !Number.isInteger(claim)))

const open = (evaluate: Evaluate): Built => ({ evaluate, fails: false })
const HOLDS = open(() => null)

function denied(check: Check): Built {
  const name = check.kind === 'equals' ? `${check.part ?? 'equals'} ${describeSource(check.source)}` : check.kind
  return open(() => ({ code: 'permission_denied', check: name }))
}

/** After a comparison that fails, the other parts are not asked about, and values for them may be missing. */
function buildAll(of: readonly Check[], building: Building): Built {
  const parts: Evaluate[] = []
  const evaluate: Evaluate = (answer) => evaluateAll(parts, answer)
  for (const [at, part] of of.entries()) {
    const built = build(part, building)
    parts.push(built.evaluate)
    if (!built.fails) continue
    for (const rest of of.slice(at + 1)) readUnasked(rest, building.values)
    return { evaluate, fails: true }
  }
  return open(evaluate)
}

/** Reads the values of a check that is not asked. Throws RequestError for a repeated value: such a request is always refused. */
function readUnasked(check: Check, values: CheckValues): void {
  for (const source of sourcesOf(check)) {
    try {
      values.read(source)
    } catch (err) {
      if (!(err instanceof ValueError)) throw err
    }
  }
}

/** An alternative that lacks a value fails. When all of them do, the request cannot be decided. */
function buildAny(of: readonly Check[], building: Building): Built {
  const { permissions, entitlements } = building
  const lacking = new Set<string>()
  const built: Built[] = []
  for (const part of of) {
    const [permissionCount, entitlementCount] = [permissions.length, entitlements.length]
    try {
      built.push(build(part, building))
    } catch (err) {
      if (!(err instanceof ValueError) || !err.isMissing) throw err
      lacking.add(err.message)
      // Removes the questions of this alternative, which is left out because it lacks a value.
      permissions.length = permissionCount
      entitlements.length = entitlementCount
    }
  }
  if (built.length === 0 && lacking.size > 0) throw missing([...lacking].join('; '))
  const parts = built.map(({ evaluate }) => evaluate)
  return { evaluate: (answer) => evaluateAny(parts, answer), fails: built.every(({ fails }) => fails) }
}

function ask({ permissions, places, contextOf }: Building, question: PermissionQuestion): Evaluate {
  const context = contextOf()
  if (context.missing !== null) {
    const check = `context.${context.missing}`
    return () => ({ code: 'permission_denied', check, why: 'the token lacks the claim' })
  }
  const isThis = ({ relation, resource, any }: PermissionQuestion): boolean =>
    relation === question.relation && any === question.any && resource === question.resource
  const key = places === undefined ? '' : questionText(question)
  const known = places === undefined ? permissions.findIndex(isThis) : (places.get(key) ?? -1)
  const index = known < 0 ? permissions.push(question) - 1 : known
  if (known < 0) places?.set(key, index)
  return ({ permissions: results, reasons }) => {
    const result = results[index] ?? 'undecided'
    if (result === 'allowed') return null
    const check = questionText(question)
    const why = reasons[index] ?? ''
    return { code: CODES[result], check, question, ...(why !== '' && { why }) }
  }
}

function askEntitlement({ entitlements }: Building, key: string): Evaluate {
  if (!entitlements.includes(key)) entitlements.push(key)
  return (answer) => (answer.entitlements.get(key) === true ? null : { code: 'entitlement_required', entitlement: key })
}

/** True if a guest can pass the check at all. */
export function admitsGuests(check: Check): boolean {
  if (check.kind === 'all') return check.of.every(admitsGuests)
  if (check.kind === 'any') return check.of.some(admitsGuests)
  return (check.kind === 'relation' || check.kind === 'equals') && !reads(check, 'claims')
}

export const isUndecided = ({ code }: CheckDenial): boolean =>
  code === 'pdp_unavailable' || code === 'condition_failed' || code === 'evaluation_limit'

export function denialText(denial: CheckDenial): string {
  if ('scope' in denial) return `scope ${denial.scope}`
  if ('entitlement' in denial) return `entitlement ${denial.entitlement}`
  return denial.why === undefined ? denial.check : `${denial.check} (${denial.why})`
}

/** The first denial decides. Without a denial, an undecided check makes the whole undecided. */
function evaluateAll(parts: readonly Evaluate[], answer: PdpAnswer): CheckDenial | null {
  let undecided: CheckDenial | null = null
  for (const evaluate of parts) {
    const denial = evaluate(answer)
    if (denial === null) continue
    if (!isUndecided(denial)) return denial
    undecided ??= denial
  }
  return undecided
}

/** One alternative that allows is enough. If none does, an undecided one makes the result undecided, since it might have allowed. */
function evaluateAny(parts: readonly Evaluate[], answer: PdpAnswer): CheckDenial | null {
  let first: CheckDenial | null = null
  for (const evaluate of parts) {
    const denial = evaluate(answer)
    if (denial === null) return null
    if (first === null || (isUndecided(denial) && !isUndecided(first))) first = denial
  }
  // A route file cannot have an empty list; an empty list denies.
  return first ?? { code: 'permission_denied', check: 'any' }
}

/** The questions as a route file writes them: `explain` prints them, and tests of routes compare them. */
export function describeQuestions({
  permissions,
  entitlements,
}: Pick<Questions, 'permissions' | 'entitlements'>): string[] {
  return [...permissions.map(questionText), ...entitlements.map((key) => `entitlement ${key}`)]
}

/** True when the check or the context of its questions takes a value from this source. */
export const usesSource = ({ check, context }: Asking, from: Source['from']): boolean =>
  reads(check, from) ||
  (asksPermission(check) && context.some((entry) => 'source' in entry && entry.source.from === from))

export const usesBody = (asking: Asking): boolean => usesSource(asking, 'body')

/** The values that the check and the context of its questions take from this source. */
export const sourcesFrom = <From extends Source['from']>(
  { check, context }: Asking,
  from: From,
): Extract<Source, { readonly from: From }>[] =>
  [
    ...sourcesOf(check),
    ...(asksPermission(check) ? context.flatMap((entry) => ('source' in entry ? [entry.source] : [])) : []),
  ].filter((source): source is Extract<Source, { readonly from: From }> => source.from === from)

/** The sources of all values that a check reads. */
export function sourcesOf(check: Check): readonly Source[] {
  if (check.kind === 'all' || check.kind === 'any') return check.of.flatMap(sourcesOf)
  if (check.kind === 'relation') return check.id.filter((part) => typeof part === 'object')
  return check.kind === 'equals' ? [check.source, ...(check.as === undefined ? [] : [check.as])] : []
}

/** True if the check asks about a relation or a permission: conditions influence no other checks. */
export const asksPermission = (check: Check): boolean =>
  check.kind === 'all' || check.kind === 'any'
    ? check.of.some(asksPermission)
    : check.kind === 'relation' || check.kind === 'some' || check.kind === 'permission'

function reads(check: Check, from: Source['from']): boolean {
  if (check.kind === 'all' || check.kind === 'any') return check.of.some((part) => reads(part, from))
  if (check.kind === 'relation') return check.id.some((part) => typeof part === 'object' && part.from === from)
  return check.kind === 'equals' && (check.source.from === from || check.as?.from === from)
}

/** The check for messages, as a route file writes it. */
export function checkText(check: Check): string {
  switch (check.kind) {
    case 'all':
    case 'any':
      return `${check.kind}: ${check.of.map((part) => ('of' in part ? `[${checkText(part)}]` : checkText(part))).join(', ')}`
    case 'relation':
      return `${check.relation} ${check.type}:${templateText(check.id)}`
    case 'some':
      return `${check.relation} any ${check.type}`
    case 'signed_in':
      return 'signed_in'
    case 'permission':
    case 'entitlement':
      return `${check.kind} ${check.key}`
    case 'scope':
      return `scope ${check.name}`
    case 'equals':
      return `${sourceText(check.source)} ${check.part ?? 'equals'} ${check.value}`
  }
}
