/** The brand of the pages: name, logo, colour, and links to terms, privacy and support. */
import { createHash } from 'node:crypto'
import { EMPTY, type Html, html } from '../base/html.ts'
import { isJsonObject } from '../domain/json.ts'
import { isLoopback } from '../process/listen.ts'

const NAME_CHARACTERS_MAX = 80
const URL_CHARACTERS_MAX = 2_048
/** Matches a mail address as link; pages show the address. */
const MAIL_ADDRESS = /^mailto:[^@\s?]+@[^@\s?]+(\?\S*)?$/
const COLOR = /^#[0-9a-f]{6}$/i
const CARDS = { light: '#ffffff', dark: '#171b21' }
const COLOR_DEFAULT = '#0b57d0'

/** The operator's brand, from the setting. */
export type Branding = {
  readonly name?: string
  readonly logo?: string
  readonly color?: string
  readonly terms?: string
  readonly privacy?: string
  readonly support?: string
}
export type Brand = Omit<Branding, 'color'> & {
  readonly style: Html
  readonly styleHash: string
}
const MEMBERS = ['name', 'logo', 'color', 'terms', 'privacy', 'support'] as const

/** Reads a setting with a JSON object. Throws Error that says what is wrong. */
export function parseBranding(text: string): Branding {
  let given: unknown
  try {
    given = JSON.parse(text)
  } catch {
    throw new Error('is not JSON')
  }
  if (!isJsonObject(given)) throw new Error('is not a JSON object')
  const odd = Object.keys(given).find((key) => !MEMBERS.some((name) => name === key))
  if (odd !== undefined) throw new Error(`has no member ${JSON.stringify(odd)}, only ${MEMBERS.join(', ')}`)
  const entries = Object.entries(given).map(([key, value]): [string, string] => {
    if (typeof value !== 'string') throw new Error(`has a ${key} that is not a text`)
    return [key, value]
  })
  return checkBranding(Object.fromEntries(entries))
}

/** Checks the values. Throws Error that says what is wrong. */
export function checkBranding(branding: Branding): Branding {
  const { name, color, ...urls } = branding
  if (name !== undefined && (name.trim() === '' || name.length > NAME_CHARACTERS_MAX))
    throw new Error(`needs a name of 1 to ${NAME_CHARACTERS_MAX} characters`)
  if (color !== undefined && !COLOR.test(color)) throw new Error('needs a color such as #0b57d0')
  for (const [key, value] of Object.entries(urls)) {
    const isContact = key === 'support' && MAIL_ADDRESS.test(value)
    if (!isContact && webUrl(value) === null)
      throw new Error(`needs a ${key} that is an https URL${key === 'support' ? ' or mailto' : ''}`)
  }
  return branding
}

