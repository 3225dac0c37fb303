/** The start: what there is, how the PDP does, and what deserves a look. */
import { ENVIRONMENT } from '../../domain/log.ts'
import { EMPTY, type Html, html } from '../../identity/html/html.ts'
import { createRestrictions } from '../../writes/restrictions.ts'
import { mayOpen, PLACES } from '../layout.ts'
import { noRights } from '../no-rights.ts'
import { address, field, hidden, link, name, table } from '../parts.ts'
import type { View, Visit } from '../visit.ts'

const LOOKED_AT_MAX = 1_000

type Finding = { readonly what: Html; readonly where: Html }

export async function showStart(visit: Visit): Promise<View> {
  const places = Object.values(PLACES).filter((place) => mayOpen(visit, place))
  if (places.length === 0) return noRights(visit)
  const { organization: org } = visit
  return {
    title: 'Start',
    body: html`${await health(visit)}${visit.may('decisions:read') ? askForm(visit) : EMPTY}${await findings(visit)}
<h2>Look</h2><ul class="cards">${places.map(({ path, title }) => html`<li>${link(address(path, { org }), title)}<span class="note">${WORTH[path] ?? ''}</span></li>`)}</ul>`,
  }
}

const WORTH: { readonly [path: string]: string } = {
  ask: 'May they? Why, what is missing, what if?',
  who: 'Everybody who may, as a list or CSV.',
  what: 'Everything that one of them may.',
  decisions: 'What was asked and answered, by request id.',
  model: 'Types and relations, and who would gain or lose.',
  relationships: 'What is stored; write and delete.',
  organization: 'The tree, members, roles, entitlements.',
  people: 'Memberships, roles, sessions.',
  changes: 'Who changed what, and when.',
}

function askForm(visit: Visit): Html {
  return html`<form method="get" action="/console/decisions" class="question">${hidden('org', visit.organization ?? '')}
${field({ name: 'request', label: 'Somebody was refused? The request or decision id', value: '', required: true, hint: 'Of the question to the PDP. Those of sidecars are found by subject and resource.' })}<button type="submit">Find the decision</button></form>`
}

async function health({ deps, organization }: Visit): Promise<Html> {
  const { store } = deps.management
  const startedMs = performance.now()
  const { logs, clockMs } = await store.vector([ENVIRONMENT, ...(organization === null ? [] : [organization])])
  const tookMs = performance.now() - startedMs
  const skewMs = Math.abs(deps.clock() - clockMs)
  let [allowed, denied] = [0, 0]
  for (const decision of deps.decisions.latest(null)) {
    if (decision.organization !== organization) continue
    allowed += decision.permissions.filter((one) => one.allowed).length
    denied += decision.permissions.filter((one) => !one.allowed).length
  }
  const numbers: (readonly [string, Html | string])[] = [
    ['Revision here', String((organization === null ? undefined : logs.get(organization)?.revision) ?? 0)],
    ['Revision of the environment', String(logs.get(ENVIRONMENT)?.revision ?? 0)],
    ['The store answers in', `${tookMs.toFixed(1)} ms`],
    ['Clock against the store', skewMs < 1_000 ? 'in step' : `${(skewMs / 1_000).toFixed(1)} s apart`],
    ['Kept decisions here', `${allowed} allowed, ${denied} denied`],
  ]
  return html`<dl class="numbers">${numbers.map(([title, value]) => html`<div><dt>${title}</dt><dd>${value}</dd></div>`)}</dl>`
}

/** Each with the screen on which it can be mended. */
async function findings(visit: Visit): Promise<Html> {
  const found: Finding[] = []
  if (visit.mayEverywhere('roles:read')) found.push(...(await wideGrants(visit)))
  if (visit.may('relationships:read')) found.push(...(await tuplesThatDoNotCount(visit)))
  return table({
    caption: 'Problems found',
    columns: ['What', 'Where'],
    rows: found.map(({ what, where }) => [what, where]),
    empty: html`<p>No problem found: no role is granted everywhere to a person or client, nothing expired is stored, and each of the first ${String(LOOKED_AT_MAX)} relationships counts.</p>`,
  })
}

async function wideGrants({ deps, organization: org }: Visit): Promise<readonly Finding[]> {
  const grants = await deps.management.store.roleGrants({ log: ENVIRONMENT }, { after: null, countMax: 20 })
  return grants.map(({ app, role, subject }) => ({
    what: html`${name(subject)} holds ${app === null ? EMPTY : html`${name(app)} / `}${name(role)} in every organization`,
    where: subject.startsWith('user:')
      ? link(address('people', { org, user: subject.slice('user:'.length) }), 'Person')
      : EMPTY,
  }))
}

async function tuplesThatDoNotCount({ deps, organization: org }: Visit): Promise<readonly Finding[]> {
  if (org === null) return []
  const { store } = deps.management
  const restriction = await createRestrictions()(store)
  const nowMs = deps.clock()
  const tuples = await store.tuples(org, {}, { after: null, countMax: LOOKED_AT_MAX })
  const found: Finding[] = []
  for (const tuple of tuples) {
    const { object, relation, subject, expiresAtMs } = tuple
    const issue = expiresAtMs !== null && expiresAtMs <= nowMs ? 'it has expired' : restriction(tuple)
    if (issue === null) continue
    found.push({
      what: html`${name(`${object}#${relation}@${subject}`)} does not count: ${issue}`,
      where: link(address('relationships', { org, object, relation, subject }), 'Relationship'),
    })
    if (found.length === 20) break
  }
  return found
}
