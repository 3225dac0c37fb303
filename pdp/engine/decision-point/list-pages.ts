/** Makes pages of a list: reads candidates in order from one snapshot of the store, and checks each at that moment. */

import type { ListPage } from '../../shared/domain/decision.ts'
import { TOKENS } from '../../shared/domain/journal.ts'
import { compareNames, isWildcard, nameBefore } from '../../shared/domain/names.ts'
import { shortDigest } from '../../shared/domain/page-token.ts'
import { revisionText } from '../../shared/domain/revision.ts'
import { subjectsFromResource } from '../decide/lists/from-resource.ts'
import { resourcesFromSubject } from '../decide/lists/from-subject.ts'
import { formatCursor, parseListRequest } from '../decide/lists/list-request.ts'
import {
  type Candidates,
  candidateOf,
  candidatesOf,
  type Listed,
  type ListQuestion,
  listOf,
  TUPLES_PER_PAGE_MAX,
  UNDECIDED_MAX,
} from '../decide/lists/lists.ts'
import { begin, type Slice } from '../decide/slices.ts'
import type { View } from '../decide/view.ts'
import { relationViewOf } from '../decide/views/contextual-tuples.ts'
import { evaluatorOf } from '../store/cache/snapshot-evaluator.ts'
import type { Snapshot, Store } from '../store/contract.ts'
import type { Parts } from './deciding.ts'

/** How many candidates are checked for one page. The next page continues after them. */
export const CANDIDATES_PER_PAGE_MAX = 2_000
/** Candidates that are loaded and checked together. */
const CHUNK = 250
/** If fewer than one in this many candidates is in a list of resources, the subject's side gives the candidates. */
const CANDIDATES_PER_ITEM_MAX = 10

export type ListParts = Pick<Parts, 'compile' | 'tuplesMax' | 'turns' | 'exists'> & {
  readonly store: Pick<Store, 'snapshot'>
}
type Progress = {
  readonly items: string[]
  readonly undecided: ListPage['undecided'][number][]
  after: string | null
  more: boolean
  complete: boolean
}

/** A page of a list. Throws PdpError `request_invalid`, `store_unavailable`. */
export async function listPage(
  { store, compile, tuplesMax, turns, exists }: ListParts,
  question: ListQuestion,
): Promise<ListPage> {
  parseListRequest(question)
  return turns.inSnapshot(question.organization, () =>
    store.snapshot((at) => listAt({ at, evaluator: evaluatorOf(at, turns), compile, tuplesMax, exists }, question)),
  )
}

/** Does what listPage does, in an open snapshot. */
export async function listAt(
  { at, evaluator, compile, tuplesMax, exists }: Pick<Filling, 'at' | 'evaluator' | 'compile' | 'tuplesMax' | 'exists'>,
  question: ListQuestion,
): Promise<ListPage> {
  const { size, from } = parseListRequest(question)
  const { organization } = question
  const found = await evaluator.ask({ organization, evaluate: (view) => candidatesOf(view, question) })
  const progress: Progress = { items: [], undecided: [], after: from?.after ?? null, more: true, complete: true }
  await fill(progress, { at, evaluator, compile, tuplesMax, exists, question, candidates: found.value, size })
  // The token journal is left out: it changes often, and no list depends on it.
  const revision = revisionText({ vector: found.vector, logs: found.logs.filter((log) => log !== TOKENS) })
  const digest = shortDigest(revision)
  const unchanged = from === null || from.revision === digest
  const { items, undecided, after, more, complete } = progress
  return {
    items,
    nextPageToken:
      more && after !== null ? formatCursor(question, { after, revision: unchanged ? digest : null }) : null,
    complete,
    undecided: undecided.slice(0, UNDECIDED_MAX),
    revision,
    revisionUnchanged: unchanged,
  }
}

type Filling = Pick<Parts, 'evaluator' | 'compile' | 'tuplesMax' | 'exists'> & {
  readonly at: Snapshot
  readonly question: ListQuestion
  readonly candidates: Candidates
  readonly size: number
}

