/** The version of the running program. */
import { existsSync, readFileSync } from 'node:fs'

/** Reads the version from the nearest package.json: this project's own in the source, in a package and in an image. */
export function readVersion(): string {
  for (let folder = new URL('.', import.meta.url); folder.pathname !== '/'; folder = new URL('..', folder)) {
    const file = new URL('package.json', folder)
    if (!existsSync(file)) continue
    const found: unknown = JSON.parse(readFileSync(file, 'utf8'))
    if (typeof found === 'object' && found !== null && 'version' in found) return String(found.version)
  }
  return 'unknown'
}
