/** The report of `check` about a route file, for a webhook and for the check of a cluster. */
import { readAside } from '../config/reloaded-config.ts'
import { type ParsedRouteFile, parseRouteFile } from '../route-file/route-file.ts'
import { fileWarnings } from '../route-file/warnings.ts'

/** A longer route file gets no warnings: to compare its routes takes longer than an admission may. */
const WARNED_ROUTES_MAX = 200

/** `platform`: the text of the settings that a platform makes for every route file; null: none. */
export const checkText = (text: string, platform: string | null) => reportOf(parseRouteFile(text, platform))

/** The same report, made in a thread. Rejects with ConfigError. */
export const checkAside = async (text: string, platform: string | null) => reportOf(await readAside(text, platform))

function reportOf({ file, issues }: ParsedRouteFile): {
  readonly errors: readonly string[]
  readonly warnings: readonly string[]
} {
  const errors = issues.map(({ line, column, message }) => `${line}:${column}: ${message}`)
  return { errors, warnings: file === null || file.routes.length > WARNED_ROUTES_MAX ? [] : fileWarnings(file) }
}
