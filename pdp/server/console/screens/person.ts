/** A person: access, roles, memberships, sessions, decisions and changes, and buttons to end them. */

import { membershipOf } from '../../../engine/writes/memberships.ts'
import { EMPTY, type Html, html, joined } from '../../../shared/base/html.ts'
import { ENVIRONMENT } from '../../../shared/domain/journal.ts'
import type { Membership } from '../../../shared/domain/membership.ts'
import { asRequestProblem, STATUS } from '../../serve/http/status.ts'
import type { UserHoldings } from '../../serve/management/users/offboarding.ts'
import { shellWord } from '../answer-texts.ts'
import { address, alert, called, hidden, instant, link, name, status, verdict } from '../parts.ts'
import { askedAgain } from '../question.ts'
import { addMemberForm, giveRoleForm } from '../sections/known-roles.ts'
import { didYouMeanPerson } from '../sections/near-people.ts'
import { reachOf } from '../sections/reach.ts'
import { table } from '../sections/table.ts'
import { freshness, mustSignInAgain } from '../step-up.ts'
import type { ConsoleVisit, View } from '../visit.ts'
import { changeAddress, changeDone } from './change.ts'
import { delegations, endDelegation } from './delegations.ts'
import { grantJournals, LEFT_OUT, takeAway } from './organization.ts'

const DECISIONS_SHOWN = 5
const DONE: { readonly [what: string]: string } = {
  delegation: 'The delegation was ended: the next question of the client is denied.',
  sessions: 'The sessions were ended, and every token of them.',
  block:
    'The person is shut out: sessions and tokens have ended, and no sign-in counts. Unblock undoes it, but no session comes back.',
  unblock: 'The person can sign in again.',
  offboard: 'The person is shut out, and everything that they held was taken away.',
  invited: 'The person is invited: they must accept before the membership counts.',
  rest: 'The person is shut out. There is more to take away than one call takes: do it again.',
}

const pathOf = (user: string): string => `/v1/users/${encodeURIComponent(user)}`
const mayOffboard = (visit: ConsoleVisit): boolean =>
  ['directory:write', 'roles:write', 'relationships:write'].every(visit.mayEverywhere)

/** `search`: the form of the list, shown if there is no such person. */
export async function showPerson(visit: ConsoleVisit, user: string, search: Html): Promise<View> {
  const { organization: org, query, deps } = visit
  const { directory, store } = deps.management
  const everywhere = visit.mayEverywhere('directory:read')
  const membership = org === null ? null : await membershipOf(store, org, user)
  const found = await directory.user(user)
  // A person with rights in one organization must not learn about people who are not in it.
  if (everywhere ? found === null : membership === null) {
    const meant = await didYouMeanPerson(visit, { type: 'user', id: user }, (near) =>
      address('people', { org, user: near.slice('user:'.length) }),
    )
    const what = everywhere ? html`There is no user ${name(user)}.` : html`There is no such member.`
    return { title: 'People', status: STATUS.not_found.http, body: html`${search}${alert(html`${what}${meant}`)}` }
  }
  if (query('step') === 'offboard' && mayOffboard(visit)) return offboardPage(visit, user)
  if (query('step') === 'block' && mayOffboard(visit)) return blockPage(visit, user)
  const here = membership === null ? [] : [{ organization: org ?? '', ...membership }]
  const memberships = everywhere ? await directory.memberships(user) : here
  const holdings = mayOffboard(visit) ? await visit.api<UserHoldings>('GET', `${pathOf(user)}/holdings`) : null
  const done = Object.hasOwn(DONE, query('done')) ? DONE[query('done')] : undefined
  const subject = { type: 'user', id: user }
  const sections = await Promise.all([
    visit.may('decisions:read') && org !== null ? reachOf(visit, subject) : EMPTY,
    membershipTable(visit, { user, memberships }),
    visit.may('roles:read') ? roles(visit, user) : EMPTY,
    delegations(visit, user),
    visit.mayEverywhere('sessions:revoke') ? sessions(visit, user) : EMPTY,
    visit.may('decisions:read') ? latestDecisions(visit, user) : EMPTY,
  ])
  return {
    title: found?.name ?? user,
    body: html`${done === undefined ? await changeDone(visit) : status(done)}<dl><dt>Id</dt><dd>${name(user)}</dd>${everywhere ? html`<dt>E-mail</dt><dd>${called(found?.email ?? 'none')}${found?.emailVerified === true ? ' (verified)' : ''}</dd>` : EMPTY}${holdings?.blocked === true ? html`<dt>State</dt><dd class="denied">✗ blocked: no sign-in counts</dd>` : EMPTY}</dl>
<p class="actions">${link(address('ask', { org, subject: `user:${user}` }), 'Check access')} · ${link(address('decisions', { org, subject: `user:${user}` }), 'Decisions')}${visit.may('audit:read') ? html` · ${link(address('changes', { org, text: `user:${user}` }), 'Changes about them')} · ${link(address('changes', { org, actor: `user:${user}` }), 'Changes by them')}` : EMPTY}</p>
${actions(visit, { user, holdings })}
${sections}`,
  }
}

