/** The pages that people see: plain HTML that needs no JavaScript. The `html` template escapes every value. */
import { createHash } from 'node:crypto'
import { type Html, html } from '../../process/pages/html.ts'
import type { Frame } from './frame.ts'

export type Page = { readonly html: string; readonly headers: { readonly [name: string]: string } }

const STYLE = html`
body{margin:0;font:16px/1.5 system-ui,sans-serif;color:#1b1f24;background:#f3f4f6}
main{box-sizing:border-box;max-width:26rem;margin:8vh auto;padding:2rem;background:#fff;border:1px solid #d0d7de;border-radius:8px}
h1{margin:0 0 1rem;font-size:1.4rem}
label{display:block;margin:1rem 0 .25rem;font-weight:600}
input[type=email],input[type=password],input[type=text]{box-sizing:border-box;width:100%;padding:.6rem;font:inherit;border:1px solid #6e7781;border-radius:4px}
.code{font:700 1.6rem/1.2 ui-monospace,monospace;letter-spacing:.1em;text-align:center;overflow-wrap:anywhere}
form+form{margin-top:2rem;border-top:1px solid #d0d7de}
fieldset{margin:1rem 0;padding:.5rem 1rem;border:1px solid #d0d7de;border-radius:4px}
fieldset label{margin:.5rem 0;font-weight:400}
button{margin:1.25rem .5rem 0 0;padding:.6rem 1.2rem;font:inherit;border:1px solid #0b57d0;border-radius:4px;color:#fff;background:#0b57d0;cursor:pointer}
button.plain{color:#0b57d0;background:#fff}
[role=alert]{padding:.6rem 1rem;border-left:4px solid #b42318;background:#fef3f2}
[role=status]{padding:.6rem 1rem;border-left:4px solid #1a7f37;background:#effaf1}
h2{margin:1.5rem 0 .5rem;font-size:1.15rem}
:focus-visible{outline:3px solid #f0a000;outline-offset:2px}
`
// No scripts and nothing from other origins. Without `form-action`, because browsers also apply it to the redirect to the client.
const POLICY = `default-src 'none'; style-src 'sha256-${createHash('sha256').update(STYLE.toString()).digest('base64')}'; frame-ancestors 'none'; base-uri 'none'`
const HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': POLICY,
  'cache-control': 'no-store',
  vary: 'Accept-Language',
  'referrer-policy': 'same-origin',
  'x-content-type-options': 'nosniff',
}

/** The words of the frame decide the language of the whole page. */
export function page({ words }: Frame, title: string | Html, body: Html): Page {
  return {
    headers: HEADERS,
    html: html`<!doctype html>
<html lang="${words.lang}">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${title}</title><style>${STYLE}</style></head>
<body><main><h1>${title}</h1>${body}</main></body>
</html>
`.toString(),
  }
}

export const strong = (text: string): Html => html`<strong>${text}</strong>`
