/** The page of an invitation's link: shows the invitation and its sender, and lets the person accept or decline. */
import { randomUUID } from 'node:crypto'
import type { Store } from '../../../engine/store/contract.ts'
import type { Queries, Sql } from '../../../engine/store/directory.ts'
import { lockJournal } from '../../../engine/store/journal-lock.ts'
import { html } from '../../../shared/base/html.ts'
import { fill } from '../../../shared/pages/words.ts'
import type { Frame } from '../../html/frame.ts'
import { strong, type View } from '../../html/page.ts'
import type { Words } from '../../html/words/words.ts'
import { PATHS } from '../../oauth/paths.ts'
import type { Screen } from '../account/account.ts'
import type { AccountParts } from '../account/deps.ts'
import { hashed } from '../account/forgotten.ts'
import { begin, signInFirst } from '../account/own-sign-in.ts'
import { accountLink, alertOf, donePage, refused, shown } from '../account/page-parts.ts'
import { type AccountVisit, isOwnForm, type Person, personOf } from '../account/visit.ts'
import { BY_PASSWORD } from '../sign-in/acr.ts'
import { giftOf, type PendingInvitation } from './invitation-offer.ts'
import { acceptPage, newPersonPage, otherPersonPage } from './invitation-pages.ts'
import type { Invitations } from './invitations.ts'

export type NewPerson = { readonly name: string | null; readonly passwordHash: string }
/** The reason why the invitation changed nothing. */
export type NotJoined = Exclude<keyof Words['joining']['failed'], 'title'>
/** Grants all that the invitation gives, or nothing. `person`: null for a person who has an account but is not signed in. */
export type AcceptInvitation = (
  token: string,
  by: { readonly user: string; readonly person: NewPerson | null },
) => Promise<'joined' | NotJoined>
export type JoiningDeps = {
  readonly sql: Sql
  readonly store: Pick<Store, 'rows'>
  readonly invitations: (sql: Queries) => Pick<Invitations, 'find' | 'take'>
  readonly accept: AcceptInvitation
}

export const joiningScreens = (deps: JoiningDeps): ReadonlyMap<string, Screen> =>
  new Map<string, Screen>([
    [
      PATHS.accountInvitation,
      {
        link: 'invitation',
        show: (parts, visit) => show(deps, parts, visit),
        act: (parts, visit, form) => act(deps, parts, { visit, form }),
      },
    ],
  ])

async function show(deps: JoiningDeps, parts: AccountParts, visit: AccountVisit): Promise<View | null> {
  const found = await find(deps, parts, visit)
  if (found === null) return notJoined(visit.frame, 'gone')
  const person = await personOf(parts, visit)
  if (found.account === null) return newPersonPage(visit.frame, found, { person, name: '', problem: null })
  if (person === null) return signInFirst(parts, visit, PATHS.accountInvitation)
  return person.user.id === found.account
    ? acceptPage(visit.frame, found, person)
    : otherPersonPage(visit.frame, found, person)
}

async function act(
  deps: JoiningDeps,
  parts: AccountParts,
  { visit, form }: { readonly visit: AccountVisit; readonly form: URLSearchParams },
): Promise<View | null> {
  const found = await find(deps, parts, visit)
  if (found === null) return notJoined(visit.frame, 'gone')
  const person = await personOf(parts, visit)
  if (found.account === null)
    return form.get('action') === 'decline'
      ? decline(deps, parts, { visit, found, user: null })
      : joinAsNew(deps, parts, { visit, found, form, person })
  if (person === null) return signInFirst(parts, visit, PATHS.accountInvitation)
  if (person.user.id !== found.account) return otherPersonPage(visit.frame, found, person)
  if (!isOwnForm(parts, person, form)) return refused(visit, 'oldForm')
  const user = person.user.id
  if (form.get('action') === 'decline') return decline(deps, parts, { visit, found, user })
  const outcome = await deps.accept(found.token, { user, person: null })
  return outcome === 'joined' ? joined(parts, visit, { found, user }) : notJoined(visit.frame, outcome)
}

