/** An access token that a command is given. */

import { readFileSync } from 'node:fs'
import { fileProblem } from '../../pdp/shared/process/command/file-problem.ts'
import { ConfigError } from '../../pdp/shared/process/exit.ts'

/** The token comes from a file, because every process can read command lines. */
export function readToken(path: string): string {
  try {
    return readFileSync(path === '-' ? 0 : path, 'utf8').trim()
  } catch (err) {
    throw new ConfigError([`the token file ${fileProblem(path, err)}`])
  }
}
