/** Compares who has a relation now with who would have it under another model or with other tuples, in one snapshot. */

import type { ListPage } from '../../shared/domain/decision.ts'
import { PdpError } from '../../shared/domain/errors.ts'
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

/** Resources that are compared at most, and subjects of each. */
export const RESOURCES_MAX = 100
export const SUBJECTS_MAX = 500
/** After this long a comparison ends with what it has. */
const COMPARING_MS = 3_000
/** Pairs that are named; all are counted. */
const NAMED_MAX = 100
/** Resources that are counted at most, and those of one statement. */
const COUNTED_MAX = 100_000
const COUNTED_TOGETHER = 10_000

/** Reads through no cache and fills none. Throws PdpError `request_invalid`, `store_unavailable`. */
export async function compare(parts: ListParts, request: CompareRequest): Promise<Comparison> {
  const [found] = await compareAll(parts, { ...request, relations: [request.relation] })
  if (found === undefined) throw new TypeError('a relation was not compared')
  return found
}

/** One comparison for each relation, in their order. The time that one may take is that of all. */
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
    const { resources, resourcesCount } = await resourcesOf(at, all, await touched(evaluator, compile, all))
    const common = { at, evaluator, tuplesMax, exists: remembered(exists) }
    const found = requests.map((request) => ({
      request,
      gains: [] as ComparedAccess[],
      loses: [] as ComparedAccess[],
      resourcesCompared: 0,
      complete: resources.length === resourcesCount,
    }))
    const same = await unchangedAmong(evaluator, all, { relations, before: compile, after: otherwise })
    for (const one of found) one.complete ||= same.has(one.request.relation)
    const open = found.filter(({ request }) => !same.has(request.relation))
    const startedMs = performance.now()
    for (const resource of resources) {
      // Each relation of a resource before the next resource, so that no relation takes the time of the others.
      for (const one of open) {
        if (performance.now() - startedMs > COMPARING_MS) {
          one.complete = false
          continue
        }
        const question = questionAbout(one.request, resource)
        const before = await listAt({ ...common, compile }, question)
        const supposed = { ...question, contextualTuples, withoutTuples }
        const after = await listAt({ ...common, compile: otherwise ?? compile }, supposed)
        one.resourcesCompared += 1
        one.complete &&= [before, after].every(({ complete, nextPageToken }) => complete && nextPageToken === null)
        const [was, is] = listedByBoth(before, after)
        one.gains.push(...missingIn(was, is, resource))
        one.loses.push(...missingIn(is, was, resource))
      }
    }
    return found.map(({ request, gains, loses, resourcesCompared, complete }) => ({
      gains: gains.slice(0, NAMED_MAX),
      loses: loses.slice(0, NAMED_MAX),
      gainsCount: gains.length,
      losesCount: loses.length,
      complete,
      // Nothing has to be looked at where both models say the same.
      ...(same.has(request.relation)
        ? { resourcesCompared: 0, resourcesCount: 0 }
        : { resourcesCompared, resourcesCount }),
    }))
  })
}

/** Relations that need no look at the tuples: no tuple is supposed, and what they reach is the same in both models. */
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
  return { kind: 'subjects', organization, resource, relation, type, app, pageSize: SUBJECTS_MAX }
}

/** Throws PdpError `request_invalid`, also for a model that has mistakes. */
function requireValid(request: CompareRequest): void {
  parseListRequest(questionAbout(request, `${request.type}:any`))
  const { contextualTuples = [], withoutTuples = [], model } = request
  const issues = [...contextualIssues(contextualTuples), ...withoutIssues(withoutTuples)]
  if (model !== undefined && model.text !== null) issues.push(...modelIssues(model.text))
  if (issues.length === 0) return
  throw new PdpError('request_invalid', issues.map((m) => `${m.place} ${m.message}`).join('; '), { issues })
}

/** Each with its line and column. Throws ModelPending while the model is being compiled. */
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

/** Null where the models stay as they are. */
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

/** Null: another model may touch every resource. */
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

/** The compared resources, beginning with those that the change touches, and how many there are; null: more than are counted. */
async function resourcesOf(
  at: Snapshot,
  request: Omit<CompareRequest, 'relation'>,
  found: Touched | null,
): Promise<{ readonly resources: readonly string[]; readonly resourcesCount: number | null }> {
  const { organization, type, contextualTuples = [] } = request
  const near = found?.resources ?? contextualTuples.map(({ object }) => object)
  const known = new Set(near.filter((object) => object.startsWith(`${type}:`)))
  if (found?.whole === true) return { resources: [...known].slice(0, RESOURCES_MAX), resourcesCount: known.size }
  if (type === 'organization') known.add(`organization:${organization}`)
  let after: string | null = null
  while (known.size < COUNTED_MAX) {
    const names = await at.names(organization, { kind: 'objects', type }, { after, countMax: COUNTED_TOGETHER })
    for (const object of names) known.add(object)
    after = names.at(-1) ?? null
    if (names.length < COUNTED_TOGETHER)
      return { resources: [...known].slice(0, RESOURCES_MAX), resourcesCount: known.size }
  }
  return { resources: [...known].slice(0, RESOURCES_MAX), resourcesCount: null }
}

/** The same people are asked about for each resource. */
function remembered(exists: ListParts['exists']): ListParts['exists'] {
  const known = new Map<string, Promise<boolean>>()
  return (subject, organization) => {
    const name = `${subject.type}:${subject.id}`
    const found = known.get(name) ?? exists(subject, organization)
    known.set(name, found)
    return found
  }
}

/** As far as both lists reach: whom the shorter one did not come to, it does not lack. */
function listedByBoth(...pages: readonly [ListPage, ListPage]): readonly [readonly string[], readonly string[]] {
  const ends = pages.flatMap(({ nextPageToken, items }) => (nextPageToken === null ? [] : [items.at(-1) ?? '']))
  const within = (name: string): boolean => ends.every((end) => compareNames(name, end) <= 0)
  return [pages[0].items.filter(within), pages[1].items.filter(within)]
}

function missingIn(few: readonly string[], many: readonly string[], resource: string): readonly ComparedAccess[] {
  const known = new Set(few)
  return many.filter((subject) => !known.has(subject)).map((subject) => ({ subject, resource }))
}
