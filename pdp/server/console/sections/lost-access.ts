/** Removals in the log, as people: who lost something, and whether they have it by other means now. */
import type { JournalEntry } from '../../../engine/store/contract.ts'
import { EMPTY, type Html, html } from '../../../shared/base/html.ts'
import { address, instant, link, name, verdict } from '../parts.ts'
import { readSubject } from '../question.ts'
import type { ConsoleVisit } from '../visit.ts'
import { table } from './table.ts'

/** How many members of a removed set are shown, and how many rows in all. */
const MEMBERS_MAX = 100
const ROWS_MAX = 200

type Loss = {
  readonly entry: JournalEntry
  readonly subject: string
  readonly what: Html
  /** The question whose present answer is shown; null: there is none. */
  readonly asked: { readonly relation: string; readonly resource: string } | null
}

/**
 * `entries`: the changes that the page found. Members of groups are those just before the change. A person who may not ask about
 * others sees neither members nor present answers.
 */
export async function lostAccess(visit: ConsoleVisit, entries: readonly JournalEntry[]): Promise<Html> {
  const losses: Loss[] = []
  for (const entry of entries) {
    if (losses.length >= ROWS_MAX) break
    losses.push(...(await lossesBy(visit, entry)))
  }
  const rows: (readonly (Html | string)[])[] = []
  for (const { entry, subject, what, asked } of losses.slice(0, ROWS_MAX)) {
    const { organization: org } = visit
    const now = asked === null ? null : await holdsNow(visit, subject, asked)
    const person = subject.startsWith('user:') ? address('people', { org, user: subject.slice('user:'.length) }) : null
    rows.push([
      person === null ? name(subject) : link(person, name(subject.slice('user:'.length))),
      what,
      now === null || asked === null ? EMPTY : link(address('ask', { org, subject, ...asked }), html`${verdict(now)}`),
      instant(entry.atMs),
      name(entry.actor),
    ])
  }
  return table(visit, {
    id: 'lost',
    caption: `Who lost what${losses.length > ROWS_MAX ? `; the first ${ROWS_MAX}` : ''}`,
    columns: ['Who', 'Lost', 'Now', 'When', 'By'],
    rows,
    empty: html`<p>Nobody lost anything by these changes. Those that ended by their time are not among them.</p>`,
  })
}

async function lossesBy(visit: ConsoleVisit, entry: JournalEntry): Promise<readonly Loss[]> {
  const { change, log, atMs } = entry
  if (change.kind === 'membership') {
    const isLost = change.membership === null || change.membership.status === 'suspended'
    const what = change.membership === null ? html`the membership` : html`what the membership gives: it is suspended`
    return isLost ? [{ entry, subject: `user:${change.user}`, what, asked: null }] : []
  }
  if (change.kind === 'role_grant' && change.op === 'delete') {
    const { app, role, subject } = change.grant
    const what = html`role ${name(app === null ? role : `${app}/${role}`)}`
    const set = subject.startsWith('group:') ? `${subject}#member` : subject
    return (await peopleIn(visit, { subject: set, log, atMs })).map((one) => ({
      entry,
      subject: one,
      what,
      asked: null,
    }))
  }
  if (change.kind !== 'tuple' || change.op !== 'delete') return []
  const { object: resource, relation, subject } = change.tuple
  const by = subject.includes('#') ? html` <span class="note">through ${name(subject)}</span>` : EMPTY
  const what = html`${name(relation)} ${name(resource)}${by}`
  const all = await peopleIn(visit, { subject, log, atMs })
  return all.map((one) => ({ entry, subject: one, what, asked: { relation, resource } }))
}

/** The subject itself, or the people of a set. In another organization's log a set stays a set, because its members are unknown. */
async function peopleIn(
  { deps, organization, may }: ConsoleVisit,
  { subject, log, atMs }: { readonly subject: string; readonly log: string; readonly atMs: number },
): Promise<readonly string[]> {
  const hash = subject.indexOf('#')
  if (hash === -1 || organization !== log || !may('decisions:read')) return [subject]
  const [resource, relation] = [subject.slice(0, hash), subject.slice(hash + 1)]
  const question = { organization, resource, relation, type: 'user', pageSize: MEMBERS_MAX, asOfMs: atMs - 1 }
  const { items } = await deps.management.pdp.listSubjects(question)
  return items.length === 0 ? [subject] : items
}

async function holdsNow(
  { deps, organization, may }: ConsoleVisit,
  text: string,
  asked: { readonly relation: string; readonly resource: string },
): Promise<boolean | null> {
  const subject = readSubject(text)
  if (subject === null || organization === null || !may('decisions:read')) return null
  const { permissions } = await deps.management.pdp.decide({ organization, subject, permissions: [asked] })
  const [answer] = permissions
  return answer === undefined || answer.error !== undefined ? null : answer.allowed
}
