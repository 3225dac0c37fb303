/** Where a sign-in is kept: one file in the configuration folder of the operating system, for its owner's eyes alone. */

import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileProblem } from '../../../shared/process/command/file-problem.ts'
import { CliError } from '../errors.ts'

export type SavedLogin = {
  readonly url: string
  readonly clientId: string
  readonly accessToken: string
  readonly expiresAtMs: number
  /** Null: another sign-in is needed when the token has expired. */
  readonly refreshToken: string | null
}

export function loginFile(env: NodeJS.ProcessEnv, platform: NodeJS.Platform): string {
  const home = env.HOME ?? homedir()
  const folders: { readonly [platform in NodeJS.Platform]?: string } = {
    darwin: join(home, 'Library', 'Application Support'),
    win32: env.APPDATA ?? join(home, 'AppData', 'Roaming'),
  }
  return join(env.XDG_CONFIG_HOME ?? folders[platform] ?? join(home, '.config'), 'portcullis', 'login.json')
}

/** Null when nobody is signed in, or the file is not one of ours. */
export function readLogin(file: string): SavedLogin | null {
  try {
    const found: unknown = JSON.parse(readFileSync(file, 'utf8'))
    return isLogin(found) ? found : null
  } catch {
    return null
  }
}

const isLogin = (value: unknown): value is SavedLogin =>
  typeof value === 'object' &&
  value !== null &&
  'url' in value &&
  'clientId' in value &&
  'accessToken' in value &&
  typeof value.accessToken === 'string' &&
  'expiresAtMs' in value &&
  typeof value.expiresAtMs === 'number'

/** Written beside and renamed, so that nobody reads half of it, and never readable by others. Throws CliError. */
export function saveLogin(file: string, login: SavedLogin): void {
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
    const fresh = `${file}.${process.pid}`
    writeFileSync(fresh, `${JSON.stringify(login, null, 2)}\n`, { mode: 0o600 })
    chmodSync(fresh, 0o600)
    renameSync(fresh, file)
  } catch (err) {
    throw new CliError(fileProblem(file, err, 'written'), { cause: err })
  }
}

export const forgetLogin = (file: string): void => rmSync(file, { force: true })
