import type { JsonObject } from './json.ts'
import type { ReasonCode } from './reasons.ts'
import type { Tuple } from './tuple.ts'

/**
 * The subject of a token: a person, or an OAuth client.
 *
 * @example
 * ```ts
 * const subject: Subject = { type: 'user', id: 'alice' }
 * ```
 */
export type Subject = { readonly type: 'user' | 'service'; readonly id: string }
/**
 * The subject of a question: anything that a tuple may name. With `relation`, everybody who has it on `type:id`; with `*` as
 * its id, every subject of the type.
 *
 * @example
 * ```ts
 * const staff: AskedSubject = { type: 'group', id: 'staff', relation: 'member' }
 * await pdp.can('acme', staff, 'viewer', 'invoice:42')
 * ```
 */
export type AskedSubject = { readonly type: string; readonly id: string; readonly relation?: string }
/**
 * A tuple that counts in one question only.
 *
 * @example
 * ```ts
 * const onCall: ContextualTuple = { object: 'group:on-call', relation: 'member', subject: 'user:alice' }
 * ```
 */
export type ContextualTuple = Omit<Tuple, 'expiresAtMs'>
/**
 * One question. `resource` is `type:id`; `relation` may be a permission key.
 *
 * @example
 * ```ts
 * const check: PermissionCheck = { relation: 'viewer', resource: 'invoice:42' }
 * ```
 */
export type PermissionCheck = {
  readonly relation: string
  readonly resource: string
  /**
   * True: `resource` is only a type, and the question is whether the relation holds on any resource of it. The answer helps to show or hide
   * things, and allows nothing on a single resource.
   */
  readonly any?: boolean
}

/** One link of the chain from the resource to the subject. */
export type ReasonStep =
  | { readonly tuple: string }
  | { readonly member: string }
  | { readonly rule: string }
  | { readonly role_grant: string }
/** `missing`: tuples, any one of which would have led to an allow. */
export type Reason = {
  readonly code: ReasonCode
  /** The reason in words. */
  readonly message: string
  readonly path: readonly ReasonStep[]
  readonly missing: readonly string[]
  /** In a denial, the steps from the resource to the missing tuples; absent: there are none. */
  readonly reached?: readonly ReasonStep[]
  /** A denial's details in words: what was subtracted, which names no model declares, why a membership does not count. */
  readonly details?: readonly string[]
}

/** Groups that hold the subject in these organizations for one question, besides those that are stored. */
export type TokenMemberships = {
  /** Ids of groups, without `group:`. */
  readonly groups: readonly string[]
  readonly organizations: readonly string[]
}

/** The names of a bearer's token in the token journal. */
export type RevocationQuestion = {
  /** Keys (revocationKey) of which each one in the token journal revokes the token. */
  readonly revocationKeys?: readonly string[]
  /** The time in milliseconds when the token was issued: revoking a client ends its tokens up to that time. */
  readonly issuedAtMs?: number
}

/** A client that acts for a subject. */
export type Actor = { readonly type: 'service'; readonly id: string }
/**
 * Up to 256 checks and 256 entitlements that are answered at one moment.
 *
 * @example
 * ```ts
 * const request: DecideRequest = {
 *   organization: 'acme',
 *   subject: user('alice'),
 *   permissions: [{ relation: 'viewer', resource: 'invoice:42' }],
 *   explain: true,
 * }
 * const { permissions } = await pdp.decide(request)
 * ```
 */
