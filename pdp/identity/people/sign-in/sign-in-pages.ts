/** Signing in: the password, then a code if the person has an authenticator app. */
import type { IncomingMessage } from 'node:http'
import { EMPTY, type Html, html } from '../../../shared/base/html.ts'
import { fill } from '../../../shared/pages/words.ts'
import { otherAccount } from '../../html/consent-page.ts'
import type { Frame } from '../../html/frame.ts'
import { type Page, page, strong } from '../../html/page.ts'
import { autofillForm } from '../../html/page-scripts.ts'
import type { Words } from '../../html/words/words.ts'
import { PATHS } from '../../oauth/paths.ts'
import type { StatusName } from '../../oauth/status.ts'
import { RECOVERY_CODES_COUNT } from '../factors/recovery-codes.ts'

export type LoginProblem = 'wrong' | 'wrongCode' | 'wrongRecovery' | 'wrongPasskey' | 'tooMany' | 'busy'
/** `noCookies`: the sign-in was right, but the browser keeps no cookies. */
export type PageProblem = LoginProblem | 'noCookies'

const OUTCOMES: { readonly [problem in PageProblem]: StatusName } = {
  wrong: 'invalid',
  wrongCode: 'invalid',
  wrongRecovery: 'invalid',
  wrongPasskey: 'invalid',
  tooMany: 'tooMany',
  busy: 'unavailable',
  noCookies: 'shown',
}
export const outcomeOf = (problem: PageProblem | null): StatusName => (problem === null ? 'shown' : OUTCOMES[problem])

/** The purpose of the sign-in: an application, to which the person can refuse it, or a page of our own. */
export type Purpose =
  | { readonly kind: 'application'; readonly name: string }
  | { readonly kind: 'requests' | 'account' | 'unsent' | 'again' | 'withCode' }

export function loginPage(
  frame: Frame,
  view: {
    readonly purpose: Purpose
    readonly email: string
    readonly problem: PageProblem | null
    /** Buttons of other providers. */
    readonly elsewhere?: Html
    /** Options for the browser; null: passkeys are not offered. */
    readonly passkeys?: object | null
    /** The interaction to which a person comes back who has forgotten the password. */
    readonly from?: string
  },
): Page {
  const { signIn, common } = frame.words
  const { alert, described } = problemOf(frame.words, view.problem)
  const offer = view.passkeys ?? null
  const from: [string, string][] = view.from === undefined ? [] : [[FROM, view.from]]
  const forgotten = new URLSearchParams([['ui_locales', frame.words.lang], ...from])
  return page(
    frame,
    signIn.title,
    html`${reason(frame.words, view.purpose)}${alert}
<form method="post" data-step="login">
<label for="email">${signIn.email}</label>
<input id="email" name="email" type="email" autocomplete="${offer === null ? 'username' : 'username webauthn'}" maxlength="254" required value="${view.email}"${described}${focus(view.email === '')}>
<label for="password">${signIn.password}</label>
<input id="password" name="password" type="password" autocomplete="current-password" maxlength="1024" required data-show="${common.showPassword}"${focus(view.email !== '')}>
<button type="submit" name="action" value="login">${common.signIn}</button>${cancel(frame.words, view.purpose)}
</form>${frame.passkeys ? passkeyForm(frame.words.factors.passkeys.signIn) : EMPTY}${view.elsewhere ?? EMPTY}
<p><a href="${frame.mount}${PATHS.accountForgotten}?${forgotten.toString()}">${signIn.forgotten}</a></p>${offer === null ? EMPTY : autofillForm(offer)}`,
    { files: [PATHS.pageScript, ...(offer === null ? [] : [PATHS.passkeyScript])] },
  )
}

/** `hidden`: fields that come back with the code. */
export function codePage(
  frame: Frame,
  view: {
    purpose: Purpose
    hidden: { readonly [name: string]: string }
    problem: LoginProblem | null
    /** The person may use a passkey instead. */
    passkey: boolean
  },
): Page {
  const { code, common } = frame.words
  const { alert, described } = problemOf(frame.words, view.problem)
  const hidden = hiddenFields(view.hidden)
  return page(
    frame,
    code.title,
    html`${reason(frame.words, view.purpose)}${alert}
<form method="post" data-step="totp">
${hidden}
<label for="code">${code.label}</label>
<input id="code" name="code" type="text" inputmode="numeric" autocomplete="one-time-code" pattern="[0-9 ]{6,8}" title="${code.form}" maxlength="8" required${focus(view.problem !== 'wrongRecovery')}${view.problem === 'wrongRecovery' ? EMPTY : described}>
<button type="submit" name="action" value="code">${common.continue}</button>${cancel(frame.words, view.purpose)}
</form>${view.passkey ? passkeyForm(frame.words.factors.passkeys.instead, hidden) : EMPTY}${recoveryForm(frame.words, hidden, view.problem)}${anotherAccount(frame.words, view.purpose)}`,
  )
}

