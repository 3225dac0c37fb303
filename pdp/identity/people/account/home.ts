/** The account's first page: ways to sign in, organizations, sign-ins and connected applications. */
import { EMPTY, type Html, html } from '../../../shared/base/html.ts'
import { fill, fillText } from '../../../shared/pages/words.ts'
import type { Frame } from '../../html/frame.ts'
import { strong, type View } from '../../html/page.ts'
import type { BrowserSession } from '../../issuer/tokens/revocation.ts'
import { PATHS } from '../../oauth/paths.ts'
import { contextOf } from '../passwords/new-password.ts'
import { leftOf } from './authenticator.ts'
import { delegationsOf, endDelegation } from './delegations.ts'
import type { AccountParts } from './deps.ts'
import { organizationsOf } from './organizations.ts'
import { alertOf, hidden, shown, timeOf } from './page-parts.ts'
import type { AccountVisit, Change, Person } from './visit.ts'

const LISTED_MAX = 100
/** How often the list of sessions is read; each time all that it shows are ended. */
const ROUNDS_MAX = 10
const APPLICATIONS = `
  select b.client_id as id, coalesce(max(c.metadata ->> 'client_name'), b.client_id) as name,
    extract(epoch from min(b.created_at))::float8 as "at", bool_or(b.offline) as offline
  from grant_binding b join oidc_record g on g.kind = 'Grant' and g.id = b.grant_id and g.expires_at > now()
    left join client c on c.client_id = b.client_id
  where b.user_id = $1 group by b.client_id order by 2 limit ${LISTED_MAX}`
const NAMES = `select client_id as id, coalesce(metadata ->> 'client_name', client_id) as name from client where client_id = any($1)`
const GRANTS = 'select grant_id as id from grant_binding where user_id = $1 and client_id = $2'

export async function showHome(parts: AccountParts, { frame }: AccountVisit, person: Person): Promise<View> {
  return home(parts, { frame, person }, null)
}

/** Ends a session or a connection of this person. One that belongs to another person counts as missing. */
export async function endOne(parts: AccountParts, { frame }: AccountVisit, { person, form }: Change): Promise<View> {
  if (form.has('others')) {
    await endOthers(parts, person)
    return home(parts, { frame, person }, 'othersEnded')
  }
  const ended = form.has('session')
    ? await endSession(parts, person, form.get('session') ?? '')
    : form.has('delegation')
      ? await endDelegation(parts, person, form)
      : await endApplication(parts, person, form.get('application') ?? '')
  return home(parts, { frame, person }, ended ? 'ended' : 'gone')
}

async function endSession(parts: AccountParts, person: Person, uid: string): Promise<boolean> {
  const own = await parts.revocations.sessionsOf(person.user.id)
  return own.some((session) => session.uid === uid) && end(parts, person, uid)
}

/** Ends all sessions but this browser's, however many there are. */
async function endOthers(parts: AccountParts, person: Person): Promise<void> {
  for (let rounds = 0; rounds < ROUNDS_MAX; rounds += 1) {
    const own = await parts.revocations.sessionsOf(person.user.id)
    const others = own.filter(({ uid }) => uid !== person.session.uid)
    if (others.length === 0) return
    for (const { uid } of others) await end(parts, person, uid)
  }
}

async function end({ revocations, log }: AccountParts, { user }: Person, uid: string): Promise<boolean> {
  const ended = await revocations.revokeSession(uid, contextOf(user.id))
  if (ended) log.info({ event: 'session_ended', user: user.id, session: uid })
  return ended
}

async function endApplication(
  { sql, revocations, log }: AccountParts,
  { user }: Person,
  client: string,
): Promise<boolean> {
  const grants = await sql.query<{ id: string }>(GRANTS, [user.id, client])
  for (const { id } of grants) await revocations.endGrant(id, contextOf(user.id))
  if (grants.length > 0) log.info({ event: 'application_ended', user: user.id, client })
  return grants.length > 0
}

