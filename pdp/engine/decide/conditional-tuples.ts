/** Finds which tuples with a condition count for one check, and for which that cannot be decided. */

import type { JournalId } from '../../shared/domain/journal.ts'
import { isWildcard } from '../../shared/domain/names.ts'
import { ConditionRun } from './conditions/run.ts'
import type { Direct } from './model.ts'
import { subjectType } from './usersets.ts'
import type { ConditionalSubject, View } from './view.ts'

export type AskedRelation = {
  readonly object: string
  readonly relation: string
  readonly allowed: NonNullable<Direct['conditional']>
  /** Collects one sentence per false condition; null without `explain`. */
  readonly unmet: string[] | null
}
/** The reason why it is unknown whether a tuple counts. `missing`: parameters without a value. */
export type Doubt = { readonly message: string; readonly missing: readonly string[] }
/** A subject of a tuple that counts; with a doubt, of one that perhaps counts. */
export type Named = { readonly subject: string; readonly doubt: Doubt | null }
/** Tuples that count or may count. `rows`: how many were read. */
export type Met = { readonly named: readonly Named[]; readonly rows: number }

/** How many false conditions of one relation of an object an explanation names. */
const UNMET_MAX = 10

export class ConditionalTuples {
  readonly #view: View
  readonly #log: JournalId
  #run: ConditionRun | null

  /** `run`: shared by the checks of a question; null: the question has no context. */
  constructor(view: View, log: JournalId, run: ConditionRun | null) {
    this.#view = view
    this.#log = log
    this.#run = run
  }

  /** True or a doubt if a tuple names exactly this subject and counts. Null while rows are missing. */
  names(place: AskedRelation, subject: string): boolean | Doubt | null {
    const { object, relation, allowed } = place
    if (!allowed.has(isWildcard(subject) ? subject : subjectType(subject))) return false
    const condition = this.#view.conditionOf(this.#log, object, relation, subject)
    if (condition === undefined) return null
    return condition !== null && this.#counts(place, { subject, condition })
  }

  /** The tuples that count, with subjects of `kind` and `isWanted`. Undefined while rows are missing; null for more than `countMax`. */
  met(
    place: AskedRelation,
    wanted: {
      readonly kind: 'usersets' | 'objects'
      readonly countMax: number
      readonly isWanted?: (subject: string) => boolean
    },
  ): Met | null | undefined {
    const { isWanted = () => true } = wanted
    const rows = this.#view.conditional(this.#log, place.object, place.relation, wanted)
    if (rows === undefined || rows === null) return rows
    const named = rows.flatMap((row): readonly Named[] => {
      const counts = isWanted(row.subject) && this.#counts(place, row)
      return counts === false ? [] : [{ subject: row.subject, doubt: counts === true ? null : counts }]
    })
    return { named, rows: rows.length }
  }

  #counts(
    { object, relation, allowed, unmet }: AskedRelation,
    { subject, condition }: ConditionalSubject,
  ): boolean | Doubt {
    const kind = isWildcard(subject) ? subject : subjectType(subject)
    const definition = allowed.get(kind)?.get(condition.name)
    if (definition === undefined) return false
    this.#run ??= new ConditionRun(this.#view)
    const outcome = this.#run.evaluate(definition, condition)
    const tuple = `${object}#${relation}@${subject}`
    if (outcome.ok && !outcome.holds && unmet !== null && unmet.length < UNMET_MAX)
      unmet.push(
        `${tuple} does not count: condition "${condition.name}" is false for ${this.#run.seenBy(definition, condition)}`,
      )
    return outcome.ok ? outcome.holds : { message: `${tuple}: ${outcome.message}`, missing: outcome.missing }
  }
}
