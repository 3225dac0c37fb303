/** Gives a role until a time: a group of its own gets the role, and the subject's membership in it ends then. */

import { createRestrictions } from '../../../engine/writes/restrictions.ts'
import { grantOf } from '../../../engine/writes/role-grants.ts'
import { EMPTY, type Html, html } from '../../../shared/base/html.ts'
import { ENVIRONMENT } from '../../../shared/domain/journal.ts'
import { formatTuple, typeOf } from '../../../shared/domain/names.ts'
import type { RoleGrant } from '../../../shared/domain/role.ts'
import type { Tuple } from '../../../shared/domain/tuple.ts'
import { asRequestProblem, isFault, RequestProblem } from '../../serve/http/status.ts'
import { presentTuple } from '../../serve/management/relationships/tuple-bodies.ts'
import { othersIn } from '../../serve/management/roles/role-grants.ts'
import { address, alert, hidden, instant, link, name, problems } from '../parts.ts'
import { consequencesOf } from '../sections/consequences.ts'
import { table } from '../sections/table.ts'
import { instantIn, TIME_FORMS } from '../sections/times.ts'
import { revisionOf } from '../sections/undo.ts'
import { freshness, mustSignInAgain } from '../step-up.ts'
import type { ConsoleVisit, View } from '../visit.ts'
import { actChange, backTo, proposedIn, requireRight, showChange } from './change.ts'
import { changeName } from './changes.ts'

type Plan = { readonly org: string; readonly given: RoleGrant; readonly grant: RoleGrant; readonly tuple: Tuple }

/** The change that the URL describes, and what it needs. Throws RequestProblem. */
async function planOf(visit: ConsoleVisit): Promise<Plan> {
  const proposed = proposedIn(visit)
  const { log, change } = proposed
  await requireRight(visit, proposed)
  await visit.requireScope('relationships:write')
  const until = visit.query('until')
  const expiresAtMs = instantIn(until, visit.reading, 'end')
  if (change.kind !== 'role_grant' || change.op !== 'write' || log === ENVIRONMENT)
    throw new RequestProblem('request_invalid', 'only a role that is given in one organization has an end')
  if (expiresAtMs === null) throw new RequestProblem('request_invalid', `"${until}" names no time. Write ${TIME_FORMS}`)
  if (expiresAtMs <= visit.reading.nowMs) throw new RequestProblem('request_invalid', `"${until}" is over already`)
  const { app, role, subject } = change.grant
  // The app ends at the first hyphen: two roles whose names run together would share a group, and each other's rights.
  const apart = app === null ? '' : encodeURIComponent(app).replaceAll('-', '%2D')
  const group = `group:until-${apart}-${role}`
  const member = typeOf(subject) === 'group' ? `${subject}#member` : subject
  const tuple = { object: group, relation: 'member', subject: member, expiresAtMs }
  const issue = (await createRestrictions()(visit.deps.management.store))(tuple)
  if (issue !== null)
    throw new RequestProblem(
      'request_invalid',
      `${formatTuple(tuple)} ${issue}: a role has an end through such a group`,
    )
  return { org: log, given: change.grant, grant: grantOf({ app, role, subject: group }), tuple }
}

/** This page's URL with the end as an instant, so that the person confirms exactly what was previewed. */
const hereWith = ({ org, given: { app, role, subject }, tuple: { expiresAtMs } }: Plan): string =>
  address('change', { org, what: 'role', app, role, subject, until: new Date(expiresAtMs ?? 0).toISOString() })

type Stored = { readonly isGranted: boolean; readonly tuple: Tuple | null }

async function storedOf({ deps }: ConsoleVisit, { org, grant, tuple }: Plan): Promise<Stored> {
  const { store } = deps.management
  const { object, relation, subject } = tuple
  const page = { after: null, countMax: 1 }
  const [granted, [found = null]] = [
    await store.roleGrants({ log: org, id: grant.id }, page),
    await store.tuples(org, { object, relation, subject }, page),
  ]
  return { isGranted: granted.length > 0, tuple: found }
}

const textOf = ({ isGranted, tuple }: Stored): string =>
  `${isGranted} ${tuple === null ? 'none' : (tuple.expiresAtMs ?? 'for ever')}`

const endOf = (tuple: Tuple | null): Html =>
  tuple === null ? html`none` : tuple.expiresAtMs === null ? html`for ever` : html`until ${instant(tuple.expiresAtMs)}`

