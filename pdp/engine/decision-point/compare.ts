/** Compares who has a relation now with who would have it under another model or with other tuples, in one snapshot. */

import type { ListPage } from '../../shared/domain/decision.ts'
import { invalidRequest, PdpError } from '../../shared/domain/errors.ts'
import type { Manifest } from '../../shared/domain/manifest.ts'
import { compareNames } from '../../shared/domain/names.ts'
import { boundIssues } from '../decide/language/model-bounds.ts'
import { parseListRequest } from '../decide/lists/list-request.ts'
import type { ListQuestion } from '../decide/lists/lists.ts'
import { createModelCompiler, knownModel, type ModelCompiler } from '../decide/models/known-models.ts'
import { hasSameAnswers } from '../decide/models/same-answers.ts'
import type { View } from '../decide/view.ts'
import { contextualIssues, withoutIssues } from '../decide/views/contextual-tuples.ts'
import type { SnapshotEvaluator } from '../store/cache/question.ts'
import { evaluatorOf } from '../store/cache/snapshot-evaluator.ts'
import type { Snapshot } from '../store/contract.ts'
import type { CompareAllRequest, ComparedAccess, CompareRequest, Comparison } from './compare-shapes.ts'
import { type ListParts, listAt } from './list-pages.ts'
import { type Touched, touchedBy } from './touched.ts'

/** The most subjects of one resource that are compared, and how many are read together. */
export const SUBJECTS_MAX = 10_000
const SUBJECTS_TOGETHER = 500
/** After this time, a call ends with its present resource and tells where the next one continues. */
const COMPARING_MS = 3_000
/** The most pairs that are named; all are counted. */
const NAMED_MAX = 100
/** The most resources that are counted, and how many in one statement. */
const COUNTED_MAX = 100_000
const COUNTED_TOGETHER = 10_000
/** How many resource names are read at once. */
const NAMES_TOGETHER = 500

/** Compares without any cache. Throws PdpError `request_invalid`, `store_unavailable`. */
export async function compare(parts: ListParts, request: CompareRequest): Promise<Comparison> {
  const [found] = await compareAll(parts, { ...request, relations: [request.relation] })
  if (found === undefined) throw new TypeError('a relation was not compared')
  return found
}

/** One comparison per relation, in their order. All relations share the time of one comparison. */
export async function compareAll(
  { store, compile, tuplesMax, turns, exists }: ListParts,
  { relations, ...all }: CompareAllRequest,
): Promise<readonly Comparison[]> {
  const requests = relations.map((relation) => ({ ...all, relation }))
  for (const request of requests) requireValid(request)
  const { contextualTuples = [], withoutTuples = [] } = all
  const otherwise = compilerFor(all.model)
  return store.snapshot(async (at) => {
    const evaluator = evaluatorOf(at, turns)
    const changed = await touched(evaluator, compile, all)
    const same = await unchangedAmong(evaluator, all, { relations, before: compile, after: otherwise })
    const found = requests.map((request) => ({ request, gains: none(), loses: none(), decided: true }))
    const open = found.filter(({ request }) => !same.has(request.relation))
    const asking = { at, evaluator, tuplesMax, exists: remembered(exists), compile }
    const startedMs = performance.now()
    let [resourcesCompared, last, isEnded] = [0, null as string | null, true]
    for await (const resource of open.length === 0 ? [] : resourcesOf(at, all, changed)) {
      isEnded = last === null || performance.now() - startedMs <= COMPARING_MS
      if (!isEnded) break
      // All relations of a resource come before the next resource, so that no relation uses up the others' time.
      for (const one of open) {
        const question = questionAbout(one.request, resource)
        const before = await allListed(asking, question)
        const supposed = { ...question, contextualTuples, withoutTuples }
        const after = await allListed({ ...asking, compile: otherwise ?? compile }, supposed)
        one.decided &&= before.complete && after.complete
        const [was, is] = listedByBoth(before, after)
        addMissing(one.gains, { few: was, many: is, resource })
        addMissing(one.loses, { few: is, many: was, resource })
      }
      resourcesCompared += 1
      last = resource
    }
    const isWhole = isEnded && all.after === undefined
    const resourcesCount = isWhole ? resourcesCompared : await countOf(at, all, changed)
    return found.map(({ request, gains, loses, decided }) => {
      const isSame = same.has(request.relation)
      return {
        gains: gains.named,
        loses: loses.named,
        gainsCount: gains.count,
        losesCount: loses.count,
        decided,
        complete: decided && (isEnded || isSame),
        // Models with the same answers need no comparison of resources.
        ...(isSame ? { resourcesCompared: 0, resourcesCount: 0 } : { resourcesCompared, resourcesCount }),
        next: isEnded || isSame ? null : last,
      }
    })
  })
}