const focus = (on: boolean): Html => (on ? html` autofocus` : EMPTY)

export const hiddenFields = (fields: { readonly [name: string]: string }): readonly Html[] =>
  Object.entries(fields).map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)

const passkeyForm = (text: string, hidden: readonly Html[] = []): Html =>
  html`<form method="post" data-step="passkey" class="other">${hidden}<button type="submit" name="action" value="passkey" class="plain">${text}</button></form>`

/** The page for a missing second factor. `from`: the interaction that asks for it. */
export function secondFactorNeededPage(
  frame: Frame,
  { application, from }: { readonly application: string; readonly from: string },
): Page {
  const { words, mount } = frame
  const { needed, app, passkeys } = words.factors
  const add = (path: string, text: string): Html =>
    html`<a class="act" href="${mount}${path}?${FROM}=${from}">${text}</a>`
  return page(
    frame,
    needed.title,
    html`<p>${fill(needed.lead, { application: strong(application) })}</p><p>${needed.choose}</p>
<p>${add(PATHS.accountAuthenticator, app.title)}${add(PATHS.accountPasskeys, passkeys.add)}</p>
<form method="post" data-step="needed">${cancel(words, { kind: 'application', name: application })}
</form>${otherAccount(words)}`,
  )
}

const FROM = 'sign_in'
const INTERACTION = /^[A-Za-z0-9_-]{1,64}$/

type WaitingSignIn = { readonly id: string; readonly path: string; readonly query: string }

/** The sign-in to which the person comes back from a page of the account, from the query of this page. */
export const waitingSignIn = ({ url }: Pick<IncomingMessage, 'url'>): WaitingSignIn | null =>
  signInWith(new URLSearchParams(url?.split('?')[1] ?? '').get(FROM) ?? '')

export const signInWith = (id: string): WaitingSignIn | null =>
  INTERACTION.test(id) ? { id, path: `${PATHS.interaction}/${id}`, query: `${FROM}=${id}` } : null

/** A page after the use of a recovery code: how many are left, where to continue, and what to do about a lost device. */
export function recoveryUsedPage(frame: Frame, { left, to }: { readonly left: number; readonly to: string }): Page {
  const { recovery } = frame.words.factors
  const counts = { left: String(left), count: String(RECOVERY_CODES_COUNT) }
  return page(
    frame,
    recovery.usedTitle,
    html`<p role="status">${fill(recovery.used, counts)}</p><p>${recovery.usedNext}</p>
<p><a class="act" href="${to}">${recovery.goOn}</a><a class="act plain" href="${frame.mount}${PATHS.account}">${recovery.toAccount}</a></p>`,
  )
}

/** A form for people who have lost the device that gives the code. */
export function recoveryForm(
  { factors: { recovery } }: Words,
  hidden: readonly Html[],
  problem: LoginProblem | null,
): Html {
  const isWrong = problem === 'wrongRecovery'
  const described = isWrong ? html` aria-invalid="true" aria-describedby="problem"` : EMPTY
  return html`<details${isWrong ? html` open` : EMPTY}><summary>${recovery.lost}</summary>
<form method="post" data-step="recovery">${hidden}
<label for="recovery">${recovery.label}</label>
<input id="recovery" name="code" type="text" autocomplete="off" autocapitalize="characters" spellcheck="false" title="${recovery.form}" maxlength="40" required${focus(isWrong)}${described}>
<button type="submit" name="action" value="code" class="plain">${recovery.use}</button></form></details>`
}

export function problemOf({ signIn, factors }: Words, problem: PageProblem | null): { alert: Html; described: Html } {
  if (problem === null) return { alert: EMPTY, described: EMPTY }
  const elsewhere = { wrongRecovery: factors.recovery.wrong, wrongPasskey: factors.passkeys.wrong }
  const text = { ...signIn, ...elsewhere }[problem]
  const alert = html`<p role="alert" id="problem">${text}</p>`
  return { alert, described: html` aria-invalid="true" aria-describedby="problem"` }
}

const REASONS = {
  requests: 'toSeeRequests',
  account: 'toAccount',
  unsent: 'unsent',
  again: 'again',
  withCode: 'withCode',
} as const

export function reason({ signIn }: Words, purpose: Purpose): Html {
  if (purpose.kind !== 'application') return html`<p>${signIn[REASONS[purpose.kind]]}</p>`
  return html`<p>${fill(signIn.toApplication, { application: strong(purpose.name) })}</p>`
}

/** The person who is to give a second factor may be signed in with the wrong account. */
export const anotherAccount = (words: Words, { kind }: Purpose): Html =>
  kind === 'application' || kind === 'withCode' ? otherAccount(words) : EMPTY

const cancel = ({ common }: Words, purpose: Purpose): Html =>
  purpose.kind === 'application'
    ? html`
<button type="submit" name="action" value="cancel" class="plain" formnovalidate>${common.cancel}</button>`
    : EMPTY
