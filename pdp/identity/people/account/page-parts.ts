/** Parts that the account's pages share. */
import type { ServerResponse } from 'node:http'
import { EMPTY, type Html, html } from '../../../shared/base/html.ts'
import { errorPage } from '../../html/error-page.ts'
import type { Frame } from '../../html/frame.ts'
import { page, type View } from '../../html/page.ts'
import type { Words } from '../../html/words/words.ts'
import { PATHS } from '../../oauth/paths.ts'
import { STATUS, type StatusName } from '../../oauth/status.ts'
import type { AccountVisit } from './visit.ts'

export type NewPasswordProblem = keyof Words['account']['passwordProblems']

/** `script`: adds the script that makes the page easier to use. */
export const shown = (
  frame: Frame,
  title: string,
  body: Html,
  outcome: StatusName = 'shown',
  script?: 'script',
): View => ({ outcome, page: page(frame, title, body, script === undefined ? {} : { files: [PATHS.pageScript] }) })

/** A refused form; the page offers to open the form again. */
export const refused = ({ req, frame }: AccountVisit, trouble: 'crossSiteForm' | 'largeForm' | 'oldForm'): View => ({
  outcome: trouble === 'largeForm' ? 'tooLarge' : 'invalid',
  page: errorPage(frame, { trouble, code: 'invalid_request', again: req.url ?? PATHS.account }),
})

/** Redirects to another of our pages by GET. `referrer`: whether that page learns the URL of this one. */
export function goTo(res: ServerResponse, url: string, referrer: 'no-referrer' | 'same-origin' = 'no-referrer'): void {
  res.writeHead(STATUS.seeOther, { location: url, 'cache-control': 'no-store', 'referrer-policy': referrer })
  res.end()
}

export const alertOf = (text: string | null): Html =>
  text === null ? EMPTY : html`<p role="alert" id="problem">${text}</p>`

export const accountLink = ({ mount }: Frame, text: string): Html =>
  html`<p><a href="${mount}${PATHS.account}">${text}</a></p>`

/** A page that confirms a change. `back`: the text of the link to the account. */
export const donePage = (frame: Frame, view: { title: string; text: string | Html; back: string }): View =>
  shown(frame, view.title, html`<p role="status">${view.text}</p>${accountLink(frame, view.back)}`)

/** Hidden fields that come back with the form. */
export const hidden = (fields: { readonly [name: string]: string }): readonly Html[] =>
  Object.entries(fields).map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)

export const timeOf = (seconds: number | null): string =>
  seconds === null ? '' : `${new Date(seconds * 1_000).toISOString().slice(0, 16).replace('T', ' ')} UTC`

/** A field with the name for password managers, which ignore the type `hidden`. It must come before the form's first password. */
export const usernameField = (email: string | null): Html =>
  email === null
    ? EMPTY
    : html`<input name="username" type="text" autocomplete="username" value="${email}" readonly hidden>`

export const outcomeOfNew = (problem: NewPasswordProblem | null): StatusName =>
  problem === null ? 'shown' : problem === 'busy' ? 'unavailable' : problem === 'tooMany' ? 'tooMany' : 'invalid'

/** `email`: null in a form that names the person already. */
export function newPasswordFields(
  { account: { reset }, common }: Words,
  view: { email: string | null; problem: NewPasswordProblem | null },
): Html {
  const described = view.problem === null ? EMPTY : html` aria-invalid="true" aria-describedby="problem"`
  return html`${usernameField(view.email)}
<label for="password">${reset.password}</label>
<input id="password" name="password" type="password" autocomplete="new-password" minlength="8" maxlength="256" required${described}>
<label for="repeated">${reset.repeated}</label>
<input id="repeated" name="repeated" type="password" autocomplete="new-password" minlength="8" maxlength="256" required data-show="${common.showPassword}">`
}