async function preview(visit: ConsoleVisit, plan: Plan): Promise<Html> {
  const { org, given, grant, tuple } = plan
  const stored = await storedOf(visit, plan)
  const here = hereWith(plan)
  const giving = { kind: 'role_grant', op: 'write', grant } as const
  const joining = { kind: 'tuple', op: 'write', tuple } as const
  const rows = [
    ...(stored.isGranted ? [] : [[changeName(giving), 'none', 'held']]),
    [changeName(joining), endOf(stored.tuple), endOf(tuple)],
  ]
  const caption = html`What would happen in ${name(org)}`
  return html`${table(visit, { id: 'change', isWhole: true, caption, columns: ['Change', 'Now', 'Then'], rows, empty: EMPTY })}
${await consequencesOf(visit, { log: org, changes: stored.isGranted ? [joining] : [giving, joining] })}
<p class="note">A role has no end of its own: ${name(grant.subject)} holds it, and this membership of the group ends.</p>
${freshness(visit, here)}<form method="post" action="${here}">${hidden('csrf', visit.csrf)}${hidden('stored', textOf(stored))}
<button type="submit">Give the role until then</button> ${link(backTo(visit, { log: org, change: { kind: 'role_grant', op: 'write', grant: given } }), 'Cancel')}</form>`
}

const NAMED_MAX = 5

/**
 * A page that refuses the change while the group does not hold the role and already has others in it, whom somebody without a right
 * to give roles may have put there: they would hold the role, too, and for ever. Null: there is nobody else.
 */
async function othersFirst(visit: ConsoleVisit, { org, grant, tuple }: Plan): Promise<View | null> {
  const others = await othersIn(visit.deps.management, { log: org, group: tuple.object, member: tuple.subject })
  if (others?.length === 0) return null
  const shown = visit.may('relationships:read') ? (others ?? []).slice(0, NAMED_MAX) : []
  const named = shown.map((one) => html`<li>${name(formatTuple(one))}</li>`)
  const more = others === null || others.length > shown.length ? html`<li>more than is shown here</li>` : EMPTY
  const to = link(address('relationships', { org, object: tuple.object }), 'Relationships of this group')
  const body = html`${alert(html`Nothing was written: ${name(grant.subject)} does not hold the role yet, and has others in it. They would hold the role, too, without this end. Remove them first.`)}
<ul>${named}${more}</ul><p>${to}</p>`
  return { title: 'Preview', status: 409, body }
}

/** Shows the preview of a change with an end (`until`), or of any other change. */
export async function showEndingChange(visit: ConsoleVisit): Promise<View> {
  if (visit.query('until').trim() === '') return showChange(visit)
  const plan = await planOf(visit)
  const { isGranted } = await storedOf(visit, plan)
  const refused = isGranted ? null : await othersFirst(visit, plan)
  return refused ?? { title: 'Preview', body: await preview(visit, plan) }
}

export async function actEndingChange(visit: ConsoleVisit): Promise<View> {
  if (visit.query('until').trim() === '') return actChange(visit)
  const plan = await planOf(visit)
  const { org, given, grant, tuple } = plan
  const stale = mustSignInAgain(visit, hereWith(plan))
  if (stale !== null) return stale
  const stored = await storedOf(visit, plan)
  const refused = stored.isGranted ? null : await othersFirst(visit, plan)
  if (refused !== null) return refused
  // A form that was sent twice has already written its change.
  if (textOf(stored) !== textOf({ isGranted: true, tuple })) {
    if (visit.form('stored') !== textOf(stored)) {
      const overtaken = alert('Nothing was written: it changed after the preview. This is what would happen now.')
      return { title: 'Preview', status: 409, body: html`${overtaken}${await preview(visit, plan)}` }
    }
    const base = `/v1/organizations/${encodeURIComponent(org)}`
    const { app, role, subject } = grant
    try {
      // The group gets the role first: if the second write fails, it has no members and gives nobody anything. Nobody without the
      // right to give the role joins it later: a write of members takes the same lock as the grant, and sees it.
      if (!stored.isGranted) {
        const alone = { role, subject, ...(app !== null && { app }), only_member: tuple.subject }
        await visit.api('POST', `${base}/role-grants`, alone)
      }
      await visit.api('POST', `${base}/relationships`, { write: [presentTuple(tuple)] })
    } catch (err) {
      const { code, message, issues } = asRequestProblem(err)
      if (isFault(code)) throw err
      // Somebody joined between the look above and the grant.
      const late = code === 'conflict' ? await othersFirst(visit, plan) : null
      if (late !== null) return late
      return { title: 'Preview', status: 400, body: html`${problems(message, issues)}${await preview(visit, plan)}` }
    }
  }
  const revision = await revisionOf(visit.deps.management.store, { log: org, requestId: visit.requestId })
  const change = { kind: 'role_grant', op: 'write', grant: given } as const
  return { goTo: backTo(visit, { log: org, change }, { done: String(revision ?? 0) }) }
}
