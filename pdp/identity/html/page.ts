/** The pages that people see: plain HTML that needs no JavaScript. The `html` template escapes every value. */
import { createHash } from 'node:crypto'
import type { Organization } from '../../domain/organization.ts'
import { EMPTY, type Html, html } from '../../process/pages/html.ts'

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
  'referrer-policy': 'same-origin',
  'x-content-type-options': 'nosniff',
}

/** What a scope allows a client to see, in words for the consent page. Other scopes are shown by name. */
const SCOPE_TEXTS: { readonly [scope: string]: string } = {
  openid: 'know who you are',
  profile: 'see your name',
  email: 'see your e-mail address',
  groups: 'see your roles',
  organizations: 'see the organizations that you belong to',
  offline_access: 'go on doing this while you are away',
}

export function consentPage(view: {
  clientName: string
  person: string
  scopes: readonly string[]
  choice: Exclude<Choice, { kind: 'refused' }>
}): Page {
  return page(
    `Go on to ${view.clientName}`,
    html`<p>You are signed in as <strong>${view.person}</strong>.</p>
<form method="post" data-step="consent">
${organizationField(view.choice)}
<p><strong>${view.clientName}</strong> will be able to:</p>${scopeList(view.scopes)}
<button type="submit" name="action" value="continue">Continue</button>
<button type="submit" name="action" value="cancel" class="plain" formnovalidate>Cancel</button>
</form>`,
  )
}

export function scopeList(scopes: readonly string[]): Html {
  return html`<ul>${scopes.map((scope) => html`<li>${SCOPE_TEXTS[scope] ?? scope}</li>`)}</ul>`
}

export function organizationField(choice: Exclude<Choice, { kind: 'refused' }>): Html {
  if (choice.kind === 'unbound') return EMPTY
  if (choice.kind === 'bound') return html`<p>Organization: <strong>${choice.organization.name}</strong></p>`
  const options = choice.from.map(
    ({ id, name }) =>
      html`<label><input type="radio" name="organization" value="${id}" required> ${name} <small>(${id})</small></label>`,
  )
  return html`<fieldset><legend>For which organization?</legend>${options}</fieldset>`
}

/** `detail` must be text of ours or of oidc-provider, never of an exception. */
export function errorPage(view: { code: string; detail: string }): Page {
  return page(
    'This did not work',
    html`<p>${view.detail}</p><p>Go back to the application and try again. <small>(${view.code})</small></p>`,
  )
}

export function page(title: string, body: Html): Page {
  return {
    headers: HEADERS,
    html: html`<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${title}</title><style>${STYLE}</style></head>
<body><main><h1>${title}</h1>${body}</main></body>
</html>
`.toString(),
  }
}

export type Choice =
  | { readonly kind: 'bound'; readonly organization: Organization }
  /** The person is in no organization; the token then names none. */
  | { readonly kind: 'unbound' }
  | { readonly kind: 'choose'; readonly from: readonly Organization[] }
  /** Not an active member of the requested organization, or of the client's own one. */
  | { readonly kind: 'refused' }
