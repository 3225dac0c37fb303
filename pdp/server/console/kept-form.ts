/** A form that could not be accepted now: the page shows what the person typed, to send it again after the next sign-in. */

import { EMPTY, type Html, html } from '../../shared/base/html.ts'
import type { Log } from '../../shared/process/log.ts'
import { asHttpProblem } from '../serve/http/problem-response.ts'
import { isFault, STATUS } from '../serve/http/status.ts'
import { hidden, name, problems } from './parts.ts'

/** The form as it was sent: `url` with its query, and all fields but the session's token. */
export type SentForm = { readonly url: string; readonly fields: readonly (readonly [name: string, value: string])[] }

export function sentForm(url: string, body: unknown): SentForm {
  const all = typeof body === 'object' && body !== null ? Object.entries(body) : []
  return { url, fields: all.filter(([key, value]) => key !== 'csrf' && typeof value === 'string') }
}

/** `csrf` null: there is no session yet. A form with the token of an earlier session is shown once more before it counts. */
export function keptForm({ url, fields }: SentForm, csrf: string | null): Html {
  if (fields.length === 0) return EMPTY
  const shown = fields.map(([key, value]) => html`<dt>${name(key)}</dt><dd><pre>${name(value)}</pre></dd>`)
  return html`<form method="post" action="${url}">${csrf === null ? EMPTY : hidden('csrf', csrf)}${fields.map(([key, value]) => hidden(key, value))}
<details open><summary>What you sent</summary><dl>${shown}</dl></details>
<button type="submit">Send it again</button></form>`
}

/** A link for the page of a kept form, which stays open. */
export const signInBeside = (to: string): Html =>
  html`<p><a href="${to}" target="_blank">Sign in and come back</a> (in a new tab: this page keeps what you sent, so send it again from here).</p>`

export type Refused = { readonly title: string; readonly body: Html; readonly status: number }

/** Answers a refused form if its screen does not do so, for example when a right ended after the form was shown. */
export function refusedForm(
  { log, requestId, csrf }: { readonly log: Log; readonly requestId: string; readonly csrf: string },
  sent: SentForm,
  err: unknown,
): Refused {
  const problem = asHttpProblem(err)
  const isUnsure = isFault(problem.code)
  if (isUnsure) log.error({ event: 'request_failed', request_id: requestId, code: problem.code, err: problem.cause })
  const outcome = isUnsure
    ? 'It is not known whether this was written: look before you send it again.'
    : 'Nothing was written. What you sent stands here, and can be sent again when the reason is gone.'
  const body = html`${problems(problem.message, problem.issues)}<p>${outcome}</p>
<p><small>Request ${requestId}</small></p>${keptForm(sent, csrf)}`
  const title = problem.code === 'permission_denied' ? 'You may not do this' : 'This did not work'
  return { title, body, status: STATUS[problem.code].http }
}
