/** Decisions: the latest answers of this PDP, found by request, route, subject, resource, reason or outcome; each opens as a question. */

import { EMPTY, type Html, html } from '../../../shared/base/html.ts'
import { REASONS } from '../../../shared/domain/reasons.ts'
import { existsAsSubject } from '../../serve/decisions/answer.ts'
import type { DenialFilter } from '../../serve/decisions/decision-archive.ts'
import type { KeptDecision } from '../../serve/decisions/decision-ring.ts'
import { asRequestProblem, isFault } from '../../serve/http/status.ts'
import { shellWord } from '../answer-texts.ts'
import { address, alert, csv, field, hidden, instant, link, name, verdict } from '../parts.ts'
import { actorsMeant, askedAgain, readSubject } from '../question.ts'
import { denials } from '../sections/denials.ts'
import { type Column, countOf, table } from '../sections/table.ts'
import { daysOf, instantIn, TIME_FORMS } from '../sections/times.ts'
import type { ConsoleVisit, View } from '../visit.ts'

const ROWS_MAX = 100
const REQUEST: Column = { title: 'Request', isExtra: true }
const RANKED_MAX = 20

export type Filter = {
  readonly request: string
  readonly route: string
  readonly subject: string
  readonly resource: string
  readonly reason: string
  readonly outcome: string
}
/** The id in a pasted text: the id itself, `instance` with its prefix, or the body of a refusal. */
export const requestIdIn = (text: string): string =>
  /(?:urn:portcullis:request:|"request_id"\s*:\s*")([^"\s]+)/.exec(text)?.[1] ?? text.trim()

export const filterOf = ({ query }: ConsoleVisit): Filter => ({
  request: requestIdIn(query('request')),
  route: query('route').trim(),
  subject: query('subject').trim(),
  resource: query('resource').trim(),
  reason: query('reason').trim(),
  outcome: query('outcome'),
})

/** Whether the person may see the decision: those of the organization in view; those without one only with rights everywhere. */
export function isShown(visit: ConsoleVisit, filter: Filter, decision: KeptDecision): boolean {
  const { organization } = visit
  const isTheirs =
    decision.organization === null ? visit.mayEverywhere('decisions:read') : decision.organization === organization
  if (!isTheirs) return false
  if (filter.request !== '' && decision.requestId !== filter.request && decision.decisionId !== filter.request)
    return false
  if (filter.route !== '' && decision.route !== filter.route) return false
  if (filter.reason !== '' && !decision.permissions.some(({ reasonCode }) => reasonCode === filter.reason)) return false
  if (filter.subject !== '' && decision.subject !== filter.subject) return false
  if (filter.resource !== '' && !decision.permissions.some(({ resource }) => resource === filter.resource)) return false
  return filter.outcome === '' || isAllowed(decision) === (filter.outcome === 'allowed')
}

const ROUTES_SUGGESTED = 100
/** Suggested only to people who may open Routes: a route file belongs to no organization. */
const routesIn = ({ deps, mayEverywhere }: ConsoleVisit): readonly string[] =>
  mayEverywhere('decisions:read')
    ? [...new Set(deps.routes.all().flatMap(({ routes }) => routes.map(({ id }) => id)))].slice(0, ROUTES_SUGGESTED)
    : []

const isAllowed = ({ permissions, entitlements, isInactive }: KeptDecision): boolean =>
  !isInactive && permissions.every(({ allowed }) => allowed) && entitlements.every(({ present }) => present)

/** The cells of a row as texts, for rows that a script adds. */
export const rowTexts = (decision: KeptDecision): readonly string[] => [
  new Date(decision.atMs).toISOString(),
  decision.subject ?? 'nobody',
  decision.permissions.map(({ relation, resource }) => `${relation} ${resource}`).join(', ') ||
    decision.entitlements.map(({ key }) => `entitlement ${key}`).join(', ') ||
    'an active token',
  isAllowed(decision) ? '✓ allowed' : '✗ denied',
  decision.route ?? '',
  decision.requestId ?? decision.decisionId,
]

