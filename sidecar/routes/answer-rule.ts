/** The rule of a route that shows its reader only some items of an answer. */
import type { Check } from './checks.ts'
import type { Source } from './template.ts'

export type AnswerRule = {
  readonly each: Each
  /** The check for each item; it may read `{item.id}`. */
  readonly keep: Check
  /** Members of the document that count or name the items left out, each as names from the outermost; they are removed. */
  readonly forget: readonly (readonly string[])[]
  /** True: the answer has the number of removed items, which tells its reader that hidden items exist. */
  readonly tellsRemoved: boolean
}
/** `document`: JSON with one list, at a path of member names. `lines`: NDJSON. `events`: a stream of server-sent events. */
export type Each =
  | { readonly kind: 'document'; readonly path: readonly string[] }
  | { readonly kind: 'lines' | 'events' }

const NAME = /^[A-Za-z0-9_-]{1,128}$/
const DEPTH_MAX = 8

/** The parsed form of `$.items[*]`, `ndjson` or `sse`; null for any other text. The path has the syntax of RFC 9535, with names alone. */
export function parseEach(text: string): Each | null {
  if (text === 'ndjson') return { kind: 'lines' }
  if (text === 'sse') return { kind: 'events' }
  const path = text.endsWith('[*]') ? parseMember(text.slice(0, -'[*]'.length)) : null
  return path === null ? null : { kind: 'document', path }
}

/** The member names in a path such as `$.meta.total`; an empty list for `$`; null: the text is no such path. */
export function parseMember(text: string): readonly string[] | null {
  const [root, ...names] = text.split('.')
  return root === '$' && names.length <= DEPTH_MAX && names.every((name) => NAME.test(name)) ? names : null
}

/** The rule's text for messages. */
export const eachText = (each: Each): string =>
  each.kind === 'document'
    ? `$${each.path.map((name) => `.${name}`).join('')}[*]`
    : each.kind === 'lines'
      ? 'ndjson'
      : 'sse'

/** True for a value that `keep` may read: the item, the path and the token are still known when the answer comes. */
export const isKnownAtAnswer = ({ from }: Source): boolean =>
  ['item', 'path', 'claims', 'client', 'request'].includes(from)
