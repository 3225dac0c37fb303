/** Refusals that a store file would get from a PDP that serves: the model in a manifest, the tuples in an organization. */
import { compileModel } from '../../engine/decide/language/model-language.ts'
import { reservedTypeIssues } from '../../engine/decide/restrictions.ts'
import { reservedTupleIssue } from '../../engine/store/changes.ts'
import { PdpError, type ValidationIssue } from '../../shared/domain/errors.ts'
import { tupleIssue } from '../../shared/domain/names.ts'
import type { ModelSource } from './store-file.ts'
import type { FileTuple } from './tuple-file.ts'

export type Refused = { readonly file: string; readonly line: number; readonly message: string }

/** Places are those of the text where it stands as it is; of several modules, or JSON, only the file is known. */
export function refusedModel(text: string, source: ModelSource): readonly Refused[] {
  const { file } = source
  const isText = source.kind === 'inline' || file.endsWith('.fga')
  const above = source.kind === 'inline' ? source.line : 0
  return servingIssues(text).map(({ place, message }) => ({
    file,
    line: isText ? above + Number(place.split(':')[0]) : 1,
    message,
  }))
}

function servingIssues(text: string): readonly ValidationIssue[] {
  try {
    return reservedTypeIssues(compileModel(text), text)
  } catch (err) {
    if (err instanceof PdpError) return err.issues
    throw err
  }
}

export function refusedTuples(tuples: readonly FileTuple[]): readonly Refused[] {
  return tuples.flatMap(({ object, relation, user, file, line }) => {
    const message = tupleIssue({ object, relation, subject: user }) ?? renamed(reservedTupleIssue({ object, relation }))
    return message === null ? [] : [{ file, line, message }]
  })
}

const renamed = (issue: string | null): string | null =>
  issue === null ? null : `${issue}, or rename the type, as "import openfga" does`
