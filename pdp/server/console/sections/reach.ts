/** Everything that a subject can reach, by type and relation: how many resources, some of them, and through what. */
import { setTimeout as delay } from 'node:timers/promises'
import { EMPTY, type Html, html } from '../../../shared/base/html.ts'
import type { AskedSubject, PermissionResult, ReasonStep } from '../../../shared/domain/decision.ts'
import { isObject, parseTuple } from '../../../shared/domain/names.ts'
import { subjectName } from '../../../shared/domain/subjects.ts'
import { address, joined, link, name } from '../parts.ts'
import { parametersOf, readSupposed, type Supposed, type Supposition } from '../question.ts'
import type { ConsoleVisit } from '../visit.ts'
import { typesFor } from './suggestions.ts'
import { table } from './table.ts'

/** How many resources of one relation are counted; if there are more, the page says "at least". */
const COUNTED_MAX = 100
const SHOWN_MAX = 3
/** How many lists are read, and the time for all of them and for their ways: a page has five seconds. */
const LISTS_MAX = 200
const TOGETHER_MS = 2_000
/** How many lists are read at once: they share the reads of the database. */
const AT_ONCE = 20
const WAYS_MS = 1_000

type Row = {
  readonly type: string
  readonly relation: string
  readonly items: readonly string[]
  readonly isAll: boolean
}

/** `supposed`: a supposition of the question; absent: none. Throws RequestProblem and PdpError. */
export async function reachOf(visit: ConsoleVisit, subject: AskedSubject, supposed?: Supposed): Promise<Html> {
  await visit.requireScope('decisions:read')
  const question = { ...(supposed && readSupposed(supposed)), subject }
  const more = supposed === undefined ? {} : parametersOf(supposed)
  const { rows, left } = await readRows(visit, question)
  // A list without its ways is worth more than no page.
  const ways = waysTo(visit, question, rows).catch(() => NO_WAYS)
  const via = await Promise.race([ways, delay(WAYS_MS, NO_WAYS, { ref: false })])
  const { organization: org } = visit
  const who = subjectName(subject)
  const shown = rows.map(({ type, relation, items, isAll }) => [
    name(type),
    html`<span class="key">${name(relation)}</span>`,
    link(address('what', { org, subject: who, relation, type, ...more }), `${isAll ? '' : 'at least '}${items.length}`),
    html`${joined(items.slice(0, SHOWN_MAX).map((item) => link(address('ask', { org, subject: who, relation, resource: item, ...more }), name(item))))}${items.length > SHOWN_MAX || !isAll ? ' …' : EMPTY}`,
    via.get(keyOf(type, relation)) ?? EMPTY,
  ])
  return html`${table(visit, {
    id: 'reach',
    caption: html`What ${name(who)} can reach, by type and relation`,
    columns: ['Type', 'Relation', { title: 'Count', number: true }, 'Such as', 'By'],
    rows: shown,
    empty: html`<p>${name(who)} can reach nothing that relationships, rules, memberships or roles name here.</p>`,
  })}${left.length === 0 ? EMPTY : html`<p class="note">Not everything was looked at: ${joined(left.map(({ type, relation }) => link(address('what', { org, subject: who, relation, type, ...more }), html`${name(relation)} of ${name(type)}`)))}.</p>`}`
}

const keyOf = (type: string, relation: string): string => `${type}#${relation}`

type Asked = Supposition & { readonly subject: AskedSubject }

async function readRows(visit: ConsoleVisit, question: Asked) {
  const { organization, deps } = visit
  const { pdp } = deps.management
  const rows: Row[] = []
  const left: { readonly type: string; readonly relation: string }[] = []
  if (organization === null) return { rows, left }
  const pairs: { readonly type: string; readonly relation: string }[] = []
  for (const type of await typesFor(visit, 'resource'))
    for (const relation of await pdp.relations(organization, type)) pairs.push({ type, relation })
  const startedMs = performance.now()
  for (let at = 0; at < pairs.length; at += AT_ONCE) {
    const some = pairs.slice(at, at + AT_ONCE)
    if (at >= LISTS_MAX || performance.now() - startedMs > TOGETHER_MS) {
      left.push(...some)
      continue
    }
    const read = some.map(({ type, relation }) =>
      pdp.listResources({ ...question, organization, relation, type, pageSize: COUNTED_MAX }),
    )
    for (const [i, { items, nextPageToken, complete }] of (await Promise.all(read)).entries()) {
      const isAll = nextPageToken === null && complete
      const pair = some[i]
      if (pair !== undefined && (items.length > 0 || !isAll)) rows.push({ ...pair, items, isAll })
    }
  }
  return { rows, left: left.slice(0, LISTS_MAX) }
}

const NO_WAYS: ReadonlyMap<string, Html> = new Map()
/** How many checks one question may have. */
const CHECKS_MAX = 256

/** How the first resources of each row are reached: directly, or through a group, an object above, a membership or a role. */
async function waysTo(visit: ConsoleVisit, question: Asked, rows: readonly Row[]): Promise<ReadonlyMap<string, Html>> {
  const { organization, deps } = visit
  const asked = rows
    .flatMap(({ type, relation, items }) => items.slice(0, SHOWN_MAX).map((resource) => ({ type, relation, resource })))
    .slice(0, CHECKS_MAX)
  const ways = new Map<string, Html>()
  if (organization === null || asked.length === 0) return ways
  const permissions = asked.map(({ relation, resource }) => ({ relation, resource }))
  const { permissions: answers } = await deps.management.pdp.decide({
    ...question,
    organization,
    permissions,
    explain: true,
  })
  const found = new Map<string, Set<string>>()
  for (const [i, { type, relation }] of asked.entries()) {
    const key = keyOf(type, relation)
    found.set(key, (found.get(key) ?? new Set()).add(wayOf(answers[i])))
  }
  for (const [key, all] of found)
    ways.set(key, joined([...all].map((way) => (isObject(way) ? name(way) : html`${way}`))))
  return ways
}

function wayOf(answer: PermissionResult | undefined): string {
  const steps = answer?.reason?.path ?? []
  if (steps.some((step) => 'role_grant' in step)) return 'a role'
  if (steps.some((step) => 'member' in step)) return 'membership'
  const tuples = steps.flatMap((step: ReasonStep) => ('tuple' in step ? [parseTuple(step.tuple)] : []))
  const last = tuples.at(-1)
  if (last === undefined) return 'a rule'
  return last.object === answer?.resource ? 'directly' : last.object
}
