/** Stores sign-ins, one for each PDP, in the configuration folder of the operating system. Only the file's owner can read it. */

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
  /** The refresh token; null: after the access token's expiry, the person must sign in again. */
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

/** The sign-in at `url`, or the last one. Null: there is none, or the file has another format. */
export const readLogin = (file: string, url: string | null): SavedLogin | null =>
  readLogins(file).findLast((login) => url === null || login.url === url) ?? null

/** All sign-ins, the last one at the end. */
export function readLogins(file: string): readonly SavedLogin[] {
  try {
    const found: unknown = JSON.parse(readFileSync(file, 'utf8'))
    // An earlier version stored a single sign-in.
    return (Array.isArray(found) ? found : [found]).filter(isLogin)
  } catch {
    return []
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

/** Replaces the sign-in at its PDP. Throws CliError. */
export const saveLogin = (file: string, login: SavedLogin): void =>
  write(file, [...readLogins(file).filter(({ url }) => url !== login.url), login])

/** Replaces the file by a complete new one, so that no half-written file is read. Other users cannot read it. Throws CliError. */
function write(file: string, logins: readonly SavedLogin[]): void {
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
    const fresh = `${file}.${process.pid}`
    writeFileSync(fresh, `${JSON.stringify(logins, null, 2)}\n`, { mode: 0o600 })
    chmodSync(fresh, 0o600)
    renameSync(fresh, file)
  } catch (err) {
    throw new CliError(fileProblem(file, err, 'written'), { cause: err })
  }
}

export function forgetLogin(file: string, { url }: SavedLogin): void {
  const left = readLogins(file).filter((login) => login.url !== url)
  if (left.length === 0) rmSync(file, { force: true })
  else write(file, left)
}
