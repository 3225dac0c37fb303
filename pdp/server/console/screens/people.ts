/** People: who there is; of one person the memberships, the roles with their source, and the sessions, which can be ended. */

import { EMPTY, type Html, html } from '../../../shared/base/html.ts'
import type { AskedSubject } from '../../../shared/domain/decision.ts'
import { ENVIRONMENT } from '../../../shared/domain/journal.ts'
import { nearestName } from '../../../shared/domain/nearest.ts'
import { asRequestProblem, STATUS } from '../../serve/http/status.ts'
import { shellWord } from '../answer-texts.ts'
import { address, alert, field, hidden, instant, link, name, status, table } from '../parts.ts'
import { freshness, mustSignInAgain } from '../step-up.ts'
import type { ConsoleVisit, View } from '../visit.ts'
import { delegations, endDelegation } from './delegations.ts'
import { grantJournals, LEFT_OUT } from './organization.ts'

const PAGE_SIZE = 100
/** Ids that a mistyped one is compared with, from the first of all and from those that begin like it. */
const CANDIDATES_MAX = 1_000

const DONE: { readonly [done: string]: string | undefined } = {
  1: 'The sessions were ended, and every token of them.',
  delegation: 'The delegation was ended: the next question of the client is denied.',
}

type Person = { readonly id: string; readonly email: string | null; readonly name: string | null }
type Page<T> = { readonly items: readonly T[]; readonly next_page_token: string | null }
type Member = { readonly user: string; readonly role: string; readonly status: string }

export async function showPeople(visit: ConsoleVisit): Promise<View> {
  await visit.requireScope('directory:read')
  const { organization: org, deps } = visit
  const user = visit.query('user').trim()
  if (user === '') return showAll(visit)
  const everywhere = visit.mayEverywhere('directory:read')
  const { directory } = deps.management
  if (everywhere && user.includes('@') && (await directory.user(user)) === null) {
    const found = await directory.userByEmail(user)
    if (found !== null) return { goTo: address('people', { org, user: found.id }) }
  }
  return showOne(visit, user)
}

const search = (visit: ConsoleVisit, user: string): Html =>
  html`<form method="get" action="/console/people" class="question">${hidden('org', visit.organization ?? '')}${field({ name: 'user', label: visit.mayEverywhere('directory:read') ? 'Id or e-mail address of a person' : 'Id of a person', value: user, required: true })}<button type="submit">Show</button></form>`

/** Everybody for those who may see the whole environment; else the members of the organization. */
async function showAll(visit: ConsoleVisit): Promise<View> {
  const { organization: org, query } = visit
  const everywhere = visit.mayEverywhere('directory:read')
  const page = new URLSearchParams({
    page_size: String(PAGE_SIZE),
    ...(query('page') === '' ? {} : { page_token: query('page') }),
  })
  const path = everywhere ? `/v1/users?${page}` : `/v1/organizations/${encodeURIComponent(org ?? '')}/members?${page}`
  const { items, next_page_token: next } = await visit.api<Page<Person & Member>>('GET', path)
  const rows = items.map((item) => {
    const id = everywhere ? item.id : item.user
    return [
      link(address('people', { org, user: id }), name(id)),
      name(everywhere ? (item.name ?? '') : item.role),
      name(everywhere ? (item.email ?? '') : item.status),
    ]
  })
  return {
    title: 'People',
    body: html`${search(visit, '')}
${table({ caption: everywhere ? 'Everybody in the directory' : 'Members of the organization', columns: everywhere ? ['Id', 'Name', 'E-mail'] : ['Id', 'Tier', 'Status'], rows, empty: html`<p>There is nobody yet.</p><pre tabindex="0"><code>portcullis user put alice --email alice@example.com</code></pre>` })}
${next === null ? EMPTY : html`<p>${link(address('people', { org, page: next }), 'Next page')}</p>`}`,
  }
}

async function showOne(visit: ConsoleVisit, user: string): Promise<View> {
  const { organization: org, query, deps } = visit
  const { directory, store } = deps.management
  const everywhere = visit.mayEverywhere('directory:read')
  const [membership] =
    org === null
      ? []
      : (await store.rows([org], [{ log: org, kind: 'membership', user }])).rows.flatMap((row) =>
          'membership' in row && row.membership !== null ? [row.membership] : [],
        )
  const found = await directory.user(user)
  // A person with rights in one organization learns nothing of those who are not in it.
  if (everywhere ? found === null : membership === undefined) {
    const meant = await didYouMeanPerson(visit, { type: 'user', id: user }, (near) =>
      address('people', { org, user: near.slice('user:'.length) }),
    )
    const what = everywhere ? html`There is no user ${name(user)}.` : html`There is no such member.`
    return {
      title: 'People',
      status: STATUS.not_found.http,
      body: html`${search(visit, user)}${alert(html`${what}${meant}`)}`,
    }
  }
  const done = DONE[query('done')] === undefined ? EMPTY : status(DONE[query('done')] ?? '')
  const memberships = everywhere
    ? await directory.memberships(user)
    : [{ organization: org ?? '', role: membership?.role ?? '', status: membership?.status ?? '' }]
  return {
    title: found?.name ?? user,
    body: html`${done}<dl><dt>Id</dt><dd>${name(user)}</dd>${everywhere ? html`<dt>E-mail</dt><dd>${name(found?.email ?? 'none')}${found?.emailVerified === true ? ' (verified)' : ''}</dd>` : EMPTY}</dl>
<p class="actions">${link(address('what', { org, subject: `user:${user}` }), 'What may they?')} · ${link(address('ask', { org, subject: `user:${user}` }), 'Ask')} · ${visit.may('audit:read') ? link(address('changes', { org, actor: `user:${user}` }), 'What did they change here?') : EMPTY}</p>
${table({ caption: 'Memberships', columns: ['Organization', 'Tier', 'Status'], rows: memberships.map(({ organization: at, role, status: state }) => [link(address('organization', { org: at }), name(at)), role, state]), empty: html`<p>No membership.</p>` })}
${visit.may('roles:read') ? await roles(visit, user) : EMPTY}
${await delegations(visit, user)}
${visit.mayEverywhere('sessions:revoke') ? await sessions(visit, user) : EMPTY}`,
  }
}

