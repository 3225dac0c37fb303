/** Pages for a person's own authenticator app and its recovery codes. */
import { EMPTY, type Html, html } from '../../../shared/base/html.ts'
import { fillText } from '../../../shared/pages/words.ts'
import type { Frame } from '../../html/frame.ts'
import type { View } from '../../html/page.ts'
import { qrCode } from '../../html/qr-code.ts'
import { PATHS } from '../../oauth/paths.ts'
import { RECOVERY_CODES_COUNT } from '../factors/recovery-codes.ts'
import type { Secret } from '../factors/second-factor.ts'
import { contextOf } from '../passwords/new-password.ts'
import { withCode } from '../sign-in/acr.ts'
import { startSession } from '../sign-in/approval-sign-in.ts'
import { waitingSignIn } from '../sign-in/sign-in-pages.ts'
import type { AccountParts } from './deps.ts'
import { signedOutPage } from './own-sign-in.ts'
import { alertOf, hidden, shown } from './page-parts.ts'
import type { AccountVisit, Change, Person } from './visit.ts'

export async function showAuthenticator(parts: AccountParts, visit: AccountVisit, person: Person): Promise<View> {
  const { frame } = visit
  if (!(await parts.secondFactor.kinds(person.user.id)).app) return proposal(parts, { visit, person }, null)
  const { app } = frame.words.factors
  return shown(
    frame,
    app.title,
    html`<p>${app.isOn}</p>
${changeForm(frame, person, { action: 'remove', text: app.remove, lead: app.removeLead })}${await recoveryPart(parts, frame, person)}${back(visit)}`,
  )
}

/** The recovery codes, shown to a person with any kind of second factor. */
export async function recoveryPart({ secondFactor }: AccountParts, frame: Frame, person: Person): Promise<Html> {
  const left = await secondFactor.recoveryCodesLeft(person.user.id)
  const { recovery } = frame.words.factors
  return html`<h2>${recovery.title}</h2><p>${leftOf(frame, left)}</p>
${changeForm(frame, person, { action: 'renew', text: recovery.renew, lead: recovery.renewLead })}`
}

const changeForm = (
  { mount }: Frame,
  { xsrf }: Person,
  { action, text, lead }: { readonly action: string; readonly text: string; readonly lead: string },
): Html =>
  html`<form method="post" action="${mount}${PATHS.accountAuthenticator}" data-step="${action}">${hidden({ xsrf })}
<p>${lead}</p><button type="submit" name="action" value="${action}" class="plain">${text}</button></form>`

export async function changeAuthenticator(parts: AccountParts, visit: AccountVisit, change: Change): Promise<View> {
  switch (change.form.get('action')) {
    case 'confirm':
      return confirm(parts, visit, change)
    case 'renew':
      return renew(parts, visit, change.person)
    case 'remove':
      return remove(parts, visit, change.person)
    default:
      return showAuthenticator(parts, visit, change.person)
  }
}

async function confirm(parts: AccountParts, visit: AccountVisit, { person, form }: Change): Promise<View> {
  const { user, session, signedInAt } = person
  const proposed = { session: session.uid, sealed: form.get('sealed') ?? '', code: form.get('code') ?? '' }
  const confirmed = await parts.secondFactor.confirm(user, proposed, contextOf(user.id))
  if (confirmed === null) return proposal(parts, { visit, person }, { problem: 'expired', sealed: '' })
  if (confirmed === 'wrong') return proposal(parts, { visit, person }, { problem: 'wrong', ...proposed })
  if (confirmed === 'present') return showAuthenticator(parts, visit, person)
  parts.log.info({ event: 'authenticator_added', user: user.id })
  parts.notices.send(user.id, 'appAdded', visit.frame)
  // The person has just given a code, so this browser's sign-in now counts as one with password and code.
  await startSession(parts, { ...visit, session }, { accountId: user.id, ts: signedInAt, ...withCode(session.amr) })
  return codesPage(visit, confirmed)
}

