/** Lists in pages: `?page_size=&page_token=` to `{items, next_page_token, revision, revision_unchanged}`. */

import type { Store } from '../../../engine/store/contract.ts'
import type { JournalId } from '../../../shared/domain/journal.ts'
import { type Cursor, formatPageToken, parsePageToken } from '../../../shared/domain/page-token.ts'
import { type JsonSchema, text, whole } from './schemas.ts'
import { RequestProblem } from './status.ts'

const SIZE_DEFAULT = 100
const SIZE_MAX = 1_000
const TRIES_MAX = 3

export type PageQuery = { readonly page_size?: string; readonly page_token?: string }
export const PAGE_PROPERTIES: { readonly [name: string]: JsonSchema } = {
  page_size: {
    ...text('^[1-9][0-9]{0,3}$', `a whole number from 1 to ${SIZE_MAX}`),
    description: `1 to ${SIZE_MAX}; ${SIZE_DEFAULT} by default.`,
  },
  page_token: { type: 'string', minLength: 1, maxLength: 2_048, description: 'next_page_token of the previous page.' },
}

export function pageSchema(items: JsonSchema): JsonSchema {
  return whole({
    items: { type: 'array', items },
    next_page_token: {
      type: ['string', 'null'],
      description: 'Null on the last page.',
    },
    revision: { type: 'integer', description: 'Revision at which this page was read.' },
    revision_unchanged: {
      type: 'boolean',
      description: 'True when this page and all before it were read at one revision.',
    },
  })
}

export type PageSource<Item> = {
  /** The identity of the list in its page tokens: its name, and the values of its path and filter. */
  readonly list: readonly (string | null)[]
  /** The log whose revision each change of the items raises. */
  readonly log: JournalId
  /** Items in order of `key`, after `after` (exclusive), at most `countMax`. */
  read(page: { after: string | null; countMax: number }): Promise<readonly Item[]>
  readonly key: (item: Item) => string
}

/** Reads a page. Throws RequestProblem `request_invalid` for a size out of range and for a token that no page returned. */
export async function readPage<Item>(store: Pick<Store, 'vector'>, query: PageQuery, source: PageSource<Item>) {
  const size = pageSize(query.page_size)
  const from = parseToken(source.list, query.page_token)
  const { rows, revision, whole } = await readAtOneRevision(store, source, {
    after: from?.after ?? null,
    countMax: size + 1,
  })
  const shown = rows.slice(0, size)
  const last = rows.length > size ? shown.at(-1) : undefined
  const unchanged = whole && (from === null || from.revision === String(revision))
  return {
    items: shown,
    next_page_token:
      last === undefined
        ? null
        : formatPageToken(source.list, { after: source.key(last), revision: unchanged ? String(revision) : null }),
    revision,
    revision_unchanged: unchanged,
  }
}

/** Makes a page of a list that was read as a whole, for `read`. */
export function sortedPage<Item>(
  items: readonly Item[],
  key: (item: Item) => string,
  { after, countMax }: { readonly after: string | null; readonly countMax: number },
): readonly Item[] {
  const later = items.filter((item) => after === null || key(item) > after)
  return later.sort((a, b) => (key(a) < key(b) ? -1 : 1)).slice(0, countMax)
}

async function readAtOneRevision<Item>(
  store: Pick<Store, 'vector'>,
  source: PageSource<Item>,
  page: { after: string | null; countMax: number },
): Promise<{ rows: readonly Item[]; revision: number; whole: boolean }> {
  const revisionNow = async (): Promise<number> =>
    (await store.vector([source.log])).logs.get(source.log)?.revision ?? 0
  let before = await revisionNow()
  for (let tries = 1; ; tries += 1) {
    const rows = await source.read(page)
    const after = await revisionNow()
    if (before === after || tries === TRIES_MAX) return { rows, revision: after, whole: before === after }
    before = after
  }
}

/** Throws RequestProblem `request_invalid` for a size out of range. */
export function pageSize(text: string | undefined): number {
  const size = text === undefined ? SIZE_DEFAULT : Number(text)
  if (size > SIZE_MAX) throw refuseParameter('page_size', `must be a whole number from 1 to ${SIZE_MAX}`)
  return size
}

function parseToken(list: PageSource<unknown>['list'], text: string | undefined): Cursor | null {
  if (text === undefined) return null
  const cursor = parsePageToken(list, text)
  if (cursor === undefined) throw refuseParameter('page_token', 'is not a page token of this list')
  return cursor
}

export function refuseParameter(parameter: string, message: string): RequestProblem {
  return new RequestProblem('request_invalid', `${parameter} ${message}`, {
    issues: [{ place: `?${parameter}`, message }],
  })
}