type Effects = { readonly named: ComparedAccess[]; count: number }
const none = (): Effects => ({ named: [], count: 0 })

/** Relations with the same answers whatever the tuples are: no tuple is changed, and both models define all they reach alike. */
async function unchangedAmong(
  evaluator: SnapshotEvaluator,
  { organization, type, contextualTuples = [], withoutTuples = [] }: Omit<CompareRequest, 'relation'>,
  of: { readonly relations: readonly string[]; readonly before: ModelCompiler; readonly after: ModelCompiler | null },
): Promise<ReadonlySet<string>> {
  const { relations, before, after } = of
  if (contextualTuples.length > 0 || withoutTuples.length > 0) return new Set()
  if (after === null) return new Set(relations)
  const { value: manifests } = await evaluator.ask({ organization, evaluate: (view) => view.manifests() })
  const [was, is] = [before(manifests), after(manifests)]
  return new Set(relations.filter((relation) => hasSameAnswers(was, is, { type, relation })))
}

function questionAbout(request: CompareRequest, resource: string): ListQuestion {
  const { organization, relation, subjectType: type = 'user', app = null } = request
  return { kind: 'subjects', organization, resource, relation, type, app, pageSize: SUBJECTS_TOGETHER }
}

/** Throws PdpError `request_invalid`, also for an invalid model. */
function requireValid(request: CompareRequest): void {
  parseListRequest(questionAbout(request, `${request.type}:any`))
  const { contextualTuples = [], withoutTuples = [], model, type, after } = request
  const issues = [...contextualIssues(contextualTuples), ...withoutIssues(withoutTuples)]
  if (after !== undefined && !after.startsWith(`${type}:`))
    issues.push({ place: '/after', message: `must be a resource of type ${type}, as "next" of an answer names it` })
  if (model !== undefined && model.text !== null) issues.push(...modelIssues(model.text))
  if (issues.length > 0) throw invalidRequest(issues)
}

/** The issues of a model, with line and column. Throws ModelPending while it has to be compiled. */
export function modelIssues(text: string): PdpError['issues'] {
  const beyond = boundIssues(text)
  if (beyond.length > 0) return beyond
  try {
    knownModel(text)
    return []
  } catch (err) {
    if (err instanceof PdpError) return err.issues
    throw err
  }
}

/** The compiler for the models after the change; null when no model changes. */
function compilerFor(model: CompareRequest['model']): ModelCompiler | null {
  if (model === undefined) return null
  const compile = createModelCompiler()
  const changed = new WeakMap<readonly Manifest[], readonly Manifest[]>()
  return (manifests) => {
    const known = changed.get(manifests) ?? replaced(manifests, model)
    changed.set(manifests, known)
    return compile(known)
  }
}

function replaced(
  manifests: readonly Manifest[],
  { app, text: model }: NonNullable<CompareRequest['model']>,
): readonly Manifest[] {
  const own = manifests.find((manifest) => manifest.app === app)
  const others = manifests.filter((manifest) => manifest.app !== app)
  return [...others, { audiences: [], permissions: {}, roles: {}, ...own, app, model }]
}

/** The resources that changed tuples may concern; null when another model may concern all. */
async function touched(
  evaluator: SnapshotEvaluator,
  compile: ModelCompiler,
  request: Omit<CompareRequest, 'relation'>,
): Promise<Touched | null> {
  const { organization, type, model, contextualTuples = [], withoutTuples = [] } = request
  if (model !== undefined) return null
  const evaluate = (view: View): Touched | undefined => {
    const manifests = view.manifests()
    if (manifests === undefined) return undefined
    return touchedBy(view, compile(manifests), { organization, type, tuples: [...contextualTuples, ...withoutTuples] })
  }
  return (await evaluator.ask({ organization, evaluate })).value
}

