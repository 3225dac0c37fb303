/** The pages that people see: plain HTML without scripts, in the brand of the route file. The `html` template escapes every value. */
import { EMPTY, type Html, html } from '../../pdp/shared/base/html.ts'
import { visible } from '../../pdp/shared/base/invisible.ts'
import { brandFooter, brandHeader, type createBrand, pagePolicy } from '../../pdp/shared/pages/brand.ts'
import { fill } from '../../pdp/shared/pages/words.ts'
import type { DenialAnswer } from '../enforce/denial-response.ts'
import type { Words } from './words/words.ts'

/** The look of the pages, and the people to ask for access. */
export type Theme = {
  readonly brand: ReturnType<typeof createBrand>
  /** The operator's line about whom to ask; null: pages tell people to ask the host's operator. */
  readonly ask: string | null
  /** The host that people see in the address. */
  readonly host: string
}
/** The theme, in the language of one reader. */
export type Frame = Theme & { readonly words: Words }
export type Act = { readonly label: string; readonly href: string; readonly plain?: true }
export type PageText = {
  readonly title: string
  readonly paragraphs: readonly (string | Html)[]
  readonly acts?: readonly Act[]
  /** Values for people to name when they ask for help. Texts marked `en` are for the operator of the application. */
  readonly about?: readonly (readonly [name: string, value: string, lang?: 'en'])[]
}

/** Others choose these values, and longer ones do not help a person. */
const SHOWN_MAX = 160

/** Shortens a foreign text for a page, and removes invisible characters. */
export function shown(text: string): string {
  const seen = visible(text.slice(0, SHOWN_MAX))
  return text.length <= SHOWN_MAX ? seen : `${seen}…`
}
/** The same, emphasized within its sentence. */
export const shownStrong = (text: string): Html => html`<strong>${shown(text)}</strong>`

/** `fields`: fields to add, names and values alternating. */
export function pageAnswer(
  frame: Frame,
  status: number,
  { title, paragraphs, acts = [], about = [] }: PageText,
  fields: readonly string[] = [],
): DenialAnswer {
  const content = html`${paragraphs.map((text) => html`<p>${text}</p>`)}${acts.map(link)}${aboutList(about)}`
  const body = page(frame, title, content)
  return { status, fields: [...headers(frame, body), ...fields], body }
}

/** Tells people whom to ask: the operator's line, and the brand's support address. */
export function askParagraph({ ask, host, brand: { support }, words: { ask: texts } }: Frame): Html {
  const line = ask === null ? fill(texts.anybody, { host: shownStrong(host) }) : html`${ask}`
  if (support === undefined) return line
  // A person without a program for mail can still read the address.
  const label = support.startsWith('mailto:') ? (support.slice('mailto:'.length).split('?', 1)[0] ?? '') : texts.here
  return html`${line} <a href="${support}">${label}</a>`
}

/** The same, but only if the operator has written a line. */
export const askLine = (frame: Frame): readonly Html[] => (frame.ask === null ? [] : [askParagraph(frame)])

const link = ({ label, href, plain }: Act): Html =>
  html`<a class="${plain === true ? 'act plain' : 'act'}" href="${href}">${label}</a>`

function aboutList(about: NonNullable<PageText['about']>): Html {
  if (about.length === 0) return EMPTY
  const rows = about.map(([name, value, lang]) =>
    lang === undefined
      ? html`<dt>${name}</dt><dd><code>${shown(value)}</code></dd>`
      : html`<dt>${name}</dt><dd lang="${lang}">${shown(value)}</dd>`,
  )
  return html`<dl>${rows}</dl>`
}

/** A page to choose where to sign in. */
export function chooserPage(frame: Frame, choices: readonly Act[]): DenialAnswer {
  const { title, text } = frame.words.choose
  const list = choices.map((choice) => html`<p>${link(choice)}</p>`)
  const body = page(frame, title, html`<p>${fill(text, { host: shownStrong(frame.host) })}</p>${list}`)
  return { status: 200, fields: headers(frame, body), body }
}

/** The page to sign out. Only its own form signs out: a link of another site ends here. */
export function signOutPage(
  frame: Frame,
  { action, home }: { readonly action: string; readonly home: string },
): DenialAnswer {
  const { acts, signOut } = frame.words
  const body = page(
    frame,
    signOut.title,
    html`<p>${fill(signOut.text, { host: shownStrong(frame.host) })}</p>
<form method="post" action="${action}"><button type="submit">${acts.signOut}</button>${link({ label: acts.stay, href: home, plain: true })}</form>`,
  )
  return { status: 200, fields: headers(frame, body, 'same-origin'), body }
}

/** The address of a page may contain a code (RFC 9700 section 4.2.4). A form must send its origin, which `no-referrer` would hide. */
const headers = ({ brand }: Frame, body: string, referrer: 'no-referrer' | 'same-origin' = 'no-referrer'): string[] => [
  'content-type',
  'text/html; charset=utf-8',
  'content-length',
  String(Buffer.byteLength(body)),
  'cache-control',
  'no-store',
  'content-security-policy',
  pagePolicy(brand),
  'vary',
  'accept-language',
  'referrer-policy',
  referrer,
  'x-content-type-options',
  'nosniff',
]

function page({ brand, words }: Frame, title: string, body: Html): string {
  const name = brand.name === undefined ? EMPTY : html` · ${brand.name}`
  return html`<!doctype html>
<html lang="${words.lang}">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${title}${name}</title><style>${brand.style}</style></head>
<body>${brandHeader(brand)}<main><h1>${title}</h1>${body}</main>${brandFooter(brand, words.links)}</body>
</html>
`.toString()
}

export const redirect = (status: 302 | 303, location: string): DenialAnswer => ({
  status,
  fields: ['location', location, 'cache-control', 'no-store', 'referrer-policy', 'no-referrer', 'content-length', '0'],
  body: '',
})
