/** The page for an error: what it means, what to do, a link that leads on, and the request id to name when asking for help. */
import { EMPTY, type Html, html } from '../../shared/base/html.ts'
import { PATHS } from '../oauth/paths.ts'
import type { Frame } from './frame.ts'
import { type Page, page } from './page.ts'
import type { Words } from './words/words.ts'

type Texts = { readonly title: string; readonly text: string }
/** Why the page is shown. */
export type Trouble = {
  [name in keyof Words['errors']]: Words['errors'][name] extends Texts ? name : never
}[keyof Words['errors']]

// Codes of RFC 6749 section 4.1.2.1 and its kin; everything else is a mistake of the application.
const TROUBLES: { readonly [code: string]: Trouble | undefined } = {
  access_denied: 'refused',
  server_error: 'failed',
  temporarily_unavailable: 'unavailable',
}
export const troubleOf = (code: string): Trouble => TROUBLES[code] ?? 'application'

/**
 * `detail` is for who looks after the application: text of oidc-provider, which is English, never of an exception. `again`:
 * the path, below that of the issuer, and the query of the page to open once more.
 */
export function errorPage(
  frame: Frame,
  view: { readonly trouble: Trouble; readonly code: string; readonly detail?: string; readonly again?: string },
): Page {
  const { errors } = frame.words
  const { title, text } = errors[view.trouble]
  const { requestId } = frame
  const reason =
    view.detail === undefined || view.detail === ''
      ? EMPTY
      : html`<dt>${errors.reason}</dt><dd lang="en">${view.detail}</dd>`
  const request = requestId === '' ? EMPTY : html`<dt>${errors.request}</dt><dd><code>${requestId}</code></dd>`
  return page(
    frame,
    title,
    html`<p>${text}</p>${wayOn(frame, view)}
<dl><dt>${errors.error}</dt><dd><code>${view.code}</code></dd>${reason}${request}</dl>`,
  )
}

/** Where nothing can be done again, the person's own pages still stand. */
const LOST: ReadonlySet<Trouble> = new Set(['expired', 'missing'])

function wayOn(
  { mount, words: { account, common, errors } }: Frame,
  { trouble, again }: { readonly trouble: Trouble; readonly again?: string },
): Html {
  const link = (path: string, text: string): Html => html`<p><a href="${mount}${path}">${text}</a></p>`
  if (trouble === 'signOut') return link(PATHS.logout, common.signOut)
  if (again !== undefined) return link(again, errors.again)
  return LOST.has(trouble) ? link(PATHS.account, account.home.title) : EMPTY
}
