/** Pages of a search. If a request gives a page token and no `limit`, the limit of the page before applies. */
import type { JsonValue } from '../../../shared/domain/json.ts'
import { RequestProblem } from '../http/status.ts'
import { invalid, objectAt } from './entities.ts'

const LIMIT_DEFAULT = 100
const LIMIT_MAX = 1_000
const TOKEN_CHARACTERS_MAX = 4_096

/**
 * A page of a search. `digest`: of question and caller, because a token continues only its own search. `usual`: the next page's limit if
 * the request has none. An empty page (limit 0) keeps the limit of the page before.
 */
export type PageRequest = {
  readonly after: string | null
  readonly limit: number
  readonly usual: number
  readonly digest: string
}

/** Throws RequestProblem `request_invalid`. */
export function readPage(value: JsonValue | undefined, digest: string): PageRequest {
  if (value === undefined || value === null) return { after: null, limit: LIMIT_DEFAULT, usual: LIMIT_DEFAULT, digest }
  const { token, limit } = objectAt(value, '/page')
  if (limit !== undefined && limit !== null && !(typeof limit === 'number' && Number.isInteger(limit) && limit >= 0))
    throw invalid('/page/limit', 'must be a whole number that is not negative')
  const asked = typeof limit === 'number' ? Math.min(limit, LIMIT_MAX) : null
  // The last page gives an empty token. A caller that sends it gets the first page again.
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

function parseToken(text: string): Omit<PageRequest, 'usual'> | null {
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