/** Creates the account. Its address counts as verified: only its owner has got the link by mail. */
async function joinAsNew(
  deps: JoiningDeps,
  parts: AccountParts,
  {
    visit,
    found,
    form,
    person,
  }: { visit: AccountVisit; found: PendingInvitation; form: URLSearchParams; person: Person | null },
): Promise<View> {
  const name = (form.get('name') ?? '').replaceAll(/\p{Cc}+/gu, ' ').trim()
  const password = form.get('password') ?? ''
  const repeated = form.get('repeated') ?? ''
  const again = (problem: Parameters<typeof newPersonPage>[2]['problem']): View =>
    newPersonPage(visit.frame, found, { person, name, problem })
  const problem = await parts.rules.problem({ password, repeated, email: found.invitation.email })
  if (problem !== null) return again(problem)
  const passwordHash = await hashed(parts, password, parts.devices.source(visit.req).address)
  if (passwordHash === null) return again('busy')
  const user = found.newAccount
  const ts = Math.floor(parts.clock() / 1_000)
  const newPerson = { name: name === '' ? null : name.slice(0, NAME_CHARACTERS_MAX), passwordHash }
  const outcome = await deps.accept(found.token, { user, person: newPerson })
  if (outcome !== 'joined') return notJoined(visit.frame, outcome)
  await begin(parts, visit, { accountId: user, ts, ...BY_PASSWORD })
  return joined(parts, visit, { found, user })
}
const NAME_CHARACTERS_MAX = 256

async function decline(
  { sql, invitations }: JoiningDeps,
  { cookies, log }: AccountParts,
  { visit: { res, frame }, found, user }: { visit: AccountVisit; found: PendingInvitation; user: string | null },
): Promise<View> {
  const { id, organization } = found.invitation
  const taken = await sql.transaction(async (tx) => {
    await lockJournal(tx, organization)
    return invitations(tx).take(found.token, { change: 'declined', user })
  })
  cookies.drop(res, 'invitation')
  if (taken === null) return notJoined(frame, 'gone')
  log.info({ event: 'invitation_declined', user, organization, invitation: id })
  const { declinedTitle, declined } = frame.words.joining
  const text = fill(declined, { organization: strong(found.organizationName) })
  return shown(frame, declinedTitle, html`<p role="status">${text}</p><p>${frame.words.common.canClose}</p>`)
}

async function find(
  deps: JoiningDeps,
  parts: AccountParts,
  { req, frame }: AccountVisit,
): Promise<PendingInvitation | null> {
  const { sql, store } = deps
  const token = parts.cookies.kept(req, 'invitation')
  const invitation = token === '' ? null : await deps.invitations(sql).find(token)
  if (invitation === null) return null
  const [account, gift] = await Promise.all([
    parts.directory.userByEmail(invitation.email),
    giftOf({ directory: parts.directory, sql, store }, invitation),
  ])
  if (gift === null) return null
  const inviter = gift.inviter ?? frame.words.joining.somebody
  // An account that has no way to sign in and an unverified address is verified by the invitation's mail.
  const [taken, newAccount] = account?.isUnopened === false ? [account.id, ''] : [null, account?.id ?? randomUUID()]
  return { token, invitation, account: taken, newAccount, ...gift, inviter }
}

function joined(
  { cookies, log }: AccountParts,
  { res, frame }: AccountVisit,
  { found, user }: { readonly found: PendingInvitation; readonly user: string },
): View {
  const { id, organization } = found.invitation
  cookies.drop(res, 'invitation')
  log.info({ event: 'invitation_accepted', user, organization, invitation: id })
  const { doneTitle, done, account } = frame.words.joining
  const text = fill(done, { organization: strong(found.organizationName) })
  return donePage(frame, { title: doneTitle, text, back: account })
}

function notJoined(frame: Frame, why: NotJoined): View {
  const { failed, account } = frame.words.joining
  return shown(frame, failed.title, html`${alertOf(failed[why])}${accountLink(frame, account)}`, 'invalid')
}