/** Buttons to block or unblock, and a link to the preview of offboarding. */
function actions(
  visit: ConsoleVisit,
  { user, holdings }: { readonly user: string; readonly holdings: UserHoldings | null },
): Html {
  if (holdings === null) return EMPTY
  const here = address('people', { org: visit.organization, user })
  const unblock = html`${freshness(visit, here)}<form method="post" action="${here}" class="inline">${hidden('csrf', visit.csrf)}${hidden('do', 'unblock')}<button type="submit" class="plain">Unblock</button></form>`
  const to = (step: string, text: string): Html =>
    link(address('people', { org: visit.organization, user, step }), text)
  return html`<div class="row-actions">${holdings.blocked ? unblock : to('block', 'Block …')} ${to('offboard', 'Offboard …')}</div>`
}

/** The preview of a block: sessions that would end. */
async function blockPage(visit: ConsoleVisit, user: string): Promise<View> {
  const { organization: org } = visit
  const here = address('people', { org, user, step: 'block' })
  const found = visit.mayEverywhere('sessions:revoke') ? await visit.deps.identity.sessionsOf(user) : null
  const rows = (found ?? []).map(({ uid, signedInMs, clients }) => [
    html`<span class="id">${name(uid)}</span>`,
    signedInMs === null ? html`–` : instant(signedInMs),
    joined(clients.map(name)),
  ])
  const shown = table(visit, {
    id: 'sessions-that-end',
    caption: 'Sessions that end',
    columns: ['Session', 'Signed in', 'Clients'],
    rows,
    empty: html`<p>Nobody is signed in as this person now.</p>`,
  })
  return {
    title: `Block ${user}?`,
    body: html`<p>Sessions and tokens of ${name(user)} end at once, and no sign-in counts until the person is unblocked. What the person holds stays, and counts again then; ${link(address('people', { org, user, step: 'offboard' }), 'offboarding')} takes it away.</p>
${found === null ? EMPTY : shown}
${freshness(visit, here)}<form method="post" action="${here}">${hidden('csrf', visit.csrf)}${hidden('do', 'block')}<button type="submit" class="destructive">Block</button> ${link(address('people', { org, user }), 'Cancel')}</form>`,
  }
}

