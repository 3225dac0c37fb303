/** The page for an error: what it means, what to do, a link that leads on, and the request id to name when asking for help. */
import { EMPTY, type Html, html } from '../../shared/base/html.ts'
import { PATHS } from '../oauth/paths.ts'
import type { Frame } from './frame.ts'
import { type Page, page } from './page.ts'
import type { Words } from './words/words.ts'

type Texts = { readonly title: string; readonly text: string }
/** The cause of the page, as a key of its texts. */
export type Trouble = {
  [name in keyof Words['errors']]: Words['errors'][name] extends Texts ? name : never
}[keyof Words['errors']]

// Troubles by the codes of RFC 6749 section 4.1.2.1 and its extensions; any other code is a mistake of the application.
const TROUBLES: { readonly [code: string]: Trouble | undefined } = {
  access_denied: 'refused',
  server_error: 'failed',
  temporarily_unavailable: 'unavailable',
}
export const troubleOf = (code: string): Trouble => TROUBLES[code] ?? 'application'

/**
 * `detail` is for the application's developers: English text of oidc-provider, never of an exception. `again`: path and query of
 * the page to open again, below the issuer's path.
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

/** Troubles after which no page can be opened again; the person can still open the account. */
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
