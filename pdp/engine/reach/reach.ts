/** Everything that a subject can reach in an organization, by type and relation, and how it is reached. */
import { setTimeout as delay } from 'node:timers/promises'
import type { DecideRequest, Pdp, PermissionResult, ReasonStep } from '../../shared/domain/decision.ts'
import { parseTuple } from '../../shared/domain/names.ts'

/** How many resources of one relation are counted. */
const COUNTED_MAX = 100
/** How many resources of a row are shown, and explained. */
export const SHOWN_MAX = 3
/** How many lists are read, and how long further ones are begun: a page has five seconds. */
const LISTS_MAX = 200
const TOGETHER_MS = 2_000
/** When a list that was begun counts as not looked at. */
const LATEST_MS = 3_000
/** How many lists are read at once: they share the reads of the database. */
const AT_ONCE = 20
const WAYS_MS = 1_000
/** How many checks one question may have. */
const CHECKS_MAX = 256

type Pair = { readonly type: string; readonly relation: string }
/** `items`: at most 100; if not `isAll`, there may be more. `ways`: how the first of them are reached; empty if there was no time. */
export type ReachRow = Pair & {
  readonly items: readonly string[]
  readonly isAll: boolean
  readonly ways: readonly Way[]
}
/** An object that is named is a group, or stands above the resource. */
export type Way = 'role' | 'membership' | 'rule' | 'directly' | { readonly object: string }
type Asked = Pick<
  DecideRequest,
  'organization' | 'subject' | 'contextualTuples' | 'withoutTuples' | 'asOfMs' | 'context'
>
type Asking = Pick<Pdp, 'types' | 'relations' | 'listResources' | 'decide'>

/** `left`: what there was no time for. Throws PdpError. */
export async function readReach(
  pdp: Asking,
  question: Asked,
): Promise<{ readonly rows: readonly ReachRow[]; readonly left: readonly Pair[] }> {
  const { rows, left } = await readRows(pdp, question)
  // A list without its ways is worth more than no page.
  const ways = waysTo(pdp, question, rows).catch(() => NO_WAYS)
  const found = await Promise.race([ways, delay(WAYS_MS, NO_WAYS, { ref: false })])
  return { rows: rows.map((row) => ({ ...row, ways: found.get(row) ?? [] })), left: left.slice(0, LISTS_MAX) }
}

type Row = Omit<ReachRow, 'ways'>

/** Types of resources that a question can name. `modelled`: those of the models. */
export const resourceTypes = (modelled: readonly string[]): readonly string[] => [
  ...new Set([...modelled, 'app', 'organization']),
]

async function pairsOf(pdp: Asking, { organization }: Asked): Promise<readonly Pair[]> {
  // Groups need no model.
  const pairs = new Map([['group#member', { type: 'group', relation: 'member' }]])
  for (const type of resourceTypes(await pdp.types(organization)))
    for (const relation of await pdp.relations(organization, type)) pairs.set(`${type}#${relation}`, { type, relation })
  return [...pairs.values()]
}

async function readRows(pdp: Asking, question: Asked) {
  const rows: Row[] = []
  const left: Pair[] = []
  const pairs = await pairsOf(pdp, question)
  const startedMs = performance.now()
  const passedMs = (): number => performance.now() - startedMs
  for (let at = 0; at < pairs.length; at += AT_ONCE) {
    const some = pairs.slice(at, at + AT_ONCE)
    if (at >= LISTS_MAX || passedMs() > TOGETHER_MS) {
      left.push(...some)
      continue
    }
    const late = delay(LATEST_MS - passedMs(), null, { ref: false })
    const read = some.map((pair) =>
      Promise.race([late, pdp.listResources({ ...question, ...pair, pageSize: COUNTED_MAX })]),
    )
    for (const [i, page] of (await Promise.all(read)).entries()) {
      const pair = some[i]
      if (pair === undefined) continue
      const isAll = page !== null && page.nextPageToken === null && page.complete
      if (page === null) left.push(pair)
      else if (page.items.length > 0 || !isAll) rows.push({ ...pair, items: page.items, isAll })
    }
  }
  return { rows, left }
}

const NO_WAYS: ReadonlyMap<Row, readonly Way[]> = new Map()

/** How the first resources of each row are reached. */
async function waysTo(pdp: Asking, question: Asked, rows: readonly Row[]): Promise<ReadonlyMap<Row, readonly Way[]>> {
  const asked = rows
    .flatMap((row) => row.items.slice(0, SHOWN_MAX).map((resource) => ({ row, resource })))
    .slice(0, CHECKS_MAX)
  if (asked.length === 0) return NO_WAYS
  const permissions = asked.map(({ row: { relation }, resource }) => ({ relation, resource }))
  const { permissions: answers } = await pdp.decide({ ...question, permissions, explain: true })
  const found = new Map<Row, Map<string, Way>>()
  for (const [i, { row }] of asked.entries()) {
    const way = wayOf(answers[i])
    found.set(row, (found.get(row) ?? new Map()).set(typeof way === 'string' ? way : way.object, way))
  }
  return new Map([...found].map(([row, ways]) => [row, [...ways.values()]]))
}

function wayOf(answer: PermissionResult | undefined): Way {
  const steps = answer?.reason?.path ?? []
  if (steps.some((step) => 'role_grant' in step)) return 'role'
  if (steps.some((step) => 'member' in step)) return 'membership'
  const tuples = steps.flatMap((step: ReasonStep) => ('tuple' in step ? [parseTuple(step.tuple)] : []))
  const last = tuples.at(-1)
  if (last === undefined) return 'rule'
  return last.object === answer?.resource ? 'directly' : { object: last.object }
}
