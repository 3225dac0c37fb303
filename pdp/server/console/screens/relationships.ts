/** Relationships: found by object, relation and subject; written and deleted by lines of text, after a preview. */

import { hash } from 'node:crypto'
import { CHANGES_MAX } from '../../../engine/writes/relationships.ts'
import { createRestrictions } from '../../../engine/writes/restrictions.ts'
import { EMPTY, type Html, html } from '../../../shared/base/html.ts'
import { formatTuple } from '../../../shared/domain/names.ts'
import type { Tuple } from '../../../shared/domain/tuple.ts'
import { asRequestProblem } from '../../serve/http/status.ts'
import { parseFilter, parseTupleLine, presentTuple } from '../../serve/management/relationships/tuple-bodies.ts'
import { shellWord } from '../answer-texts.ts'
import { address, alert, field, hidden, instant, link, name, problems, status } from '../parts.ts'
import { consequencesOf } from '../sections/consequences.ts'
import { countOf, table } from '../sections/table.ts'
import { daysOf, instantIn, type Reading, TIME_FORMS } from '../sections/times.ts'
import { inverseOf } from '../sections/undo.ts'
import { freshness, mustSignInAgain } from '../step-up.ts'
import type { ConsoleVisit, View } from '../visit.ts'

const PAGE_SIZE = 50
const TITLE = 'Relationships'

type Item = {
  readonly object: string
  readonly relation: string
  readonly subject: string
  readonly expires_at: string | null
  readonly condition?: { readonly name: string }
}
type Page = { readonly items: readonly Item[]; readonly next_page_token: string | null }

export async function showRelationships(visit: ConsoleVisit): Promise<View> {
  await visit.requireScope('relationships:read')
  const { organization, query } = visit
  const filter = {
    object: query('object').trim(),
    relation: query('relation').trim(),
    subject: query('subject').trim(),
  }
  const form = html`<form method="get" action="/console/relationships" class="question">${hidden('org', organization ?? '')}
${field({ name: 'object', label: 'Object', value: filter.object, hint: 'Such as invoice:42.' })}
${field({ name: 'relation', label: 'Relation', value: filter.relation })}
${field({ name: 'subject', label: 'Subject', value: filter.subject, hint: 'Such as user:alice or group:staff#member.' })}
<button type="submit" class="plain">Find</button></form>`
  const done = !/^\d{1,15}$/.test(query('done')) ? EMPTY : await written(visit, Number(query('done')))
  return {
    title: TITLE,
    body: html`${done}${form}${await listed(visit, filter)}${writeForm(visit, { lines: query('lines'), op: query('op') })}`,
  }
}

/** Shows that a write was made, with a link to the preview that undoes it. */
async function written(visit: ConsoleVisit, revision: number): Promise<Html> {
  const { organization: org, person, deps } = visit
  const told = status(`Done. Every decision from now on sees it (revision ${revision}).`)
  if (org === null || !visit.may('relationships:write')) return told
  const { store } = deps.management
  const inverse = await inverseOf(store, { log: org, revision, actor: `user:${person.id}` })
  const [op, ...others] = new Set(inverse?.map((one) => (one.kind === 'tuple' ? one.op : null)))
  // A form writes or deletes, not both: a mixed write cannot be undone by one form.
  if (inverse === null || op == null || others.length > 0) return told
  const tuples = inverse.flatMap((one) => (one.kind === 'tuple' ? [one.tuple] : []))
  const lines = tuples.map((tuple) => JSON.stringify(presentTuple(tuple))).join('\n')
  return html`${told}${previewButton(visit, { op, lines, text: 'Undo …' })}`
}

/** A form that leads to the preview and writes nothing. */
const previewButton = (
  visit: ConsoleVisit,
  { op, lines, text }: { readonly op: Write['op']; readonly lines: string; readonly text: string },
): Html =>
  html`<form method="post" action="${address('relationships', { org: visit.organization })}" class="inline">${hidden('csrf', visit.csrf)}${hidden('op', op)}${hidden('lines', lines)}
<button type="submit" name="action" value="preview" class="plain">${text}</button></form>`

