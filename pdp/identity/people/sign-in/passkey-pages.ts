/** The page on which a passkey is asked for. */
import { EMPTY, html } from '../../../shared/base/html.ts'
import type { Frame } from '../../html/frame.ts'
import { type Page, page } from '../../html/page.ts'
import { passkeyParts } from '../../html/page-scripts.ts'
import { PATHS } from '../../oauth/paths.ts'
import {
  anotherAccount,
  hiddenFields,
  type LoginProblem,
  type Purpose,
  problemOf,
  reason,
  recoveryForm,
} from './sign-in-pages.ts'

/** The page. `options`: for the browser; null: no passkey can be asked for now. */
export function passkeyPage(
  frame: Frame,
  view: {
    readonly purpose: Purpose
    readonly hidden: { readonly [name: string]: string }
    readonly options: object | null
    readonly hasApp: boolean
    readonly isSecond: boolean
    readonly problem: LoginProblem | null
  },
): Page {
  const { passkeys } = frame.words.factors
  const hidden = hiddenFields(view.hidden)
  const { alert } = problemOf(frame.words, view.problem)
  // After a failure, a button starts the next try.
  const kind = view.problem === null ? 'get' : 'get-later'
  const parts = view.options === null ? null : passkeyParts(frame, { kind, options: view.options })
  const ask =
    parts === null
      ? EMPTY
      : html`${parts.around}
<form method="post" data-step="passkey"${parts.attributes}>${hidden}${parts.fields}<input type="hidden" name="action" value="passkey_answer">
<button type="submit">${passkeys.use}</button></form>`
  const other = view.isSecond
    ? view.hasApp
      ? ['app', passkeys.codeInstead]
      : null
    : ['switch', passkeys.passwordInstead]
  const instead =
    other === null
      ? EMPTY
      : html`<form method="post" data-step="other" class="other">${hidden}<p><button type="submit" name="action" value="${other[0] ?? ''}" class="link">${other[1] ?? ''}</button></p></form>`
  return page(
    frame,
    passkeys.askTitle,
    html`${reason(frame.words, view.purpose)}${alert}<p>${passkeys.askLead}</p>${ask}${instead}${view.isSecond ? html`${recoveryForm(frame.words, hidden, view.problem)}${anotherAccount(frame.words, view.purpose)}` : EMPTY}`,
    { files: [PATHS.passkeyScript] },
  )
}