/** Decisions are personal data, so each view of them is logged. */
export function logView(visit: ConsoleVisit, filter: Filter, how: 'page' | 'live'): void {
  const { deps, person, organization, requestId } = visit
  const line = { event: 'decisions_viewed', request_id: requestId, how, actor: `user:${person.id}`, organization }
  deps.log.info({ ...line, ...filter })
}

export async function showDecisions(visit: ConsoleVisit): Promise<View> {
  await visit.requireScope('decisions:read')
  const { deps, organization: org } = visit
  const filter = filterOf(visit)
  if (visit.query('format') === 'csv') return exportOf(visit, filter)
  const found: KeptDecision[] = []
  let count = 0
  for (const decision of deps.decisions.latest()) {
    if (!isShown(visit, filter, decision)) continue
    found.push(decision)
    count += Math.max(1, decision.permissions.length + decision.entitlements.length)
    if (count >= ROWS_MAX) break
  }
  const isCompared = filter.request !== '' || visit.query('now') === '1'
  const now = isCompared ? await Promise.all(found.map((decision) => nowOf(visit, decision))) : null
  const rows = found.flatMap((decision, i) => rowsOf(org, decision, now === null ? null : (now[i] ?? [])))
  logView(visit, filter, 'page')
  // Live rows are only possible without the column of present answers.
  const tail = isCompared ? EMPTY : html` data-tail="${address('decisions/tail', { org, ...filter })}"`
  const toNow = isCompared
    ? EMPTY
    : html`<p class="actions">${link(address('decisions', { org, ...filter, now: '1' }), 'Ask all of these again, now')}</p>`
  return {
    title: 'Decisions',
    body: html`<form method="get" action="/console/decisions" class="question">${hidden('org', org ?? '')}
${field({ name: 'request', label: 'Request or decision id', value: filter.request })}
<button type="submit">Find</button><details${isNarrowed(visit, filter) ? html` open` : EMPTY}><summary>More filters</summary><div class="fields">
${field({ name: 'route', label: 'Route', value: filter.route, among: routesIn(visit), hint: 'Of a sidecar, such as GET /invoices/{id}.' })}
${field({ name: 'subject', label: 'Subject', value: filter.subject })}
${field({ name: 'resource', label: 'Resource', value: filter.resource })}
${field({ name: 'reason', label: 'Reason', value: filter.reason, among: Object.keys(REASONS), hint: 'Such as none or membership_suspended.' })}
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
${deps.archive === null ? EMPTY : html`${field({ name: 'from', label: 'From', value: visit.query('from'), hint: html`Such as yesterday or -2h; for denials of all PDPs. ${daysOf(visit.reading.zone)}` })}${field({ name: 'to', label: 'To', value: visit.query('to') })}`}</div></details></form>
${rows.length === 0 ? EMPTY : toNow}<div${tail}>${table(visit, {
      id: 'decisions',
      caption: `The latest decisions of this PDP, newest first${count < ROWS_MAX ? '' : ' (older ones by a filter)'}`,
      columns: ['Time', 'Subject', 'Asked', 'Then', ...(isCompared ? ['Now'] : []), 'Route', REQUEST],
      rows,
      empty: html`${emptyText(visit, filter)}${await elsewhere(visit, filter)}`,
    })}</div>
${await archived(visit, filter)}
${await denials(visit, RANKED_MAX)}
<p class="note">Each PDP keeps its ${String(deps.decisions.countMax)} latest decisions in memory, without tokens and contexts.
Its log and the sidecars' logs keep them for longer.</p>`,
  }
}

const isNarrowed = ({ query }: ConsoleVisit, { request: _, ...others }: Filter): boolean =>
  [...Object.values(others), query('from'), query('to')].some((text) => text !== '')

const ARCHIVED_SHOWN = 50
const EXPORTED_MAX = 10_000

