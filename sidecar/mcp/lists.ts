/** Removes items that a subject may not see from an MCP server's lists. All other bytes of a message stay. */

import { type AnswerFilter, FilterError } from '../http/edited-answer.ts'
import { RequestError } from '../request/errors.ts'
import { findValue, itemsAt, setMember, skipSpace, withoutItems, writtenAt } from '../routes/json-body.ts'
import { stringOf } from './message.ts'
import type { McpMethod } from './methods.ts'

type Listing = {
  readonly list: NonNullable<McpMethod['list']>
  readonly isStateless: boolean
  /** Tells, for each of the names, whether the item may be seen. */
  readonly keep: (names: readonly string[]) => readonly boolean[] | Promise<readonly boolean[]>
}

export const listFilter = (listing: Listing): AnswerFilter => ({
  bytesMax: LIST_BYTES_MAX,
  forms: ['document', 'events', 'none'],
  shadow: false,
  edit: (text) => edit(text, listing),
})

const LIST_BYTES_MAX = 8 * 1024 * 1024

/** The list without hidden items. Throws FilterError, or rejects with it, for a list that cannot be read. */
function edit(text: string, { list, isStateless, keep }: Listing): string | Promise<string> {
  const { result, items } = readItems(text, list)
  if (result === null) return text
  const rewrite = (kept: readonly boolean[]): string => {
    const left = withoutItems(text, items, kept)
    // No cache may give one subject's list to another (MCP 2026-07-28).
    return isStateless ? setMember(setMember(left, result, 'ttlMs', '0'), result, 'cacheScope', '"private"') : left
  }
  const kept = keep(items.map(({ name }) => name))
  return kept instanceof Promise ? kept.then(rewrite) : rewrite(kept)
}

/** `result`: the index of the result; null: the message is no result, and has no list. */
function readItems(
  text: string,
  { member, key }: Listing['list'],
): {
  readonly result: number | null
  readonly items: readonly { readonly start: number; readonly end: number; readonly name: string }[]
} {
  try {
    JSON.parse(text)
    if (text[skipSpace(text, 0)] !== '{') throw new FilterError('the list is not one message')
    const result = findValue(text, ['result'])
    if (result === null) return { result: null, items: [] }
    const at = findValue(text, ['result', member])
    if (at === null || text[at] !== '[') throw new FilterError(`the result has no list ${member}`)
    const items = itemsAt(text, at).map(({ start, end }) => {
      const name = stringOf(writtenAt(text, start), [key])
      if (name === null) throw new FilterError(`an item of ${member} has no ${key}`)
      return { start, end, name }
    })
    return { result, items }
  } catch (err) {
    if (err instanceof RequestError || err instanceof SyntaxError)
      throw new FilterError(`the list cannot be read: ${err.message}`)
    throw err
  }
}
