/** Subjects of questions: how applications make them, how tuples name them, and which clients act for them. */
import type { AskedSubject, Subject } from './decision.ts'
import { isObjectId, isRelation, isType } from './names.ts'
import type { Tuple, TupleCondition } from './tuple.ts'

/**
 * A person.
 *
 * @example
 * ```ts
 * await pdp.can('acme', user('alice'), 'viewer', 'invoice:42')
 * ```
 */
export const user = (id: string): Subject => ({ type: 'user', id })
/**
 * An OAuth client acting for itself.
 *
 * @example
 * ```ts
 * await pdp.can('acme', service('importer'), 'editor', 'invoice:42')
 * ```
 */
export const service = (id: string): Subject & { readonly type: 'service' } => ({ type: 'service', id })

/** The subject in the form of tuples: `type:id`, `type:id#relation` or `type:*`. */
export const subjectName = ({ type, id, relation }: AskedSubject): string =>
  relation === undefined ? `${type}:${id}` : `${type}:${id}#${relation}`

export const isAskedSubject = ({ type, id, relation }: AskedSubject): boolean =>
  isType(type) &&
  (isObjectId(id) || (id === '*' && relation === undefined)) &&
  (relation === undefined || isRelation(relation))

/** True for a single person or client that the directory may have. */
export const isBearer = (subject: AskedSubject): subject is Subject =>
  (subject.type === 'user' || subject.type === 'service') && subject.relation === undefined && subject.id !== '*'

/**
 * Delegation: a person lets a client act (RFC 8693 section 4.1). It is a tuple of the organization, `service:bot#acts_for@user:alice`;
 * its condition `scopes`, if it has one, lets the client act with tokens of these scopes alone.
 */
export const ACTS_FOR = 'acts_for'
const SERVICE = 'service:'
const SCOPES = 'scopes'
export const DELEGATED_SCOPES_MAX = 100
/** Matches a scope (RFC 6749 section 3.3). */
const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]{1,128}$/

/** True for a tuple by which a person delegates to a client. It gives the client what the person has, so only the person may write it. */
export const isDelegation = ({ object, relation }: { readonly object: string; readonly relation: string }): boolean =>
  relation === ACTS_FOR && object.startsWith(SERVICE)

export const delegationTo = (client: string): string => `${SERVICE}${client}`
export const clientOf = ({ object }: { readonly object: string }): string => object.slice(SERVICE.length)
/** The condition of a delegation for some scopes. `since`: when it was given, in seconds since the epoch, to be shown. */
export const onlyScopes = (scopes: readonly string[], since: number): TupleCondition => ({
  name: SCOPES,
  context: { scopes: [...scopes], since },
})

/** The scopes of a delegation with a condition; null for another condition, under which the client may not act. */
export function scopesOf({ name, context }: TupleCondition): readonly string[] | null {
  const { scopes, since: _, ...others } = context
  const isList = Array.isArray(scopes) && scopes.length <= DELEGATED_SCOPES_MAX && Object.keys(others).length === 0
  return name === SCOPES && isList && scopes.every((scope) => typeof scope === 'string' && SCOPE.test(scope))
    ? (scopes as readonly string[])
    : null
}

/** The reason why a delegation has no effect, whatever the models; null: it has. */
export function delegationIssue({ subject, condition }: Omit<Tuple, 'expiresAtMs'>): string | null {
  const [type = '', id = ''] = subject.split(/:(.*)/s)
  if (type !== 'user' || subject.includes('#') || !isBearer({ type, id }))
    return `relation "${ACTS_FOR}" of a client names one person, such as user:alice`
  if (condition === undefined || scopesOf(condition) !== null) return null
  return `relation "${ACTS_FOR}" of a client has no condition but "${SCOPES}", with a list "${SCOPES}" of at most ${DELEGATED_SCOPES_MAX}`
}
