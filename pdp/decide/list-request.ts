/** What a request for a list must look like, and the cursor that leads from one page to the next. */
import { createHash } from 'node:crypto'
import { PdpError, type ValidationIssue } from '../domain/errors.ts'
import { formatTuple, isId, isObject, isRelation, isRelationOrKey, isSubject, isType, quote } from '../domain/names.ts'
import { subjectName } from '../domain/subjects.ts'
import { contextualIssues } from './contextual-tuples.ts'
import type { ListQuestion } from './lists.ts'
import { askedSubjectIssues } from './request.ts'

export const PAGE_SIZE_MAX = 1_000
export const PAGE_SIZE_DEFAULT = 100
const TOKEN_CHARACTERS_MAX = 2_048

/** `revision`: a digest of the revision that all pages so far were read at; null when they differed. */
export type Cursor = { readonly after: string; readonly revision: string | null }

/** @throws PdpError `request_invalid` with every issue and its JSON pointer. @returns null for the first page. */
export function parseListRequest(question: ListQuestion): { readonly size: number; readonly from: Cursor | null } {
  const issues: ValidationIssue[] = []
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
  const from = pageToken == null ? null : parseCursor(pageToken, question)
  expect(from !== undefined, '/pageToken', 'is not a token that this list gave')
  if (issues.length === 0) return { size: pageSize, from: from ?? null }
  throw new PdpError('request_invalid', issues.map((m) => `${m.place} ${m.message}`).join('; '), { issues })
}

export function formatCursor(question: ListQuestion, cursor: Cursor): string {
  return Buffer.from(JSON.stringify([cursor.after, cursor.revision, digestOf(question)])).toString('base64url')
}

/** Undefined for anything that formatCursor did not make for the same question. */
function parseCursor(text: string, question: ListQuestion): Cursor | undefined {
  if (typeof text !== 'string' || text.length > TOKEN_CHARACTERS_MAX) return undefined
  try {
    const parsed: unknown = JSON.parse(Buffer.from(text, 'base64url').toString('utf8'))
    const [after, revision, digest]: readonly unknown[] = Array.isArray(parsed) && parsed.length === 3 ? parsed : []
    if (typeof after !== 'string' || (revision !== null && typeof revision !== 'string')) return undefined
    if (digest !== digestOf(question) || !isSubject(after)) return undefined
    return after.startsWith(`${question.type}:`) ? { after, revision } : undefined
  } catch {
    return undefined
  }
}

/** A cursor makes sense for the question that it came from, and for no other. Page sizes may change on the way. */
function digestOf(question: ListQuestion): string {
  const { kind, organization, relation, type, app } = question
  const rest =
    question.kind === 'resources'
      ? [subjectName(question.subject)]
      : [question.resource, question.subjectRelation ?? null]
  const tuples = (question.contextualTuples ?? []).map(formatTuple).sort()
  return shortDigest(JSON.stringify([kind, organization, relation, type, app, ...rest, ...tuples]))
}

export const shortDigest = (text: string): string => createHash('sha256').update(text).digest('base64url').slice(0, 22)
