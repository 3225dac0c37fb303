/** Verifies an address: a mailed link, which the signed-in person of that address confirms. */

import { appendArrivals } from '../../../engine/store/arrivals.ts'
import { lockPerson } from '../../../engine/store/journal-lock.ts'
import { type Html, html } from '../../../shared/base/html.ts'
import { DIRECTORY } from '../../../shared/domain/journal.ts'
import type { Frame } from '../../html/frame.ts'
import type { View } from '../../html/page.ts'
import { PATHS, urlOf } from '../../oauth/paths.ts'
import { isMailAddress, linkMail } from '../mail/mail.ts'
import { contextOf, whenDone } from '../passwords/new-password.ts'
import type { AccountParts } from './deps.ts'
import { MAILS_MAX } from './forgotten.ts'
import { accountLink, alertOf, donePage, hidden, shown } from './page-parts.ts'
import type { AccountVisit, Change, Person } from './visit.ts'

export async function askToConfirm(parts: AccountParts, { req, frame }: AccountVisit, person: Person): Promise<View> {
  const found = await parts.tokens.find(parts.sql, 'verification', parts.cookies.kept(req, 'verification'))
  if (found === null || found.user !== person.user.id)
    return notGood(frame, found === null && person.user.emailVerified)
  const { verification } = frame.words.account
  return shown(
    frame,
    verification.title,
    html`<p>${verification.lead} <strong>${found.email}</strong></p>
<form method="post" data-step="verification">${hidden({ xsrf: person.xsrf })}
<button type="submit" name="action" value="confirm">${verification.confirm}</button></form>${back(frame)}`,
  )
}

export async function verify(parts: AccountParts, visit: AccountVisit, { person, form }: Change): Promise<View> {
  return form.get('action') === 'send' ? mailLink(parts, visit, person) : confirm(parts, visit, person)
}

async function mailLink(parts: AccountParts, { frame }: AccountVisit, { user }: Person): Promise<View> {
  const { sql, issuer, mailer, attempts, tokens, deliveries, log } = parts
  const { id, email } = user
  const { verification, mails } = frame.words.account
  if (mailer === null || email === null || !isMailAddress(email))
    return shown(frame, verification.title, html`${alertOf(verification.noMail)}${back(frame)}`, 'invalid')
  if (!(await attempts.take(`verification of ${id}`, MAILS_MAX)))
    return shown(frame, verification.title, html`${alertOf(verification.tooMany)}${back(frame)}`, 'tooMany')
  const token = await tokens.create(sql, 'verification', { user: id, email, browser: null })
  const mail = linkMail(mails.verification, `${urlOf(issuer, PATHS.accountVerification)}?token=${token}`)
  deliveries.later(() => mailer.send({ to: email, ...mail }))
  log.info({ event: 'verification_asked', user: id })
  return shown(frame, verification.sentTitle, html`<p role="status">${verification.sent}</p>${back(frame)}`)
}

async function confirm(
  { sql, directory, tokens, cookies, log }: AccountParts,
  { req, res, frame }: AccountVisit,
  { user }: Person,
): Promise<View> {
  const token = cookies.kept(req, 'verification')
  const done = await whenDone(sql, async (tx) => {
    await lockPerson(tx, user.id)
    await appendArrivals(tx, DIRECTORY, [{ kind: 'user', id: user.id, op: 'write' }], contextOf(user.id))
    const used = await tokens.take(tx, 'verification', token)
    if (used === null || used.user !== user.id) return null
    const rows = await tx.query(
      'update user_account set email_verified = true where user_id = $1 and lower(email) = lower($2) returning 1',
      [user.id, used.email],
    )
    return rows.length > 0 ? user.id : null
  })
  cookies.drop(res, 'verification')
  if (done === null) {
    const [left, present] = await Promise.all([tokens.find(sql, 'verification', token), directory.user(user.id)])
    return notGood(frame, left === null && present?.emailVerified === true)
  }
  log.info({ event: 'address_verified', user: user.id })
  return verified(frame)
}

function verified(frame: Frame): View {
  const { doneTitle, done, back } = frame.words.account.verification
  return donePage(frame, { title: doneTitle, text: done, back })
}

/** The page for a bad link. `isDone`: the address is already verified, so a second use of a form or link shows success. */
function notGood(frame: Frame, isDone: boolean): View {
  if (isDone) return verified(frame)
  const { goneTitle, gone } = frame.words.account.verification
  return shown(frame, goneTitle, html`${alertOf(gone)}${back(frame)}`, 'invalid')
}

const back = (frame: Frame): Html => accountLink(frame, frame.words.account.verification.back)
