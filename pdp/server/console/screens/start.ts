/** The start page: an overview of the content, the state of the PDP, and problems. */

import type { JournalEntry } from '../../../engine/store/contract.ts'
import { EMPTY, type Html, html } from '../../../shared/base/html.ts'
import { ENVIRONMENT } from '../../../shared/domain/journal.ts'
import { findings } from '../findings.ts'
import { readBackwards } from '../journal-backwards.ts'
import { mayOpen, SCREEN_LINKS } from '../layout.ts'
import { noRights } from '../no-rights.ts'
import { address, field, hidden, instant, link, name } from '../parts.ts'
import { denials, perMinute } from '../sections/denials.ts'
import { table } from '../sections/table.ts'
import type { ConsoleVisit, View } from '../visit.ts'
import { changeName } from './changes.ts'

export async function showStart(visit: ConsoleVisit): Promise<View> {
  const places = Object.values(SCREEN_LINKS).filter((place) => mayOpen(visit, place))
  if (places.length === 0) return noRights(visit)
  const { organization: org } = visit
  return {
    title: 'Start',
    body: html`${visit.may('decisions:read') ? html`${await perMinute(visit)}${askForm(visit)}${await denials(visit, ROWS_SHOWN)}` : EMPTY}${await findings(visit)}
${visit.may('audit:read') && org !== null ? await latestChanges(visit, org) : EMPTY}<h2>Health</h2>${await health(visit)}
<h2>Look</h2><ul class="cards">${places.map(({ path, title }) => html`<li>${link(address(path, { org }), title)}<span class="note">${WORTH[path] ?? ''}</span></li>`)}</ul>`,
  }
}

/** How many routes and how many changes are shown. */
const ROWS_SHOWN = 5

const WORTH: { readonly [path: string]: string } = {
  ask: 'Whether somebody may: why, what is missing, and what would change it.',
  who: 'Everybody who may do something, as a list or CSV.',
  what: 'Everything that somebody can reach, by type and relation.',
  decisions: 'What was asked and answered, by request id.',
  model: 'Types and relations, and who would gain or lose.',
  relationships: 'What is stored; write and delete.',
  organization: 'The tree, members, roles, entitlements.',
  people: 'Memberships, roles, sessions.',
  invitations: 'Who was invited; invite and withdraw.',
  routes: 'What sidecars enforce; try a request.',
  streams: 'Receivers of security events, and what they miss.',
  changes: 'Who changed what, and when.',
}

function askForm(visit: ConsoleVisit): Html {
  return html`<form method="get" action="/console/decisions" class="question">${hidden('org', visit.organization ?? '')}
${field({ name: 'request', label: 'Somebody was refused? The request or decision id', value: '', required: true, hint: 'As instance in the body of a 403 names it, or the whole body.' })}<button type="submit">Find the decision</button></form>`
}

async function latestChanges(visit: ConsoleVisit, org: string): Promise<Html> {
  const { store } = visit.deps.management
  const to = (await store.vector([org])).logs.get(org)?.revision ?? 0
  const found: JournalEntry[] = []
  for await (const { entries } of readBackwards(store, { log: org, to })) {
    found.push(...entries.slice(0, ROWS_SHOWN - found.length))
    if (found.length >= ROWS_SHOWN) break
  }
  return table(visit, {
    id: 'changes',
    caption: html`The last changes · ${link(address('changes', { org }), 'all')}`,
    columns: ['Time', 'By', 'Change'],
    rows: found.map(({ atMs, actor, change }) => [instant(atMs), name(actor), changeName(change)]),
    empty: html`<p>Nothing has been changed here yet.</p>`,
  })
}

async function health({ deps, organization }: ConsoleVisit): Promise<Html> {
  const { store } = deps.management
  const startedMs = performance.now()
  const { logs, clockMs } = await store.vector([ENVIRONMENT, ...(organization === null ? [] : [organization])])
  const tookMs = performance.now() - startedMs
  const skewMs = Math.abs(deps.clock() - clockMs)
  const numbers: (readonly [string, Html | string])[] = [
    ['Revision here', String((organization === null ? undefined : logs.get(organization)?.revision) ?? 0)],
    ['Revision of the environment', String(logs.get(ENVIRONMENT)?.revision ?? 0)],
    ['The store answers in', `${tookMs.toFixed(1)} ms`],
    ['Clock against the store', skewMs < 1_000 ? 'in step' : `${(skewMs / 1_000).toFixed(1)} s apart`],
  ]
  return html`<dl class="numbers">${numbers.map(([title, value]) => html`<div><dt>${title}</dt><dd>${value}</dd></div>`)}</dl>`
}
