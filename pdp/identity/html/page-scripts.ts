/** The scripts of these pages, as files: asking an authenticator needs a script, and other pages are easier to use with one. */
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

/** Reads the scripts; their paths are the keys. */
export function readScripts(): ReadonlyMap<string, { readonly text: string; readonly headers: typeof HEADERS }> {
  const read = (url: URL) => ({ text: readFileSync(url, 'utf8'), headers: HEADERS })
  return new Map([
    [PATHS.pageScript, read(new URL('./assets/page.js', import.meta.url))],
    [PATHS.passkeyScript, read(new URL('./assets/passkey.js', import.meta.url))],
  ])
}

/** A form by which the browser's autofill offers passkeys beside addresses. People who type notice no difference. */
export const autofillForm = (options: object): Html =>
  html`<form method="post" data-step="passkey" data-passkey="autofill" data-options="${JSON.stringify(options)}" hidden><input type="hidden" name="credential" value=""><input type="hidden" name="action" value="passkey_answer"></form>`

/**
 * A form's parts: data for the script, the field for its answer, and a text for people without script or authenticator. `get` starts
 * without a click.
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
