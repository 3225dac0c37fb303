/** The page on which a person finds what belongs to the account: sign-ins, connected applications, and what proves who they are. */
import { EMPTY, type Html, html } from '../../../shared/base/html.ts'
import { fillText } from '../../../shared/pages/words.ts'
import type { Frame } from '../../html/frame.ts'
import { PATHS } from '../../oauth/paths.ts'
import { contextOf } from '../passwords/new-password.ts'
import { leftOf } from './authenticator.ts'
import { delegationsOf, endDelegation } from './delegations.ts'
import type { AccountParts } from './deps.ts'
import { alertOf, hidden, shown, timeOf, type View } from './page-parts.ts'
import type { AccountVisit, Person } from './visit.ts'

const LISTED_MAX = 100
const SESSIONS = `
  select uid, (payload ->> 'loginTs')::float8 as "at" from oidc_record
  where kind = 'Session' and payload ->> 'accountId' = $1 and consumed_at is null and uid is not null and expires_at > now()
  order by "at" desc nulls last limit ${LISTED_MAX}`
const APPLICATIONS = `
  select b.client_id as id, coalesce(max(c.metadata ->> 'client_name'), b.client_id) as name,
    extract(epoch from min(b.created_at))::float8 as "at", bool_or(b.offline) as offline
  from grant_binding b join oidc_record g on g.kind = 'Grant' and g.id = b.grant_id and g.expires_at > now()
    left join client c on c.client_id = b.client_id
  where b.user_id = $1 group by b.client_id order by 2 limit ${LISTED_MAX}`
const GRANTS = 'select grant_id as id from grant_binding where user_id = $1 and client_id = $2'

type SessionRow = { readonly uid: string; readonly at: number | null }
type ApplicationRow = { readonly id: string; readonly name: string; readonly at: number; readonly offline: boolean }

export async function showHome(parts: AccountParts, { frame }: AccountVisit, person: Person): Promise<View> {
  return home(parts, { frame, person }, null)
}

/** Ends a session or a connection of this person. One that belongs to another person counts as missing. */
export async function endOne(
  parts: AccountParts,
  { frame }: AccountVisit,
  { person, form }: { person: Person; form: URLSearchParams },
): Promise<View> {
  const ended = form.has('session')
    ? await endSession(parts, person, form.get('session') ?? '')
    : form.has('delegation')
      ? await endDelegation(parts, person, form)
      : await endApplication(parts, person, form.get('application') ?? '')
  return home(parts, { frame, person }, ended ? 'ended' : 'gone')
}

async function endSession({ sql, revocations, log }: AccountParts, { user }: Person, uid: string): Promise<boolean> {
  const own = await sql.query<SessionRow>(SESSIONS, [user.id])
  if (!own.some((session) => session.uid === uid)) return false
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
  done: 'ended' | 'gone' | null,
): Promise<View> {
  const { sql, mailer, secondFactor } = parts
  const { words } = frame
  const texts = words.account.home
  const { app } = words.factors
  const { user, session } = person
  const [sessions, applications, has, left, passkeys] = await Promise.all([
    sql.query<SessionRow>(SESSIONS, [user.id]),
    sql.query<ApplicationRow>(APPLICATIONS, [user.id]),
    secondFactor.kinds(user.id),
    secondFactor.recoveryCodesLeft(user.id),
    parts.passkeys.of(user.id),
  ])
  const status = done === 'ended' ? html`<p role="status">${texts.ended}</p>` : EMPTY
  const rows = sessions.map(({ uid, at }) =>
    row(person, {
      end: texts.end,
      name: 'session',
      value: uid,
      text: uid === session.uid ? texts.thisSession : fillText(texts.session, { time: timeOf(at) }),
      ending: uid !== session.uid,
    }),
  )
  const connected = applications.map(({ id, name, at, offline }) =>
    row(person, {
      ...{ end: texts.end, name: 'application', value: id, ending: true },
      text: fillText(offline ? texts.offline : texts.connected, { application: name, time: timeOf(at) }),
    }),
  )
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
<h2>${texts.sessions}</h2>${rows}
<h2>${texts.applications}</h2>${connected.length === 0 ? html`<p>${texts.noApplications}</p>` : connected}
${await delegationsOf(parts, frame, person)}
<p><a href="${frame.mount}${PATHS.logout}">${words.common.signOut}</a></p>`,
    done === 'gone' ? 'invalid' : 'shown',
  )
}

/** An address that nobody has proven, with the way to do so. */
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
    readonly text: string
    readonly end: string
    readonly ending: boolean
  },
): Html {
  if (!one.ending) return html`<p>${one.text}</p>`
  return html`<form method="post" data-step="${one.name}">${hidden({ xsrf, [one.name]: one.value })}
<p>${one.text}</p><button type="submit" class="plain" aria-label="${one.end}: ${one.text}">${one.end}</button></form>`
}
