/**
 * A forgotten password. A mailed link leads to choosing a new one, in the browser that asked for the mail. Another browser also needs the
 * code from that browser's page: to read somebody's mail is not enough.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { type Html, html } from '../../../shared/base/html.ts'
import { fill } from '../../../shared/pages/words.ts'
import type { Frame } from '../../html/frame.ts'
import { strong, type View } from '../../html/page.ts'
import type { Words } from '../../html/words/words.ts'
import { BusyError } from '../../limits/attempts.ts'
import type { Source } from '../../limits/devices.ts'
import { PATHS, urlOf } from '../../oauth/paths.ts'
import { isMailAddress, linkMail } from '../mail/mail.ts'
import { digestOf } from '../mail/mailed-tokens.ts'
import { opensToOthers } from '../passwords/new-password.ts'
import { isEmail } from '../sign-in/sign-in.ts'
import { signInWith, waitingSignIn } from '../sign-in/sign-in-pages.ts'
import type { AccountParts } from './deps.ts'
import { alertOf, type NewPasswordProblem, newPasswordFields, outcomeOfNew, shown } from './page-parts.ts'
import type { AccountVisit } from './visit.ts'

/** Limits of an hour. ASKS_MAX: requests from one address. MAILS_MAX: mails to one person, for strangers and for each own device. */
const ASKS_MAX = 20
export const MAILS_MAX = 5
/** How many codes can be tried for one link. */
const CODES_MAX = 5
const CODE_PURPOSE = 'reset-code'
const CODE_DIGITS = 8

export function askForLink({ mailer }: AccountParts, visit: AccountVisit): View {
  const { frame } = visit
  const { account, signIn } = frame.words
  const { title, lead, send, noMail } = account.forgotten
  if (mailer === null) return shown(frame, title, html`<p role="status">${noMail}</p>${toSignIn(visit)}`)
  return shown(
    frame,
    title,
    html`<p>${lead}</p>
<form method="post" data-step="forgotten">
<label for="email">${signIn.email}</label>
<input id="email" name="email" type="email" autocomplete="username" maxlength="254" required autofocus>
<button type="submit">${send}</button>
</form>${toSignIn(visit)}`,
  )
}

/** The link back to the sign-in, perhaps an application's, at which the person noticed that the password was forgotten. */
const toSignIn = ({ req, frame: { mount, words } }: AccountVisit): Html =>
  html`<p><a href="${mount}${waitingSignIn(req)?.path ?? PATHS.account}">${words.common.signIn}</a></p>`

/** Looks the person up only after the answer, so that neither text nor time shows whether there is an account. */
export async function sendLink(parts: AccountParts, visit: AccountVisit, form: URLSearchParams): Promise<View> {
  const { req, res, frame } = visit
  const { forgotten, mails } = frame.words.account
  const { mailer, attempts, cookies, deliveries, devices } = parts
  if (mailer === null) return askForLink(parts, visit)
  const source = devices.source(req)
  if (!(await attempts.take(`links for ${source.address}`, ASKS_MAX)))
    return shown(frame, forgotten.title, html`${alertOf(forgotten.tooMany)}${toSignIn(visit)}`, 'tooMany')
  const browser = cookies.mark(req, res)
  cookies.keepSignIn(res, waitingSignIn(req)?.id ?? '')
  const email = form.get('email') ?? ''
  deliveries.later(() => mailLink(parts, { email, source, browser, texts: mails.reset }))
  const code = codesOf(parts, browser)[0] ?? ''
  return shown(
    frame,
    forgotten.sentTitle,
    html`<p role="status">${forgotten.sent}</p><p>${forgotten.code}</p><p class="code">${spaced(code)}</p>${toSignIn(visit)}`,
  )
}

/** The code of a browser, computed with each master key. It is neither stored nor mailed. */
const codesOf = ({ masterKeys }: Pick<AccountParts, 'masterKeys'>, browser: string): readonly string[] =>
  masterKeys.derive(CODE_PURPOSE).map((key) => {
    const number = createHmac('sha256', key).update(`reset ${browser}`).digest().readBigUInt64BE()
    return String(number % 10n ** BigInt(CODE_DIGITS)).padStart(CODE_DIGITS, '0')
  })
const spaced = (code: string): string => `${code.slice(0, CODE_DIGITS / 2)} ${code.slice(CODE_DIGITS / 2)}`

async function mailLink(
  { issuer, sql, directory, tokens, mailer, attempts, log }: AccountParts,
  asked: {
    readonly email: string
    readonly source: Source
    readonly browser: string
    /** The texts in the language of the page. */
    readonly texts: Words['account']['mails']['reset']
  },
): Promise<void> {
  const { email, source, browser, texts } = asked
  const person = isEmail(email) ? await directory.userByEmail(email) : null
  // A person without a password signs in by other means: a mail must not become a further one.
  if (person === null || person.passwordHash === null || person.email === null || !isMailAddress(person.email)) {
    log.info({ event: 'password_reset_asked', user: null })
    return
  }
  if (await opensToOthers(sql, person.id)) {
    log.warn({ event: 'mail_withheld', user: person.id, reason: 'address_unproven' })
    return
  }
  const budget = source.deviceOf(person.id) ?? 'strangers'
  if (!(await attempts.take(`links to ${person.id} for ${budget}`, MAILS_MAX))) {
    log.warn({ event: 'mail_withheld', user: person.id })
    return
  }
  const token = await tokens.create(sql, 'reset', { user: person.id, email: person.email, browser })
  const mail = linkMail(texts, `${urlOf(issuer, PATHS.accountReset)}?token=${token}`)
  await mailer?.send({ to: person.email, ...mail })
  log.info({ event: 'password_reset_asked', user: person.id })
}

