/** Reads people to import, one JSON object on each line. All lines are read before anything is written. */

import type { ImportedUser } from '../../../../engine/store/directory.ts'
import { isAddress } from '../../../../identity/people/invitations/mail-address.ts'
import { readImportedHash } from '../../../../identity/people/passwords/imported-hash.ts'
import type { ValidationIssue } from '../../../../shared/domain/errors.ts'
import { isJsonObject, textIssue } from '../../../../shared/domain/json.ts'
import { isId } from '../../../../shared/domain/names.ts'
import { parseJson } from '../../http/json.ts'
import { LABEL } from '../../http/schemas.ts'
import { RequestProblem } from '../../http/status.ts'

export const LINES_MAX = 20_000
const LINE_CHARACTERS_MAX = 4_096
export const ISSUES_MAX = 100
const MEMBERS: ReadonlySet<string> = new Set(['id', 'email', 'email_verified', 'name', 'password_hash'])
const LABEL_FORM = new RegExp(LABEL.pattern)

export type ReadUser = { readonly line: number; readonly user: ImportedUser }

/** The users in the lines; empty lines are skipped. Throws RequestProblem with all wrong lines, and for too many lines. */
export async function readUserLines(pieces: AsyncIterable<Buffer>): Promise<readonly ReadUser[]> {
  const users: ReadUser[] = []
  const issues: ValidationIssue[] = []
  let line = 0
  for await (const text of linesOf(pieces)) {
    line += 1
    if (text.trim() === '') continue
    const user = parseUser(text)
    if (typeof user === 'string') issues.push({ place: String(line), message: user })
    else users.push({ line, user })
    if (users.length > LINES_MAX) throw tooLarge(`an import has at most ${LINES_MAX} people; split the file`)
    if (issues.length >= ISSUES_MAX) break
  }
  if (issues.length > 0) throw wrongLines(issues)
  return users
}

export function wrongLines(issues: readonly ValidationIssue[]): RequestProblem {
  return new RequestProblem('request_invalid', 'nothing was imported', { issues: issues.slice(0, ISSUES_MAX) })
}

const tooLarge = (message: string): RequestProblem => new RequestProblem('request_too_large', message)

async function* linesOf(pieces: AsyncIterable<Buffer>): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: false })
  let rest = ''
  for await (const piece of pieces) {
    const lines = (rest + decoder.decode(piece, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    for (const text of [...lines, rest])
      if (text.length > LINE_CHARACTERS_MAX) throw tooLarge(`a line has more than ${LINE_CHARACTERS_MAX} characters`)
    yield* lines
  }
  if (rest !== '') yield rest
}

/** Returns the person, or the issue of the line as a text. The text never contains a hash. */
function parseUser(text: string): ImportedUser | string {
  let value: unknown
  try {
    value = parseJson(text)
  } catch (err) {
    if (err instanceof RequestProblem) return 'is not JSON'
    throw err
  }
  if (!isJsonObject(value)) return 'is not a JSON object'
  const members: { readonly [name: string]: unknown } = { ...value }
  const unknown = Object.keys(members).find((name) => !MEMBERS.has(name))
  if (unknown !== undefined) return `${JSON.stringify(unknown.slice(0, 80))} is not a known member`
  const { id, email = null, email_verified: emailVerified = false, name = null, password_hash: hash = null } = members
  if (typeof id !== 'string' || !isId(id)) return 'id is not an id'
  if (email !== null && !(typeof email === 'string' && isAddress(email))) return 'email is not an e-mail address'
  if (typeof emailVerified !== 'boolean') return 'email_verified is not true or false'
  if (emailVerified && email === null) return 'email_verified is true without an email'
  if (name !== null && !isText(name, LABEL_FORM)) return 'name is not a text of 1 to 256 characters'
  if (hash === null) return { id, email, emailVerified, name, passwordHash: null }
  const read = typeof hash === 'string' ? readImportedHash(hash) : { issue: 'is not a text' }
  if ('issue' in read) return `password_hash ${read.issue}`
  return { id, email, emailVerified, name, passwordHash: read.hash }
}

const isText = (value: unknown, form: RegExp): value is string =>
  typeof value === 'string' && form.test(value) && textIssue(value) === null
