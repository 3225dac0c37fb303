/** The terms of one check, which nothing stored can change: its organization, model and subject, and what follows from them. */
import type { JournalId } from '../../shared/domain/journal.ts'
import { MEMBERSHIP_RELATIONS } from '../../shared/domain/membership.ts'
import { isWildcard, typeOf } from '../../shared/domain/names.ts'
import type { Direct, Expression, Model } from './model.ts'
import { subjectType, type Userset } from './usersets.ts'

export type Relations = ReadonlyMap<string, Expression>

const COLON = ':'.charCodeAt(0)

/** A userset holds itself, whatever its relation says. */
export const isUsersetOf = (subject: string, object: string, relation: string): boolean =>
  subject.length === object.length + 1 + relation.length && subject === `${object}#${relation}`

/** A tier of the organization itself, which comes from memberships. */
export function isTierOf(log: JournalId, object: string, relation: string): boolean {
  if (object.length !== 'organization:'.length + log.length || !object.startsWith('organization:')) return false
  return MEMBERSHIP_RELATIONS.has(relation) && object.endsWith(log)
}

export class CheckTerms {
  readonly #log: JournalId
  readonly #model: Model
  readonly #subject: string
  /** As models name it: `user`, or `group#member` for a userset. Known once it is needed. */
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

  /** '' where there is no model. Mostly the type that was asked for before: no text is made for it. */
  typeOf(object: string): string {
    if (this.#model.size === 0) return ''
    const last = this.#lastType
    if (object.charCodeAt(last.length) === COLON && object.startsWith(last)) return last
    this.#lastType = typeOf(object)
    this.#lastRelations = this.#model.get(this.#lastType)
    return this.#lastType
  }

  /** Undefined where no model says anything of the type. */
  relationsOf(type: string): Relations | undefined {
    return type === '' ? undefined : type === this.#lastType ? this.#lastRelations : this.#model.get(type)
  }

  isSubject(object: string, relation: string): boolean {
    return isUsersetOf(this.#subject, object, relation)
  }

  isTier(object: string, relation: string): boolean {
    return isTierOf(this.#log, object, relation)
  }

  /** Asked about everybody of a type, no tuple names them but the wildcard itself, which is a userset. */
  mayName(allowed: Direct | null): boolean {
    if (isWildcard(this.#subject)) return false
    if (allowed === null) return true
    this.#subjectType ??= subjectType(this.#subject)
    return allowed.types.has(this.#subjectType) || allowed.usersets.has(this.#subjectType)
  }

  /** A userset asked about is only ever found by name: it is a subject of no type. */
  isOf(type: string): boolean {
    return this.#subject.startsWith(`${type}:`) && !this.#subject.includes('#')
  }

  /** Does a tuple that names it count, and may what it names hold the subject? */
  lets(allowed: Direct | null, userset: Userset): boolean {
    if (userset.isWildcard) return allowed?.wildcards.has(userset.type) === true && this.isOf(userset.type)
    return allowed === null || allowed.usersets.has(userset.type)
  }
}