export async function askForNew(parts: AccountParts, visit: AccountVisit): Promise<View> {
  const found = await tokenOf(parts, visit)
  return 'view' in found ? found.view : newPasswordPage(visit.frame, found.email, null)
}

/** Sets the new password; the link is used up only when everything else is right. */
export async function takeNew(parts: AccountParts, visit: AccountVisit, form: URLSearchParams): Promise<View> {
  const { req, res, frame } = visit
  if (form.has('code')) return takeCode(parts, visit, form.get('code') ?? '')
  const found = await tokenOf(parts, visit)
  if ('view' in found) return found.view
  const password = form.get('password') ?? ''
  const problem = await parts.rules.problem({ password, repeated: form.get('repeated') ?? '', email: found.email })
  if (problem !== null) return newPasswordPage(frame, found.email, problem)
  const { address } = parts.devices.source(req)
  const passwordHash = await hashed(parts, password, address)
  if (passwordHash === null) return newPasswordPage(frame, found.email, 'busy')
  const user = await parts.passwords.reset(found.token, passwordHash)
  parts.cookies.drop(res, 'reset')
  // A sign-in of an application can go on in its own browser only; another browser comes to the account.
  const from = signInWith(parts.cookies.keptSignIn(req))?.path ?? PATHS.account
  parts.cookies.keepSignIn(res, '')
  if (user === null) return gone(frame)
  parts.log.info({ event: 'password_reset', user })
  parts.notices.send(user, 'passwordChanged', frame)
  // The device of the mailbox's owner is known from now on: tries of others do not lock it out.
  parts.devices.remember(res, user)
  const { account, common } = frame.words
  return shown(
    frame,
    account.reset.doneTitle,
    html`<p role="status">${account.reset.done}</p><p><a class="act" href="${urlOf(parts.issuer, from)}">${common.signIn}</a></p>`,
  )
}

/** The hash; null when too many are being computed. */
export async function hashed(
  { secretSemaphore, hashPassword }: AccountParts,
  password: string,
  address: string,
): Promise<string | null> {
  try {
    return await secretSemaphore(() => hashPassword(password), address)
  } catch (err) {
    if (err instanceof BusyError) return null
    throw err
  }
}

async function tokenOf(
  { sql, tokens, cookies }: AccountParts,
  { req, frame }: AccountVisit,
): Promise<{ readonly token: string; readonly email: string } | { readonly view: View }> {
  const token = cookies.kept(req, 'reset')
  const found = token === '' ? null : await tokens.find(sql, 'reset', token)
  if (found === null) return { view: gone(frame) }
  if (cookies.isSame(req, found.browser)) return { token, email: found.email }
  return { view: codePage(frame, null) }
}

/** Checks the code, which proves that the person with the link also asked for it. After that the link belongs to this browser. */
async function takeCode(parts: AccountParts, { req, res, frame }: AccountVisit, given: string): Promise<View> {
  const { sql, tokens, cookies, attempts } = parts
  const token = cookies.kept(req, 'reset')
  const found = token === '' ? null : await tokens.find(sql, 'reset', token)
  if (found === null) return gone(frame)
  const { browser, email } = found
  if (browser === null || cookies.isSame(req, browser)) return newPasswordPage(frame, email, null)
  const { tooManyCodes, goneTitle } = frame.words.account.reset
  if (!(await attempts.take(`codes for ${digestOf(token)}`, CODES_MAX)))
    return notGood(frame, goneTitle, tooManyCodes, 'tooMany')
  const digits = Buffer.from(given.replaceAll(/\D/g, '').slice(0, CODE_DIGITS).padEnd(CODE_DIGITS))
  if (!codesOf(parts, browser).some((code) => timingSafeEqual(Buffer.from(code), digits)))
    return codePage(frame, frame.words.account.reset.wrongCode)
  const moved = await tokens.moveTo(sql, token, { from: browser, to: cookies.mark(req, res) })
  return moved ? newPasswordPage(frame, email, null) : gone(frame)
}

function codePage(frame: Frame, problem: string | null): View {
  const { reset } = frame.words.account
  const described = problem === null ? html`` : html` aria-invalid="true" aria-describedby="problem"`
  return shown(
    frame,
    reset.otherBrowserTitle,
    html`<p>${reset.otherBrowser}</p>${alertOf(problem)}
<form method="post" data-step="code">
<label for="code">${reset.code}</label>
<input id="code" name="code" type="text" inputmode="numeric" autocomplete="off" pattern="[0-9 ]{8,9}" title="${reset.codeForm}" maxlength="9" required autofocus${described}>
<button type="submit">${frame.words.common.continue}</button>
</form>${another(frame)}`,
    problem === null ? 'shown' : 'invalid',
  )
}

function gone(frame: Frame): View {
  const { reset } = frame.words.account
  return notGood(frame, reset.goneTitle, reset.gone)
}

const notGood = (frame: Frame, title: string, why: string, outcome: 'invalid' | 'tooMany' = 'invalid'): View =>
  shown(frame, title, html`${alertOf(why)}${another(frame)}`, outcome)

const another = ({ mount, words }: Frame): Html =>
  html`<p><a href="${mount}${PATHS.accountForgotten}">${words.account.reset.again}</a></p>`

function newPasswordPage(frame: Frame, email: string, problem: NewPasswordProblem | null): View {
  const { reset, passwordProblems } = frame.words.account
  return shown(
    frame,
    reset.title,
    html`<p>${fill(reset.lead, { email: strong(email) })}</p>${alertOf(problem === null ? null : passwordProblems[problem])}
<form method="post" data-step="password">
${newPasswordFields(frame.words, { email, problem })}
<button type="submit">${reset.save}</button>
</form>`,
    outcomeOfNew(problem),
    'script',
  )
}
