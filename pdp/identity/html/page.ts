/** The pages that people see: plain HTML that needs no JavaScript. The `html` template escapes every value. */
import type { ServerResponse } from 'node:http'
import { EMPTY, type Html, html } from '../../shared/base/html.ts'
import { brandFooter, brandHeader, links, pagePolicy, picture } from '../../shared/pages/brand.ts'
import { urlOf } from '../oauth/paths.ts'
import type { Context } from '../oauth/request.ts'
import { STATUS, type StatusName } from '../oauth/status.ts'
import type { Frame } from './frame.ts'

export type Page = { readonly html: string; readonly headers: { readonly [name: string]: string } }

/** The page that answers a request. */
export type View = { readonly outcome: StatusName; readonly page: Page }

export function send(res: ServerResponse, { outcome, page }: View): void {
  res.writeHead(STATUS[outcome], page.headers)
  res.end(page.html)
}

/** Answers oidc-provider's request with the page. The status stays. */
export function show(ctx: Pick<Context, 'set' | 'body'>, { headers, html }: Page): void {
  ctx.set({ ...headers })
  ctx.body = html
}

/** Scripts that the page may run; by default none. `script`: source text within the page. `files`: our own paths. */
export type Scripts = { readonly script?: string; readonly files?: readonly string[] }

/** The page gets its language and brand from the frame. */
export function page(frame: Frame, title: string | Html, body: Html, scripts: Scripts = {}): Page {
  const { words, brand } = frame
  const name = brand.name === undefined ? EMPTY : html` · ${brand.name}`
  return {
    headers: headersOf(frame, scripts),
    html: html`<!doctype html>
<html lang="${words.lang}">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${title}${name}</title><style>${brand.style}</style></head>
<body>${brandHeader(brand)}<main>${applicationLogo(frame)}<h1>${title}</h1>${body}${aboutApplication(frame)}</main>${brandFooter(brand, words.links)}${(scripts.files ?? []).map((path) => html`<script type="module" src="${frame.mount}${path}"></script>`)}</body>
</html>
`.toString(),
  }
}

export const strong = (text: string): Html => html`<strong>${text}</strong>`

function headersOf({ brand, application, issuer }: Frame, { script = '', files = [] }: Scripts): Page['headers'] {
  const sources = [script, ...files.map((path) => urlOf(issuer, path))].filter((source) => source !== '')
  const { logo } = application ?? {}
  return {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': pagePolicy(brand, {
      pictures: logo === undefined ? [] : [logo],
      script: sources.join(' '),
    }),
    'cache-control': 'no-store',
    vary: 'Accept-Language',
    'referrer-policy': 'same-origin',
    'x-content-type-options': 'nosniff',
  }
}

const applicationLogo = ({ application }: Frame): Html =>
  application?.logo === undefined ? EMPTY : picture(application.logo.href, '')

function aboutApplication({ application, words: { links: texts } }: Frame): Html {
  if (application === null || (application.terms ?? application.privacy) === undefined) return EMPTY
  const both = links([
    [texts.terms, application.terms],
    [texts.privacy, application.privacy],
  ])
  return html`<p class="about"><bdi>${application.name}</bdi>: ${both}</p>`
}
