import { describe, expect, test } from 'vitest'
import { ENGLISH, LANGUAGES, words } from '../../../../../pdp/identity/html/words/words.ts'
import { html } from '../../../../../pdp/shared/base/html.ts'
import { fill } from '../../../../../pdp/shared/pages/words.ts'

type Texts = { readonly [key: string]: string | Texts }

/** `section.key`, with the text. */
const flat = (texts: Texts, prefix = ''): readonly (readonly [string, string])[] =>
  Object.entries(texts).flatMap(([key, value]) =>
    typeof value === 'string' ? [[prefix + key, value] as const] : flat(value, `${prefix}${key}.`),
  )
const placeholders = (text: string) => (text.match(/\{[^}]*\}/g) ?? []).sort()
const english = flat(ENGLISH)

describe.each([...LANGUAGES].filter(([lang]) => lang !== 'en'))('the texts in %s', (lang, translated) => {
  const texts = flat(translated)

  test('are all there, and no others', () => {
    expect(texts.map(([key]) => key)).toEqual(english.map(([key]) => key))
  })

  test('have the same places to fill in', () => {
    const of = (all: typeof texts) => all.map(([key, text]) => [key, placeholders(text)])
    expect(of(texts)).toEqual(of(english))
  })

  test('are translated, neither empty nor with a stray brace or markup', () => {
    const known = new Map(english)
    // Words that are the same in both languages.
    const same = texts.filter(([key, text]) => text === known.get(key)).map(([, text]) => text)
    expect(same.filter((text) => !['Error'].includes(text))).toEqual([])
    for (const [key, text] of texts) {
      expect([key, text.trim()]).toEqual([key, text])
      // French puts a space before these, at which no line may break.
      expect(text).not.toMatch(/ [:;?!]/)
      expect([key, text.replaceAll(/\{\w+\}/g, '')]).toEqual([key, expect.stringMatching(/^[^{}<>&]*\p{L}[^{}<>&]*$/u)])
    }
    expect(translated.lang).toBe(lang)
  })
})

describe('the language of a page', () => {
  const languageOf = (
    accepted: string | undefined,
    { uiLocales, url = '/' }: { uiLocales?: unknown; url?: string } = {},
  ) => words({ url, headers: accepted === undefined ? {} : { 'accept-language': accepted } }, uiLocales).lang

  test.each([
    ['de', 'de'],
    ['DE-at', 'de'],
    ['fr-CH, fr;q=0.9, en;q=0.8', 'fr'],
    ['nl, es;q=0.5', 'es'],
    ['en;q=0.4, de;q=0.7', 'de'],
    ['de;q=0, es', 'es'],
    ['*', 'en'],
    [undefined, 'en'],
    ['', 'en'],
    ['nl', 'en'],
    ['de;q=x, fr', 'fr'],
    ['de;q=2', 'en'],
    ['constructor, __proto__', 'en'],
    [`${'xx,'.repeat(5_000)}de`, 'en'],
  ])('is for Accept-Language %j: %s', (accepted, lang) => {
    expect(languageOf(accepted)).toBe(lang)
  })

  test.each([
    ['fr', 'fr'],
    ['nl es-MX de', 'es'],
    ['nl', 'de'],
    ['', 'de'],
    [['fr'], 'de'],
    [7, 'de'],
    ['<script>', 'de'],
  ])('is first what ui_locales %j asks for: %s', (uiLocales, lang) => {
    expect(languageOf('de', { uiLocales })).toBe(lang)
  })

  test('can be asked for in the address of a page', () => {
    expect(languageOf('de', { url: '/oauth/device?ui_locales=nl%20fr' })).toBe('fr')
    expect(languageOf('de', { url: '/oauth/device?ui_locales=fr', uiLocales: 'es' })).toBe('es')
    expect(languageOf('de', { url: '/oauth/device?ui_locales=%ff' })).toBe('de')
  })
})

describe('a text with places to fill in', () => {
  test('escapes text and takes HTML as it is', () => {
    expect(fill('{a} & {b}', { a: '<i>', b: html`<b>x</b>` }).toString()).toBe('&lt;i&gt; &amp; <b>x</b>')
  })

  test('fills in nothing twice', () => {
    expect(fill('{a}', { a: '{b}', b: 'x' }).toString()).toBe('{b}')
  })
})
