/** Converts the flags of a command to members of request bodies. */
import { textOf } from '../errors.ts'

export type Flags = { readonly [name: string]: string | boolean | readonly string[] | undefined }

export const text = (value: Flags[string]): string | undefined => (typeof value === 'string' ? value : undefined)
export const words = (value: Flags[string]): readonly string[] | undefined =>
  text(value)
    ?.split(/[\s,]+/)
    .filter((word) => word !== '')
/** The value of a flag; null for an empty one, which removes the stored value. */
export const givenText = (value: Flags[string]): string | null | undefined => (value === '' ? null : text(value))
export const list = (value: Flags[string]): readonly string[] | null | undefined => (value === '' ? null : words(value))
/** The content of the file. Secrets come from files, because everybody on the machine can see the arguments of a process. */
export const fileText = (value: Flags[string]): string | undefined => {
  const path = text(value)
  return path === undefined ? undefined : textOf(path).replace(/\r?\n$/, '')
}
