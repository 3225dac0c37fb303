/** Signing in: the password, then the code of who has an authenticator app. */
import { EMPTY, type Html, html } from '../../process/pages/html.ts'
import { type Page, page } from '../html/page.ts'
import type { Outcome } from '../oauth/status.ts'

const PROBLEMS = {
  wrong: 'The e-mail address or the password is not right.',
  wrongCode: 'The code is not right, or was used already. Wait for the next one.',
  tooMany: 'There were too many attempts. Try again in a few minutes.',
  busy: 'Too many people are signing in right now. Try again in a moment.',
} as const
export type LoginProblem = keyof typeof PROBLEMS

const OUTCOMES: { readonly [problem in LoginProblem]: Outcome } = {
  wrong: 'invalid',
  wrongCode: 'invalid',
  tooMany: 'tooMany',
  busy: 'unavailable',
}
export const outcomeOf = (problem: LoginProblem | null): Outcome => (problem === null ? 'shown' : OUTCOMES[problem])

/** What the person signs in for; `application` is null on our own pages. `cancel`: there is somebody to tell. */
export type Purpose = { readonly reason: string; readonly application: string | null; readonly cancel: boolean }

export function loginPage(view: { purpose: Purpose; email: string; problem: LoginProblem | null }): Page {
  const focus = (on: boolean) => (on ? html` autofocus` : EMPTY)
  const { alert, described } = problemOf(view.problem)
  return page(
    'Sign in',
    html`${reason(view.purpose)}${alert}
<form method="post" data-step="login">
<label for="email">E-mail address</label>
<input id="email" name="email" type="email" autocomplete="username" maxlength="254" required value="${view.email}"${described}${focus(view.email === '')}>
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="current-password" maxlength="1024" required${focus(view.email !== '')}>
<button type="submit" name="action" value="login">Sign in</button>${cancel(view.purpose)}
</form>`,
  )
}

/** `hidden`: fields that come back with the code. */
export function codePage(view: {
  purpose: Purpose
  hidden: { readonly [name: string]: string }
  problem: LoginProblem | null
}): Page {
  const { alert, described } = problemOf(view.problem)
  const hidden = Object.entries(view.hidden).map(
    ([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`,
  )
  return page(
    'Enter your code',
    html`${reason(view.purpose)}${alert}
<form method="post" data-step="totp">
${hidden}
<label for="code">Code from your authenticator app</label>
<input id="code" name="code" type="text" inputmode="numeric" autocomplete="one-time-code" pattern="[0-9 ]{6,8}" title="Six digits" maxlength="8" required autofocus${described}>
<button type="submit" name="action" value="code">Continue</button>${cancel(view.purpose)}
</form>`,
  )
}

function problemOf(problem: LoginProblem | null): { alert: Html; described: Html } {
  if (problem === null) return { alert: EMPTY, described: EMPTY }
  const alert = html`<p role="alert" id="problem">${PROBLEMS[problem]}</p>`
  return { alert, described: html` aria-invalid="true" aria-describedby="problem"` }
}

function reason({ reason, application }: Purpose): Html {
  const name = application === null ? EMPTY : html` <strong>${application}</strong>`
  return html`<p>${reason}${name}</p>`
}

const cancel = (purpose: Purpose): Html =>
  purpose.cancel
    ? html`
<button type="submit" name="action" value="cancel" class="plain" formnovalidate>Cancel</button>`
    : EMPTY