/** The filter, in the form of the archive of all PDPs. */
function denialFilter({ query, reading }: ConsoleVisit, filter: Filter): DenialFilter {
  const times = [
    ['fromMs', instantIn(query('from'), reading, 'begin')],
    ['toMs', instantIn(query('to'), reading, 'end')],
  ] as const
  const words = (['request', 'route', 'subject', 'resource', 'reason'] as const).map((key) => [key, filter[key]])
  return Object.fromEntries([...words, ...times].filter(([, value]) => value !== '' && value !== null))
}

/** Denials of all PDPs, the newest first, page by page. */
async function archived(visit: ConsoleVisit, filter: Filter): Promise<Html> {
  const { deps, organization: org, query } = visit
  if (deps.archive === null || org === null || filter.outcome === 'allowed') return EMPTY
  const before = /^\d{1,18}$/.test(query('page')) ? query('page') : null
  const page = { before, countMax: ARCHIVED_SHOWN + 1 }
  const { archive } = deps
  const found = await archive.denied(org, denialFilter(visit, filter), page)
  const shown = found.slice(0, ARCHIVED_SHOWN)
  const state = { org, ...filter, from: query('from'), to: query('to') }
  const rows = shown.map(({ atMs, subject, relation, resource, reason, route, requestId, decisionId, askedAs }) => [
    instant(atMs),
    name(subject),
    html`${link(askedAgain(org, { subject, relation, resource }, askedAs), html`${name(relation)} ${name(resource)}`)}${partNote(askedAs.isWhole !== false)}`,
    link(address('decisions', { org, reason }), reason),
    route === '' ? EMPTY : link(address('decisions', { org, route }), name(route)),
    html`<span class="id">${link(address('decisions', { org, request: requestId || decisionId }), name(requestId || decisionId))}</span>`,
  ])
  const last = found.length > ARCHIVED_SHOWN ? shown.at(-1) : undefined
  const next = last === undefined ? null : address('decisions', { ...state, page: last.id })
  const total = await countOf(visit, { id: 'denied', next, pageSize: ARCHIVED_SHOWN }, ({ countMax }) =>
    archive.denied(org, denialFilter(visit, filter), { before: null, countMax }),
  )
  const unread = [query('from'), query('to')].filter(
    (text) => text.trim() !== '' && instantIn(text, visit.reading, 'begin') === null,
  )
  return html`${unread.map((text) => alert(html`${name(text)} names no time, so it does not count. Write ${TIME_FORMS}.`))}${table(
    visit,
    {
      id: 'denied',
      caption: 'Denied, by all PDPs, newest first',
      columns: ['Time', 'Subject', 'Asked', 'Reason', 'Route', REQUEST],
      rows,
      file: address('decisions', { ...state, format: 'csv' }),
      next,
      total,
      nextText: 'Older',
      empty: html`<p>No denial of any PDP matches.</p>`,
    },
  )}`
}

const partNote = (isWhole: boolean): Html =>
  isWhole ? EMPTY : html` <span class="note">with values, tuples or groups that are not kept</span>`

async function exportOf(visit: ConsoleVisit, filter: Filter): Promise<View> {
  const { deps, organization: org } = visit
  logView(visit, filter, 'page')
  const page = { before: null, countMax: EXPORTED_MAX }
  const found =
    deps.archive === null || org === null ? [] : await deps.archive.denied(org, denialFilter(visit, filter), page)
  const head = ['time', 'subject', 'relation', 'resource', 'reason', 'route', 'request']
  const rows = found.map(({ atMs, subject, relation, resource, reason, route, requestId, decisionId }) => [
    new Date(atMs).toISOString(),
    ...[subject, relation, resource, reason, route, requestId || decisionId],
  ])
  const end = [`# ${found.length === EXPORTED_MAX ? `not complete: the newest ${EXPORTED_MAX}` : 'complete'}`]
  return { file: 'denials.csv', type: 'text/csv', text: csv([head, ...rows, end]) }
}