export function createBrand({ color = COLOR_DEFAULT, ...rest }: Branding = {}): Brand {
  const act = readableOn(color, CARDS)
  // Names that others chose are in `strong`, which isolates their writing direction from the sentence.
  const style = html`
:root{color-scheme:light dark;--ink:#1b1f24;--page:#f3f4f6;--card:${CARDS.light};--line:#d0d7de;--soft:#57606a;--edge:#6e7781;--act:${act.light};--bad:#b42318;--bad-page:#fef3f2;--good:#1a7f37;--good-page:#effaf1}
@media (prefers-color-scheme:dark){:root{--ink:#e6e9ed;--page:#0f1216;--card:${CARDS.dark};--line:#3b434d;--soft:#a3adb8;--edge:#8b96a3;--act:${act.dark};--bad:#ff9a90;--bad-page:#33191a;--good:#6fd38a;--good-page:#14271a}}
*{box-sizing:border-box}
body{display:flex;flex-direction:column;min-height:100vh;margin:0;padding:1.5rem 1rem;font:100%/1.5 system-ui,sans-serif;color:var(--ink);background:var(--page)}
body>header,main,body>footer{width:100%;max-width:26rem;margin:0 auto}
body>header{display:flex;align-items:center;gap:.75rem;margin-top:3vh;padding:0 .25rem 1rem;font-weight:600;overflow-wrap:anywhere}
body>header p{margin:0}
img{display:block;max-width:9rem;height:2.5rem;object-fit:contain}
main{padding:1.75rem;background:var(--card);border:1px solid var(--line);border-radius:10px;overflow-wrap:anywhere}
main:first-child{margin-top:7vh}
main>img{margin-bottom:1rem}
h1{margin:0 0 1rem;font-size:1.4rem;line-height:1.25}
h2{margin:1.5rem 0 .5rem;font-size:1.15rem}
p{margin:.75rem 0}
strong{unicode-bidi:isolate}
ul{margin:.5rem 0;padding-left:1.25rem}
a{color:var(--act)}
label{display:block;margin:1rem 0 .25rem;font-weight:600}
input[type=email],input[type=password],input[type=text],select{width:100%;padding:.6rem;font:inherit;color:var(--ink);background:var(--card);border:1px solid var(--edge);border-radius:6px}
.qr{display:block;width:13rem;max-width:100%;margin:1rem auto;border-radius:6px}
.key{font-size:.95rem;overflow-wrap:break-word}
.codes{padding:.75rem 1rem .75rem 2.75rem;border:1px solid var(--line);border-radius:6px;line-height:1.9}
.codes code{font-size:1rem}
details{margin-top:1.5rem;padding-top:1rem;border-top:1px solid var(--line)}
summary{color:var(--act);cursor:pointer}
.code{font:700 1.6rem/1.2 ui-monospace,monospace;letter-spacing:.1em;text-align:center}
form+form{margin-top:2rem;border-top:1px solid var(--line)}
form+form.other{margin-top:1rem;padding-top:.25rem}
label.show{margin:.5rem 0 0;font-weight:400}
fieldset{margin:1rem 0;padding:.5rem 1rem;border:1px solid var(--line);border-radius:6px}
fieldset label{margin:.5rem 0;font-weight:400}
input{accent-color:var(--act)}
button,a.act{display:inline-block;min-height:2.75rem;margin:1.25rem .5rem 0 0;padding:.6rem 1.2rem;font:inherit;text-decoration:none;border:1px solid var(--act);border-radius:6px;color:var(--card);background:var(--act);cursor:pointer}
button.plain,a.plain{color:var(--act);background:var(--card)}
button.link{min-height:1.5rem;text-align:start;margin:0;padding:0;border:0;color:var(--act);background:none;text-decoration:underline}
[role=alert]{padding:.6rem 1rem;border-left:4px solid var(--bad);background:var(--bad-page)}
[role=status]{padding:.6rem 1rem;border-left:4px solid var(--good);background:var(--good-page)}
dl{margin:1.5rem 0 0;padding-top:1rem;border-top:1px solid var(--line);font-size:.875rem;color:var(--soft)}
dl.facts{font-size:1rem;color:inherit}
dt{float:left;clear:left;margin-right:.4rem}dt::after{content:":"}dt:lang(fr)::after{content:"\\a0:"}
dd{margin:0}
code{font:.8125rem ui-monospace,monospace}
small{color:var(--soft)}
.about{margin:1.5rem 0 0;font-size:.875rem;color:var(--soft)}
.about a,body>footer a{display:inline-block;min-height:1.5rem;margin-right:1rem}
body>footer{padding:1rem .25rem;font-size:.875rem;color:var(--soft)}
@media print{button,a.act,[aria-live]{display:none}}
:focus-visible{outline:3px solid #c77d00;outline-offset:2px}
`
  return { ...rest, style, styleHash: createHash('sha256').update(style.toString()).digest('base64') }
}

/** The operators' colour, readable as text on these backgrounds in light and dark pages. */
export const readableOn = (color: string, on: typeof CARDS): typeof CARDS => ({
  light: darkened(color, on.light),
  dark: lightened(color, on.dark),
})

