/** The pages that people see: plain HTML without scripts, light and dark. The `html` template escapes every value. */
import { createHash } from 'node:crypto'
import { EMPTY, type Html, html } from '../../pdp/shared/base/html.ts'
import type { DenialAnswer } from '../enforce/denial-response.ts'

const STYLE = html`
:root{color-scheme:light dark;--ink:#1b1f24;--page:#f3f4f6;--card:#fff;--line:#d0d7de;--soft:#57606a;--act:#0b57d0;--on:#fff}
@media (prefers-color-scheme:dark){:root{--ink:#e6e9ed;--page:#0f1216;--card:#171b21;--line:#3b434d;--soft:#a3adb8;--act:#8ab4f8;--on:#10151c}}
body{margin:0;padding:1rem;font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--page)}
main{box-sizing:border-box;max-width:28rem;margin:7vh auto;padding:1.75rem;background:var(--card);border:1px solid var(--line);border-radius:10px;overflow-wrap:anywhere}
h1{margin:0 0 1rem;font-size:1.4rem;line-height:1.25}
p{margin:.75rem 0}
ul.choices{list-style:none;margin:1.25rem 0 0;padding:0}
ul.choices li{margin:.6rem 0}
a{color:var(--act)}
.act{display:inline-block;box-sizing:border-box;margin:.9rem .6rem 0 0;padding:.6rem 1.2rem;font:inherit;text-decoration:none;border:1px solid var(--act);border-radius:6px;color:var(--on);background:var(--act);cursor:pointer}
.plain{color:var(--act);background:var(--card)}
ul.choices .act{display:block;margin:0;text-align:center}
dl{margin:1.5rem 0 0;padding-top:1rem;border-top:1px solid var(--line);font-size:.875rem;color:var(--soft)}
dt{float:left;clear:left;margin-right:.4rem}dt::after{content:":"}
dd{margin:0}
code{font:.8125rem ui-monospace,monospace}
:focus-visible{outline:3px solid #f0a000;outline-offset:2px}
`
// No scripts and nothing of other origins. Without `form-action`, because browsers also apply it to where a sign-out leads.
const POLICY = `default-src 'none'; style-src 'sha256-${createHash('sha256').update(STYLE.toString()).digest('base64')}'; frame-ancestors 'none'; base-uri 'none'`

export type Act = { readonly label: string; readonly href: string; readonly plain?: true }
export type PageText = {
  readonly title: string
  readonly paragraphs: readonly (string | Html)[]
  readonly acts?: readonly Act[]
  /** Values to name when asking for help. */
  readonly about?: readonly (readonly [name: string, value: string])[]
}

/** `fields`: names and values in turn to add. */
export function pageAnswer(status: number, text: PageText, fields: readonly string[] = []): DenialAnswer {
  const body = page(text.title, bodyOf(text))
  return { status, fields: [...headers(body), ...fields], body }
}

const bodyOf = ({ paragraphs, acts = [], about = [] }: PageText): Html =>
  html`${paragraphs.map((text) => html`<p>${text}</p>`)}${acts.map(link)}${aboutList(about)}`

const link = ({ label, href, plain }: Act): Html =>
  html`<a class="${plain === true ? 'act plain' : 'act'}" href="${href}">${label}</a>`

function aboutList(about: NonNullable<PageText['about']>): Html {
  if (about.length === 0) return EMPTY
  return html`<dl>${about.map(([name, value]) => html`<dt>${name}</dt><dd><code>${value}</code></dd>`)}</dl>`
}

/** A page to choose where to sign in. */
export function chooserPage(host: string, choices: readonly Act[]): DenialAnswer {
  const list = choices.map((choice) => html`<li>${link(choice)}</li>`)
  const body = page(
    'Sign in',
    html`<p>Choose where you have an account. You come back to <strong>${host}</strong> afterwards.</p><ul class="choices">${list}</ul>`,
  )
  return { status: 200, fields: headers(body), body }
}

/** Only this page's own form can sign out: a link of somebody else leads here and no further. */
export function signOutPage(
  host: string,
  { action, home }: { readonly action: string; readonly home: string },
): DenialAnswer {
  const body = page(
    'Sign out',
    html`<p>Do you want to sign out of <strong>${host}</strong>?</p>
<form method="post" action="${action}"><button class="act" type="submit">Sign out</button>${link({ label: 'Stay signed in', href: home, plain: true })}</form>`,
  )
  return { status: 200, fields: headers(body, 'same-origin'), body }
}

/** The address of a page may have a code (RFC 9700 section 4.2.4). A form needs its origin, which `no-referrer` hides. */
const headers = (body: string, referrer: 'no-referrer' | 'same-origin' = 'no-referrer'): string[] => [
  'content-type',
  'text/html; charset=utf-8',
  'content-length',
  String(Buffer.byteLength(body)),
  'cache-control',
  'no-store',
  'content-security-policy',
  POLICY,
  'referrer-policy',
  referrer,
  'x-content-type-options',
  'nosniff',
]

const page = (title: string, body: Html): string =>
  html`<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${title}</title><style>${STYLE}</style></head>
<body><main><h1>${title}</h1>${body}</main></body>
</html>
`.toString()

export const redirect = (status: 302 | 303, location: string): DenialAnswer => ({
  status,
  fields: ['location', location, 'cache-control', 'no-store', 'referrer-policy', 'no-referrer', 'content-length', '0'],
  body: '',
})
