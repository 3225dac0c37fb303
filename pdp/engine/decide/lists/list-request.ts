/** Validates a request for a list, and makes and reads the cursor that leads from one page to the next. */
import { invalidRequest, type ValidationIssue } from '../../../shared/domain/errors.ts'
import type { JsonValue } from '../../../shared/domain/json.ts'
import {
  formatTuple,
  isId,
  isObject,
  isRelation,
  isRelationOrKey,
  isSubject,
  isType,
  quote,
} from '../../../shared/domain/names.ts'
import { type Cursor, formatPageToken, parsePageToken } from '../../../shared/domain/page-token.ts'
import { subjectName } from '../../../shared/domain/subjects.ts'
import { askedSubjectIssues, asOfIssues, contextIssues } from '../request.ts'
import { contextualIssues, withoutIssues } from '../views/contextual-tuples.ts'
import type { ListQuestion } from './lists.ts'

export const PAGE_SIZE_MAX = 1_000
export const PAGE_SIZE_DEFAULT = 100

/** Throws PdpError `request_invalid` with every issue and its JSON pointer. @returns null for the first page. */
export function parseListRequest(question: ListQuestion): { readonly size: number; readonly from: Cursor | null } {
  const issues: ValidationIssue[] = [...contextIssues(question.context)]
  const expect = (holds: boolean, place: string, message: string): void => {
    if (!holds) issues.push({ place, message })
  }
  const { organization, relation, type, pageSize = PAGE_SIZE_DEFAULT, pageToken } = question
  expect(isId(organization), '/organization', 'is not an id')
  expect(isRelationOrKey(relation), '/relation', `${quote(relation)} is not a relation or permission key`)
  expect(isType(type), '/type', `${quote(type)} is not a type`)
  const sized = Number.isInteger(pageSize) && pageSize >= 1 && pageSize <= PAGE_SIZE_MAX
  expect(sized, '/pageSize', `is not an integer from 1 to ${PAGE_SIZE_MAX}`)
  if (question.kind === 'resources') {
    issues.push(...askedSubjectIssues(question.subject))
  } else {
    const { resource, subjectRelation } = question
    expect(isObject(resource), '/resource', `${quote(resource)} is not <type>:<id>`)
    expect(subjectRelation === undefined || isRelation(subjectRelation), '/subjectRelation', 'is not a relation')
  }
  issues.push(...contextualIssues(question.contextualTuples ?? []))
  issues.push(...withoutIssues(question.withoutTuples ?? []), ...asOfIssues(question.asOfMs))
  const from = pageToken == null ? null : parseCursor(pageToken, question)
  expect(from !== undefined, '/pageToken', 'is not a page token of this list')
  if (issues.length === 0) return { size: pageSize, from: from ?? null }
  throw invalidRequest(issues)
}

export const formatCursor = (question: ListQuestion, cursor: Cursor): string =>
  formatPageToken(listOf(question), cursor)

/** The cursor; undefined unless formatCursor made the text for the same question. */
function parseCursor(text: string, question: ListQuestion): Cursor | undefined {
  const cursor = typeof text === 'string' ? parsePageToken(listOf(question), text) : undefined
  const fits = cursor !== undefined && isSubject(cursor.after) && cursor.after.startsWith(`${question.type}:`)
  return fits ? cursor : undefined
}

function listOf(question: ListQuestion): readonly JsonValue[] {
  const { kind, organization, relation, type, app } = question
  const rest =
    question.kind === 'resources'
      ? [subjectName(question.subject)]
      : [question.resource, question.subjectRelation ?? null]
  const tuples = (question.contextualTuples ?? [])
    .map((tuple) => JSON.stringify([formatTuple(tuple), tuple.condition ?? null]))
    .sort()
  const { context = null, asOfMs = null } = question
  const without = (question.withoutTuples ?? []).map((tuple) => `without ${formatTuple(tuple)}`).sort()
  const at = asOfMs === null ? [] : [asOfMs]
  return [kind, organization, relation, type, app, context, ...at, ...rest, ...tuples, ...without]
}
