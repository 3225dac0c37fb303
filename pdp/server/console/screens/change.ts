/** Changes a membership or a role: a preview of the effects, the confirmation, and how to undo it. */

import type { ProposedChange } from '../../../engine/decision-point/supposed-changes.ts'
import { membershipOf } from '../../../engine/writes/memberships.ts'
import { grantOf } from '../../../engine/writes/role-grants.ts'
import { EMPTY, type Html, html } from '../../../shared/base/html.ts'
import { ENVIRONMENT, type JournalId } from '../../../shared/domain/journal.ts'
import { type Membership, TIERS } from '../../../shared/domain/membership.ts'
import { formatTuple, isId, typeOf } from '../../../shared/domain/names.ts'
import { asRequestProblem, isFault, RequestProblem } from '../../serve/http/status.ts'
import { address, alert, hidden, link, name, problems, status } from '../parts.ts'
import { subjectText } from '../question.ts'
import { consequencesOf } from '../sections/consequences.ts'
import { table } from '../sections/table.ts'
import { inverseOf, revisionOf } from '../sections/undo.ts'
import { freshness, mustSignInAgain } from '../step-up.ts'
import type { ConsoleVisit, View } from '../visit.ts'
import { changeName } from './changes.ts'

type Proposed = { readonly log: JournalId; readonly change: Exclude<ProposedChange, { readonly kind: 'tuple' }> }

/** The URL of the preview of a change. */
export function changeAddress(org: string | null, { log, change }: Proposed): string {
  const { kind } = change
  if (kind === 'membership') {
    const { role: tier = '', status: state = '' } = change.membership ?? {}
    return address('change', { org, what: 'member', user: change.user, tier, status: state })
  }
  const { app, role, subject } = change.grant
  const everywhere = log === ENVIRONMENT ? 'yes' : ''
  return address('change', { org, what: 'role', op: change.op, app, role, subject, everywhere })
}

/** The change that the URL names. Throws RequestProblem if it names none. */
export function proposedIn({ organization: org, query }: ConsoleVisit): Proposed {
  if (org === null) throw new RequestProblem('not_found', 'there is no organization yet')
  if (query('what') === 'member') {
    const [user, tier] = [query('user').trim(), TIERS.find((one) => one === query('tier'))]
    if (!isId(user)) throw new RequestProblem('request_invalid', 'name a person by the id')
    const state = (['active', 'suspended'] as const).find((one) => one === (query('status') || 'active'))
    if ((tier === undefined && query('tier') !== '') || state === undefined)
      throw new RequestProblem('request_invalid', `a membership is ${TIERS.join(', ')}, and active or suspended`)
    const membership = tier === undefined ? null : ({ role: tier, status: state } as const)
    return { log: org, change: { kind: 'membership', user, membership } }
  }
  const { app, role } = roleIn(query('role').trim(), query('app'))
  const subject = subjectText(query('subject'))
  if (
    query('what') !== 'role' ||
    role === '' ||
    !isId(subject.slice(subject.indexOf(':') + 1)) ||
    typeOf(subject) === ''
  )
    throw new RequestProblem('request_invalid', 'this address names no change: a role and its subject, or a person')
  const op = query('op') === 'delete' ? 'delete' : 'write'
  const log = query('everywhere') === '' ? org : ENVIRONMENT
  return { log, change: { kind: 'role_grant', op, grant: grantOf({ app, role, subject }) } }
}

/** A choice in a form names both as APP/ROLE; keys of roles have no slash. */
function roleIn(text: string, app: string): { readonly app: string | null; readonly role: string } {
  const slash = text.lastIndexOf('/')
  return slash < 1 ? { app: app || null, role: text } : { app: text.slice(0, slash), role: text.slice(slash + 1) }
}

export async function requireRight(visit: ConsoleVisit, { log, change }: Proposed): Promise<void> {
  const scope = change.kind === 'membership' ? 'directory:write' : 'roles:write'
  await visit.requireScope(scope)
  if (log !== ENVIRONMENT || visit.mayEverywhere(scope)) return
  throw new RequestProblem('permission_denied', `this needs portcullis:${scope} in the whole environment`)
}

export async function showChange(visit: ConsoleVisit): Promise<View> {
  const proposed = proposedIn(visit)
  await requireRight(visit, proposed)
  return { title: 'Preview', body: await preview(visit, proposed) }
}

async function preview(visit: ConsoleVisit, proposed: Proposed): Promise<Html> {
  const { organization: org } = visit
  const { log, change } = proposed
  const here = changeAddress(org, proposed)
  const stored = await storedText(visit, proposed)
  const isNothing = stored === wantedText(change)
  const isTaken =
    wantedText(change) === NONE || (change.kind === 'membership' && change.membership?.status !== 'active')
  const rows = [[changeName(change), stored, isNothing ? 'nothing: it is so already' : wantedText(change)]]
  const confirm = html`<form method="post" action="${here}">${hidden('csrf', visit.csrf)}${hidden('stored', stored)}
<button type="submit"${isTaken ? html` class="destructive"` : EMPTY}>${buttonOf(change)}</button> ${link(backTo(visit, proposed), 'Cancel')}</form>`
  return html`${table(visit, {
    id: 'change',
    isWhole: true,
    caption: html`What would happen in ${log === ENVIRONMENT ? 'every organization' : name(log)}`,
    columns: ['Change', 'Now', 'Then'],
    rows,
    empty: EMPTY,
  })}
${await consequencesOf(visit, { log, changes: [change] })}${mayBeInvited(visit, change, stored)}
${freshness(visit, here)}${isNothing ? html`<p>${link(backTo(visit, proposed), 'Back')}</p>` : confirm}`
}

