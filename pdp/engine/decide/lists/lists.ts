/**
 * Lists by checking candidates: every name in tuples, memberships and grants is a candidate, and it is in the list if and only
 * if the check allows it. Pure functions: the caller reads the storage and makes the pages.
 */

import type {
  ListPage,
  ListResourcesRequest,
  ListSubjectsRequest,
  PermissionCheck,
} from '../../../shared/domain/decision.ts'
import { ENVIRONMENT, type JournalId } from '../../../shared/domain/journal.ts'
import { isWildcard, typeOf } from '../../../shared/domain/names.ts'
import { subjectName } from '../../../shared/domain/subjects.ts'
import type { NameSource } from '../../../shared/domain/tuple.ts'
import { answerWithin, type CheckInput, isUndecided } from '../check.ts'
import { ConditionRun } from '../conditions/run.ts'
import type { Model } from '../model.ts'
import { ancestors } from '../roles.ts'
import { finished, Paused, type Slice, type Steps } from '../slices.ts'
import type { View } from '../view.ts'

/** How many undecided candidates one page names. */
export const UNDECIDED_MAX = 100
/** How many tuples may be visited for one page. */
export const TUPLES_PER_PAGE_MAX = 100_000

export type ListQuestion =
  | ({ readonly kind: 'resources' } & ListResourcesRequest & { readonly app: string | null })
  | ({ readonly kind: 'subjects' } & ListSubjectsRequest & { readonly app: string | null })
/** The candidates: names to be read from storage (`stored`), and others (`known`). All begin with `prefix`. */
export type Candidates = {
  readonly prefix: string
  readonly stored: readonly { readonly log: JournalId; readonly source: NameSource }[]
  readonly known: readonly string[]
}
/** An id with a character that no real id may have. If its check allows, a wildcard has allowed everybody. */
const ANYBODY = '\x7f'

/** The names that may be in the list. Undefined while rows are missing. */
export function candidatesOf(view: View, question: ListQuestion): Candidates | undefined {
  const path = ancestors(view, question.organization)
  const manifests = view.manifests()
  if (path === undefined || manifests === undefined) return undefined
  const { type, organization } = question
  const prefix = `${type}:`
  const contextual = (question.contextualTuples ?? [])
    .flatMap(({ object, subject }) => (question.kind === 'subjects' ? [object, subject] : [object]))
    .filter((name) => name.startsWith(prefix))
  if (question.kind === 'resources') {
    if (type === 'app') return { prefix, stored: [], known: manifests.map(({ app }) => `app:${app}`) }
    const stored = [{ log: organization, source: { kind: 'objects', type } }] as const
    // A userset holds its own relation on its object, even if no tuple names the object.
    const own = question.subject.relation === undefined ? [] : [`${question.subject.type}:${question.subject.id}`]
    const known = [`organization:${organization}`, ...own, ...contextual]
    return { prefix, stored, known: known.filter((name) => name.startsWith(prefix)) }
  }
  const byTuple = { log: organization, source: { kind: 'subjects', type } } as const
  const members = { log: organization, source: { kind: 'members' } } as const
  const stored = type === 'user' ? [byTuple, members] : [byTuple]
  const all = isRoleQuestion(question) ? [...stored, ...holders(path, type)] : stored
  if (question.subjectRelation === undefined) return { prefix, stored: all, known: contextual }
  // Rules derive usersets that no tuple names, so the usersets of all objects of the type are candidates.
  const objects = { log: organization, source: { kind: 'objects', type } } as const
  const own = question.resource.startsWith(prefix) ? [question.resource] : []
  return { prefix, stored: [...all, objects], known: [...contextual, ...own] }
}

/** True for an app and for the organization itself: grants give permission keys on them, from here, from above or environment-wide. */
function isRoleQuestion({ resource, organization }: ListSubjectsRequest): boolean {
  return typeOf(resource) === 'app' || resource === `organization:${organization}`
}

function holders(path: readonly string[], type: string): Candidates['stored'] {
  const granted = [...path, ENVIRONMENT].map((log) => ({ log, source: { kind: 'grantees', type } as const }))
  // A group that holds a grant of an ancestor has its members in the tuples of that ancestor.
  const above = path.slice(1).map((log) => ({ log, source: { kind: 'subjects', type } as const }))
  return [...granted, ...above]
}

/** A page. `examinedCount`: how many of the candidates were checked; the next page begins after them. */
export type Listed = {
  readonly items: readonly string[]
  readonly examinedCount: number
  readonly tuplesCount: number
  /** How many candidates could not be decided, because of a bound or a condition. */
  readonly undecidedCount: number
  readonly undecided: ListPage['undecided']
}

/** The candidate for a name: the name itself, or the asked userset of its object; null: the name gives none. */
export function candidateOf(question: ListQuestion, name: string): string | null {
  if (question.kind === 'resources') return name
  const { subjectRelation } = question
  const hash = name.indexOf('#')
  if (subjectRelation === undefined) return hash < 0 ? name : null
  return isWildcard(name) ? null : `${hash < 0 ? name : name.slice(0, hash)}#${subjectRelation}`
}

/** Checks the candidates in order until the list has `countMax` items. Null items are no candidates. Undefined while rows are missing. */
export function* listOf(
  slice: Slice,
  view: View,
  model: Model,
  of: {
    readonly question: ListQuestion
    readonly relationView?: View | undefined
    readonly candidates: readonly (string | null)[]
    readonly countMax: number
    readonly tuplesMax: number
    /** How many tuples each check may visit. */
    readonly tuplesPerCheckMax: number
  },
): Steps<Listed | undefined> {
  const { question, relationView, candidates, countMax, tuplesMax } = of
  const items: string[] = []
  const undecided: ListPage['undecided'][number][] = []
  const conditions = new ConditionRun(view, question.context)
  const meter = { tuplesCount: 0 }
  let [examinedCount, undecidedCount, missing] = [0, 0, false]
  for (const candidate of candidates) {
    if (items.length >= countMax || meter.tuplesCount >= tuplesMax) break
    examinedCount++
    if (candidate === null) continue
    const { asked, check } = pairOf(question, candidate)
    try {
      const all = { ...asked, meter, relationView, conditions, tuplesMax: of.tuplesPerCheckMax }
      const found = answerWithin(slice, { view, model, asked: all, check })
      const answer = found instanceof Paused ? yield* finished(found) : found
      if (answer === undefined) missing = true
      else if (answer.allowed) items.push(candidate)
    } catch (err) {
      if (!isUndecided(err)) throw err
      undecidedCount++
      if (err.code === 'condition_failed' && undecided.length < UNDECIDED_MAX)
        undecided.push({ item: candidate, missingContext: err.missingContext })
    }
  }
  return missing ? undefined : { items, examinedCount, tuplesCount: meter.tuplesCount, undecidedCount, undecided }
}

/** The check that decides about the candidate. */
function pairOf(question: ListQuestion, candidate: string): { asked: CheckInput; check: PermissionCheck } {
  const { organization, app, relation } = question
  if (question.kind === 'resources')
    return {
      asked: { organization, subject: subjectName(question.subject), app },
      check: { relation, resource: candidate },
    }
  const subject = isWildcard(candidate) ? `${question.type}:${ANYBODY}` : candidate
  return { asked: { organization, subject, app }, check: { relation, resource: question.resource } }
}
