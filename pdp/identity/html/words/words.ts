/** Texts of the pages, in the language of the reader: `ui_locales` of the request, else Accept-Language, else English. */

import type { IncomingMessage } from 'node:http'
import { lowerAscii, trimBlanks } from '../../../shared/base/blanks.ts'
import { type Html, html } from '../../../shared/base/html.ts'
import german from './de.json' with { type: 'json' }
import english from './en.json' with { type: 'json' }
import spanish from './es.json' with { type: 'json' }
import french from './fr.json' with { type: 'json' }

/** Texts by page and purpose. `{names}` in braces are filled in; every language has the keys and names of English. */
export type Words = typeof english
export const ENGLISH: Words = english

/** By the first part of a language tag. */
export const LANGUAGES: ReadonlyMap<string, Words> = new Map(
  [english, german, french, spanish].map((words) => [words.lang, words]),
)
/** Tags of one field; nobody reads more languages than this. */
const TAGS_MAX = 20

/** `uiLocales`: the parameter of an authorization request; without one that we speak, the address of the page may have it. */
export function words(req: Pick<IncomingMessage, 'headers' | 'url'>, uiLocales?: unknown): Words {
  const given = typeof uiLocales === 'string' ? uiLocales : ''
  const inAddress = new URLSearchParams((req.url ?? '').split('?', 2)[1]).get('ui_locales') ?? ''
  const tags = [...tagsOf(given), ...tagsOf(inAddress), ...acceptedTags(req.headers['accept-language'] ?? '')]
  for (const tag of tags) {
    const found = LANGUAGES.get(lowerAscii(tag.split('-', 1)[0] ?? ''))
    if (found !== undefined) return found
  }
  return ENGLISH
}

/** Most wanted first (OpenID Connect Core section 3.1.2.1). */
const tagsOf = (locales: string): readonly string[] => locales.split(' ', TAGS_MAX)

/** RFC 9110 section 12.5.4, most wanted first; a weight of 0 means not at all. */
function acceptedTags(field: string): readonly string[] {
  const weighted = field.split(',', TAGS_MAX).map((part) => {
    const [tag = '', weight] = part.split(';')
    const given = /^[ \t]*q=([01](?:\.\d{0,3})?)[ \t]*$/i.exec(weight ?? '')?.[1]
    return { tag: trimBlanks(tag), weight: weight === undefined ? 1 : Number(given ?? 0) }
  })
  const wanted = weighted.filter(({ weight }) => weight > 0).sort((one, other) => other.weight - one.weight)
  return wanted.map(({ tag }) => tag)
}

/** The text with its `{names}` filled in. */
export function fill(text: string, values: { readonly [name: string]: string | Html }): Html {
  return html`${filled(text, values).map((part) => html`${part}`)}`
}

/** The same where no HTML is made, as in mails. */
export const fillText = (text: string, values: { readonly [name: string]: string }): string =>
  filled(text, values).join('')

/** The odd parts are the names. */
const filled = <Value>(text: string, values: { readonly [name: string]: Value }): readonly (string | Value)[] =>
  text.split(/\{(\w+)\}/).map((part, index) => (index % 2 === 0 ? part : (values[part] ?? part)))
