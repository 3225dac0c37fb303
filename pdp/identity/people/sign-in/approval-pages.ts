/** The page on which a person answers the requests of CIBA clients. */
import { EMPTY, type Html, html } from '../../../shared/base/html.ts'
import { fill } from '../../../shared/pages/words.ts'
import { notYou, type OfferedChoice, organizationField, scopeList } from '../../html/consent-page.ts'
import type { Frame } from '../../html/frame.ts'
import { type Page, page, strong } from '../../html/page.ts'
import type { Words } from '../../html/words/words.ts'

export type PendingRequest = {
  /** Identifies the request in the form; it is no credential. */
  readonly name: string
  readonly clientName: string
  readonly bindingMessage: string | null
  readonly scopes: readonly string[]
  readonly choice: OfferedChoice | null
}

export function approvalPage(
  frame: Frame,
  view: {
    person: string
    xsrf: string
    requests: readonly PendingRequest[]
    done: 'approved' | 'denied' | 'unmet' | 'gone' | null
  },
): Page {
  const { words } = frame
  const notice = view.done === null ? EMPTY : html`<p role="status">${words.approval[view.done]}</p>`
  const requests =
    view.requests.length === 0
      ? html`<p>${words.approval.none}</p>`
      : view.requests.map((request) => requestForm(words, request, view.xsrf))
  const person = html`<p>${fill(words.common.signedInAs, { person: strong(view.person) })}</p>`
  return page(frame, words.approval.title, html`${person}${notice}${requests}${notYou(words)}`)
}

function requestForm(words: Words, request: PendingRequest, xsrf: string): Html {
  const { approval } = words
  const message =
    request.bindingMessage === null
      ? EMPTY
      : html`<p>${approval.mustShow}</p><p class="code">${request.bindingMessage}</p>`
  const approve =
    request.choice === null
      ? html`<p>${approval.notAMember}</p>`
      : html`${organizationField(words, request.choice)}<p>${approval.willBeAble}</p>${scopeList(words, request.scopes)}`
  const button =
    request.choice === null
      ? EMPTY
      : html`<button type="submit" name="action" value="approve">${approval.approve}</button>`
  return html`<form method="post" data-step="approve">
<h2>${request.clientName}</h2>${message}
<input type="hidden" name="xsrf" value="${xsrf}">
<input type="hidden" name="request" value="${request.name}">
${approve}${button}
<button type="submit" name="action" value="deny" class="plain" formnovalidate>${approval.refuse}</button>
</form>`
}