/** A note that the person must agree first: a tenant cannot make anybody a member without consent. */
const mayBeInvited = (visit: ConsoleVisit, change: Proposed['change'], stored: string): Html =>
  change.kind !== 'membership' ||
  change.membership?.status !== 'active' ||
  visit.mayEverywhere('directory:write') ||
  /(?:active|suspended)$/.test(stored)
    ? EMPTY
    : html`<p class="note">People who belong to none of your organizations are invited, and must accept before any of this counts.</p>`

const NONE = 'none'

const wantedText = (change: Proposed['change']): string =>
  change.kind === 'role_grant' ? (change.op === 'write' ? 'held' : NONE) : membershipText(change.membership)

const membershipText = (one: { readonly role: string; readonly status: string } | null): string =>
  one === null ? NONE : `${one.role}, ${one.status}`

async function storedText({ deps }: ConsoleVisit, { log, change }: Proposed): Promise<string> {
  const { store } = deps.management
  if (change.kind === 'membership') return membershipText(await membershipOf(store, log, change.user))
  const found = await store.roleGrants({ log, id: change.grant.id }, { after: null, countMax: 1 })
  return found.length === 0 ? NONE : 'held'
}

function buttonOf(change: Proposed['change']): string {
  if (change.kind === 'role_grant') return change.op === 'write' ? 'Give the role' : 'Take the role away'
  if (change.membership === null) return 'End the membership'
  return change.membership.status === 'suspended' ? 'Suspend' : 'Make a member'
}

/** The page that shows what was changed. */
export function backTo(
  { organization: org }: ConsoleVisit,
  { change }: Proposed,
  more: { readonly [name: string]: string } = {},
): string {
  const subject = change.kind === 'membership' ? `user:${change.user}` : change.grant.subject
  return typeOf(subject) === 'user'
    ? address('people', { org, user: subject.slice('user:'.length), ...more })
    : address('organization', { org, ...more })
}

export async function actChange(visit: ConsoleVisit): Promise<View> {
  const proposed = proposedIn(visit)
  await requireRight(visit, proposed)
  const { log, change } = proposed
  const stale = mustSignInAgain(visit, changeAddress(visit.organization, proposed))
  if (stale !== null) return stale
  const stored = await storedText(visit, proposed)
  // A form that was sent twice has already written its change.
  if (stored !== wantedText(change)) {
    if (visit.form('stored') !== stored) {
      const overtaken = alert('Nothing was written: it changed after the preview. This is what would happen now.')
      return { title: 'Preview', status: 409, body: html`${overtaken}${await preview(visit, proposed)}` }
    }
    try {
      await carryOut(visit, proposed)
    } catch (err) {
      const { code, message, issues } = asRequestProblem(err)
      if (isFault(code)) throw err
      return {
        title: 'Preview',
        status: 400,
        body: html`${problems(message, issues)}${await preview(visit, proposed)}`,
      }
    }
  }
  if (
    change.kind === 'membership' &&
    change.membership !== null &&
    (await storedText(visit, proposed)) !== wantedText(change)
  )
    return { goTo: backTo(visit, proposed, { done: 'invited' }) }
  const revision = await revisionOf(visit.deps.management.store, { log, requestId: visit.requestId })
  const place = log === ENVIRONMENT ? { log: 'environment' } : {}
  return { goTo: backTo(visit, proposed, { done: String(revision ?? 0), ...place }) }
}

async function carryOut(visit: ConsoleVisit, { log, change }: Proposed): Promise<void> {
  const base = log === ENVIRONMENT ? '/v1' : `/v1/organizations/${encodeURIComponent(log)}`
  if (change.kind === 'membership') {
    const path = `${base}/members/${encodeURIComponent(change.user)}`
    const { membership } = change
    if (membership === null) await visit.api('DELETE', path)
    else if (visit.form('stored') === NONE) await visit.api('PUT', path, membership)
    else
      await visit.change<Membership>(path, (now) => {
        if (membershipText(now) === visit.form('stored')) return membership
        throw new RequestProblem('precondition_failed', 'nothing was written: it changed after the preview')
      })
    return
  }
  const { id, app, role, subject } = change.grant
  if (change.op === 'delete') await visit.api('DELETE', `${base}/role-grants/${encodeURIComponent(id)}`)
  else await visit.api('POST', `${base}/role-grants`, { role, subject, ...(app !== null && { app }) })
}

/** After a change: shows what was written, and a link to the preview that undoes it. Empty if `done` names no revision. */
export async function changeDone(visit: ConsoleVisit): Promise<Html> {
  const { organization: org, query, person, deps } = visit
  if (org === null || !/^\d{1,15}$/.test(query('done'))) return EMPTY
  const told = status('Done. Every decision from now on sees it.')
  const log = query('log') === 'environment' ? ENVIRONMENT : org
  if (log === ENVIRONMENT && !visit.mayEverywhere('roles:write')) return told
  const { store } = deps.management
  const inverse = await inverseOf(store, { log, revision: Number(query('done')), actor: `user:${person.id}` })
  const [change, ...others] = inverse ?? []
  // Nobody is made a member who has not agreed to it.
  const isInvitation = change?.kind === 'membership' && change.membership?.status === 'invited'
  if (change === undefined || others.length > 0 || isInvitation) return told
  if (change.kind !== 'tuple') return html`${told}<p>${link(changeAddress(org, { log, change }), 'Undo …')}</p>`
  if (change.op === 'write' || !visit.may('relationships:write')) return told
  const to = address('relationships', { org, lines: formatTuple(change.tuple), op: 'delete' })
  return html`${told}<p>${link(`${to}#write`, 'Undo …')}</p>`
}
