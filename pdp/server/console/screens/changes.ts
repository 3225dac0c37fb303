/** Changes: who changed what and when, from the logs, with the state before and after each change. */

import type { JournalEntry } from '../../../engine/store/contract.ts'
import { EMPTY, type Html, html } from '../../../shared/base/html.ts'
import type { Change } from '../../../shared/domain/change.ts'
import type { JournalId } from '../../../shared/domain/journal.ts'
import { formatTuple, isId } from '../../../shared/domain/names.ts'
import { RequestProblem } from '../../serve/http/status.ts'
import { readBackwards } from '../journal-backwards.ts'
import { address, alert, field, hidden, instant, link, name, words } from '../parts.ts'
import { lostAccess } from '../sections/lost-access.ts'
import { countOf, type Total, table } from '../sections/table.ts'
import { daysOf, instantIn, TIME_FORMS } from '../sections/times.ts'
import type { ConsoleVisit, View } from '../visit.ts'

const ROWS_MAX = 60
/** After this many changes a page ends, even if few match; the next page continues from there. */
const SEARCHED_MAX = 5_000

type Filter = {
  readonly actor: string
  readonly text: string
  /** Times as they were typed, and as instants; null: no bound. */
  readonly from: string
  readonly to: string
  readonly fromMs: number | null
  readonly toMs: number | null
  readonly kind: string
}
const KINDS = [
  ['', 'all changes'],
  ['removals', 'removals only'],
  ['lost', 'who lost access'],
] as const
/** Where a page begins: at revision `until`, without its latest `skip` changes. */
type PageStart = { readonly until: number; readonly skip: number }
type FoundChanges = {
  readonly entries: readonly JournalEntry[]
  /** Where the next page begins; null: there is none. */
  readonly older: PageStart | null
  /** True if older changes were deleted because of their age. */
  readonly gap: boolean
}

export async function showChanges(visit: ConsoleVisit): Promise<View> {
  await visit.requireScope('audit:read')
  const { organization: org, query, deps } = visit
  const log = ['environment', 'directory'].find((one) => one === query('log')) ?? ''
  const id = journalOf(visit, log)
  const head = id === null ? 0 : await revisionOf(visit, id)
  const place = { until: Math.min(head, numberIn(query('until')) ?? head), skip: numberIn(query('skip')) ?? 0 }
  const filter = filterOf(visit)
  const { entries, older, gap }: FoundChanges =
    id === null
      ? { entries: [], older: null, gap: false }
      : await find(deps.management.store, { log: id, place, filter })
  const { actor, text, from, to: end, kind } = filter
  const state = { org, log, actor, text, from, to: end, kind }
  const last = entries.at(-1)?.revision
  const isSearched = older !== null && entries.length < ROWS_MAX
  const to = (at: PageStart): string =>
    address('changes', { ...state, until: String(at.until), skip: at.skip === 0 ? null : String(at.skip) })
  const total = await totalOf(visit, { id, head, filter, next: older === null ? null : to(older) })
  return {
    title: 'Changes',
    body: html`<form method="get" action="/console/changes" class="question">${hidden('org', org ?? '')}
${field({ name: 'log', label: 'Log', value: log, options: journalsFor(visit) })}
${field({ name: 'until', label: 'Up to revision', value: query('until') === '' ? '' : String(place.until), hint: `The latest is ${head}.` })}
${field({ name: 'actor', label: 'Actor', value: filter.actor, hint: 'Such as user:alice.' })}
${field({ name: 'text', label: 'Text in the change', value: filter.text })}
${field({ name: 'from', label: 'From', value: from, hint: html`Such as yesterday, Monday or -2h. ${daysOf(visit.reading.zone)}` })}
${field({ name: 'to', label: 'To', value: end })}
${field({ name: 'kind', label: 'Show', value: kind, options: KINDS })}
<button type="submit">Show</button></form>
<p class="actions">${link(address('changes', { org, log, kind: 'lost', from: 'yesterday' }), 'Who lost access since yesterday?')} · ${link(address('changes', { org, log, kind: 'removals' }), 'Removals')}</p>
${unreadTimes(filter)}${kind === 'lost' ? await lostAccess(visit, entries) : EMPTY}
${table(visit, { id: 'changes', caption: html`Changes up to revision ${String(place.until)}, newest first`, columns: ['Revision', 'Time', 'Actor', 'Change', 'Ask', { title: 'Request', isExtra: true }], rows: entries.map((entry, i) => rowOf(entry, { org, log, isFirst: entries[i - 1]?.revision !== entry.revision })), total, next: older === null ? null : to(older), nextText: isSearched ? 'Search older ones' : 'Older', empty: emptyText(filter) })}
${gap ? alert(html`Changes before ${last === undefined ? 'these revisions' : `revision ${last}`} were deleted after their time.`) : EMPTY}
${isSearched ? html`<p class="note">The changes after revision ${String(older.until)} were searched, and older ones were not yet.</p>` : EMPTY}
<p class="actions">${place.until < head || place.skip > 0 ? link(address('changes', state), 'Newest') : EMPTY}</p>`,
  }
}

