/** Reads the access token that a command gets as a file. */

import { readFileSync } from 'node:fs'
import { fileProblem } from '../../pdp/shared/process/command/file-problem.ts'
import { ConfigError } from '../../pdp/shared/process/exit.ts'
import { parseJws, TOKEN_CHARS_MAX } from '../../pdp/shared/token/jws.ts'

/** The token comes from a file, because every process can read command lines. */
export function readToken(path: string): string {
  try {
    return readFileSync(path === '-' ? 0 : path, 'utf8').trim()
  } catch (err) {
    throw new ConfigError([`the token file ${fileProblem(path, err)}`])
  }
}

/** The claims for display and for choosing questions. They are not verified here: a PDP or a sidecar does it. Null: it is no JWT. */
export const unverifiedClaims = (token: string): { readonly [claim: string]: unknown } | null =>
  parseJws(token, TOKEN_CHARS_MAX)?.payload ?? null
