/** Everything that a subject can reach, by type and relation: how many resources, some of them, and through what. */
import { readReach, SHOWN_MAX, type Way } from '../../../engine/reach/reach.ts'
import { EMPTY, type Html, html, joined } from '../../../shared/base/html.ts'
import type { AskedSubject } from '../../../shared/domain/decision.ts'
import { subjectName } from '../../../shared/domain/subjects.ts'
import { address, link, name } from '../parts.ts'
import { parametersOf, readSupposed, type Supposed } from '../question.ts'
import type { ConsoleVisit } from '../visit.ts'
import { table } from './table.ts'

const WAYS = { role: 'a role', membership: 'membership', rule: 'a rule', directly: 'directly' } as const

/** `supposed`: a supposition of the question; absent: none. Throws RequestProblem and PdpError. */
export async function reachOf(visit: ConsoleVisit, subject: AskedSubject, supposed?: Supposed): Promise<Html> {
  await visit.requireScope('decisions:read')
  const { organization: org, deps } = visit
  const question = { ...(supposed && readSupposed(supposed)), subject }
  const more = supposed === undefined ? {} : parametersOf(supposed)
  const { rows, left } =
    org === null ? { rows: [], left: [] } : await readReach(deps.management.pdp, { ...question, organization: org })
  const who = subjectName(subject)
  const shown = rows.map(({ type, relation, items, isAll, ways }) => [
    name(type),
    html`<span class="key">${name(relation)}</span>`,
    link(address('what', { org, subject: who, relation, type, ...more }), `${isAll ? '' : 'at least '}${items.length}`),
    html`${joined(items.slice(0, SHOWN_MAX).map((item) => link(address('ask', { org, subject: who, relation, resource: item, ...more }), name(item))))}${items.length > SHOWN_MAX || !isAll ? ' …' : EMPTY}`,
    joined(ways.map(wayName)),
  ])
  return html`${table(visit, {
    id: 'reach',
    caption: html`What ${name(who)} can reach, by type and relation`,
    columns: ['Type', 'Relation', { title: 'Count', number: true }, 'Such as', 'By'],
    rows: shown,
    empty: html`<p>${name(who)} can reach nothing that relationships, rules, memberships or roles name here.</p>`,
  })}${left.length === 0 ? EMPTY : html`<p class="note">Not everything was looked at: ${joined(left.map(({ type, relation }) => link(address('what', { org, subject: who, relation, type, ...more }), html`${name(relation)} of ${name(type)}`)))}.</p>`}`
}

const wayName = (way: Way): Html => (typeof way === 'string' ? html`${WAYS[way]}` : name(way.object))