async function listed(visit: ConsoleVisit, filter: { readonly [part: string]: string }): Promise<Html> {
  const { organization: org, query } = visit
  const given = Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== ''))
  const page = query('page') === '' ? {} : { page_token: query('page') }
  const parameters = new URLSearchParams({ ...given, page_size: String(PAGE_SIZE), ...page })
  let found: Page
  try {
    found = await visit.api<Page>(
      'GET',
      `/v1/organizations/${encodeURIComponent(org ?? '')}/relationships?${parameters}`,
    )
  } catch (err) {
    const { code, message, issues } = asRequestProblem(err)
    if (code !== 'request_invalid') throw err
    return problems(message, issues)
  }
  const { items, next_page_token: next } = found
  const total = await countOf(visit, { id: 'relationships', next, pageSize: PAGE_SIZE }, (from) =>
    visit.deps.management.store.tuples(org ?? '', parseFilter(given), from),
  )
  const rows = items.map((item) => rowOf(visit, item))
  const empty =
    Object.keys(given).length > 0
      ? html`<p>No stored relationship matches.</p>`
      : html`<p>Nothing is stored yet. Write the first relationship below, or from a file:</p><pre tabindex="0"><code>portcullis tuple import relationships.txt -o ${shellWord(org ?? 'ORGANIZATION')}</code></pre>`
  return html`${deleteAll(visit, { items, isFiltered: Object.keys(given).length > 0 && next === null })}${table(visit, { id: 'relationships', caption: 'Stored relationships', columns: ['Object', 'Relation', 'Subject', 'Until', 'Do'], rows, total, next: next === null ? null : address('relationships', { org, ...filter, page: next }), empty })}`
}

/** A link to the preview that deletes all relationships that were found, for example those of a group. */
function deleteAll(
  visit: ConsoleVisit,
  { items, isFiltered }: { readonly items: readonly Item[]; readonly isFiltered: boolean },
): Html {
  if (!isFiltered || items.length === 0 || !visit.may('relationships:write')) return EMPTY
  const lines = items.map(({ object, relation, subject }) => JSON.stringify({ object, relation, subject })).join('\n')
  const text = `What if ${items.length === 1 ? 'it is' : `these ${items.length} are`} deleted?`
  return html`<p>${previewButton(visit, { op: 'delete', lines, text })}</p>`
}

function rowOf(visit: ConsoleVisit, { object, relation, subject, expires_at, condition }: Item): readonly Html[] {
  const org = visit.organization
  const at = (part: 'object' | 'subject' | 'relation', value: string): Html =>
    link(address('relationships', { org, [part]: value }), name(value))
  const until =
    expires_at === null
      ? html`<span class="note">for ever</span>`
      : html`${instant(Date.parse(expires_at))}${Date.parse(expires_at) <= visit.deps.clock() ? html` <span class="denied">expired</span>` : EMPTY}`
  const tuple = formatTuple({ object, relation, subject })
  const actions = [
    link(address('ask', { org, subject, relation, resource: object, without: tuple }), 'Without it?'),
    ...(visit.may('relationships:write')
      ? [link(`${address('relationships', { org, lines: tuple, op: 'delete' })}#write`, 'Delete')]
      : []),
  ]
  return [
    at('object', object),
    at('relation', relation),
    at('subject', subject),
    condition === undefined ? until : html`${until} <span class="note">if ${name(condition.name)}</span>`,
    html`<span class="row-actions">${actions}</span>`,
  ]
}

const LINES_IN_ADDRESS_MAX = 1_000

/** This page with the lines in its URL, or with none if they are too many: a line that was cut would be another relationship. */
const hereWith = ({ organization: org }: ConsoleVisit, { lines, op }: { lines: string; op: string }): string =>
  address('relationships', lines.length > LINES_IN_ADDRESS_MAX ? { org, op } : { org, lines, op })

