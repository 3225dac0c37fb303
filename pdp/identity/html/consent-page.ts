/** The page on which a person agrees to what an application will be able to do, and for which organization. */

import { EMPTY, type Html, html } from '../../shared/base/html.ts'
import type { Organization } from '../../shared/domain/organization.ts'
import { fill } from '../../shared/pages/words.ts'
import type { Frame } from './frame.ts'
import { type Page, page, strong } from './page.ts'
import type { Words } from './words/words.ts'

export type Choice =
  | { readonly kind: 'bound'; readonly organization: Organization }
  /** The person is in no organization, so the token will name none. */
  | { readonly kind: 'unbound' }
  | { readonly kind: 'choose'; readonly from: readonly Organization[] }
  /** The person is no active member of the organization that the request or the client names. */
  | { readonly kind: 'refused' }
export type OfferedChoice = Exclude<Choice, { kind: 'refused' }>

export function consentPage(
  frame: Frame,
  view: {
    clientName: string
    person: string
    scopes: readonly string[]
    choice: OfferedChoice
    /** Hosts to show for a client without registration: that of its document, and that to which the browser goes next. */
    from?: { readonly host: string; readonly target: string }
  },
): Page {
  const { words } = frame
  return page(
    frame,
    fill(words.consent.title, { application: view.clientName }),
    html`<p>${fill(words.common.signedInAs, { person: strong(view.person) })}</p>
${unregistered(words, view.from)}<form method="post" data-step="consent">
${organizationField(words, view.choice)}
<p>${fill(words.consent.willBeAble, { application: strong(view.clientName) })}</p>${scopeList(words, view.scopes)}
<button type="submit" name="action" value="continue">${words.common.continue}</button>
<button type="submit" name="action" value="cancel" class="plain" formnovalidate>${words.common.cancel}</button>
</form>${notYou(words)}`,
  )
}

function unregistered({ consent }: Words, from: { readonly host: string; readonly target: string } | undefined): Html {
  if (from === undefined) return EMPTY
  return html`<p role="alert">${fill(consent.unregistered, { host: strong(from.host), target: strong(from.target) })}</p>
`
}

/** Lets a person continue by signing in with another account. */
export const notYou = ({ common }: Words): Html => switchForm(common.notYou)
/** The same, on a page that does not show who is signed in. */
export const otherAccount = ({ common }: Words): Html => switchForm(common.otherAccount)

const switchForm = (text: string): Html =>
  html`<form method="post" data-step="switch" class="other"><p><button type="submit" name="action" value="switch" class="link">${text}</button></p></form>`

export function scopeList(words: Words, scopes: readonly string[]): Html {
  const texts: { readonly [scope: string]: string | undefined } = words.scopes
  return html`<ul>${scopes.map((scope) => html`<li>${Object.hasOwn(texts, scope) ? (texts[scope] ?? scope) : scope}</li>`)}</ul>`
}

export function organizationField({ consent }: Words, choice: OfferedChoice): Html {
  if (choice.kind === 'unbound') return EMPTY
  if (choice.kind === 'bound') {
    return html`<p>${fill(consent.organization, { organization: strong(choice.organization.name) })}</p>`
  }
  const options = choice.from.map(
    ({ id, name }) =>
      html`<label><input type="radio" name="organization" value="${id}" required> <bdi>${name}</bdi> <small>(${id})</small></label>`,
  )
  return html`<fieldset><legend>${consent.whichOrganization}</legend>${options}</fieldset>`
}
