/** The page on which a person answers the requests of CIBA clients. */
import { EMPTY, type Html, html } from '../../process/pages/html.ts'
import { type Choice, organizationField, type Page, page, scopeList } from '../html/page.ts'

export type PendingRequest = {
  /** Names the request in the form; no credential. */
  readonly name: string
  readonly clientName: string
  readonly bindingMessage: string | null
  readonly scopes: readonly string[]
  readonly choice: Exclude<Choice, { kind: 'refused' }> | null
}

export function approvalPage(view: {
  person: string
  xsrf: string
  requests: readonly PendingRequest[]
  done: 'approved' | 'denied' | 'unmet' | 'gone' | null
}): Page {
  const notice = view.done === null ? EMPTY : html`<p role="status">${DONE[view.done]}</p>`
  const requests =
    view.requests.length === 0
      ? html`<p>No request waits for your answer. Reload this page when an application says that it sent one.</p>`
      : view.requests.map((request) => requestForm(request, view.xsrf))
  return page('Requests', html`<p>You are signed in as <strong>${view.person}</strong>.</p>${notice}${requests}`)
}

const DONE = {
  approved: 'You approved the request.',
  denied: 'You refused the request.',
  unmet: 'The request asks for an authenticator app, and you have none. It was refused.',
  gone: 'The request had expired or was answered already.',
} as const

function requestForm(request: PendingRequest, xsrf: string): Html {
  const message =
    request.bindingMessage === null
      ? EMPTY
      : html`<p>It must show you this:</p><p class="code">${request.bindingMessage}</p>`
  const approve =
    request.choice === null
      ? html`<p>You are not a member of the organization that it asks for.</p>`
      : html`${organizationField(request.choice)}<p>It will be able to:</p>${scopeList(request.scopes)}`
  const button =
    request.choice === null ? EMPTY : html`<button type="submit" name="action" value="approve">Approve</button>`
  return html`<form method="post" data-step="approve">
<h2>${request.clientName}</h2>${message}
<input type="hidden" name="xsrf" value="${xsrf}">
<input type="hidden" name="request" value="${request.name}">
${approve}${button}
<button type="submit" name="action" value="deny" class="plain" formnovalidate>Refuse</button>
</form>`
}
