/** The device page (RFC 8628 section 3.3) and the pages around signing out. */
import { EMPTY, html } from '../../process/pages/html.ts'
import { type Page, page } from '../html/page.ts'

const PROBLEMS = {
  wrong: 'There is no such code. Compare it with the one that your device shows.',
  expired: 'This code has expired. Start again on your device.',
  used: 'This code was used already. Start again on your device.',
  stopped: 'The sign-in on your device was stopped.',
  tooMany: 'There were too many wrong codes. Try again in a minute.',
  failed: 'The sign-in on your device did not work. Start again there.',
} as const

export function deviceCodePage(view: { action: string; xsrf: string; problem: keyof typeof PROBLEMS | null }): Page {
  const alert = view.problem === null ? EMPTY : html`<p role="alert" id="problem">${PROBLEMS[view.problem]}</p>`
  const described = view.problem === null ? EMPTY : html` aria-describedby="problem"`
  return page(
    'Connect a device',
    html`${alert}<form method="post" data-step="code" action="${view.action}">
<input type="hidden" name="xsrf" value="${view.xsrf}">
<label for="code">Code on your device</label>
<input id="code" name="user_code" type="text" autocomplete="off" autocapitalize="characters" spellcheck="false" maxlength="20" required autofocus${described}>
<button type="submit">Continue</button>
</form>`,
  )
}

export function deviceConfirmPage(view: { action: string; xsrf: string; userCode: string; clientName: string }): Page {
  return page(
    'Connect a device',
    html`<p>A device that runs <strong>${view.clientName}</strong> wants to be signed in as you. It shows this code:</p>
<p class="code">${view.userCode}</p>
<p>Go on only if you started this yourself and see the code on your device.</p>
<form method="post" data-step="confirm" action="${view.action}">
<input type="hidden" name="xsrf" value="${view.xsrf}">
<input type="hidden" name="user_code" value="${view.userCode}">
<button type="submit" name="confirm" value="yes">This is my device</button>
<button type="submit" name="abort" value="yes" class="plain">Cancel</button>
</form>`,
  )
}

export function deviceDonePage(): Page {
  return page('Your device is connected', html`<p>You can close this page and continue on the device.</p>`)
}

export function logoutPage(view: { action: string; xsrf: string }): Page {
  return page(
    'Sign out',
    html`<p>Do you want to sign out everywhere in this browser?</p>
<form method="post" data-step="logout" action="${view.action}">
<input type="hidden" name="xsrf" value="${view.xsrf}">
<button type="submit" name="logout" value="yes">Sign out</button>
<button type="submit" class="plain">Stay signed in</button>
</form>`,
  )
}

/** `isHandOver`: somebody else has just signed in; otherwise nobody was signed in. */
export function handOverPage(view: { action: string; xsrf: string; isHandOver: boolean }): Page {
  const text = view.isHandOver
    ? 'Somebody else was signed in in this browser. That sign-in ends first.'
    : 'Nobody is signed in in this browser.'
  return page(
    view.isHandOver ? 'Change the person' : 'Sign out',
    html`<p>${text}</p>
<form method="post" data-step="logout" action="${view.action}">
<input type="hidden" name="xsrf" value="${view.xsrf}">
<button type="submit" name="logout" value="yes" autofocus>Continue</button>
</form>`,
  )
}

export function signedOutPage(): Page {
  return page('You are signed out', html`<p>You can close this page.</p>`)
}
