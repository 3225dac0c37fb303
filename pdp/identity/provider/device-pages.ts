/** The pages for a device's code (RFC 8628 section 3.3), for signing out, and for handing over an answer. */
import { createHash } from 'node:crypto'
import { EMPTY, html } from '../../shared/base/html.ts'
import { fill } from '../../shared/pages/words.ts'
import { scopeList } from '../html/consent-page.ts'
import type { Frame } from '../html/frame.ts'
import { type Page, page, strong } from '../html/page.ts'
import { PATHS } from '../oauth/paths.ts'

/** The reason to ask for the code again. */
export type CodeProblem = 'wrong' | 'expired' | 'used' | 'stopped' | 'tooMany' | 'failed'

export function deviceCodePage(
  frame: Frame,
  view: { action: string; xsrf: string; problem: CodeProblem | null },
): Page {
  const { device, common } = frame.words
  const alert = view.problem === null ? EMPTY : html`<p role="alert" id="problem">${device[view.problem]}</p>`
  const described = view.problem === null ? EMPTY : html` aria-describedby="problem"`
  return page(
    frame,
    device.title,
    html`${alert}<form method="post" data-step="code" action="${view.action}">
<input type="hidden" name="xsrf" value="${view.xsrf}">
<label for="code">${device.label}</label>
<input id="code" name="user_code" type="text" autocomplete="off" autocapitalize="characters" spellcheck="false" maxlength="20" required autofocus${described}>
<button type="submit">${common.continue}</button>
</form>`,
  )
}

export function deviceConfirmPage(
  frame: Frame,
  view: {
    action: string
    xsrf: string
    userCode: string
    clientName: string
    scopes: readonly string[]
    /** The organization that the device names; null: the person may choose one later. */
    organization: string | null
  },
): Page {
  const { words } = frame
  const { device, common } = words
  const organization =
    view.organization === null
      ? EMPTY
      : html`<p>${fill(device.organization, { organization: strong(view.organization) })}</p>`
  return page(
    frame,
    device.title,
    html`<p>${fill(device.asks, { application: strong(view.clientName) })}</p>
<p class="code">${view.userCode}</p>
${organization}<p>${device.willBeAble}</p>${scopeList(words, view.scopes)}
<p>${device.onlyYours}</p>
<form method="post" data-step="confirm" action="${view.action}">
<input type="hidden" name="xsrf" value="${view.xsrf}">
<input type="hidden" name="user_code" value="${view.userCode}">
<button type="submit" name="confirm" value="yes">${device.mine}</button>
<button type="submit" name="abort" value="yes" class="plain">${common.cancel}</button>
</form>`,
  )
}

export function deviceDonePage(frame: Frame): Page {
  const { device } = frame.words
  return page(frame, device.connected, html`<p>${device.goOn}</p>`)
}

export function logoutPage(frame: Frame, view: { action: string; xsrf: string }): Page {
  const { signOut, common } = frame.words
  return page(
    frame,
    signOut.title,
    html`<p>${signOut.question}</p>
<form method="post" data-step="logout" action="${view.action}">
<input type="hidden" name="xsrf" value="${view.xsrf}">
<button type="submit" name="logout" value="yes">${common.signOut}</button>
<button type="submit" class="plain">${signOut.stay}</button>
</form>`,
  )
}

/** The page that asks to continue. `isHandOver`: another person has just signed in; false: there was no signed-in person. */
export function handOverPage(frame: Frame, view: { action: string; xsrf: string; isHandOver: boolean }): Page {
  const { signOut, common } = frame.words
  return page(
    frame,
    view.isHandOver ? signOut.changeTitle : signOut.title,
    html`<p>${view.isHandOver ? signOut.change : signOut.nobody}</p>
<form method="post" data-step="logout" action="${view.action}">
<input type="hidden" name="xsrf" value="${view.xsrf}">
<button type="submit" name="logout" value="yes" autofocus>${common.continue}</button>
</form>`,
  )
}

export function signedOutPage(frame: Frame): Page {
  const { signOut, common } = frame.words
  const again = html`<p><a href="${frame.mount}${PATHS.account}">${common.signIn}</a></p>`
  return page(frame, signOut.done, html`<p>${common.canClose}</p>${again}`)
}

/** Hands an answer to the application (OAuth 2.0 Form Post Response Mode): a script sends the form, or the person presses the button. */
export function formPostPage(
  frame: Frame,
  view: { action: string; fields: readonly (readonly [name: string, value: string])[] },
): Page {
  const { formPost, common } = frame.words
  const fields = view.fields.map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)
  const body = html`<p>${formPost.text}</p>
<form method="post" action="${view.action}">
${fields}
<button type="submit" autofocus>${common.continue}</button>
</form><script>${SEND}</script>`
  return page(frame, formPost.title, body, { script: SEND_SOURCE })
}
const SEND = html`document.forms[0].submit()`
const SEND_SOURCE = `'sha256-${createHash('sha256').update(SEND.toString()).digest('base64')}'`
