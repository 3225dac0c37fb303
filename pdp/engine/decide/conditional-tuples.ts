/** The tuples with a condition that one check reads: which of them count, and what is missing to decide it. */

import type { LogId } from '../../shared/domain/change-log.ts'
import { PdpError } from '../../shared/domain/errors.ts'
import { isWildcard, typeOf } from '../../shared/domain/names.ts'
import { ConditionRun } from './conditions/run.ts'
import type { Direct } from './model.ts'
import { subjectType } from './usersets.ts'
import { type ConditionalSubject, FALSE, TRUE, type Truth, UNKNOWN, type View } from './view.ts'

type Allowed = NonNullable<Direct['conditional']>
export type Place = {
  readonly object: string
  readonly relation: string
  readonly allowed: Allowed
  /** Gets a sentence for each condition that is false; null where nobody asks why. */
  readonly unmet: string[] | null
}
export type Wanted = {
  readonly kind: 'usersets' | 'objects'
  readonly countMax: number
  readonly isWanted?: (subject: string) => boolean
}
/** `subjects`: those whose condition is met. `undecided`: of some it cannot be told. `rows`: how many were read. */
export type Met = { readonly subjects: readonly string[]; readonly undecided: boolean; readonly rows: number }

/** False conditions of one relation of an object that are named at most. */
const UNMET_MAX = 10

export class ConditionalTuples {
  readonly #view: View
  readonly #log: LogId
  #run: ConditionRun | null
  #message: string | null = null
  readonly #missing = new Set<string>()

  /** `run`: shared by the checks of a question; null: the question has no context. */
  constructor(view: View, log: LogId, run: ConditionRun | null) {
    this.#view = view
    this.#log = log
    this.#run = run
  }

  /** Why something could not be told, with all parameters that are lacking. Null when everything could. */
  get failure(): PdpError | null {
    if (this.#message === null) return null
    return new PdpError('condition_failed', this.#message, { missingContext: [...this.#missing].sort() })
  }

  /** Does the tuple that names the subject count? Null while rows are missing; UNKNOWN: that cannot be told. */
  names(place: Place, subject: string): Truth | null {
    const { object, relation, allowed } = place
    if (!allowed.has(isWildcard(subject) ? subject : subjectType(subject))) return FALSE
    const condition = this.#view.conditionOf(this.#log, object, relation, subject)
    if (condition === undefined) return null
    return condition === null ? FALSE : this.#counts(place, { subject, condition })
  }

  /** Usersets and wildcards that `isWanted`, or plain objects. Undefined while rows are missing; null past `countMax`. */
  met(place: Place, wanted: Wanted): Met | null | undefined {
    const { isWanted = () => true } = wanted
    const rows = this.#view.conditional(this.#log, place.object, place.relation, wanted)
    if (rows === undefined || rows === null) return rows
    const subjects: string[] = []
    let undecided = false
    for (const row of rows) {
      const counts = isWanted(row.subject) ? this.#counts(place, row) : FALSE
      if (counts === TRUE) subjects.push(row.subject)
      else if (counts === UNKNOWN) undecided = true
    }
    return { subjects, undecided, rows: rows.length }
  }

  #counts({ object, relation, allowed, unmet }: Place, { subject, condition }: ConditionalSubject): Truth {
    const kind = isWildcard(subject) ? subject : subject.includes('#') ? subjectType(subject) : typeOf(subject)
    const definition = allowed.get(kind)?.get(condition.name)
    if (definition === undefined) return FALSE
    this.#run ??= new ConditionRun(this.#view)
    const outcome = this.#run.evaluate(definition, condition)
    const tuple = `${object}#${relation}@${subject}`
    if (outcome.ok && !outcome.holds && unmet !== null && unmet.length < UNMET_MAX)
      unmet.push(
        `${tuple} does not count: condition "${condition.name}" is false for ${this.#run.seenBy(definition, condition)}`,
      )
    if (outcome.ok) return outcome.holds ? TRUE : FALSE
    this.#message ??= `${tuple}: ${outcome.message}`
    for (const name of outcome.missing) this.#missing.add(name)
    return UNKNOWN
  }
}