export type DecideRequest = RevocationQuestion & {
  readonly organization: string
  readonly subject: AskedSubject
  /**
   * A client that acts for the subject (RFC 8693 section 4.1): it may do what both may, as long as the organization has the tuple
   * `service:<id>#acts_for@<subject>`. Entitlements are the organization's in any case.
   */
  readonly actor?: Actor
  /**
   * The clients that act by the bearer's token, the present one first (RFC 8693 section 4.1). If the audience's app says `actors: both` in
   * its manifest, each of them counts like `actor`, and the subject must let each of them act.
   */
  readonly actors?: readonly Actor[]
  /** The scopes of the bearer's token. A delegation for certain scopes allows no others. */
  readonly scopes?: readonly string[]
  readonly permissions?: readonly PermissionCheck[]
  readonly entitlements?: readonly string[]
  /** The app whose roles answer permission keys on `organization:<O>`; null: no app; default: createPdp's. */
  readonly app?: string | null
  readonly explain?: boolean
  /** At most 100 tuples for relations only: they change no memberships, roles or permission keys. */
  readonly contextualTuples?: readonly ContextualTuple[]
  /** At most 100 stored tuples that this question ignores, to see what would be denied without them. For relations only. */
  readonly withoutTuples?: readonly ContextualTuple[]
  /** The moment of the question in milliseconds since the epoch: what was true then, as far as the journal reaches back. */
  readonly asOfMs?: number
  /** Groups that have the subject as a member, in this question only. */
  readonly memberships?: TokenMemberships
  /** Values of parameters of conditions. What a tuple stores wins over them. */
  readonly context?: JsonObject
  /** The audiences of the bearer's token. An app that declares one of them replaces `app`. */
  readonly audiences?: readonly string[]
}
/** The reason why a permission is undecided. */
export type UndecidedCode = 'evaluation_limit' | 'condition_failed'
/**
 * The answer to one check. `allowed` is false unless a grant allows it.
 *
 * @example
 * ```ts
 * const [result]: readonly PermissionResult[] = (
 *   await pdp.decide({ organization: 'acme', subject: user('alice'), permissions: [{ relation: 'viewer', resource: 'invoice:42' }] })
 * ).permissions
 * if (result?.allowed !== true) console.log(result?.reasonCode)
 * ```
 */
export type PermissionResult = PermissionCheck & {
  readonly allowed: boolean
  readonly reasonCode: ReasonCode
  /** The reason why the item is undecided; `allowed` is then false. */
  readonly error?: UndecidedCode
  /** The parameters of conditions that the context lacks, if they are the reason of `condition_failed`. */
  readonly missingContext?: readonly string[]
  /** The explanation; only with `explain`. */
  readonly reason?: Reason
}
/**
 * An entitlement of an organization.
 *
 * @example
 * ```ts
 * const result: EntitlementResult | null = await pdp.entitlement('acme', 'feature.export')
 * if (result?.boolean()) console.log('may export')
 * ```
 */
export type EntitlementResult = {
  readonly value: JsonObject
  /** The organization's entitlement version at which the value was read. */
  readonly version: number
  /** True if and only if `value.enabled` is the boolean true. */
  boolean(): boolean
}
/**
 * The answer of `decide`.
 *
 * @example
 * ```ts
 * const decision: Decision = await pdp.decide({ organization: 'acme', subject: user('alice'), entitlements: ['feature.export'] })
 * const mayExport = decision.entitlements.get('feature.export')?.boolean() ?? false
 * ```
 */
export type Decision = {
  /** The results, in the order of the checks. */
  readonly permissions: readonly PermissionResult[]
  /** The result for each key; null: the organization does not have it. */
  readonly entitlements: ReadonlyMap<string, EntitlementResult | null>
  /** The token is revoked: ignore the rest of the decision. */
  readonly tokenRevoked: boolean
  /** Opaque text of the vector at which everything was answered. */
  readonly revision: string
  /** The instant from which the answer may differ without any write; null for never. */
  readonly validUntilMs: number | null
  /** The app whose roles answered permission keys on the organization; null: no app. */
  readonly app: string | null
}
/**
 * Role and permission keys that a subject holds in an organization, sorted: the source of the token claims.
 *
 * @example
 * ```ts
 * const { roles, permissions }: HeldRoles = await pdp.held({ organization: 'acme', subject: user('alice'), app: 'billing' })
 * ```
 */
export type HeldRoles = { readonly roles: readonly string[]; readonly permissions: readonly string[] }

/** `pageSize`: 1 to 1,000, 100 by default. `pageToken`: `nextPageToken` of the page before, for the same question. */
type PageRequest = { readonly pageSize?: number; readonly pageToken?: string | null } & Pick<
  DecideRequest,
  'app' | 'contextualTuples' | 'withoutTuples' | 'asOfMs' | 'context'