/** All changes of a log. How many match a filter is known only after the whole log was searched, so they are not counted. */
async function totalOf(
  visit: ConsoleVisit,
  of: {
    readonly id: JournalId | null
    readonly head: number
    readonly filter: Filter
    readonly next: string | null
  },
): Promise<Total | undefined> {
  const { id: log, head, filter, next } = of
  const { actor, text, from, to, kind } = filter
  if (log === null || [actor, text, from, to, kind].some((one) => one !== '')) return undefined
  const { store } = visit.deps.management
  return countOf(visit, { id: 'changes', next, pageSize: ROWS_MAX }, async ({ countMax }) => {
    const found: JournalEntry[] = []
    for await (const { entries } of readBackwards(store, { log, to: head })) {
      found.push(...entries)
      if (found.length >= countMax) break
    }
    return found
  })
}

function filterOf({ query, reading }: ConsoleVisit): Filter {
  const [from, to] = [query('from').trim(), query('to').trim()]
  const at = (text: string, edge: 'begin' | 'end'): number | null =>
    text === '' ? null : instantIn(text, reading, edge)
  const kind = KINDS.find(([one]) => one === query('kind'))?.[0] ?? ''
  return {
    actor: query('actor').trim(),
    text: query('text').trim(),
    from,
    to,
    fromMs: at(from, 'begin'),
    toMs: at(to, 'end'),
    kind,
  }
}

/** A warning for each time that cannot be read, because it must not look like no bound. */
const unreadTimes = ({ from, to, fromMs, toMs }: Filter): readonly Html[] =>
  [
    { text: from, ms: fromMs },
    { text: to, ms: toMs },
  ].flatMap(({ text, ms }) =>
    text !== '' && ms === null
      ? [alert(html`${name(text)} names no time, so it does not count. Write ${TIME_FORMS}.`)]
      : [],
  )

const numberIn = (text: string): number | null => (/^\d{1,15}$/.test(text) ? Number(text) : null)

function journalsFor(visit: ConsoleVisit): readonly (readonly [string, string])[] {
  const here = [['', 'this organization']] as const
  if (!visit.mayEverywhere('audit:read')) return here
  return [
    ...here,
    ['environment', 'the environment: tree, models, roles'],
    ['directory', 'the directory: people and clients'],
  ]
}

/** The log to show; null: there is no organization. Throws RequestProblem if the person may not read it. */
function journalOf({ organization: org, mayEverywhere }: ConsoleVisit, log: string): JournalId | null {
  if (log !== '') {
    if (mayEverywhere('audit:read')) return `#${log}`
    throw new RequestProblem(
      'permission_denied',
      'this needs the permission portcullis:audit:read in the whole environment, from a role of app portcullis',
    )
  }
  if (org !== null && !isId(org)) throw new RequestProblem('request_invalid', 'this is not the id of an organization')
  return org
}

async function revisionOf(visit: ConsoleVisit, id: JournalId): Promise<number> {
  const position = (await visit.deps.management.store.vector([id])).logs.get(id)
  if (position === undefined) throw new RequestProblem('organization_unknown', `there is no organization ${id}`)
  return position.revision
}

