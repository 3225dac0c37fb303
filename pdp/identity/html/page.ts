/** The pages that people see: plain HTML that needs no JavaScript. The `html` template escapes every value. */
import { EMPTY, type Html, html } from '../../shared/base/html.ts'
import { imageSource, links, picture, webUrl } from '../../shared/pages/brand.ts'
import type { Frame } from './frame.ts'

export type Page = { readonly html: string; readonly headers: { readonly [name: string]: string } }

/** Words and brand of the frame are those of the whole page. `script`: its source in the policy; default: none may run. */
export function page(frame: Frame, title: string | Html, body: Html, { script = '' } = {}): Page {
  const { words, brand } = frame
  const name = brand.name === undefined ? EMPTY : html` · ${brand.name}`
  return {
    headers: headersOf(frame, script),
    html: html`<!doctype html>
<html lang="${words.lang}">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${title}${name}</title><style>${brand.style}</style></head>
<body>${header(frame)}<main>${applicationLogo(frame)}<h1>${title}</h1>${body}${aboutApplication(frame)}</main>${footer(frame)}</body>
</html>
`.toString(),
  }
}

export const strong = (text: string): Html => html`<strong>${text}</strong>`

/** No scripts, and of other origins the pictures alone. No `form-action`: browsers also apply it to the redirect to the client. */
function headersOf({ brand, application }: Frame, script: string): Page['headers'] {
  const pictures = [webUrl(brand.logo), application?.logo].flatMap((url) => (url ? [imageSource(url)] : []))
  const images = pictures.length === 0 ? '' : ` img-src ${pictures.join(' ')};`
  const scripts = script === '' ? '' : ` script-src ${script};`
  return {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': `default-src 'none'; style-src 'sha256-${brand.styleHash}';${images}${scripts} frame-ancestors 'none'; base-uri 'none'`,
    'cache-control': 'no-store',
    vary: 'Accept-Language',
    'referrer-policy': 'same-origin',
    'x-content-type-options': 'nosniff',
  }
}

function header({ brand: { name, logo } }: Frame): Html {
  if (name === undefined && logo === undefined) return EMPTY
  // The name stands beside the picture, which then says nothing more.
  const image = logo === undefined ? EMPTY : picture(logo, '')
  return html`<header>${image}${name === undefined ? EMPTY : html`<p>${name}</p>`}</header>`
}

const applicationLogo = ({ application }: Frame): Html =>
  application?.logo === undefined ? EMPTY : picture(application.logo.href, '')

function aboutApplication({ application, words: { links: texts } }: Frame): Html {
  if (application === null || (application.terms ?? application.privacy) === undefined) return EMPTY
  const both = links([
    [texts.terms, application.terms],
    [texts.privacy, application.privacy],
  ])
  return html`<p class="about">${application.name}: ${both}</p>`
}

function footer({ brand: { terms, privacy, support }, words: { links: texts } }: Frame): Html {
  if ((terms ?? privacy ?? support) === undefined) return EMPTY
  const all = links([
    [texts.terms, terms],
    [texts.privacy, privacy],
    [texts.support, support],
  ])
  return html`<footer>${all}</footer>`
}