/** The preview of offboarding: everything that would be removed. */
async function offboardPage(visit: ConsoleVisit, user: string): Promise<View> {
  const { organization: org } = visit
  const here = address('people', { org, user, step: 'offboard' })
  const {
    memberships,
    roles: granted,
    relationships,
    complete,
  } = await visit.api<UserHoldings>('GET', `${pathOf(user)}/holdings`)
  const rows = [
    ...memberships.map(({ organization, role, status: state }) => [
      'membership',
      `${role}, ${state}`,
      name(organization),
    ]),
    ...granted.map(({ organization, app, role }) => [
      'role',
      name(app === null ? role : `${app} / ${role}`),
      organization === null ? 'everywhere' : name(organization),
    ]),
    ...relationships.map(({ organization, tuple }) => ['relationship', name(tuple), name(organization)]),
  ]
  const count = `${complete ? '' : 'at least '}${rows.length}`
  return {
    title: `Offboard ${user}?`,
    body: html`<p>${name(user)} is shut out at once: sessions and tokens end, and no sign-in counts any more. All of this is taken away:</p>
${table(visit, { id: 'holdings', isWhole: true, caption: html`Held by ${name(user)}${complete ? EMPTY : ', and more'}`, columns: ['Kind', 'What', 'Organization'], rows, empty: html`<p>${name(user)} holds nothing.</p>` })}
${freshness(visit, here)}<form method="post" action="${here}">${hidden('csrf', visit.csrf)}${hidden('do', 'offboard')}<button type="submit" class="destructive">Shut out, and take away ${count}</button></form>
<p>${link(address('people', { org, user }), 'Back, and change nothing')}</p>`,
  }
}

function membershipTable(
  visit: ConsoleVisit,
  { user, memberships }: { readonly user: string; readonly memberships: Readonly<UserHoldings['memberships']> },
): Html {
  const proposed = (membership: Membership | null): string =>
    changeAddress(visit.organization, {
      log: visit.organization ?? '',
      change: { kind: 'membership', user, membership },
    })
  const actionsFor = ({ organization, role, status: state }: UserHoldings['memberships'][number]): Html => {
    if (organization !== visit.organization || !visit.may('directory:write')) return EMPTY
    const to = state === 'active' ? 'suspended' : 'active'
    const text = to === 'suspended' ? 'Suspend …' : 'Make active …'
    return html`<span class="row-actions">${state === 'invited' ? EMPTY : link(proposed({ role, status: to }), text)}${link(proposed(null), 'End …')}</span>`
  }
  const isMember = memberships.some(({ organization }) => organization === visit.organization)
  const shown = table(visit, {
    id: 'memberships',
    caption: 'Memberships',
    columns: ['Organization', 'Tier', 'Status', 'Do'],
    rows: memberships.map((one) => [
      link(address('organization', { org: one.organization }), name(one.organization)),
      one.role,
      one.status,
      actionsFor(one),
    ]),
    empty: html`<p>No membership.</p>`,
  })
  return html`${shown}${isMember ? EMPTY : addMemberForm(visit, user)}`
}

/** Roles in the organization in view: of the person or a group, granted here, above or everywhere. */
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
      const group = row.key.subject
      const member = { object: group, relation: 'member', subject }
      const [joining] = group === subject ? [] : await store.tuples(log, member, { after: null, countMax: 1 })
      const end = joining?.expiresAtMs ?? null
      const through =
        group === subject
          ? html`directly`
          : html`through ${name(group)}${end === null ? EMPTY : html` until ${instant(end)}`}`
      for (const grant of row.grants)
        rows.push([
          html`${grant.app === null ? EMPTY : html`${name(grant.app)} / `}${name(grant.role)}`,
          through,
          log === ENVIRONMENT ? html`everywhere` : log === org ? html`here` : html`${name(log)}, above`,
          takeAway(visit, log, grant),
        ])
    }
  }
  const shown = table(visit, {
    id: 'roles',
    caption: html`Roles that count in ${name(org ?? 'no organization')}${isWhole ? '' : LEFT_OUT}`,
    columns: ['Role', 'Held', 'Granted', 'Do'],
    rows,
    empty: html`<p>No role counts here${isWhole ? '' : LEFT_OUT}.</p><pre tabindex="0"><code>portcullis role grant ROLE ${shellWord(subject)} -o ${shellWord(org ?? 'ORGANIZATION')} --app APP</code></pre>`,
  })
  return html`${shown}${await giveRoleForm(visit, subject)}`
}