function writeForm(visit: ConsoleVisit, { lines, op }: { readonly lines: string; readonly op: string }): Html {
  if (!visit.may('relationships:write')) return EMPTY
  const { organization: org, form } = visit
  return html`<section aria-labelledby="write"><h2 id="write">Write or delete</h2>
${freshness(visit, hereWith(visit, { lines, op }))}
<form method="post" action="${address('relationships', { org })}">${hidden('csrf', visit.csrf)}
${field({
  name: 'op',
  label: 'What to do',
  value: op === 'delete' ? 'delete' : 'write',
  options: [
    ['write', 'Write these relationships'],
    ['delete', 'Delete these relationships'],
  ],
})}
${field({ name: 'lines', label: 'Relationships', value: lines, lines: 6, required: true, hint: `One on each line, ${CHANGES_MAX} at most: doc:1#viewer@user:alice, and its end if it has one of its own.` })}
${field({ name: 'until', label: 'Until', value: form('until'), hint: html`Empty: for ever. ${TIME_FORMS}. ${daysOf(visit.reading.zone)}` })}
<button type="submit" name="action" value="preview">Preview</button></form></section>`
}

type Line = {
  readonly number: number
  readonly text: string
  readonly tuple: Tuple | null
  readonly issue: string | null
}

export async function actRelationships(visit: ConsoleVisit): Promise<View> {
  await visit.requireScope('relationships:write')
  const { form, organization: org } = visit
  const op = form('op') === 'delete' ? 'delete' : 'write'
  const lines = await readLines(visit, form('lines'), op)
  const wrong = lines.filter(({ issue }) => issue !== null)
  const tuples = lines.flatMap(({ tuple }) => (tuple === null ? [] : [tuple]))
  const again = writeForm(visit, { lines: form('lines'), op })
  if (wrong.length > 0 || tuples.length === 0) {
    const issues = wrong.map(({ number, issue }) => ({ place: `line ${number}`, message: issue ?? '' }))
    return {
      title: TITLE,
      status: 400,
      body: html`${problems(tuples.length === 0 && wrong.length === 0 ? 'There is no line to write.' : 'Nothing was written: some lines are not relationships.', issues)}${again}`,
    }
  }
  const effects = await effectsOf(visit, { tuples, op })
  if (form('action') !== 'confirm')
    return { title: 'Preview', body: html`${await preview(visit, { tuples, op, effects })}${again}` }
  const stale = mustSignInAgain(visit, address('relationships', { org }))
  if (stale !== null) return stale
  // A form that was sent twice has already written its change.
  const isDone = effects.every(({ isNothing }) => isNothing)
  if (form('previewed') !== '' && form('previewed') !== digestOf(effects) && !isDone) {
    const overtaken = alert(
      'Nothing was written: what is stored changed after the preview. This is what would happen now.',
    )
    return {
      title: 'Preview',
      status: 409,
      body: html`${overtaken}${await preview(visit, { tuples, op, effects })}${again}`,
    }
  }
  try {
    const path = `/v1/organizations/${encodeURIComponent(org ?? '')}/relationships`
    const { revision } = await visit.api<{ revision: number }>('POST', path, { [op]: tuples.map(presentTuple) })
    return {
      goTo: address('relationships', {
        org,
        done: String(revision),
        ...(tuples[0] === undefined ? {} : { object: tuples[0].object }),
      }),
    }
  } catch (err) {
    const { code, message, issues } = asRequestProblem(err)
    if (code === 'internal' || code === 'store_unavailable') throw err
    const placed = issues.map(({ place, message: text }) => ({ place: lineOf(lines, place), message: text }))
    return { title: TITLE, status: 400, body: html`${problems(message, placed)}${again}` }
  }
}

/** The line of an issue: the API names a tuple by its index, but the person knows its line. */
function lineOf(lines: readonly Line[], place: string): string {
  const index = Number(/^\/(?:write|delete)\/(\d+)/.exec(place)?.[1] ?? Number.NaN)
  const line = lines.filter(({ tuple }) => tuple !== null)[index]
  return line === undefined ? place : `line ${line.number}`
}

async function readLines(visit: ConsoleVisit, text: string, op: 'write' | 'delete'): Promise<readonly Line[]> {
  const restriction = await createRestrictions()(visit.deps.management.store)
  const until = op === 'delete' ? '' : visit.form('until').trim()
  const untilMs = until === '' ? null : instantIn(until, visit.reading, 'end')
  return text.split(/\r?\n/).flatMap((line, i): readonly Line[] => {
    const number = i + 1
    const parsed = parseTupleLine(withExactEnd(line, visit.reading))
    if (parsed === null) return []
    if (typeof parsed === 'string') return [{ number, text: line, tuple: null, issue: parsed }]
    const tuple = parsed.expiresAtMs === null ? { ...parsed, expiresAtMs: untilMs } : parsed
    const unread = until !== '' && untilMs === null ? `"${until}" names no time. Write ${TIME_FORMS}` : null
    const issue = unread ?? (op === 'write' ? restriction(tuple) : null)
    return [{ number, text: line, tuple, issue }]
  })
}

/** Replaces a day at the end of a line by an instant, as in `doc:1#viewer@user:alice Friday`. */
function withExactEnd(line: string, reading: Reading): string {
  const [, tuple, end] = /^\s*([^\s{"][^\s]*)\s+(\S+)\s*$/.exec(line) ?? []
  const ms = end === undefined ? null : instantIn(end, reading, 'end')
  return ms === null || tuple === undefined ? line : `${tuple} ${new Date(ms).toISOString()}`
}

type Effect = {
  readonly tuple: Tuple
  readonly stored: Tuple | null
  readonly text: string
  readonly isNothing: boolean
}
type Write = { readonly tuples: readonly Tuple[]; readonly op: 'write' | 'delete' }

/** The effects of the first lines, which the preview shows. */
async function effectsOf({ deps, organization: org }: ConsoleVisit, { tuples, op }: Write): Promise<readonly Effect[]> {
  const effects: Effect[] = []
  for (const tuple of tuples.slice(0, PAGE_SIZE)) {
    const { object, relation, subject } = tuple
    const key = { object, relation, subject }
    const [stored = null] = await deps.management.store.tuples(org ?? '', key, { after: null, countMax: 1 })
    effects.push({ tuple, stored, ...effectOf({ stored, tuple, op }) })
  }
  return effects
}

const digestOf = (effects: readonly Effect[]): string =>
  hash('sha256', JSON.stringify(effects.map(({ stored, text }) => [stored, text])), 'base64url')

async function preview(
  visit: ConsoleVisit,
  { tuples, op, effects }: Write & { effects: readonly Effect[] },
): Promise<Html> {
  const { organization: org } = visit
  const rows = effects.map(({ tuple, text, stored }) => [name(formatTuple(tuple)), text, endOf(op, { tuple, stored })])
  const lines = tuples.map((tuple) => JSON.stringify(presentTuple(tuple))).join('\n')
  const more = tuples.length > PAGE_SIZE ? alert(`Only the first ${PAGE_SIZE} of ${tuples.length} are shown.`) : EMPTY
  return html`${more}${table(visit, { id: 'effect', isWhole: true, caption: `What would happen in organization ${org ?? ''}`, columns: ['Relationship', 'Effect', 'Until'], rows, empty: EMPTY })}
${await consequencesOf(visit, { log: org ?? '', changes: tuples.map((tuple) => ({ kind: 'tuple', op, tuple })) })}
${freshness(visit, hereWith(visit, { lines, op }))}
<form method="post" action="${address('relationships', { org })}">${hidden('csrf', visit.csrf)}${hidden('op', op)}${hidden('lines', lines)}${hidden('previewed', digestOf(effects))}
<button type="submit" name="action" value="confirm"${op === 'delete' ? html` class="destructive"` : EMPTY}>${op === 'write' ? 'Write' : 'Delete'} ${String(tuples.length)} relationship${tuples.length === 1 ? '' : 's'}</button>
${link(address('relationships', { org }), 'Cancel')}</form>`
}

/** The end of the relationship: the new one, or that of the one to be deleted. */
function endOf(op: Write['op'], { tuple, stored }: Pick<Effect, 'tuple' | 'stored'>): Html {
  const ms = op === 'delete' ? (stored?.expiresAtMs ?? null) : tuple.expiresAtMs
  return ms === null ? html`<span class="note">for ever</span>` : instant(ms)
}

function effectOf({
  stored,
  tuple,
  op,
}: {
  stored: Tuple | null
  tuple: Tuple
  op: 'write' | 'delete'
}): Pick<Effect, 'text' | 'isNothing'> {
  const nothing = (why: string) => ({ text: `nothing: ${why}`, isNothing: true })
  const will = (text: string) => ({ text, isNothing: false })
  if (op === 'delete') return stored === null ? nothing('it is not stored') : will('is deleted')
  if (stored === null) return will('is added')
  const same =
    stored.expiresAtMs === tuple.expiresAtMs &&
    JSON.stringify(stored.condition ?? null) === JSON.stringify(tuple.condition ?? null)
  return same ? nothing('it is stored already') : will('takes the place of the same with another expiry or condition')
}