/** The present answers to the decision's questions: true, false, or null if parts of the question were not kept or it cannot be decided. */
async function nowOf({ deps }: ConsoleVisit, decision: KeptDecision): Promise<readonly (boolean | null)[]> {
  const { subject: text, organization, app, acting, permissions: asked } = decision
  const subject = text === null ? null : readSubject(text)
  if (subject === null || organization === null || !decision.isWhole || asked.length === 0) return []
  const { directory, pdp } = deps.management
  const permissions = asked.map(({ relation, resource }) => ({ relation, resource }))
  const by = { app, ...actorsMeant(acting.actors ?? []), scopes: acting.scopes ?? [] }
  try {
    const [exists, found] = await Promise.all([
      existsAsSubject(directory, subject, organization),
      pdp.decide({ organization, subject, permissions, ...by }),
    ])
    return found.permissions.map(({ allowed, error }) => exists && (error === undefined ? allowed : null))
  } catch (err) {
    if (isFault(asRequestProblem(err).code)) throw err
    return []
  }
}

/** `now`: the present answer of each permission; null: it was not asked again. */
function rowsOf(
  org: string | null,
  decision: KeptDecision,
  now: readonly (boolean | null)[] | null,
): readonly (readonly (Html | string)[])[] {
  const { atMs, subject, permissions, entitlements, requestId, decisionId, route, app, acting, isWhole } = decision
  const who = subject === null ? html`<span class="note">nobody</span>` : name(subject)
  const request = html`<span class="id">${link(address('decisions', { org, request: requestId ?? decisionId }), name(requestId ?? decisionId))}</span>`
  const way = route === null ? EMPTY : link(address('decisions', { org, route }), name(route))
  const row = (asked: Html | string, then: Html, answerNow: Html) => [
    instant(atMs),
    who,
    asked,
    then,
    ...(now === null ? [] : [answerNow]),
    way,
    request,
  ]
  const unknown = html`<span class="note">–</span>`
  const checks = permissions.map(({ relation, resource, allowed, reasonCode }, i) => {
    const text = html`${name(relation)} ${name(resource)}`
    const asked =
      subject === null ? text : link(askedAgain(org, { subject, relation, resource }, { app, ...acting }), text)
    const answer = now?.[i] ?? null
    const changed = answer === null || answer === allowed ? EMPTY : html` <strong>changed</strong>`
    return row(
      html`${asked}${partNote(isWhole)}`,
      html`${verdict(allowed)} <span class="note"><span class="extra">reason: </span>${link(address('decisions', { org, reason: reasonCode }), reasonCode)}</span>`,
      answer === null ? unknown : html`${verdict(answer)}${changed}`,
    )
  })
  const keys = entitlements.map(({ key, present }) => row(html`entitlement ${name(key)}`, verdict(present), unknown))
  return checks.length + keys.length === 0
    ? [row('an active token', verdict(!decision.isInactive), unknown)]
    : [...checks, ...keys]
}

/** A link to the organization of the request, if the person looks in the wrong one. */
async function elsewhere(visit: ConsoleVisit, { request }: Filter): Promise<Html> {
  if (request === '') return EMPTY
  for (const { organization: org, requestId, decisionId } of visit.deps.decisions.latest()) {
    if (org === null || org === visit.organization || (requestId !== request && decisionId !== request)) continue
    if (await visit.mayWithin('decisions:read', org))
      return html`<p>It was asked in ${link(address('decisions', { org, request }), name(org))}.</p>`
  }
  return EMPTY
}

function emptyText({ deps, organization }: ConsoleVisit, filter: Filter): Html {
  const { countMax } = deps.decisions
  if (countMax === 0) return html`<p>This PDP keeps no decisions: <code>PORTCULLIS_DECISIONS_KEPT</code> is 0.</p>`
  const isFiltered = Object.values(filter).some((text) => text !== '')
  return isFiltered
    ? html`<p>Nothing found among the latest ${String(countMax)}. The decision may be older, of another organization, or of another PDP.</p>`
    : html`<p>Nothing was asked yet. Ask something through a sidecar, or:</p><pre tabindex="0"><code>portcullis check user:alice viewer doc:1 -o ${shellWord(organization ?? 'ORGANIZATION')}</code></pre>`
}
