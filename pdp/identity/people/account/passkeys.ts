/** The page of the person's own passkeys: adds one in this browser, and removes them. */
import { EMPTY, type Html, html } from '../../../shared/base/html.ts'
import { fillText } from '../../../shared/pages/words.ts'
import type { Frame } from '../../html/frame.ts'
import { page, type View } from '../../html/page.ts'
import { passkeyParts } from '../../html/page-scripts.ts'
import { PATHS } from '../../oauth/paths.ts'
import { PASSKEYS_MAX, type Passkey } from '../factors/passkeys.ts'
import { contextOf } from '../passwords/new-password.ts'
import { byPasskey } from '../sign-in/acr.ts'
import { startSession } from '../sign-in/approval-sign-in.ts'
import { back, codesPage, recoveryPart } from './authenticator.ts'
import type { AccountParts } from './deps.ts'
import { signedOutPage } from './own-sign-in.ts'
import { alertOf, hidden } from './page-parts.ts'
import type { AccountVisit, Change, Person } from './visit.ts'

const PAGE = PATHS.accountPasskeys

export const showPasskeys = (parts: AccountParts, visit: AccountVisit, person: Person): Promise<View> =>
  list(parts, visit, person, null)

export async function changePasskeys(parts: AccountParts, visit: AccountVisit, change: Change): Promise<View> {
  return change.form.has('remove') ? remove(parts, visit, change) : add(parts, visit, change)
}

async function add(parts: AccountParts, visit: AccountVisit, { person, form }: Change): Promise<View> {
  const { user, session } = person
  const { passkeys } = visit.frame.words.factors
  const answer = form.get('credential') ?? ''
  if (answer === '') return list(parts, visit, person, { problem: passkeys.needsScript })
  const given = { req: visit.req, page: pageOf(person), session: session.uid, answer, name: form.get('name') ?? '' }
  const added = await parts.passkeys.add(user, given, contextOf(user.id))
  if (added === 'refused') return list(parts, visit, person, { problem: passkeys.notMade })
  if (added === 'tooMany') return list(parts, visit, person, { problem: passkeys.tooMany })
  parts.log.info({ event: 'passkey_added', user: user.id })
  parts.notices.send(user.id, 'passkeyAdded', visit.frame)
  // The person has just used the passkey, so this sign-in now counts as one by passkey, unless by a code.
  const by = byPasskey({ synced: added.synced, afterPassword: session.amr?.includes('pwd') === true })
  const signedIn = { accountId: user.id, ts: person.signedInAt, ...by }
  const current = person.hasCode ? session : await startSession(parts, { ...visit, session }, signedIn)
  if (added.recoveryCodes.length > 0) return codesPage(visit, added.recoveryCodes)
  return list(parts, visit, { ...person, session: current }, { status: passkeys.added })
}

async function remove(parts: AccountParts, visit: AccountVisit, { person, form }: Change): Promise<View> {
  const { user, session } = person
  const { passkeys } = visit.frame.words.factors
  const by = { session: session.uid }
  if (!(await parts.passkeys.remove(user.id, form.get('remove') ?? '', by, contextOf(user.id))))
    return list(parts, visit, person, { problem: visit.frame.words.account.home.gone })
  parts.log.info({ event: 'passkey_removed', user: user.id })
  parts.notices.send(user.id, 'passkeyRemoved', visit.frame)
  return signedOutPage(visit, { title: passkeys.removedTitle, text: passkeys.removed })
}

async function list(
  parts: AccountParts,
  visit: AccountVisit,
  person: Person,
  said: { readonly status: string } | { readonly problem: string } | null,
): Promise<View> {
  const { frame } = visit
  const { passkeys } = frame.words.factors
  const all = await parts.passkeys.of(person.user.id)
  const rows = all.map((one) => row(frame, person, one))
  const recovery = all.length > 0 ? await recoveryPart(parts, frame, person) : EMPTY
  const alert = said !== null && 'problem' in said ? alertOf(said.problem) : EMPTY
  const status = said !== null && 'status' in said ? html`<p role="status">${said.status}</p>` : EMPTY
  const body = html`<p>${passkeys.lead}</p>${status}${alert}${rows}${await adding(parts, visit, { person, count: all.length })}${recovery}${back(visit)}`
  return {
    outcome: said !== null && 'problem' in said ? 'invalid' : 'shown',
    page: page(frame, passkeys.title, body, { files: [PATHS.passkeyScript] }),
  }
}

async function adding(
  parts: AccountParts,
  { req, res, frame }: AccountVisit,
  { person, count }: { readonly person: Person; readonly count: number },
): Promise<Html> {
  const { passkeys } = frame.words.factors
  if (!parts.passkeys.isPossible) return html`<p>${passkeys.needsName}</p>`
  if (count >= PASSKEYS_MAX) return html`<p>${passkeys.tooMany}</p>`
  const options = await parts.passkeys.creation(person.user, { req, res, page: pageOf(person) })
  const { attributes, fields, around } = passkeyParts(frame, { kind: 'create', options })
  return html`<h2>${passkeys.add}</h2>${around}
<form method="post" data-step="add"${attributes}>${hidden({ xsrf: person.xsrf })}${fields}
<label for="name">${passkeys.name}</label>
<input id="name" name="name" type="text" maxlength="60" autocomplete="off" required>
<button type="submit">${passkeys.add}</button></form>`
}

function row({ words: { factors } }: Frame, { xsrf }: Person, one: Passkey): Html {
  const { passkeys } = factors
  const day = (seconds: number): string => new Date(seconds * 1_000).toISOString().slice(0, 10)
  const used = one.usedAt === null ? passkeys.neverUsed : fillText(passkeys.lastUsed, { day: day(one.usedAt) })
  const kind = one.synced ? passkeys.synced : passkeys.oneDevice
  return html`<form method="post" data-step="remove">${hidden({ xsrf, remove: one.id })}
<p><strong>${one.name}</strong><br><small>${fillText(passkeys.since, { day: day(one.createdAt) })} ${used} ${kind}</small></p>
<button type="submit" class="plain" aria-label="${passkeys.remove}: ${one.name}" formnovalidate>${passkeys.remove}</button></form>`
}

/** The page for which the passkey's answer counts: it includes the session. */
const pageOf = ({ session }: Person): string => `${PAGE} ${session.uid}`