async function find(
  store: Parameters<typeof readBackwards>[0],
  { log, place, filter }: { readonly log: JournalId; readonly place: PageStart; readonly filter: Filter },
): Promise<FoundChanges> {
  const found: JournalEntry[] = []
  let [revision, ofRevision, searched, oldest] = [place.until, 0, 0, 1]
  for await (const { entries, first } of readBackwards(store, { log, to: place.until })) {
    for (const entry of entries) {
      if (filter.fromMs !== null && entry.atMs < filter.fromMs) return { entries: found, older: null, gap: false }
      if (entry.revision !== revision) [revision, ofRevision] = [entry.revision, 0]
      if (found.length === ROWS_MAX || searched === SEARCHED_MAX)
        return { entries: found, older: { until: revision, skip: ofRevision }, gap: false }
      ofRevision += 1
      if (revision === place.until && ofRevision <= place.skip) continue
      searched += 1
      if (matches(entry, filter)) found.push(entry)
    }
    oldest = first
  }
  return { entries: found, older: null, gap: oldest > 1 }
}

/** Whether a change matches. A typed `-` also finds removals, which the page shows with another sign. */
const matches = ({ actor, change, atMs }: JournalEntry, filter: Filter): boolean =>
  (filter.toMs === null || atMs < filter.toMs) &&
  (filter.actor === '' || actor === filter.actor) &&
  (filter.kind === '' || isRemoval(change)) &&
  (filter.text === '' || changeText(change).includes(filter.text.replace(/^-/, '−')))

const isRemoval = (change: Change): boolean =>
  changeText(change).startsWith('−') ||
  change.kind === 'clear' ||
  (change.kind === 'membership' && change.membership?.status === 'suspended')

function emptyText({ actor, text, from, to, kind }: Filter): Html {
  return actor === '' && text === '' && from === '' && to === '' && kind === ''
    ? html`<p>Nothing has been changed yet. This list will show each write through the API, the command line or this console, with its author.</p>`
    : html`<p>No change matches.</p>`
}

function rowOf(
  entry: JournalEntry,
  { org, log, isFirst }: { org: string | null; log: string; isFirst: boolean },
): readonly (Html | string)[] {
  const { revision, change, actor, atMs, requestId } = entry
  return [
    link(address('changes', { org, log, until: String(revision) }), String(revision)),
    instant(atMs),
    name(actor),
    html`<span class="text">${changeName(change)}</span>`,
    askLink(change, { org, atMs }),
    isFirst ? html`<span class="id">${name(requestId)}</span>` : EMPTY,
  ]
}

/** A link to the question that the change answers differently before and after. */
function askLink(change: Change, { org, atMs }: { org: string | null; atMs: number }): Html {
  if (change.kind !== 'tuple') return EMPTY
  const { object: resource, relation, subject } = change.tuple
  const before = new Date(atMs - 1).toISOString()
  return html`<span class="pair">${link(address('ask', { org, subject, relation, resource, as_of: before }), 'before')} · ${link(address('ask', { org, subject, relation, resource }), 'now')}</span>`
}

/** The change as HTML: a relationship is shown like an id, other changes as a sentence. */
export const changeName = (change: Change): Html =>
  change.kind === 'tuple' ? name(changeText(change)) : words(changeText(change))

function changeText(change: Change): string {
  switch (change.kind) {
    case 'tuple':
      return `${change.op === 'write' ? '+' : '−'} ${formatTuple(change.tuple)}`
    case 'membership':
      return change.membership === null
        ? `− membership of user:${change.user}`
        : `membership of user:${change.user}: ${change.membership.role}, ${change.membership.status}`
    case 'role_grant':
      return `${change.op === 'write' ? '+' : '−'} role ${change.grant.app === null ? '' : `${change.grant.app}/`}${change.grant.role} for ${change.grant.subject}`
    case 'entitlement':
      return change.entitlement === null
        ? `− entitlement ${change.key}`
        : `entitlement ${change.key}: ${JSON.stringify(change.entitlement.value)}`
    case 'organization':
      return change.organization === null
        ? `− organization ${change.id}`
        : `organization ${change.id}: ${change.organization.name}${change.organization.parent === null ? '' : `, below ${change.organization.parent}`}`
    case 'manifest':
      return `manifest of app ${change.manifest.app}`
    case 'role':
      return change.role === null ? `− role ${change.key}` : `role ${change.key}: ${change.role.permissions.join(', ')}`
    case 'token':
      return `tokens of ${change.by.replace('_', ' ')} ${change.id} end`
    case 'entitlements':
      return 'entitlements changed at their source'
    case 'clear':
      return 'everything was deleted'
    default:
      return `${change.op === 'write' ? '' : '− '}${change.kind.replace('_', ' ')} ${change.id}`
  }
}