async function home(
  parts: AccountParts,
  { frame, person }: { readonly frame: Frame; readonly person: Person },
  done: 'ended' | 'othersEnded' | 'gone' | null,
): Promise<View> {
  const { sql, mailer, secondFactor } = parts
  const { words } = frame
  const texts = words.account.home
  const { app } = words.factors
  const { user, session } = person
  const [sessions, applications, has, left, passkeys] = await Promise.all([
    parts.revocations.sessionsOf(user.id),
    sql.query<{ readonly id: string; readonly name: string; readonly at: number; readonly offline: boolean }>(
      APPLICATIONS,
      [user.id],
    ),
    secondFactor.kinds(user.id),
    secondFactor.recoveryCodesLeft(user.id),
    parts.passkeys.of(user.id),
  ])
  const status = done === null || done === 'gone' ? EMPTY : html`<p role="status">${texts[done]}</p>`
  const names = await namesOf(parts, sessions)
  const rows = sessions.map((one) => {
    const { title, more } = describeSession(frame, one, names)
    const isThis = one.uid === session.uid
    const text = html`<strong>${title}</strong>${isThis ? html` (${texts.thisSession})` : EMPTY}<br><small>${more}</small>`
    const about = { label: `${title}, ${more}`, text, ending: !isThis }
    return row(person, { end: texts.end, name: 'session', value: one.uid, ...about })
  })
  const others = sessions.length > 2 ? allOthers(person, texts.endOthers) : EMPTY
  const connected = applications.map(({ id, name, at, offline }) => {
    const [text, time] = [offline ? texts.offline : texts.connected, timeOf(at)]
    return row(person, {
      end: texts.end,
      name: 'application',
      value: id,
      ending: true,
      label: fillText(text, { application: name, time }),
      text: fill(text, { application: strong(name), time }),
    })
  })
  return shown(
    frame,
    texts.title,
    html`<p><strong>${user.email ?? user.name ?? user.id}</strong></p>${status}${alertOf(done === 'gone' ? texts.gone : null)}
${addressOf(frame, person, mailer !== null)}
<h2>${texts.proofs}</h2>
<p><a href="${frame.mount}${PATHS.accountPassword}">${texts.password}</a></p>
<p><a href="${frame.mount}${PATHS.accountAuthenticator}">${app.title}</a><br><small>${has.app ? app.isOn : app.isOff}</small></p>
<p><a href="${frame.mount}${PATHS.accountPasskeys}">${words.factors.passkeys.title}</a><br><small>${has.passkey ? passkeys.map(({ name }) => name).join(', ') : words.factors.passkeys.none}</small></p>
${has.app || has.passkey ? html`<p><small>${leftOf(frame, left)}</small></p>` : EMPTY}
${await parts.elsewhere.link(frame)}
${await organizationsOf(parts, frame, person)}
<h2>${texts.sessions}</h2>${rows}${others}
<h2>${texts.applications}</h2>${connected.length === 0 ? html`<p>${texts.noApplications}</p>` : connected}
${await delegationsOf(parts, frame, person)}
<p><a href="${frame.mount}${PATHS.logout}">${words.common.signOut}</a></p>`,
    done === 'gone' ? 'invalid' : 'shown',
  )
}

/** The names by which people know the clients of these sessions. */
async function namesOf(
  { sql }: AccountParts,
  sessions: readonly BrowserSession[],
): Promise<ReadonlyMap<string, string>> {
  const ids = [...new Set(sessions.flatMap(({ clients }) => clients))]
  const rows = ids.length === 0 ? [] : await sql.query<{ id: string; name: string }>(NAMES, [ids])
  return new Map(rows.map(({ id, name }) => [id, name]))
}

function describeSession(
  { words: { account } }: Frame,
  { browser, address, signedInMs, usedMs, clients }: BrowserSession,
  names: ReadonlyMap<string, string>,
): { readonly title: string; readonly more: string } {
  const texts = account.home
  const time = (ms: number | null): string => timeOf(ms === null ? null : ms / 1_000)
  const applications = clients.flatMap((id) => names.get(id) ?? []).join(', ')
  const more = [
    address === null ? '' : fillText(texts.from, { address }),
    fillText(texts.session, { time: time(signedInMs) }),
    usedMs === null ? '' : fillText(texts.lastUsed, { time: time(usedMs) }),
    applications === '' ? '' : fillText(texts.usedFor, { applications }),
  ]
  return { title: browser ?? texts.unknownBrowser, more: more.filter((part) => part !== '').join(' ') }
}

const allOthers = ({ xsrf }: Person, text: string): Html =>
  html`<form method="post" data-step="others">${hidden({ xsrf, others: 'yes' })}<button type="submit" class="plain">${text}</button></form>`

/** The unverified address, with a button that verifies it. */
function addressOf(frame: Frame, person: Person, canMail: boolean): Html {
  const texts = frame.words.account.home
  const { email, emailVerified } = person.user
  if (email === null) return EMPTY
  if (emailVerified) return html`<p>${texts.verified}</p>`
  if (!canMail) return html`<p>${texts.unverified}</p>`
  return html`<p>${texts.unverified}</p>
<form method="post" action="${frame.mount}${PATHS.accountVerification}" data-step="verification">${hidden({ xsrf: person.xsrf })}
<button type="submit" name="action" value="send" class="plain">${texts.verify}</button></form>`
}

function row(
  { xsrf }: Person,
  one: {
    readonly name: string
    readonly value: string
    readonly text: Html
    /** The text of the button for people who hear the page. */
    readonly label: string
    readonly end: string
    readonly ending: boolean
  },
): Html {
  if (!one.ending) return html`<p>${one.text}</p>`
  return html`<form method="post" data-step="${one.name}">${hidden({ xsrf, [one.name]: one.value })}
<p>${one.text}</p><button type="submit" class="plain" aria-label="${one.end}: ${one.label}">${one.end}</button></form>`
}
