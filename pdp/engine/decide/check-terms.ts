/** The organization, model and subject of one check, and what follows from them without reading any rows. */
import type { JournalId } from '../../shared/domain/journal.ts'
import { MEMBERSHIP_RELATIONS } from '../../shared/domain/membership.ts'
import { isWildcard, typeOf } from '../../shared/domain/names.ts'
import type { Direct, Expression, Model } from './model.ts'
import { subjectType, type Userset } from './usersets.ts'

export type Relations = ReadonlyMap<string, Expression>

const COLON = ':'.charCodeAt(0)

/** True for `object#relation` itself: a userset always holds itself, whatever the relation's rules. */
export const isUsersetOf = (subject: string, object: string, relation: string): boolean =>
  subject.length === object.length + 1 + relation.length && subject === `${object}#${relation}`

/** True for a membership tier of the journal's own organization. */
export function isTierOf(log: JournalId, object: string, relation: string): boolean {
  if (object.length !== 'organization:'.length + log.length || !object.startsWith('organization:')) return false
  return MEMBERSHIP_RELATIONS.has(relation) && object.endsWith(log)
}

export class CheckTerms {
  readonly #log: JournalId
  readonly #model: Model
  readonly #subject: string
  /** The subject's type in the form of models: `user`, or `group#member` for a userset. Null until first needed. */
  #subjectType: string | null = null
  #lastType = ''
  #lastRelations: Relations | undefined

  constructor({ log, model, subject }: { readonly log: JournalId; readonly model: Model; readonly subject: string }) {
    this.#log = log
    this.#model = model
    this.#subject = subject
  }

  get groupsAreModelled(): boolean {
    return this.#model.size > 0 && this.#model.has('group')
  }

  /** The object's type; '' without a model. Mostly the same type as before, for which no new string is made. */
  typeOf(object: string): string {
    if (this.#model.size === 0) return ''
    const last = this.#lastType
    if (object.charCodeAt(last.length) === COLON && object.startsWith(last)) return last
    this.#lastType = typeOf(object)
    this.#lastRelations = this.#model.get(this.#lastType)
    return this.#lastType
  }

  /** The relations of the type; undefined when no model declares it. */
  relationsOf(type: string): Relations | undefined {
    return type === '' ? undefined : type === this.#lastType ? this.#lastRelations : this.#model.get(type)
  }

  isSubject(object: string, relation: string): boolean {
    return isUsersetOf(this.#subject, object, relation)
  }

  isTier(object: string, relation: string): boolean {
    return isTierOf(this.#log, object, relation)
  }

  /** May plain tuples name the subject? Not a wildcard as subject: its tuples are among the usersets. */
  mayName(allowed: Direct | null): boolean {
    if (isWildcard(this.#subject)) return false
    if (allowed === null) return true
    this.#subjectType ??= subjectType(this.#subject)
    return allowed.types.has(this.#subjectType) || allowed.usersets.has(this.#subjectType)
  }

  /** True for a plain subject of the type. A userset is none: only tuples with its own name hold it. */
  isOf(type: string): boolean {
    return this.#subject.startsWith(`${type}:`) && !this.#subject.includes('#')
  }

  /** True if the model allows tuples with this userset, and the userset may hold the subject. */
  lets(allowed: Direct | null, userset: Userset): boolean {
    if (userset.isWildcard) return allowed?.wildcards.has(userset.type) === true && this.isOf(userset.type)
    return allowed === null || allowed.usersets.has(userset.type)
  }
}
