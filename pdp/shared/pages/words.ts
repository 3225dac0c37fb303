/** Chooses the language of a page by its reader's wishes, and fills values into texts. */
import { lowerAscii, trimBlanks } from '../base/blanks.ts'
import { type Html, html } from '../base/html.ts'

/** The most language tags that are read of one field. */
const TAGS_MAX = 20

/** The texts in the best language: `locales` come first, best first, then `accepted` (Accept-Language). Undefined: we have none. */
export function wordsFor<Words>(
  languages: ReadonlyMap<string, Words>,
  { locales = [], accepted = '' }: { readonly locales?: readonly string[]; readonly accepted?: string | undefined },
): Words | undefined {
  for (const tag of [...locales.flatMap(tagsOf), ...acceptedTags(accepted)]) {
    const found = languages.get(lowerAscii(tag.split('-', 1)[0] ?? ''))
    if (found !== undefined) return found
  }
  return undefined
}

/** Texts by language, the first part of a tag. */
export const byLanguage = <Words extends { readonly lang: string }>(
  all: readonly Words[],
): ReadonlyMap<string, Words> => new Map(all.map((words) => [words.lang, words]))

/** The tags of `ui_locales`, best first (OpenID Connect Core section 3.1.2.1). */
const tagsOf = (locales: string): readonly string[] => locales.split(' ', TAGS_MAX)

/** The tags of Accept-Language (RFC 9110 section 12.5.4), best first; a weight of 0 excludes a tag. */
function acceptedTags(field: string): readonly string[] {
  const weighted = field.split(',', TAGS_MAX).map((part) => {
    const [tag = '', weight] = part.split(';')
    const given = /^[ \t]*q=([01](?:\.\d{0,3})?)[ \t]*$/i.exec(weight ?? '')?.[1]
    return { tag: trimBlanks(tag), weight: weight === undefined ? 1 : Number(given ?? 0) }
  })
  const wanted = weighted.filter(({ weight }) => weight > 0).sort((one, other) => other.weight - one.weight)
  return wanted.map(({ tag }) => tag)
}

/** The text with values in place of its `{names}`. */
export function fill(text: string, values: { readonly [name: string]: string | Html }): Html {
  return html`${filled(text, values).map((part) => html`${part}`)}`
}

/** The text with its names filled in, without HTML, as for mails. */
export const fillText = (text: string, values: { readonly [name: string]: string }): string =>
  filled(text, values).join('')

/** The odd parts are the names. */
const filled = <Value>(text: string, values: { readonly [name: string]: Value }): readonly (string | Value)[] =>
  text.split(/\{(\w+)\}/).map((part, index) => (index % 2 === 0 ? part : (values[part] ?? part)))
