/** A running PDP's refusals of a store file: of its model in a manifest, of its tuples in an organization. */
import { dirname, join } from 'node:path'
import type { ModelDocument } from '../../engine/decide/language/document.ts'
import type { DocumentIssue } from '../../engine/decide/language/document-issues.ts'
import { compileDocument } from '../../engine/decide/language/model-language.ts'
import type { PlaceOf } from '../../engine/decide/language/places.ts'
import { reservedTypeIssues } from '../../engine/decide/restrictions.ts'
import { reservedTupleIssue } from '../../engine/store/changes.ts'
import { PdpError, type ValidationIssue } from '../../shared/domain/errors.ts'
import { tupleIssue } from '../../shared/domain/names.ts'
import type { SourceModel } from './model-text.ts'
import type { ModelSource } from './store-file.ts'
import type { FileTuple } from './tuple-file.ts'

export type Refused = { readonly file: string; readonly line: number; readonly message: string }

/** Refusals of the model, as it was read. */
export function refusedModel({ document, placeOf }: SourceModel, source: ModelSource): readonly Refused[] {
  return servingIssues(document, placeOf).map(({ place, message }) => ({ ...lineOf(place, source), message }))
}

export const placed = (issues: readonly DocumentIssue[], placeOf: PlaceOf, source: ModelSource): readonly Refused[] =>
  issues.map(({ spot, message }) => ({ ...lineOf(placeOf(spot), source), message }))

function lineOf(place: string, source: ModelSource): { readonly file: string; readonly line: number } {
  const [, module, line = '1'] = /^(?:(.+):)?(\d+):\d+$/.exec(place) ?? []
  const file = module === undefined ? source.file : join(dirname(source.file), module)
  return { file, line: (source.kind === 'inline' ? source.line : 0) + Number(line) }
}

function servingIssues(document: ModelDocument, placeOf: PlaceOf): readonly ValidationIssue[] {
  try {
    return reservedTypeIssues(compileDocument(document, placeOf), placeOf)
  } catch (err) {
    if (err instanceof PdpError) return err.issues
    throw err
  }
}

/** One refusal per reason, at its first tuple. */
export function refusedTuples(tuples: readonly FileTuple[]): readonly Refused[] {
  const found = new Map<string, Refused & { readonly count: number }>()
  for (const { object, relation, user, file, line } of tuples) {
    const message = tupleIssue({ object, relation, subject: user }) ?? renamed(reservedTupleIssue({ object, relation }))
    if (message === null) continue
    const first = found.get(`${file} ${message}`)
    found.set(`${file} ${message}`, { file, line, message, ...first, count: (first?.count ?? 0) + 1 })
  }
  return [...found.values()].map(({ count, message, ...at }) => ({
    ...at,
    message: count === 1 ? message : `${message} (so are ${count - 1} more tuples)`,
  }))
}

const renamed = (issue: string | null): string | null =>
  issue === null ? null : `${issue}, or rename the type, as "import openfga" does`
