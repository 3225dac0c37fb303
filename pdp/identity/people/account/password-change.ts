/** Changes a password for a person who knows the current one. */
import { html } from '../../../shared/base/html.ts'
import type { Frame } from '../../html/frame.ts'
import type { View } from '../../html/page.ts'
import { BY_PASSWORD } from '../sign-in/acr.ts'
import { startSession } from '../sign-in/approval-sign-in.ts'
import type { AccountParts } from './deps.ts'
import { hashed } from './forgotten.ts'
import { PAGE } from './own-sign-in.ts'
import {
  accountLink,
  alertOf,
  donePage,
  hidden,
  type NewPasswordProblem,
  newPasswordFields,
  outcomeOfNew,
  shown,
  usernameField,
} from './page-parts.ts'
import type { AccountVisit, Change, Person } from './visit.ts'

export const showChange = async (_parts: AccountParts, { frame }: AccountVisit, person: Person): Promise<View> =>
  changePage(frame, person, null)

export async function takeChange(parts: AccountParts, visit: AccountVisit, { person, form }: Change): Promise<View> {
  const { id, email } = person.user
  const password = form.get('password') ?? ''
  // The new password comes first: a mistake in it reveals nothing, and costs no try of the current password.
  const problem = await parts.rules.problem({ password, repeated: form.get('repeated') ?? '', email })
  if (problem !== null) return changePage(visit.frame, person, problem)
  const source = parts.devices.source(visit.req)
  // Read before the current password is proven: a password set meanwhile must not be overwritten by a person who knows only the old one.
  const stored = email === null ? null : await parts.directory.userByEmail(email)
  const proven = await parts.signIn.password({
    ...{ email: email ?? '', password: form.get('present') ?? '', client: PAGE, source },
  })
  if ('problem' in proven) return changePage(visit.frame, person, PROBLEMS[proven.problem])
  const passwordHash = await hashed(parts, password, source.address)
  if (passwordHash === null) return changePage(visit.frame, person, 'busy')
  const formerHash = stored?.id === id ? stored.passwordHash : null
  const by = { session: person.session.uid }
  if (formerHash === null || !(await parts.passwords.change(id, { formerHash, passwordHash, by })))
    return changePage(visit.frame, person, 'wrong')
  parts.log.info({ event: 'password_changed', user: id })
  parts.notices.send(id, 'passwordChanged', visit.frame)
  // All sessions have ended. The new session counts as one by password only, since the person has given nothing else.
  const { Session } = parts.provider()
  const ts = Math.floor(parts.clock() / 1_000)
  await startSession(parts, { ...visit, session: new Session() }, { accountId: id, ts, ...BY_PASSWORD })
  const { doneTitle, done, back } = visit.frame.words.account.change
  return donePage(visit.frame, { title: doneTitle, text: done, back })
}

const PROBLEMS = {
  wrong: 'wrong',
  wrongCode: 'wrong',
  wrongRecovery: 'wrong',
  wrongPasskey: 'wrong',
  tooMany: 'tooMany',
  busy: 'busy',
} as const

function changePage(frame: Frame, person: Person, problem: NewPasswordProblem | null): View {
  const { change, passwordProblems } = frame.words.account
  return shown(
    frame,
    change.title,
    html`${alertOf(problem === null ? null : passwordProblems[problem])}
<form method="post" data-step="change">${hidden({ xsrf: person.xsrf })}${usernameField(person.user.email)}
<label for="present">${change.present}</label>
<input id="present" name="present" type="password" autocomplete="current-password" maxlength="1024" required>
${newPasswordFields(frame.words, { email: null, problem })}
<button type="submit">${change.save}</button>
</form>${accountLink(frame, change.back)}`,
    outcomeOfNew(problem),
    'script',
  )
}
