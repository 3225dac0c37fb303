/** Decisions: the latest answers of this PDP, found by request, subject, relation or outcome; each opens as a question. */
import { EMPTY, type Html, html } from '../../identity/html/html.ts'
import type { KeptDecision } from '../../serve/decisions/decision-ring.ts'
import { address, field, hidden, instant, link, name, table, verdict } from '../parts.ts'
import type { View, Visit } from '../visit.ts'

const ROWS_MAX = 100

export type Filter = {
  readonly request: string
  readonly subject: string
  readonly resource: string
  readonly outcome: string
}
export const filterOf = ({ query }: Visit): Filter => ({
  request: query('request').trim(),
  subject: query('subject').trim(),
  resource: query('resource').trim(),
  outcome: query('outcome'),
})

/** Of the organization that the person looks at; without one only for those who may look at all. */
export function isShown(visit: Visit, filter: Filter, decision: KeptDecision): boolean {
  const { organization } = visit
  const isTheirs =
    decision.organization === null ? visit.mayEverywhere('decisions:read') : decision.organization === organization
  if (!isTheirs) return false
  if (filter.request !== '' && decision.requestId !== filter.request && decision.decisionId !== filter.request)
    return false
  if (filter.subject !== '' && decision.subject !== filter.subject) return false
  if (filter.resource !== '' && !decision.permissions.some(({ resource }) => resource === filter.resource)) return false
  return filter.outcome === '' || isAllowed(decision) === (filter.outcome === 'allowed')
}

const isAllowed = ({ permissions, entitlements, isInactive }: KeptDecision): boolean =>
  !isInactive && permissions.every(({ allowed }) => allowed) && entitlements.every(({ present }) => present)

/** The questions as text, for rows that a script adds. */
export const rowTexts = (decision: KeptDecision): readonly string[] => [
  new Date(decision.atMs).toISOString(),
  decision.subject ?? 'nobody',
  decision.permissions.map(({ relation, resource }) => `${relation} ${resource}`).join(', ') ||
    decision.entitlements.map(({ key }) => `entitlement ${key}`).join(', ') ||
    'an active token',
  isAllowed(decision) ? '✓ allowed' : '✗ denied',
  decision.requestId ?? decision.decisionId,
]

export async function showDecisions(visit: Visit): Promise<View> {
  await visit.requireScope('decisions:read')
  const { deps, organization: org, person } = visit
  const filter = filterOf(visit)
  const rows: (readonly (Html | string)[])[] = []
  for (const decision of deps.decisions.latest(null)) {
    if (!isShown(visit, filter, decision)) continue
    rows.push(...rowsOf(org, decision))
    if (rows.length >= ROWS_MAX) break
  }
  // Whom somebody asked about is nobody else's business, so that each look is on record.
  deps.log.info({ event: 'decisions_viewed', actor: `user:${person.id}`, organization: org, ...filter })
  const tail = address('decisions/tail', { org, ...filter })
  return {
    title: 'Decisions',
    body: html`<form method="get" action="/console/decisions" class="question">${hidden('org', org ?? '')}
${field({ name: 'request', label: 'Request or decision id', value: filter.request, hint: 'Of the question to the PDP.' })}
${field({ name: 'subject', label: 'Subject', value: filter.subject })}
${field({ name: 'resource', label: 'Resource', value: filter.resource })}
${field({
  name: 'outcome',
  label: 'Outcome',
  value: filter.outcome,
  options: [
    ['', 'all'],
    ['denied', 'denied'],
    ['allowed', 'allowed'],
  ],
})}
<button type="submit">Find</button></form>
<div data-tail="${tail}">${table({
      caption: `The latest decisions of this PDP, newest first; ${ROWS_MAX} at most`,
      columns: ['Time', 'Subject', 'Asked', 'Then', 'Request'],
      rows,
      empty: emptyText(deps.decisions.countMax, filter),
    })}</div>
<p class="note">Each PDP keeps its ${String(deps.decisions.countMax)} latest decisions in memory, without tokens and contexts.
Its log and the sidecars' logs keep them for longer.</p>`,
  }
}

function rowsOf(org: string | null, decision: KeptDecision): readonly (readonly (Html | string)[])[] {
  const { atMs, subject, permissions, entitlements, requestId, decisionId, hasContext } = decision
  const who = subject === null ? html`<span class="note">nobody</span>` : name(subject)
  const request = html`<span class="id">${link(address('decisions', { org, request: requestId ?? decisionId }), name(requestId ?? decisionId))}</span>`
  const checks = permissions.map(({ relation, resource, allowed, reasonCode }) => [
    instant(atMs),
    who,
    html`${subject === null ? html`${name(relation)} ${name(resource)}` : link(address('ask', { org, subject, relation, resource }), html`${name(relation)} ${name(resource)}`)}${hasContext ? html` <span class="note">with a context that is not kept</span>` : EMPTY}`,
    html`${verdict(allowed)} <span class="note">${reasonCode}</span>`,
    request,
  ])
  const keys = entitlements.map(({ key, present }) => [
    instant(atMs),
    who,
    html`entitlement ${name(key)}`,
    verdict(present),
    request,
  ])
  const nothing = [instant(atMs), who, 'an active token', verdict(!decision.isInactive), request]
  return checks.length + keys.length === 0 ? [nothing] : [...checks, ...keys]
}

function emptyText(countMax: number, filter: Filter): Html {
  if (countMax === 0) return html`<p>This PDP keeps no decisions: <code>PORTCULLIS_DECISIONS_KEPT</code> is 0.</p>`
  const isFiltered = Object.values(filter).some((text) => text !== '')
  return isFiltered
    ? html`<p>Nothing found among the latest ${String(countMax)}. The decision may be older, of another organization, or of another PDP.</p>`
    : html`<p>Nothing was asked yet. Ask something through a sidecar, or:</p><pre tabindex="0"><code>portcullis check user:alice viewer doc:1 -o ORGANIZATION</code></pre>`
}
