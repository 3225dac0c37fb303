/** Proving an address: a link by mail, confirmed by who is signed in as the person of that address. */
import { DIRECTORY } from '../../domain/log.ts'
import { html } from '../../process/pages/html.ts'
import { PATHS, urlOf } from '../oauth/paths.ts'
import { MAILS_MAX } from './forgotten.ts'
import { isMailAddress } from './mail.ts'
import { alertOf, hidden, shown, type View } from './pages.ts'
import type { AccountParts } from './parts.ts'
import { contextOf, whenDone } from './passwords.ts'
import { mails, VERIFICATION } from './texts.ts'
import type { Person, Visit } from './visit.ts'

export async function askToConfirm(parts: AccountParts, { req }: Visit, person: Person): Promise<View> {
  const found = await parts.tokens.find(parts.sql, 'verification', parts.cookies.kept(req, 'verification'))
  if (found === null || found.user !== person.user.id) return notGood()
  return shown(
    VERIFICATION.title,
    html`<p>${VERIFICATION.lead} <strong>${found.email}</strong></p>
<form method="post" data-step="verification">${hidden({ xsrf: person.xsrf })}
<button type="submit" name="action" value="confirm">${VERIFICATION.confirm}</button></form>`,
  )
}

export async function verify(
  parts: AccountParts,
  visit: Visit,
  { person, form }: { person: Person; form: URLSearchParams },
): Promise<View> {
  return form.get('action') === 'send' ? mailLink(parts, person) : confirm(parts, visit, person)
}

async function mailLink(parts: AccountParts, { user }: Person): Promise<View> {
  const { sql, issuer, mailer, mailAttempts, tokens, deliveries, log } = parts
  const { id, email } = user
  if (mailer === null || email === null || !isMailAddress(email))
    return shown(VERIFICATION.title, alertOf(VERIFICATION.noMail), 'invalid')
  if (!(await mailAttempts.take(`verification of ${id}`, MAILS_MAX)))
    return shown(VERIFICATION.title, alertOf(VERIFICATION.tooMany), 'tooMany')
  const token = await tokens.create(sql, 'verification', { user: id, email, browser: null, invitation: null })
  const words = mails.verification(`${urlOf(issuer, PATHS.accountVerification)}?token=${token}`, new URL(issuer).host)
  deliveries.later(() => mailer.send({ to: email, ...words }))
  log.info({ event: 'verification_asked', user: id })
  return shown(VERIFICATION.sentTitle, html`<p role="status">${VERIFICATION.sent}</p>`)
}

async function confirm(
  { sql, tokens, cookies, appendLog, log }: AccountParts,
  { req, res }: Visit,
  { user }: Person,
): Promise<View> {
  const token = cookies.kept(req, 'verification')
  const done = await whenDone(sql, async (tx) => {
    await appendLog(tx, DIRECTORY, [{ kind: 'user', id: user.id, op: 'write' }], contextOf(user.id))
    const used = await tokens.take(tx, 'verification', token)
    if (used === null || used.user !== user.id) return null
    const rows = await tx.query(
      'update user_account set email_verified = true where user_id = $1 and lower(email) = lower($2) returning 1',
      [user.id, used.email],
    )
    return rows.length > 0 ? user.id : null
  })
  cookies.drop(res, 'verification')
  if (done === null) return notGood()
  log.info({ event: 'address_verified', user: user.id })
  return shown(
    VERIFICATION.doneTitle,
    html`<p role="status">${VERIFICATION.done}</p><p><a href="${PATHS.account}">${VERIFICATION.back}</a></p>`,
  )
}

const notGood = (): View =>
  shown(
    VERIFICATION.goneTitle,
    html`${alertOf(VERIFICATION.gone)}<p><a href="${PATHS.account}">${VERIFICATION.back}</a></p>`,
    'invalid',
  )