async function renew(parts: AccountParts, visit: AccountVisit, person: Person): Promise<View> {
  const by = { session: person.session.uid }
  const codes = await parts.secondFactor.renewRecoveryCodes(person.user.id, by, contextOf(person.user.id))
  if (codes === null) return showAuthenticator(parts, visit, person)
  parts.log.info({ event: 'recovery_codes_renewed', user: person.user.id })
  parts.notices.send(person.user.id, 'codesRenewed', visit.frame)
  return codesPage(visit, codes)
}

async function remove(parts: AccountParts, visit: AccountVisit, person: Person): Promise<View> {
  const { user, session } = person
  const removed = await parts.secondFactor.remove(user.id, { session: session.uid }, contextOf(user.id))
  if (!removed) return showAuthenticator(parts, visit, person)
  parts.log.info({ event: 'authenticator_removed', user: user.id })
  parts.notices.send(user.id, 'appRemoved', visit.frame)
  const { app } = visit.frame.words.factors
  return signedOutPage(visit, { title: app.removedTitle, text: app.removed })
}

/** A new secret, or the one that was proposed before. */
async function proposal(
  { secondFactor }: AccountParts,
  { visit, person }: { readonly visit: AccountVisit; readonly person: Person },
  former: { readonly problem: 'wrong' | 'expired'; readonly sealed: string } | null,
): Promise<View> {
  const { frame } = visit
  const { user, session, xsrf } = person
  const known = former === null ? null : secondFactor.proposed(user, session.uid, former.sealed)
  const offered =
    known === null || former === null ? secondFactor.propose(user, session.uid) : { ...known, sealed: former.sealed }
  const { app } = frame.words.factors
  const problem = former?.problem ?? null
  const described = problem === null ? EMPTY : html` aria-invalid="true" aria-describedby="problem"`
  return shown(
    frame,
    app.title,
    html`<p>${app.lead}</p>${alertOf(problem === null ? null : app[problem])}${await keyOf(frame, offered)}
<form method="post" data-step="confirm">${hidden({ xsrf, sealed: offered.sealed })}
<label for="code">${app.label}</label>
<input id="code" name="code" type="text" inputmode="numeric" autocomplete="one-time-code" pattern="[0-9 ]{6,8}" title="${frame.words.code.form}" maxlength="8" required${described}>
<button type="submit" name="action" value="confirm">${app.confirm}</button>
</form>${back(visit)}`,
    problem === null ? 'shown' : 'invalid',
  )
}

async function keyOf(frame: Frame, { secret, uri }: Secret): Promise<Html> {
  const { app } = frame.words.factors
  return html`<p>${app.scan}</p>${await qrCode(uri, app.picture)}
<p>${app.key} <code class="key">${secret.match(/.{1,4}/g)?.join(' ') ?? ''}</code></p>
<p><a href="${uri}">${app.openHere}</a></p>`
}

export function codesPage(visit: AccountVisit, codes: readonly string[]): View {
  const { frame } = visit
  const { recovery } = frame.words.factors
  return shown(
    frame,
    recovery.title,
    html`<p role="status">${recovery.lead}</p>
<ol class="codes" data-copy="${recovery.copy}" data-copied="${recovery.copied}" data-print="${recovery.print}">${codes.map((code) => html`<li><code>${code}</code></li>`)}</ol>
<p><a class="act" href="${wayBack(visit) ?? `${frame.mount}${PATHS.account}`}">${recovery.kept}</a></p>`,
    'shown',
    'script',
  )
}

export const leftOf = ({ words }: Frame, left: number): string =>
  fillText(words.factors.recovery.left, { left: String(left), count: String(RECOVERY_CODES_COUNT) })

export function back(visit: AccountVisit): Html {
  const { mount, words } = visit.frame
  const waiting = wayBack(visit)
  return waiting === null
    ? html`<p><a href="${mount}${PATHS.account}">${words.factors.app.back}</a></p>`
    : html`<p><a href="${waiting}">${words.factors.needed.goOn}</a></p>`
}

/** A link back to a sign-in that waits for a second factor, which only the same browser can continue; null: no sign-in waits. */
function wayBack({ req, frame }: AccountVisit): string | null {
  const waiting = waitingSignIn(req)
  return waiting === null ? null : `${frame.mount}${waiting.path}`
}