/** The answer to a question about somebody who does not exist, which is most often a slip of the pen. */
export const nobody = ({ type, id }: AskedSubject): Html =>
  html`There is no ${type === 'user' ? 'user' : 'client'} ${name(id)}, and who does not exist may do nothing, whatever relationships say.`

/** A question about the person whose id is near, if there is one that the asking person may see. */
export async function didYouMeanPerson(
  visit: ConsoleVisit,
  { type, id }: AskedSubject,
  to: (subject: string) => string,
): Promise<Html> {
  const near = type === 'user' ? nearestName(id, await candidatesFor(visit, id)) : null
  return near === null ? EMPTY : html` Did you mean ${link(to(`user:${near}`), name(near))}?`
}

async function candidatesFor(visit: ConsoleVisit, user: string): Promise<ReadonlySet<string>> {
  const { organization: org, deps } = visit
  if (visit.mayEverywhere('directory:read')) {
    const from = [null, user.slice(0, 1)].map((after) =>
      deps.management.directory.users({ after, countMax: CANDIDATES_MAX }),
    )
    return new Set((await Promise.all(from)).flat().map(({ id }) => id))
  }
  if (org === null || !visit.may('directory:read')) return new Set()
  const path = `/v1/organizations/${encodeURIComponent(org)}/members?page_size=${CANDIDATES_MAX}`
  return new Set((await visit.api<Page<Member>>('GET', path)).items.map(({ user: id }) => id))
}

/** Roles in the organization in view: given to the person or to a group, here, above or everywhere. */
async function roles(visit: ConsoleVisit, user: string): Promise<Html> {
  const { organization: org, deps } = visit
  const { store } = deps.management
  const subject = `user:${user}`
  const isEverywhere = visit.mayEverywhere('roles:read')
  const { logs, isWhole } =
    org === null ? { logs: isEverywhere ? [ENVIRONMENT] : [], isWhole: isEverywhere } : await grantJournals(visit, org)
  const rows: Html[][] = []
  for (const log of logs) {
    const reading = await store.rows([log], [{ log, kind: 'grants', subject }])
    for (const row of reading.rows) {
      if (!('grants' in row) || row.key.kind !== 'grants') continue
      const through = row.key.subject === subject ? html`directly` : html`through ${name(row.key.subject)}`
      for (const { app, role } of row.grants)
        rows.push([
          html`${app === null ? EMPTY : html`${name(app)} / `}${name(role)}`,
          through,
          log === ENVIRONMENT ? html`everywhere` : log === org ? html`here` : html`${name(log)}, above`,
        ])
    }
  }
  return table({
    caption: html`Roles that count in ${name(org ?? 'no organization')}${isWhole ? '' : LEFT_OUT}`,
    columns: ['Role', 'Held', 'Granted'],
    rows,
    empty: html`<p>No role counts here${isWhole ? '' : LEFT_OUT}.</p><pre tabindex="0"><code>portcullis role grant ROLE ${shellWord(subject)} -o ${shellWord(org ?? 'ORGANIZATION')} --app APP</code></pre>`,
  })
}

async function sessions(visit: ConsoleVisit, user: string): Promise<Html> {
  const { organization: org, deps, session } = visit
  const found = await deps.identity.sessionsOf(user)
  const here = address('people', { org, user })
  const end = (uid: string): Html =>
    html`<form method="post" action="${here}" class="inline">${hidden('csrf', visit.csrf)}${hidden('session', uid)}<button type="submit" class="plain">End<span class="for-readers"> session ${uid}</span></button></form>`
  const rows = found.map(({ uid, signedInMs }) => [
    html`${name(uid)}${uid === session.sessionUid ? html` <span class="note">this one</span>` : EMPTY}`,
    signedInMs === null ? html`–` : instant(signedInMs),
    end(uid),
  ])
  return html`${freshness(visit, here)}${table({ caption: 'Sessions at the identity service', columns: ['Session', 'Signed in', 'Do'], rows, empty: html`<p>Nobody is signed in as this person.</p>` })}
${rows.length === 0 ? EMPTY : html`<form method="post" action="${here}">${hidden('csrf', visit.csrf)}${hidden('all', '1')}<button type="submit">End all sessions and tokens</button></form>`}`
}

export async function actPeople(visit: ConsoleVisit): Promise<View> {
  const { organization: org, form, query } = visit
  const user = query('user')
  const here = address('people', { org, user })
  const stale = mustSignInAgain(visit, here)
  if (stale !== null) return stale
  if (form('delegation') !== '') {
    await endDelegation(visit, user, form('delegation'))
    return { goTo: address('people', { org, user, done: 'delegation' }) }
  }
  if (form('all') === '1') await visit.api('POST', `/v1/users/${encodeURIComponent(user)}/sessions:revoke`)
  else await endSession(visit, form('session'))
  return { goTo: address('people', { org, user, done: '1' }) }
}

/** One that is over already, as after a second click, has ended as it was wished. */
async function endSession(visit: ConsoleVisit, uid: string): Promise<void> {
  try {
    await visit.api('DELETE', `/v1/sessions/${encodeURIComponent(uid)}`)
  } catch (err) {
    if (asRequestProblem(err).code !== 'not_found') throw err
  }
}