/** The URL if a page may link to it or show it: https, or http on this machine; else null. */
export function webUrl(text: unknown): URL | null {
  const url = typeof text === 'string' && text.length <= URL_CHARACTERS_MAX ? URL.parse(text) : null
  if (url === null || url.username !== '' || url.password !== '') return null
  return url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url.hostname)) ? url : null
}

/** The URL of a picture as a source in a policy: without query, and with characters escaped that would end the directive. */
export const imageSource = ({ origin, pathname }: URL): string =>
  origin + pathname.replaceAll(';', '%3B').replaceAll(',', '%2C')

/** Allows no scripts, and only pictures from other origins. No `form-action`: browsers also apply it to redirects after a form. */
export function pagePolicy(
  { styleHash, logo }: Brand,
  { pictures = [], script = '' }: { readonly pictures?: readonly URL[]; readonly script?: string } = {},
): string {
  const own = webUrl(logo)
  const all = [...(own === null ? [] : [own]), ...pictures].map(imageSource)
  const images = all.length === 0 ? '' : ` img-src ${all.join(' ')};`
  const scripts = script === '' ? '' : ` script-src ${script};`
  return `default-src 'none'; style-src 'sha256-${styleHash}';${images}${scripts} frame-ancestors 'none'; base-uri 'none'`
}

export function brandHeader({ name, logo }: Brand): Html {
  if (name === undefined && logo === undefined) return EMPTY
  // The name is beside the picture, which therefore has an empty text.
  const image = logo === undefined ? EMPTY : picture(logo, '')
  return html`<header>${image}${name === undefined ? EMPTY : html`<p>${name}</p>`}</header>`
}

/** `texts`: in the language of the reader. */
export function brandFooter(
  { terms, privacy, support }: Brand,
  texts: { readonly [name in 'terms' | 'privacy' | 'support']: string },
): Html {
  if ((terms ?? privacy ?? support) === undefined) return EMPTY
  const all = links([
    [texts.terms, terms],
    [texts.privacy, privacy],
    [texts.support, support],
  ])
  return html`<footer>${all}</footer>`
}

export const picture = (url: string, alternative: string): Html =>
  html`<img src="${url}" alt="${alternative}" referrerpolicy="no-referrer">`

export const links = (all: readonly (readonly [label: string, href: string | undefined])[]): Html =>
  html`${all.map(([label, href]) => (href === undefined ? EMPTY : html`<a href="${href}">${label}</a> `))}`

/** The lowest contrast of text (WCAG 2.2, success criterion 1.4.3), with a margin. */
const RATIO_MIN = 4.6
const STEPS = 20

type Rgb = readonly [number, number, number]

/** The colour, made darker until text is readable on the background. */
const darkened = (color: string, background: string): string => readable(color, background, [0, 0, 0])
const lightened = (color: string, background: string): string => readable(color, background, [255, 255, 255])

function readable(color: string, background: string, toward: Rgb): string {
  for (let step = 0; step < STEPS; step += 1) {
    const mixed = mix(rgbOf(color), toward, step / STEPS)
    if (contrast(mixed, background) >= RATIO_MIN) return mixed
  }
  return hexOf(toward)
}

/** The contrast of two colours, from 1 to 21. */
export function contrast(one: string, other: string): number {
  const [light, dark] = [luminance(rgbOf(one)), luminance(rgbOf(other))].sort((a, b) => b - a)
  return ((light ?? 0) + 0.05) / ((dark ?? 0) + 0.05)
}

function luminance(rgb: Rgb): number {
  const [red = 0, green = 0, blue = 0] = rgb.map((part) => {
    const share = part / 255
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

const rgbOf = (hex: string): Rgb => [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16)) as unknown as Rgb
const hexOf = (rgb: Rgb): string => `#${rgb.map((part) => Math.round(part).toString(16).padStart(2, '0')).join('')}`
const mix = ([r, g, b]: Rgb, to: Rgb, share: number): string =>
  hexOf([r + (to[0] - r) * share, g + (to[1] - g) * share, b + (to[2] - b) * share])
