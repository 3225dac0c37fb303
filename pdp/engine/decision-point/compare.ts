/** Compares who has a relation now with who would have it under another model or with other tuples, in one snapshot. */

import { PdpError } from '../../shared/domain/errors.ts'
import type { Manifest } from '../../shared/domain/manifest.ts'
import { boundIssues } from '../decide/language/model-bounds.ts'
import { parseListRequest } from '../decide/lists/list-request.ts'
import type { ListQuestion } from '../decide/lists/lists.ts'
import { createModelCompiler, knownModel, type ModelCompiler } from '../decide/models/known-models.ts'
import { hasSameAnswers } from '../decide/models/same-answers.ts'
import { contextualIssues, withoutIssues } from '../decide/views/contextual-tuples.ts'
import type { SnapshotEvaluator } from '../store/cache/question.ts'
import { evaluatorOf } from '../store/cache/snapshot-evaluator.ts'
import type { Snapshot } from '../store/contract.ts'
import type { CompareAllRequest, ComparedAccess, CompareRequest, Comparison } from './compare-shapes.ts'
import { type ListParts, listAt } from './list-pages.ts'

/** Resources that are compared at most, and subjects of each. */
export const RESOURCES_MAX = 100
export const SUBJECTS_MAX = 500
/** After this long a comparison ends with what it has. */
const COMPARING_MS = 3_000
/** Pairs that are named; all are counted. */
const NAMED_MAX = 100

/** Reads through no cache and fills none. Throws PdpError `request_invalid`, `store_unavailable`. */
export async function compare(parts: ListParts, request: CompareRequest): Promise<Comparison> {
  const [found] = await compareAll(parts, { ...request, relations: [request.relation] })
  if (found === undefined) throw new TypeError('a relation was not compared')
  return found
}

/** One comparison for each relation, in their order. The time that one may take is that of all. */
export async function compareAll(
  { store, compile, tuplesMax, turns }: ListParts,
  { relations, ...all }: CompareAllRequest,
): Promise<readonly Comparison[]> {
  const requests = relations.map((relation) => ({ ...all, relation }))
  for (const request of requests) requireValid(request)
  const { contextualTuples = [], withoutTuples = [] } = all
  const otherwise = compilerFor(all.model)
  return store.snapshot(async (at) => {
    const evaluator = evaluatorOf(at, turns)
    const resources = await resourcesOf(at, all)
    const isWhole = resources.length <= RESOURCES_MAX
    const found = requests.map((request) => ({
      request,
      gains: [] as ComparedAccess[],
      loses: [] as ComparedAccess[],
      complete: isWhole,
    }))
    const same = await unchangedAmong(evaluator, all, { relations, before: compile, after: otherwise })
    for (const one of found) one.complete ||= same.has(one.request.relation)
    const open = found.filter(({ request }) => !same.has(request.relation))
    const startedMs = performance.now()
    for (const resource of resources.slice(0, RESOURCES_MAX)) {
      // Each relation of a resource before the next resource, so that no relation takes the time of the others.
      for (const one of open) {
        if (performance.now() - startedMs > COMPARING_MS) {
          one.complete = false
          continue
        }
        const question = questionAbout(one.request, resource)
        const before = await listAt({ at, evaluator, compile, tuplesMax }, question)
        const supposed = { ...question, contextualTuples, withoutTuples }
        const after = await listAt({ at, evaluator, compile: otherwise ?? compile, tuplesMax }, supposed)
        one.complete &&= [before, after].every(({ complete, nextPageToken }) => complete && nextPageToken === null)
        one.gains.push(...missingIn(before.items, after.items, resource))
        one.loses.push(...missingIn(after.items, before.items, resource))
      }
    }
    return found.map(({ gains, loses, complete }) => ({
      gains: gains.slice(0, NAMED_MAX),
      loses: loses.slice(0, NAMED_MAX),
      gainsCount: gains.length,
      losesCount: loses.length,
      complete,
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

async function resourcesOf(at: Snapshot, request: Omit<CompareRequest, 'relation'>): Promise<readonly string[]> {
  const { organization, type, contextualTuples = [] } = request
  const page = { after: null, countMax: RESOURCES_MAX + 1 }
  const stored = await at.names(organization, { kind: 'objects', type }, page)
  const supposed = contextualTuples.map(({ object }) => object).filter((object) => object.startsWith(`${type}:`))
  const own = type === 'organization' ? [`organization:${organization}`] : []
  return [...new Set([...stored, ...supposed, ...own])]
}

function missingIn(few: readonly string[], many: readonly string[], resource: string): readonly ComparedAccess[] {
  const known = new Set(few)
  return many.filter((subject) => !known.has(subject)).map((subject) => ({ subject, resource }))
}
