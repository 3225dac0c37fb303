/** Reads files that a store file names; files outside its folder only with permission. */
import { readFile, realpath } from 'node:fs/promises'
import { dirname, isAbsolute, relative, resolve } from 'node:path'

/** The text of a file. Throws when it does not exist. */
export type ReadText = (path: string) => Promise<string>

class OutsideFolder extends Error {
  override readonly name = 'OutsideFolder'
}

/** Throws for a file outside of the folder; `unreadableMessage` gives the reason. */
export function confinedTo(storeFile: string): ReadText {
  return async (path) => {
    // The real paths are compared, since a link may lead out of the folder.
    const folder = await realpath(dirname(resolve(storeFile)))
    const inside = relative(folder, await realpath(path))
    if (inside !== '..' && !inside.startsWith('../') && !isAbsolute(inside)) return readFile(path, 'utf8')
    throw new OutsideFolder(
      `${relative(folder, resolve(path))} is outside of the folder of this file; allow it with --allow-external-files`,
    )
  }
}

export const unconfined: ReadText = (path) => readFile(path, 'utf8')

/** `what`: the file in words, such as "the model file m.fga". */
export const unreadableMessage = (err: unknown, what: string): string =>
  err instanceof OutsideFolder ? err.message : `${what} cannot be read`