async function sessions(visit: ConsoleVisit, user: string): Promise<Html> {
  const { organization: org, deps, session } = visit
  const found = await deps.identity.sessionsOf(user)
  const here = address('people', { org, user })
  const end = (uid: string): Html =>
    html`<form method="post" action="${here}" class="inline">${hidden('csrf', visit.csrf)}${hidden('session', uid)}<button type="submit" class="plain">End<span class="for-readers"> session ${uid}</span></button></form>`
  const at = (ms: number | null): Html => (ms === null ? html`–` : instant(ms))
  const rows = found.map(({ uid, signedInMs, usedMs, browser, address: from, clients }) => [
    html`<span class="id">${name(uid)}</span>${uid === session.sessionUid ? html` <span class="note">this one</span>` : EMPTY}`,
    html`${browser ?? '–'}`,
    html`${from ?? '–'}`,
    at(signedInMs),
    at(usedMs),
    joined(clients.map(name)),
    end(uid),
  ])
  return html`${freshness(visit, here)}${table(visit, { id: 'sessions', caption: 'Sessions at the identity service', columns: ['Session', 'Browser', 'Address', 'Signed in', 'Last used', 'Clients', 'Do'], rows, empty: html`<p>Nobody is signed in as this person.</p>` })}
${rows.length === 0 ? EMPTY : html`<form method="post" action="${here}">${hidden('csrf', visit.csrf)}${hidden('all', '1')}<button type="submit" class="destructive">End all sessions and tokens</button></form>`}`
}

function latestDecisions(visit: ConsoleVisit, user: string): Html {
  const { organization: org, deps } = visit
  const subject = `user:${user}`
  const rows: (readonly (Html | string)[])[] = []
  for (const { organization, subject: asked, atMs, permissions, route, app, acting } of deps.decisions.latest()) {
    if (organization !== org || asked !== subject) continue
    for (const { relation, resource, allowed } of permissions)
      rows.push([
        instant(atMs),
        link(
          askedAgain(org, { subject, relation, resource }, { app, ...acting }),
          html`${name(relation)} ${name(resource)}`,
        ),
        verdict(allowed),
        route === null ? EMPTY : name(route),
      ])
    if (rows.length >= DECISIONS_SHOWN) break
  }
  return table(visit, {
    id: 'decisions',
    caption: 'Latest decisions about them',
    columns: ['Time', 'Asked', 'Answer', 'Route'],
    rows: rows.slice(0, DECISIONS_SHOWN),
    empty: html`<p>Nothing was asked about this person lately.</p>`,
  })
}

/** Handles the forms: `all` and `session` end sessions; `do` names all else. */
export async function actPerson(visit: ConsoleVisit): Promise<View> {
  const { organization: org, form, query } = visit
  const user = query('user')
  const stale = mustSignInAgain(visit, address('people', { org, user, step: query('step') }))
  if (stale !== null) return stale
  const done = await carryOut(visit, { user, what: form('do') })
  return { goTo: address('people', { org, user, done }) }
}

async function carryOut(
  visit: ConsoleVisit,
  { user, what }: { readonly user: string; readonly what: string },
): Promise<string> {
  switch (what) {
    case 'block':
    case 'unblock':
      await visit.api('POST', `${pathOf(user)}/${what}`)
      return what
    case 'offboard': {
      const { complete } = await visit.api<UserHoldings>('POST', `${pathOf(user)}/offboard`)
      return complete ? 'offboard' : 'rest'
    }
    default:
      if (visit.form('delegation') !== '') {
        await endDelegation(visit, user, visit.form('delegation'))
        return 'delegation'
      }
      if (visit.form('all') === '1') await visit.api('POST', `${pathOf(user)}/sessions:revoke`)
      else await endSession(visit, visit.form('session'))
      return 'sessions'
  }
}

/** Ends a session; if it has ended already, as after a second click, nothing is left to do. */
async function endSession(visit: ConsoleVisit, uid: string): Promise<void> {
  try {
    await visit.api('DELETE', `/v1/sessions/${encodeURIComponent(uid)}`)
  } catch (err) {
    if (asRequestProblem(err).code !== 'not_found') throw err
  }
}