>
/**
 * Resources of a type on which the subject has the relation (or permission key).
 *
 * @example
 * ```ts
 * const request: ListResourcesRequest = { organization: 'acme', subject: user('alice'), relation: 'viewer', type: 'invoice' }
 * const { items } = await pdp.listResources(request)
 * ```
 */
export type ListResourcesRequest = PageRequest & {
  readonly organization: string
  readonly subject: AskedSubject
  readonly relation: string
  readonly type: string
}
/**
 * Subjects of a type that have the relation (or permission key) on the resource.
 *
 * @example
 * ```ts
 * const request: ListSubjectsRequest = { organization: 'acme', resource: 'invoice:42', relation: 'viewer', type: 'user' }
 * const { items } = await pdp.listSubjects(request)
 * ```
 */
export type ListSubjectsRequest = PageRequest & {
  readonly organization: string
  readonly resource: string
  readonly relation: string
  /** `user`, `service`, or any other type that tuples name. */
  readonly type: string
  /** Lists usersets `type:id#subjectRelation` instead of plain subjects. */
  readonly subjectRelation?: string
}
/**
 * Exactly what the check allows among everything that tuples, memberships and grants name, in key order.
 *
 * @example
 * ```ts
 * let page: ListPage = await pdp.listResources({ organization: 'acme', subject: user('alice'), relation: 'viewer', type: 'invoice' })
 * console.log(page.items, page.nextPageToken)
 * ```
 */
export type ListPage = {
  /** Names as `type:id`; `type:*` for everybody of the type whom no tuple names; `type:id#relation` if asked for. */
  readonly items: readonly string[]
  /** The token for the next page; null: this is the last one. A page may have fewer items than asked for, even none. */
  readonly nextPageToken: string | null
  /** False if the page lacks an item that could not be decided. */
  readonly complete: boolean
  /** Items that could not be decided because of a condition, with the parameters that the context lacks: at most 100 of them. */
  readonly undecided: readonly { readonly item: string; readonly missingContext: readonly string[] }[]
  /** Opaque text of the moment at which the whole page was read. */
  readonly revision: string
  /** True when this page and all before it were read at one revision. */
  readonly revisionUnchanged: boolean
}

/**
 * The questions that a decision point answers.
 *
 * @example
 * ```ts
 * const ask = (on: Pdp) => on.can('acme', user('alice'), 'viewer', 'invoice:42')
 * await ask(pdp)
 * ```
 */
export interface Pdp {
  /** Throws PdpError when the question is malformed or cannot be decided. An unknown organization is a denial. */
  can(
    organization: string,
    subject: AskedSubject,
    relation: string,
    resource: string,
    options?: { readonly context?: JsonObject },
  ): Promise<boolean>
  /** The organization's entitlement. Throws PdpError `store_unavailable` or `request_invalid`. */
  entitlement(organization: string, key: string): Promise<EntitlementResult | null>
  /** Answers at most 256 checks and 256 entitlements, all for one moment. Throws PdpError. */
  decide(request: DecideRequest): Promise<Decision>
  isRevoked(token: RevocationQuestion): Promise<boolean>
  /** Roles and permissions. `app`: the app whose roles count in addition to organization-wide roles. */
  held(request: { organization: string; subject: Subject; app: string | null }): Promise<HeldRoles>
  /** Claims-mode entitlements and their version, for tokens; null for an unknown organization. */
  claimsEntitlements(organization: string): Promise<{ version: number; values: JsonObject } | null>
  /** The organization itself and its ancestors, nearest first; null for an unknown organization. */
  ancestors(organization: string): Promise<readonly string[] | null>
  /** The names that can be asked about a resource of the type, sorted: relations of its model, and permission keys if roles give them. */
  relations(organization: string, type: string): Promise<readonly string[]>
  /** The types with relations in the models, sorted. */
  types(organization: string): Promise<readonly string[]>
  /** Lists resources. An unknown organization has none. Throws PdpError `request_invalid` or `store_unavailable`. */
  listResources(request: ListResourcesRequest): Promise<ListPage>
  /** Lists subjects, like listResources. `user:*` means people without a membership: invited or suspended ones still hold nothing. */
  listSubjects(request: ListSubjectsRequest): Promise<ListPage>
  close(): Promise<void>
}