/** Fills a page until it is full, candidates end, or the page's limit of work is reached. */
async function fill(progress: Progress, begun: Filling): Promise<void> {
  const { at, size, question } = begun
  // Most resources have few subjects, while a subject may have very many resources.
  let isNarrowed = question.kind === 'subjects'
  let filling = isNarrowed ? await narrowed(begun) : begun
  let tuplesLeft = TUPLES_PER_PAGE_MAX
  for (let left = CANDIDATES_PER_PAGE_MAX; left > 0 && tuplesLeft > 0 && progress.items.length < size; ) {
    const names = await nextNames(at, filling.candidates, { after: progress.after, countMax: Math.min(CHUNK, left) })
    const candidates = await existing(await candidatesAmong(names, filling, progress.after), filling)
    const listed = await check(candidates, filling, { countMax: size - progress.items.length, tuplesMax: tuplesLeft })
    progress.items.push(...listed.items)
    progress.undecided.push(...listed.undecided)
    progress.after = names[listed.examinedCount - 1] ?? progress.after
    progress.complete &&= listed.undecidedCount === 0
    progress.more = names.length === Math.min(CHUNK, left) || listed.examinedCount < names.length
    if (!progress.more) return
    left -= listed.examinedCount
    tuplesLeft -= listed.tuplesCount
    if (isNarrowed || listed.items.length * CANDIDATES_PER_ITEM_MAX >= listed.examinedCount) continue
    isNarrowed = true
    filling = await narrowed(filling)
  }
}

/** Replaces the candidates by those found from the subject's or the resource's side, if that works. */
async function narrowed(filling: Filling): Promise<Filling> {
  const { question, candidates, evaluator, compile } = filling
  const { organization, contextualTuples = [], withoutTuples } = question
  const evaluate = (view: View) => {
    const manifests = view.manifests()
    if (manifests === undefined) return undefined
    const model = compile(manifests)
    const relationView = relationViewOf(view, model, organization, contextualTuples, withoutTuples)
    const seen = relationView ?? view
    return question.kind === 'subjects'
      ? subjectsFromResource(seen, model, question)
      : begin(resourcesFromSubject(seen, model, question))
  }
  const found = (await evaluator.ask({ organization, evaluate })).value
  return found === null ? filling : { ...filling, candidates: { ...candidates, stored: [], known: found } }
}

async function check(
  candidates: readonly (string | null)[],
  { evaluator, compile, question, tuplesMax: tuplesPerCheckMax }: Filling,
  bounds: { readonly countMax: number; readonly tuplesMax: number },
): Promise<Listed> {
  const { organization, contextualTuples = [], withoutTuples } = question
  const evaluate = (view: View, slice: Slice) => {
    const manifests = view.manifests()
    if (manifests === undefined) return undefined
    const model = compile(manifests)
    const relationView = relationViewOf(view, model, organization, contextualTuples, withoutTuples)
    return begin(listOf(slice, view, model, { question, relationView, candidates, tuplesPerCheckMax, ...bounds }))
  }
  return (await evaluator.ask({ organization, evaluate })).value
}

/** One candidate per object, at its first name: `type:a` comes before `type:a#member`, perhaps with others such as `type:a!` in between. */
async function candidatesAmong(
  names: readonly string[],
  { at, question, candidates: sources }: Filling,
  after: string | null,
): Promise<readonly (string | null)[]> {
  const candidates: (string | null)[] = []
  let before = after === null ? null : candidateOf(question, after)
  for (const name of names) {
    const candidate = candidateOf(question, name)
    const told =
      candidate === before || (candidate !== null && name.includes('#') && (await isNamed(at, sources, name)))
    candidates.push(told ? null : candidate)
    before = candidate
  }
  return candidates
}

/** Removes missing people and clients, which a check would deny everything. */
async function existing(
  candidates: readonly (string | null)[],
  { question, exists }: Filling,
): Promise<readonly (string | null)[]> {
  const { kind, type, organization } = question
  if (kind !== 'subjects' || (type !== 'user' && type !== 'service')) return candidates
  const isThere = async (name: string | null): Promise<boolean> => {
    if (name === null || name.includes('#') || isWildcard(name)) return true
    return exists({ type, id: name.slice(type.length + 1) }, organization)
  }
  const there = await Promise.all(candidates.map(isThere))
  return candidates.map((name, i) => (there[i] === true ? name : null))
}

/** True if the userset's object is itself among the names. */
async function isNamed(at: Snapshot, { stored, known }: Candidates, userset: string): Promise<boolean> {
  const object = userset.slice(0, userset.indexOf('#'))
  if (known.includes(object)) return true
  for (const { log, source } of stored) {
    const [next] = await at.names(log, source, { after: nameBefore(object), countMax: 1 })
    if (next === object) return true
  }
  return false
}

/** The next names of all sources in ascending order, without repetition. */
async function nextNames(
  at: Snapshot,
  { stored, known, prefix }: Candidates,
  page: { readonly after: string | null; readonly countMax: number },
): Promise<readonly string[]> {
  const names = new Set(known.filter((name) => page.after === null || compareNames(name, page.after) > 0))
  for (const { log, source } of stored) for (const name of await at.names(log, source, page)) names.add(name)
  return [...names]
    .filter((name) => name.startsWith(prefix))
    .sort(compareNames)
    .slice(0, page.countMax)
}
