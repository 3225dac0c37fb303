/** The one script of these pages, from an address of its own: authenticators can only be asked by a script. */
import { readFileSync } from 'node:fs'
import { type Html, html } from '../../shared/base/html.ts'
import { PATHS, urlOf } from '../oauth/paths.ts'
import type { Frame } from './frame.ts'

const SECONDS = 300

export function readPasskeyScript(): { readonly text: string; readonly headers: { readonly [name: string]: string } } {
  return {
    text: readFileSync(new URL('./assets/passkey.js', import.meta.url), 'utf8'),
    headers: {
      'content-type': 'text/javascript; charset=utf-8',
      'cache-control': `public, max-age=${SECONDS}`,
      'cross-origin-resource-policy': 'same-origin',
    },
  }
}

/** Its source in the policy of a page that has it. */
export const scriptSource = (issuer: string): string => urlOf(issuer, PATHS.passkeyScript)

/**
 * The values that the form's script reads, the field for its answer, and the text that is shown without a script, or when the authenticator
 * gives none. `get` begins by itself.
 */
export function passkeyParts(
  { mount, words: { factors } }: Frame,
  of: { readonly kind: 'get' | 'get-later' | 'create'; readonly options: object },
): { readonly attributes: Html; readonly fields: Html; readonly around: Html } {
  const { passkeys } = factors
  return {
    attributes: html` data-passkey="${of.kind}" data-options="${JSON.stringify(of.options)}"`,
    fields: html`<input type="hidden" name="credential" value="">`,
    around: html`<noscript><p role="alert">${passkeys.needsScript}</p></noscript>
<p role="alert" id="passkey-problem" hidden>${of.kind === 'create' ? passkeys.notMade : passkeys.notGiven}</p>
<script type="module" src="${mount}${PATHS.passkeyScript}"></script>`,
  }
}
