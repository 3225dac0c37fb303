/** Reads the files that a store file names: those of its own folder, and others only when that is allowed. */
import { readFile, realpath } from 'node:fs/promises'
import { dirname, isAbsolute, relative, resolve } from 'node:path'
import type { ReadText } from './store-file.ts'

/** `onOutside` is called for each file that is refused, with its path from the folder. */
export function confinedTo(storeFile: string, onOutside: (path: string) => void): ReadText {
  return async (path) => {
    // By the real paths: a link may lead out of the folder.
    const folder = await realpath(dirname(resolve(storeFile)))
    const inside = relative(folder, await realpath(path))
    if (inside !== '..' && !inside.startsWith('../') && !isAbsolute(inside)) return readFile(path, 'utf8')
    onOutside(relative(folder, resolve(path)))
    throw new Error(`${path} is outside of ${folder}`)
  }
}

export const unconfined: ReadText = (path) => readFile(path, 'utf8')
