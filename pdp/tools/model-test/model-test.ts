/** `portcullis-pdp model test FILE…`: runs the tests of OpenFGA's store files on our engine. */

import fs, { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Model } from '../../engine/decide/model.ts'
import { fileProblem } from '../../shared/process/command/file-problem.ts'
import { failureOf, worldOf } from './assertions.ts'
import { confinedTo, unconfined } from './confined-files.ts'
import { shortened, ValidationIssues } from './located-yaml.ts'
import { readModel } from './model-file.ts'
import { portabilityIssues } from './portability.ts'
import { tupleIssue } from './question-issues.ts'
import { placed, type Refused, refusedModel, refusedTuples } from './serving-issues.ts'
import { readStoreFile, type StoreFile } from './store-file.ts'
import type { World } from './test-store.ts'

export type ModelTestIo = {
  readonly write: (text: string) => unknown
  readonly directory: string
  /** True: a store file may name files outside of its folder. */
  readonly allowExternalFiles?: boolean
}

const EXIT_FAILED = 1
const EXIT_UNUSABLE = 2

type Count = { passed: number; failed: number; unusable: number; refused: number }

/**
 * Prints one line for each failed assertion and for each issue in a file, then a summary.
 * @returns the exit status: 0, 1 if an assertion failed or serving would refuse something, 2 if a file could not be used.
 */
export async function runModelTests(named: readonly string[], io: ModelTestIo): Promise<number> {
  const files = named.flatMap((name) => matching(name, io))
  const count: Count = { passed: 0, failed: 0, unusable: 0, refused: 0 }
  for (const file of files) await runFile(file, io, count)
  const { passed, failed, unusable, refused } = count
  const parts = [
    `${passed} passed, ${failed} failed`,
    ...(refused === 0 ? [] : [`${refused} refused by a PDP that serves`]),
    ...(unusable === 0 ? [] : [`${unusable} of ${files.length} files could not be used`]),
  ]
  io.write(`${parts.join(', ')}\n`)
  return unusable > 0 ? EXIT_UNUSABLE : failed + refused > 0 ? EXIT_FAILED : 0
}

/** The files that match a pattern which the shell did not expand. A pattern without a match counts as a file name. */
function matching(name: string, { directory }: ModelTestIo): readonly string[] {
  if (!name.includes('*') || existsSync(resolve(directory, name))) return [name]
  // Node 20 cannot expand patterns, so only the shell does.
  const found = fs.globSync?.(name, { cwd: directory }).toSorted() ?? []
  return found.length === 0 ? [name] : found.map((file) => resolve(directory, file))
}

async function runFile(file: string, io: ModelTestIo, count: Count): Promise<void> {
  const issues = new ValidationIssues()
  const loaded = await load(file, { issues, io })
  if (loaded === null) {
    count.unusable++
    for (const line of issues.lines) io.write(`${shortened(line, io.directory)}\n`)
    return
  }
  const { store, model, refused, warnings } = loaded
  for (const { file: at, line, message } of warnings)
    io.write(`WARNING ${shortened(`${at}:${line}`, io.directory)}: OpenFGA refuses this: ${message}\n`)
  count.refused += refused.length
  for (const { file: at, line, message } of refused)
    io.write(`REFUSED ${shortened(`${at}:${line}`, io.directory)}: serving refuses this: ${message}\n`)
  let shared: World | null = null
  for (const test of store.tests) {
    // Most tests have no tuples of their own, so they share one world.
    const world: World = test.tuples.length > 0 || shared === null ? await worldOf(model, store, test) : shared
    if (test.tuples.length === 0) shared = world
    for (const assertion of test.assertions) {
      const failure = await failureOf(world, model, assertion)
      if (failure === null) count.passed++
      else {
        count.failed++
        io.write(`FAIL ${shortened(file, io.directory)}:${assertion.line}: ${test.name}: ${failure}\n`)
      }
    }
  }
}

async function load(
  file: string,
  { issues, io }: { readonly issues: ValidationIssues; readonly io: ModelTestIo },
): Promise<{
  readonly store: StoreFile
  readonly model: Model
  readonly refused: readonly Refused[]
  readonly warnings: readonly Refused[]
} | null> {
  const read = io.allowExternalFiles === true ? unconfined : confinedTo(file)
  let store: StoreFile
  try {
    store = await readStoreFile(file, { read, issues })
  } catch (err) {
    if (!(err instanceof Error && 'code' in err)) throw err
    issues.noteFile(fileProblem(file, err))
    return null
  }
  const { model: source } = store
  const found = source === null ? null : await readModel(source, { read, issues })
  if (source === null || found === null) return null
  const { model } = found
  const tuples = [...store.tuples, ...store.tests.flatMap((test) => test.tuples)]
  for (const tuple of tuples) {
    const issue = tupleIssue(model, tuple)
    if (issue !== null) issues.note(tuple.file, tuple.line, issue)
  }
  if (issues.lines.length > 0) return null
  const warnings = placed(portabilityIssues(found.document), found.placeOf, source)
  return { store, model, warnings, refused: [...refusedModel(found, source), ...refusedTuples(tuples)] }
}
