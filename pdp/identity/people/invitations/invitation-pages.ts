/** The pages of an invitation, for each kind of person who may open its link. */
import { EMPTY, type Html, html } from '../../../shared/base/html.ts'
import { fill } from '../../../shared/pages/words.ts'
import type { Frame } from '../../html/frame.ts'
import { strong, type View } from '../../html/page.ts'
import { PATHS } from '../../oauth/paths.ts'
import {
  alertOf,
  hidden,
  type NewPasswordProblem,
  newPasswordFields,
  outcomeOfNew,
  shown,
} from '../account/page-parts.ts'
import type { Person } from '../account/visit.ts'
import type { PendingInvitation } from './invitation-offer.ts'

export const acceptPage = (frame: Frame, found: PendingInvitation, { xsrf }: Person): View =>
  shown(
    frame,
    frame.words.joining.title,
    html`${gift(frame, found)}
<form method="post" data-step="join">${hidden({ xsrf })}
<button type="submit" name="action" value="accept">${frame.words.joining.accept}</button>
<button type="submit" name="action" value="decline" class="plain">${frame.words.joining.decline}</button>
</form>`,
  )

export function newPersonPage(
  frame: Frame,
  found: PendingInvitation,
  view: { readonly person: Person | null; readonly name: string; readonly problem: NewPasswordProblem | null },
): View {
  const { person, name, problem } = view
  const { joining, account } = frame.words
  const replaces = person === null ? EMPTY : html`<p>${fill(joining.replaces, { person: strong(nameOf(person)) })}</p>`
  return shown(
    frame,
    joining.title,
    html`${gift(frame, found)}<p>${joining.newHere}</p>${replaces}${alertOf(problem === null ? null : account.passwordProblems[problem])}
<form method="post" data-step="join">
<label for="name">${joining.name}</label>
<input id="name" name="name" type="text" autocomplete="name" maxlength="256" value="${name}">
${newPasswordFields(frame.words, { email: found.invitation.email, problem })}
<button type="submit" name="action" value="accept">${joining.create}</button>
<button type="submit" name="action" value="decline" class="plain" formnovalidate>${joining.decline}</button>
</form>`,
    outcomeOfNew(problem),
    'script',
  )
}

export function otherPersonPage(frame: Frame, found: PendingInvitation, person: Person): View {
  const { joining } = frame.words
  const to = new URLSearchParams({ to: PATHS.accountInvitation, ui_locales: frame.words.lang })
  return shown(
    frame,
    joining.title,
    html`${gift(frame, found)}<p role="alert" id="problem">${fill(joining.notYou, { person: strong(nameOf(person)) })}</p>
<p><a class="act" href="${frame.mount}${PATHS.accountSignIn}?${to.toString()}">${joining.signInAs}</a></p>`,
    'invalid',
  )
}

const nameOf = ({ user }: Person): string => user.email ?? user.name ?? user.id

function gift({ words: { joining } }: Frame, found: PendingInvitation): Html {
  const { invitation, inviter, organizationName, roles } = found
  const lead = fill(joining.lead, { inviter: strong(inviter), email: strong(invitation.email) })
  const given = roles.length === 0 ? EMPTY : html`<dt>${joining.roles}</dt><dd>${roles.join(', ')}</dd>`
  return html`<p>${lead}</p>
<dl class="facts"><dt>${joining.organization}</dt><dd>${strong(organizationName)} (${invitation.organization})</dd>
<dt>${joining.tier}</dt><dd>${joining.tiers[invitation.role]}</dd>${given}
<dt>${joining.until}</dt><dd>${invitation.expiresAt.slice(0, 10)}</dd></dl>`
}
