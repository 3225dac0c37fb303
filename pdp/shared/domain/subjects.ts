/** Subjects of questions: built by applications, and as tuples write them. */
import type { AskedSubject, Subject } from './decision.ts'
import { isObjectId, isRelation, isType } from './names.ts'

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

/** As tuples name it: `type:id`, `type:id#relation` or `type:*`. */
export const subjectName = ({ type, id, relation }: AskedSubject): string =>
  relation === undefined ? `${type}:${id}` : `${type}:${id}#${relation}`

export const isAskedSubject = ({ type, id, relation }: AskedSubject): boolean =>
  isType(type) &&
  (isObjectId(id) || (id === '*' && relation === undefined)) &&
  (relation === undefined || isRelation(relation))

/** A person or a client by itself, of whom the directory knows. */
export const isBearer = (subject: AskedSubject): subject is Subject =>
  (subject.type === 'user' || subject.type === 'service') && subject.relation === undefined && subject.id !== '*'

/** Delegation, a person lets a client act (RFC 8693 section 4.1), is a tuple of the organization: `service:bot#acts_for@user:alice`. */
export const ACTS_FOR = 'acts_for'

/** Whoever writes relationships may not write it for somebody else: it gives a client what that person has. */
export const isDelegation = ({ object, relation }: { readonly object: string; readonly relation: string }): boolean =>
  relation === ACTS_FOR && object.startsWith('service:')
