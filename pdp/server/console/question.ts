/** The parts of a question, as people type them and pages' URLs hold them, and as the engine takes them. */

import { ANY_APP } from '../../engine/decide/roles.ts'
import { EMPTY, type Html, html } from '../../shared/base/html.ts'
import { parseInstantText } from '../../shared/base/instant.ts'
import type { Actor, AskedSubject, ContextualTuple } from '../../shared/domain/decision.ts'
import { PdpError, type ValidationIssue } from '../../shared/domain/errors.ts'
import { isJsonObject, type JsonObject } from '../../shared/domain/json.ts'
import { isSubject, parseTuple } from '../../shared/domain/names.ts'
import type { ActingFor } from '../serve/decisions/decision-log.ts'
import { parseJson } from '../serve/http/json.ts'
import { RequestProblem } from '../serve/http/status.ts'
import { address, type Field, field } from './parts.ts'
import { daysOf, type Reading } from './sections/times.ts'
import type { ConsoleVisit } from './visit.ts'

export type Supposed = {
  readonly with: string
  readonly without: string
  readonly asOf: string
  readonly context: string
}
/** The same in the form of a question to the PDP. */
export type Supposition = {
  readonly contextualTuples?: readonly ContextualTuple[]
  readonly withoutTuples?: readonly ContextualTuple[]
  readonly asOfMs?: number
  readonly context?: JsonObject
}

export const supposedOf = ({ query }: ConsoleVisit): Supposed => ({
  with: query('with'),
  without: query('without'),
  asOf: query('as_of'),
  context: query('context'),
})
export const isSupposed = (given: Supposed): boolean => Object.values(given).some((text) => text.trim() !== '')
/** The same as parameters of a URL. */
export const parametersOf = (given: Supposed): { readonly [name: string]: string } => ({
  with: given.with,
  without: given.without,
  as_of: given.asOf,
  context: given.context,
})

/** The fields of a supposition, closed until one of them is used. `more`: further fields of the screen. */
export function supposedFields(supposed: Supposed, { zone }: Reading, more: readonly Field[] = []): Html {
  const isUsed = isSupposed(supposed) || more.some(({ value }) => value !== '')
  return html`<details${isUsed ? html` open` : EMPTY}><summary>What if, at another time, with a context</summary>
<div class="fields">
${field({ name: 'with', label: 'With these relationships', value: supposed.with, lines: 2, hint: 'One on each line: doc:1#viewer@user:alice. They count in this question only.' })}
${field({ name: 'without', label: 'Without these relationships', value: supposed.without, lines: 2 })}
${field({ name: 'as_of', label: 'As of', value: supposed.asOf, hint: html`Such as yesterday, -2h or 2030-01-31T12:00. ${daysOf(zone)} Read from the log of changes.` })}
${field({ name: 'context', label: 'Context of conditions', value: supposed.context, lines: 2, hint: 'A JSON object.' })}
${more.map(field)}</div></details>`
}

/** Throws RequestProblem with the line of each text that is no tuple. */
export function readSupposed(given: Supposed): Supposition {
  const issues: ValidationIssue[] = []
  const added = readTuples(given.with, 'with', issues)
  const removed = readTuples(given.without, 'without', issues)
  // The browser's field for date and time has no zone; the console shows UTC everywhere.
  const text = /T\d\d:\d\d(:\d\d(\.\d+)?)?$/.test(given.asOf) ? `${given.asOf}Z` : given.asOf
  const asOfMs = given.asOf === '' ? null : parseInstantText(text)
  if (Number.isNaN(asOfMs))
    issues.push({ place: 'as of', message: 'is not a time such as yesterday or 2030-01-31T12:00Z' })
  const context = readContext(given.context, issues)
  if (issues.length > 0) throw new RequestProblem('request_invalid', 'the question cannot be read', { issues })
  return {
    ...(added.length > 0 && { contextualTuples: added }),
    ...(removed.length > 0 && { withoutTuples: removed }),
    ...(asOfMs !== null && { asOfMs }),
    ...(context !== null && { context }),
  }
}

function readTuples(text: string, field: string, issues: ValidationIssue[]): readonly ContextualTuple[] {
  return text.split(/\r?\n/).flatMap((line, i) => {
    if (line.trim() === '') return []
    try {
      return [parseTuple(line.trim())]
    } catch (err) {
      if (!(err instanceof PdpError)) throw err
      issues.push({ place: `${field}, line ${i + 1}`, message: err.message })
      return []
    }
  })
}

function readContext(text: string, issues: ValidationIssue[]): JsonObject | null {
  if (text.trim() === '') return null
  try {
    const value = parseJson(text)
    if (isJsonObject(value)) return value
  } catch (err) {
    if (!(err instanceof RequestProblem)) throw err
  }
  issues.push({ place: 'context', message: 'is not a JSON object' })
  return null
}

/** Stands for the app of a token that is for no app. No app has this id. */
export const NO_APP = '#none'
/** The app in the engine's form; null: every app. */
export const appMeant = (named: string | null): string | null =>
  named === null ? ANY_APP : named === NO_APP ? null : named
/** The most clients that a question names: more than a token can have. */
const ACTORS_MAX = 1_024
/** The words of a list that a URL holds, with blanks between them. */
export const wordsIn = (text: string): readonly string[] => text.split(/\s+/).filter((word) => word !== '')
export const actorsMeant = (ids: readonly string[]): { readonly actors?: readonly Actor[] } =>
  ids.length === 0 ? {} : { actors: ids.slice(0, ACTORS_MAX).map((id) => ({ type: 'service', id })) }

/** The URL that asks an earlier question again. `app`: undefined if it is not known. */
export function askedAgain(
  org: string | null,
  of: { readonly subject: string; readonly relation: string; readonly resource: string },
  { app, actors = [], scopes = [] }: ActingFor & { readonly app?: string | null | undefined },
): string {
  const { subject, relation, resource } = of
  // The question was about any resource of a type: the screen "what" lists these.
  if (!resource.includes(':')) return address('what', { org, subject, relation, type: resource })
  const named = app === null ? NO_APP : app === undefined || app === ANY_APP ? null : app
  const by = { app: named, actors: actors.join(' '), scopes: scopes.join(' ') }
  return address('ask', { org, subject, relation, resource, ...by })
}

/** The subject of a typed text: a name without a type is a user's. */
export function subjectText(typed: string): string {
  const text = typed.trim()
  return text === '' || text.includes(':') ? text : `user:${text}`
}

/** Null for a text that is no subject. */
export function readSubject(text: string): AskedSubject | null {
  if (!isSubject(text)) return null
  const [object = '', relation] = text.split('#')
  const colon = object.indexOf(':')
  const subject = { type: object.slice(0, colon), id: object.slice(colon + 1) }
  return relation === undefined ? subject : { ...subject, relation }
}
