/** The flags of a command, as the bodies of requests have them. */
import { readFileSync } from 'node:fs'
import { fileProblem } from '../../../shared/process/command/file-problem.ts'
import { CliError } from '../errors.ts'

export type Flags = { readonly [name: string]: string | boolean | readonly string[] | undefined }

export const text = (value: Flags[string]): string | undefined => (typeof value === 'string' ? value : undefined)
export const words = (value: Flags[string]): readonly string[] | undefined =>
  text(value)
    ?.split(/[\s,]+/)
    .filter((word) => word !== '')
/** Null for '', which takes away what is stored. */
export const givenText = (value: Flags[string]): string | null | undefined => (value === '' ? null : text(value))
export const list = (value: Flags[string]): readonly string[] | null | undefined => (value === '' ? null : words(value))
/** A secret is read from a file, because the arguments of a process are seen by everybody on the machine. */
export const fileText = (value: Flags[string]): string | undefined => {
  const path = text(value)
  return path === undefined ? undefined : read(path)
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8').replace(/\r?\n$/, '')
  } catch (err) {
    throw new CliError(fileProblem(path, err), { cause: err })
  }
}
