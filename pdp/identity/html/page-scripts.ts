/** The scripts of these pages, from addresses of their own: authenticators can only be asked by a script, and other pages are easier with one. */
import { readFileSync } from 'node:fs'
import { type Html, html } from '../../shared/base/html.ts'
import { PATHS } from '../oauth/paths.ts'
import type { Frame } from './frame.ts'

const SECONDS = 300

const HEADERS = {
  'content-type': 'text/javascript; charset=utf-8',
  'cache-control': `public, max-age=${SECONDS}`,
  'cross-origin-resource-policy': 'same-origin',
} as const

/** By path. */
export function readScripts(): ReadonlyMap<string, { readonly text: string; readonly headers: typeof HEADERS }> {
  const read = (url: URL) => ({ text: readFileSync(url, 'utf8'), headers: HEADERS })
  return new Map([
    [PATHS.pageScript, read(new URL('./assets/page.js', import.meta.url))],
    [PATHS.passkeyScript, read(new URL('./assets/passkey.js', import.meta.url))],
  ])
}

/** The browser offers passkeys where it offers addresses to fill in; who types instead sees nothing of it. */
export const autofillForm = (options: object): Html =>
  html`<form method="post" data-step="passkey" data-passkey="autofill" data-options="${JSON.stringify(options)}" hidden><input type="hidden" name="credential" value=""><input type="hidden" name="action" value="passkey_answer"></form>`

/**
 * The values that the form's script reads, the field for its answer, and the text that is shown without a script, or when the authenticator
 * gives none. `get` begins by itself.
 */
export function passkeyParts(
  { words: { factors } }: Frame,
  of: { readonly kind: 'get' | 'get-later' | 'create'; readonly options: object },
): { readonly attributes: Html; readonly fields: Html; readonly around: Html } {
  const { passkeys } = factors
  return {
    attributes: html` data-passkey="${of.kind}" data-options="${JSON.stringify(of.options)}"`,
    fields: html`<input type="hidden" name="credential" value="">`,
    around: html`<noscript><p role="alert">${passkeys.needsScript}</p></noscript>
<p role="alert" id="passkey-problem" hidden>${of.kind === 'create' ? passkeys.notMade : passkeys.notGiven}</p>`,
  }
}
