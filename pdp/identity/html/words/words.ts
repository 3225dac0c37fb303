/** Texts of the pages, in the language of the reader: `ui_locales` of the request, else Accept-Language, else English. */

import type { IncomingMessage } from 'node:http'
import { byLanguage, wordsFor } from '../../../shared/pages/words.ts'
import german from './de.json' with { type: 'json' }
import english from './en.json' with { type: 'json' }
import spanish from './es.json' with { type: 'json' }
import french from './fr.json' with { type: 'json' }

/** Texts by page and purpose. `{names}` in braces are filled in; every language has the keys and names of English. */
export type Words = typeof english
export const ENGLISH: Words = english

export const LANGUAGES: ReadonlyMap<string, Words> = byLanguage([english, german, french, spanish])

/** `uiLocales`: the parameter of an authorization request; if it names no language that we have, the page's URL may. */
export function words(req: Pick<IncomingMessage, 'headers' | 'url'>, uiLocales?: unknown): Words {
  const given = typeof uiLocales === 'string' ? uiLocales : ''
  const inAddress = new URLSearchParams((req.url ?? '').split('?', 2)[1]).get('ui_locales') ?? ''
  return wordsFor(LANGUAGES, { locales: [given, inAddress], accepted: req.headers['accept-language'] }) ?? ENGLISH
}
