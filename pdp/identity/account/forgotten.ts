/** A forgotten password: a link by mail, bound to the browser that asked, with which a new one is chosen. */
import type { IncomingMessage } from 'node:http'
import { html } from '../../process/pages/html.ts'
import { PATHS, urlOf } from '../oauth/paths.ts'
import { BusyError } from '../sign-in/attempts.ts'
import type { Source } from '../sign-in/devices.ts'
import { isEmail } from '../sign-in/sign-in.ts'
import { isMailAddress } from './mail.ts'
import { alertOf, type NewPasswordProblem, newPasswordFields, shown, type View } from './pages.ts'
import type { AccountParts } from './parts.ts'
import { FORGOTTEN, mails, PASSWORD_PROBLEMS, RESET } from './texts.ts'
import type { Visit } from './visit.ts'

/** In an hour: asked for from one address; sent to one person, for strangers and for each of the person's own devices. */
const ASKS_MAX = 20
export const MAILS_MAX = 5

export function askForLink({ mailer }: AccountParts): View {
  if (mailer === null) return shown(FORGOTTEN.title, html`<p role="status">${FORGOTTEN.noMail}</p>`)
  return shown(
    FORGOTTEN.title,
    html`<p>${FORGOTTEN.lead}</p>
<form method="post" data-step="forgotten">
<label for="email">${FORGOTTEN.email}</label>
<input id="email" name="email" type="email" autocomplete="username" maxlength="254" required autofocus>
<button type="submit">${FORGOTTEN.send}</button>
</form>`,
  )
}

/** Whether there is such a person is looked up after the answer, so that neither its words nor its time show it. */
export async function sendLink(parts: AccountParts, { req, res }: Visit, form: URLSearchParams): Promise<View> {
  const { mailer, mailAttempts, cookies, deliveries, devices } = parts
  if (mailer === null) return askForLink(parts)
  const source = devices.source(req)
  if (!(await mailAttempts.take(`links for ${source.address}`, ASKS_MAX)))
    return shown(FORGOTTEN.title, alertOf(FORGOTTEN.tooMany), 'tooMany')
  const browser = cookies.mark(req, res)
  const email = form.get('email') ?? ''
  deliveries.later(() => mailLink(parts, { email, source, browser }))
  return shown(FORGOTTEN.sentTitle, html`<p role="status">${FORGOTTEN.sent}</p>`)
}

async function mailLink(
  { issuer, sql, directory, tokens, mailer, mailAttempts, log }: AccountParts,
  { email, source, browser }: { readonly email: string; readonly source: Source; readonly browser: string },
): Promise<void> {
  const person = isEmail(email) ? await directory.userByEmail(email) : null
  // Who has no password here signs in elsewhere: a mail must not be a second way in.
  if (person === null || person.passwordHash === null || person.email === null || !isMailAddress(person.email)) {
    log.info({ event: 'password_reset_asked', user: null })
    return
  }
  const budget = source.deviceOf(person.id) ?? 'strangers'
  if (!(await mailAttempts.take(`links to ${person.id} for ${budget}`, MAILS_MAX))) {
    log.warn({ event: 'mail_withheld', user: person.id })
    return
  }
  const token = await tokens.create(sql, 'reset', { user: person.id, email: person.email, browser, invitation: null })
  const words = mails.reset(`${urlOf(issuer, PATHS.accountReset)}?token=${token}`, new URL(issuer).host)
  await mailer?.send({ to: person.email, ...words })
  log.info({ event: 'password_reset_asked', user: person.id })
}

export async function askForNew(parts: AccountParts, { req }: Visit): Promise<View> {
  const found = await tokenOf(parts, req)
  return 'view' in found ? found.view : newPasswordPage(found.email, null)
}

/** Uses the link up when everything else is right. */
export async function takeNew(parts: AccountParts, { req, res }: Visit, form: URLSearchParams): Promise<View> {
  const found = await tokenOf(parts, req)
  if ('view' in found) return found.view
  const password = form.get('password') ?? ''
  const problem = await parts.rules.problem({ password, repeated: form.get('repeated') ?? '', email: found.email })
  if (problem !== null) return newPasswordPage(found.email, problem)
  const { address } = parts.devices.source(req)
  const passwordHash = await hashed(parts, password, address)
  if (passwordHash === null) return newPasswordPage(found.email, 'busy')
  const user = await parts.passwords.reset(found.token, passwordHash)
  parts.cookies.drop(res, 'reset')
  if (user === null) return gone()
  parts.log.info({ event: 'password_reset', user })
  // The person of the mailbox is no stranger: tries of others do not keep them out.
  parts.devices.remember(res, user)
  return shown(
    RESET.doneTitle,
    html`<p role="status">${RESET.done}</p><p><a href="${urlOf(parts.issuer, PATHS.account)}">${RESET.signIn}</a></p>`,
  )
}

/** Null when too many are being checked right now. */
export async function hashed(
  { secretSemaphore, hashPassword }: AccountParts,
  password: string,
  address: string,
): Promise<string | null> {
  try {
    return await secretSemaphore(() => hashPassword(password), address)
  } catch (error) {
    if (error instanceof BusyError) return null
    throw error
  }
}

type Found = { readonly token: string; readonly email: string } | { readonly view: View }

async function tokenOf({ sql, tokens, cookies }: AccountParts, req: IncomingMessage): Promise<Found> {
  const token = cookies.kept(req, 'reset')
  const found = token === '' ? null : await tokens.find(sql, 'reset', token)
  if (found === null) return { view: gone() }
  if (cookies.isSame(req, found.browser)) return { token, email: found.email }
  return { view: notGood(RESET.otherBrowserTitle, RESET.otherBrowser) }
}

const gone = (): View => notGood(RESET.goneTitle, RESET.gone)
const notGood = (title: string, why: string): View =>
  shown(title, html`${alertOf(why)}<p><a href="${PATHS.accountForgotten}">${RESET.again}</a></p>`, 'invalid')

function newPasswordPage(email: string, problem: NewPasswordProblem | null): View {
  const outcome = problem === null ? 'shown' : problem === 'busy' ? 'unavailable' : 'invalid'
  return shown(
    RESET.title,
    html`<p>${RESET.lead} <strong>${email}</strong></p>${alertOf(problem === null ? null : PASSWORD_PROBLEMS[problem])}
<form method="post" data-step="password">
${newPasswordFields({ email, problem })}
<button type="submit">${RESET.save}</button>
</form>`,
    outcome,
  )
}
