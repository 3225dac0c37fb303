/** Texts of the sidecar's pages, in the language of the reader: Accept-Language, else English. */
import { byLanguage, wordsFor } from '../../../pdp/shared/pages/words.ts'
import german from './de.json' with { type: 'json' }
import english from './en.json' with { type: 'json' }
import spanish from './es.json' with { type: 'json' }
import french from './fr.json' with { type: 'json' }

/** The texts of pages. Names in braces, such as `{host}`, are replaced. All languages have the keys and names of English. */
export type Words = typeof english

export const LANGUAGES: ReadonlyMap<string, Words> = byLanguage([english, german, french, spanish])

/** `accepted`: the Accept-Language field; null: absent or repeated. */
export const readerWords = (accepted: string | null): Words =>
  wordsFor(LANGUAGES, { accepted: accepted ?? '' }) ?? english