/** The resources to compare, ordered by name, from the end of an earlier call on. */
async function* resourcesOf(
  at: Snapshot,
  { organization, type, contextualTuples = [], after: from }: Omit<CompareRequest, 'relation'>,
  found: Touched | null,
): AsyncGenerator<string> {
  const isLeft = (name: string): boolean => from === undefined || compareNames(name, from) > 0
  const near = found?.resources ?? contextualTuples.map(({ object }) => object)
  const own = type === 'organization' ? [`organization:${organization}`] : []
  // Resources that stored tuples may not name.
  const waiting = [...new Set([...near, ...own])].filter((object) => object.startsWith(`${type}:`) && isLeft(object))
  waiting.sort(compareNames)
  let after: string | null = from ?? null
  let names: readonly string[] = []
  do {
    names =
      found?.whole === true
        ? []
        : await at.names(organization, { kind: 'objects', type }, { after, countMax: NAMES_TOGETHER })
    for (const object of names) {
      while (waiting[0] !== undefined && compareNames(waiting[0], object) < 0) yield waiting.shift() ?? object
      if (waiting[0] === object) waiting.shift()
      yield object
    }
    after = names.at(-1) ?? null
  } while (names.length === NAMES_TOGETHER)
  yield* waiting
}

/** How many resources the change may concern; null for too many, and for a call that continues an earlier one. */
async function countOf(
  at: Snapshot,
  { organization, type, after: from }: Omit<CompareRequest, 'relation'>,
  found: Touched | null,
): Promise<number | null> {
  if (from !== undefined) return null
  if (found?.whole === true) return found.resources.length
  let [count, after] = [type === 'organization' ? 1 : 0, null as string | null]
  while (count < COUNTED_MAX) {
    const names = await at.names(organization, { kind: 'objects', type }, { after, countMax: COUNTED_TOGETHER })
    count += names.length
    after = names.at(-1) ?? null
    if (names.length < COUNTED_TOGETHER) return count
  }
  return null
}

type Everybody = Pick<ListPage, 'items' | 'complete' | 'nextPageToken'>

/** All pages of a list, but at most SUBJECTS_MAX names. */
async function allListed(asking: Parameters<typeof listAt>[0], question: ListQuestion): Promise<Everybody> {
  const items: string[] = []
  let [complete, nextPageToken] = [true, null as string | null]
  do {
    const page = await listAt(asking, { ...question, ...(nextPageToken !== null && { pageToken: nextPageToken }) })
    items.push(...page.items)
    complete &&= page.complete
    nextPageToken = page.nextPageToken
  } while (nextPageToken !== null && items.length < SUBJECTS_MAX)
  return { items, complete: complete && nextPageToken === null, nextPageToken }
}

/** Keeps answers, because the same people come up for each resource. */
function remembered(exists: ListParts['exists']): ListParts['exists'] {
  const known = new Map<string, Promise<boolean>>()
  return (subject, organization) => {
    const name = `${subject.type}:${subject.id}`
    const found = known.get(name) ?? exists(subject, organization)
    known.set(name, found)
    return found
  }
}

/** The parts of both lists up to where the shorter one ends: beyond it, its absent subjects are unknown. */
function listedByBoth(...pages: readonly [Everybody, Everybody]): readonly [readonly string[], readonly string[]] {
  const ends = pages.flatMap(({ nextPageToken, items }) => (nextPageToken === null ? [] : [items.at(-1) ?? '']))
  const within = (name: string): boolean => ends.every((end) => compareNames(name, end) <= 0)
  return [pages[0].items.filter(within), pages[1].items.filter(within)]
}

function addMissing(
  to: Effects,
  of: { readonly few: readonly string[]; readonly many: readonly string[]; readonly resource: string },
): void {
  const { few, many, resource } = of
  const known = new Set(few)
  for (const subject of many) {
    if (known.has(subject)) continue
    to.count += 1
    if (to.named.length < NAMED_MAX) to.named.push({ subject, resource })
  }
}
