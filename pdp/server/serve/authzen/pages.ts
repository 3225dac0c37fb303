/** Pages of a search: an absent `limit` beside a token means the one of the page before. */
import type { JsonValue } from '../../../shared/domain/json.ts'
import { RequestProblem } from '../http/status.ts'
import { invalid, objectAt } from './entities.ts'

const LIMIT_DEFAULT = 100
const LIMIT_MAX = 1_000
const TOKEN_CHARACTERS_MAX = 4_096

/**
 * `digest`: of the question and its caller; a token continues that search and no other. `usual`: the limit of the pages after
 * this one, unless they say another; of an empty page the one before it.
 */
export type PageRequest = {
  readonly after: string | null
  readonly limit: number
  readonly usual: number
  readonly digest: string
}
type Token = Omit<PageRequest, 'usual'>

/** Throws RequestProblem `request_invalid`. */
export function readPage(value: JsonValue | undefined, digest: string): PageRequest {
  if (value === undefined || value === null) return { after: null, limit: LIMIT_DEFAULT, usual: LIMIT_DEFAULT, digest }
  const { token, limit } = objectAt(value, '/page')
  if (limit !== undefined && limit !== null && !(typeof limit === 'number' && Number.isInteger(limit) && limit >= 0))
    throw invalid('/page/limit', 'must be a whole number that is not negative')
  const asked = typeof limit === 'number' ? Math.min(limit, LIMIT_MAX) : null
  // An empty token is what the last page gives; sent back, it asks for the first one.
  if (token === undefined || token === null || token === '')
    return { after: null, limit: asked ?? LIMIT_DEFAULT, usual: asked || LIMIT_DEFAULT, digest }
  const before = typeof token === 'string' ? parseToken(token) : null
  if (before === null || before.digest !== digest) throw strangeToken()
  return { ...before, limit: asked ?? before.limit, usual: asked || before.limit }
}

export const strangeToken = (cause?: unknown): RequestProblem =>
  new RequestProblem('request_invalid', 'page.token is not one that this search gave', {
    issues: [{ place: '/page/token', message: 'is not a token that this search gave' }],
    cause,
  })

/** The token of the page after the one that ended with `after`; null: from the beginning. */
export function formatPage({ usual, digest }: PageRequest, after: string | null): string {
  return Buffer.from(JSON.stringify([after, usual, digest])).toString('base64url')
}

function parseToken(text: string): Token | null {
  if (text.length > TOKEN_CHARACTERS_MAX) return null
  try {
    const parsed: unknown = JSON.parse(Buffer.from(text, 'base64url').toString('utf8'))
    const [after, limit, digest]: readonly unknown[] = Array.isArray(parsed) && parsed.length === 3 ? parsed : []
    if (typeof limit !== 'number' || !Number.isInteger(limit) || limit < 1 || limit > LIMIT_MAX) return null
    if (typeof digest !== 'string' || (after !== null && typeof after !== 'string')) return null
    return { after, limit, digest }
  } catch {
    return null
  }
}
