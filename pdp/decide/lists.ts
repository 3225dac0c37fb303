/**
 * Lists by exhaustion: everything that tuples, memberships and grants name is a candidate, and a candidate is in the list
 * if and only if the check says so. Pure; pages and storage are the caller's.
 */
import type { ListResourcesRequest, ListSubjectsRequest, PermissionCheck } from '../domain/decision.ts'
import { PdpError } from '../domain/errors.ts'
import { ENVIRONMENT, type LogId } from '../domain/log.ts'
import { isWildcard, typeOf } from '../domain/names.ts'
import type { NameSource } from '../domain/tuple.ts'
import { type Asked, answerCheck } from './check.ts'
import type { Model } from './model.ts'
import { ancestors } from './roles.ts'
import type { View } from './view.ts'

/** Tuples visited for one page at most. */
export const TUPLES_PER_PAGE_MAX = 100_000

export type ListQuestion =
  | ({ readonly kind: 'resources' } & ListResourcesRequest & { readonly app: string | null })
  | ({ readonly kind: 'subjects' } & ListSubjectsRequest & { readonly app: string | null })
/** Where the candidates are: names that storage holds, and some that are known without it. All begin with `prefix`. */
export type Candidates = {
  readonly prefix: string
  readonly stored: readonly { readonly log: LogId; readonly source: NameSource }[]
  readonly known: readonly string[]
}
/** No id can hold this character, so it stands for whoever no tuple names: what that one may, `type:*` may. */
const ANYBODY = '\x7f'

/** Undefined while rows are missing. */
export function candidatesOf(view: View, question: ListQuestion): Candidates | undefined {
  const path = ancestors(view, question.organization)
  const manifests = view.manifests()
  if (path === undefined || manifests === undefined) return undefined
  const { type, organization } = question
  const prefix = `${type}:`
  if (question.kind === 'resources') {
    if (type === 'app') return { prefix, stored: [], known: manifests.map(({ app }) => `app:${app}`) }
    const stored = [{ log: organization, source: { kind: 'objects', type } }] as const
    return { prefix, stored, known: type === 'organization' ? [`organization:${organization}`] : [] }
  }
  const byTuple = { log: organization, source: { kind: 'subjects', type } } as const
  const members = { log: organization, source: { kind: 'members' } } as const
  const stored = type === 'user' ? [byTuple, members] : [byTuple]
  return { prefix, stored: isRoleQuestion(question) ? [...stored, ...holders(path, type)] : stored, known: [] }
}

/** Permission keys are held on an app and on the organization itself, by grants here, above and environment-wide. */
function isRoleQuestion({ resource, organization }: ListSubjectsRequest): boolean {
  return typeOf(resource) === 'app' || resource === `organization:${organization}`
}

function holders(path: readonly string[], type: string): Candidates['stored'] {
  const granted = [...path, ENVIRONMENT].map((log) => ({ log, source: { kind: 'grantees', type } as const }))
  // Members of the groups that hold a grant are in the tuples of the organization that gave it.
  const above = path.slice(1).map((log) => ({ log, source: { kind: 'subjects', type } as const }))
  return [...granted, ...above]
}

/** `examinedCount` of the candidates were looked at; those after them are for the next page. */
export type Listed = {
  readonly items: readonly string[]
  readonly examinedCount: number
  readonly tuplesCount: number
  /** Some could not be decided within the bounds of a check. */
  readonly undecidedCount: number
}

/** In the order of the candidates, up to `countMax` items. Undefined while rows are missing. */
export function listOf(
  view: View,
  model: Model,
  of: {
    readonly question: ListQuestion
    readonly candidates: readonly string[]
    readonly countMax: number
    readonly tuplesMax: number
  },
): Listed | undefined {
  const { question, candidates, countMax, tuplesMax } = of
  const items: string[] = []
  const meter = { tuplesCount: 0 }
  let [examinedCount, undecidedCount, missing] = [0, 0, false]
  for (const candidate of candidates) {
    if (items.length >= countMax || meter.tuplesCount >= tuplesMax) break
    examinedCount++
    const pair = pairOf(question, candidate)
    if (pair === null) continue
    try {
      const answer = answerCheck(view, model, { ...pair.asked, meter }, pair.check)
      if (answer === undefined) missing = true
      else if (answer.allowed) items.push(candidate)
    } catch (error) {
      if (!(error instanceof PdpError) || error.code !== 'evaluation_limit') throw error
      undecidedCount++
    }
  }
  return missing ? undefined : { items, examinedCount, tuplesCount: meter.tuplesCount, undecidedCount }
}

/** The check that decides about the candidate; null when it is not of the form that was asked for. */
function pairOf(question: ListQuestion, candidate: string): { asked: Asked; check: PermissionCheck } | null {
  const { organization, app, relation } = question
  if (question.kind === 'resources') {
    const { subject } = question
    return {
      asked: { organization, subject: `${subject.type}:${subject.id}`, app },
      check: { relation, resource: candidate },
    }
  }
  const hash = candidate.indexOf('#')
  const form = hash < 0 ? undefined : candidate.slice(hash + 1)
  if (form !== question.subjectRelation) return null
  const subject = isWildcard(candidate) ? `${question.type}:${ANYBODY}` : candidate
  return { asked: { organization, subject, app }, check: { relation, resource: question.resource } }
}
