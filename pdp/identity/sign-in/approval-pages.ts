/** The page on which a person answers the requests of CIBA clients. */
import { type Choice, escapeHtml, organizationField, type Page, page, scopeList } from '../html/page.ts'

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
  const notice = view.done === null ? '' : `<p role="status">${DONE[view.done]}</p>`
  const requests =
    view.requests.length === 0
      ? '<p>Nothing waits for your answer. Reload this page when an application says that it does.</p>'
      : view.requests.map((request) => requestForm(request, view.xsrf)).join('')
  return page(
    'Requests',
    `<p>You are signed in as <strong>${escapeHtml(view.person)}</strong>.</p>${notice}${requests}`,
  )
}

const DONE = {
  approved: 'You approved the request.',
  denied: 'You refused the request.',
  unmet: 'The request asks for an authenticator app, and you have none. It was refused.',
  gone: 'The request had expired or was answered already.',
} as const

function requestForm(request: PendingRequest, xsrf: string): string {
  const message =
    request.bindingMessage === null
      ? ''
      : `<p>It must show you this:</p><p class="code">${escapeHtml(request.bindingMessage)}</p>`
  const approve =
    request.choice === null
      ? '<p>You are not a member of the organization that it asks for.</p>'
      : `${organizationField(request.choice)}<p>It will be able to:</p>${scopeList(request.scopes)}`
  const button = request.choice === null ? '' : '<button type="submit" name="action" value="approve">Approve</button>'
  return `<form method="post" data-step="approve">
<h2>${escapeHtml(request.clientName)}</h2>${message}
<input type="hidden" name="xsrf" value="${escapeHtml(xsrf)}">
<input type="hidden" name="request" value="${escapeHtml(request.name)}">
${approve}${button}
<button type="submit" name="action" value="deny" class="plain" formnovalidate>Refuse</button>
</form>`
}
