/** Page tokens, which say where a list continues. A token is valid only for the list and the filter that it came from. */
import { createHash } from 'node:crypto'
import type { JsonValue } from './json.ts'

/** `revision`: names the revision that all pages so far were read at; null when they differed. */
export type Cursor = { readonly after: string; readonly revision: string | null }

const CHARACTERS_MAX = 2_048

/** `list`: everything that distinguishes the list from others, except the page size, which may change between pages. */
export function formatPageToken(list: readonly JsonValue[], { after, revision }: Cursor): string {
  return Buffer.from(JSON.stringify([after, revision, digestOf(list)])).toString('base64url')
}

/** The cursor in a token; undefined: formatPageToken did not make the text for this list. */
export function parsePageToken(list: readonly JsonValue[], text: string): Cursor | undefined {
  if (text.length > CHARACTERS_MAX) return undefined
  try {
    const parsed: unknown = JSON.parse(Buffer.from(text, 'base64url').toString('utf8'))
    const [after, revision, digest]: readonly unknown[] = Array.isArray(parsed) && parsed.length === 3 ? parsed : []
    if (typeof after !== 'string' || (revision !== null && typeof revision !== 'string')) return undefined
    if (digest !== digestOf(list) || !after.isWellFormed() || after.includes('\0')) return undefined
    return { after, revision }
  } catch {
    return undefined
  }
}

const digestOf = (list: readonly JsonValue[]): string => shortDigest(JSON.stringify(list))

export const shortDigest = (text: string): string => createHash('sha256').update(text).digest('base64url').slice(0, 22)
