/** The policy decision point over a store: evaluates each question at one position of the journals and returns that position. */

import type {
  DecideRequest,
  Decision,
  EntitlementResult,
  ListPage,
  Pdp,
  RevocationQuestion,
  Subject,
} from '../../shared/domain/decision.ts'
import { invalidRequest } from '../../shared/domain/errors.ts'
import { isEntitlementKey, isId, quote } from '../../shared/domain/names.ts'
import type { RelationModel } from '../../shared/domain/relation-types.ts'
import { createRevisionTexts } from '../../shared/domain/revision.ts'
import { subjectName } from '../../shared/domain/subjects.ts'
import { parseListRequest } from '../decide/lists/list-request.ts'
import type { ListQuestion } from '../decide/lists/lists.ts'
import { createModelCompiler, type ModelCompiler } from '../decide/models/known-models.ts'
import { assertCheck, assertRequest } from '../decide/request.ts'
import { ancestors, heldPermissions } from '../decide/roles.ts'
import { TUPLES_PER_CHECK_MAX } from '../decide/search/search.ts'
import type { View } from '../decide/view.ts'
import { EventLoopTurns } from '../store/cache/event-loop-turns.ts'
import { Freshness } from '../store/cache/freshness.ts'
import type { SnapshotEvaluator } from '../store/cache/question.ts'
import { EntitlementCache } from '../store/entitlements/cache.ts'
import { noSharedCache } from '../store/entitlements/shared-cache.ts'
import { storeEntitlements } from '../store/entitlements/store-source.ts'
import { isResident, residentEvaluator } from '../store/memory/resident.ts'
import { afterModel, withModels } from '../worker/worker.ts'
import { compare, compareAll } from './compare.ts'
import type { CompareAllRequest, CompareRequest } from './compare-shapes.ts'
import { atOnePosition, decideAt, isRevoked, type Parts } from './deciding.ts'
import type { EmbeddedPdp } from './embedded.ts'
import {
  CAN,
  COMPARE,
  DECIDE,
  ENTITLEMENT,
  HELD,
  LIST_RESOURCES,
  LIST_SUBJECTS,
  OF_ORGANIZATION,
  RELATIONS,
  TOKEN,
  TOKEN_KEYS,
} from './embedded-shapes.ts'
import { embeddedWrites } from './embedded-writes.ts'
import { entitlementResults } from './entitlement-results.ts'
import { listPage } from './list-pages.ts'
import { allowedLater, allowedNow } from './one-check.ts'
import type { PdpOptions } from './options.ts'
import { createPast } from './past.ts'
import { asking, faultOf } from './shapes.ts'
import { createSupposedModels } from './supposed-models.ts'

/** The types on which roles give permission keys. */
const ROLE_TYPES: ReadonlySet<string> = new Set(['app', 'organization'])

/**
 * The decision point over a store. `M`: the types of a relation model (RelationModel), with which a wrong relation does not
 * compile. Throws TypeError when `app` is not an id, or a bound is not a positive integer.
 *
 * @example
 * ```ts
 * const pdp = createPdp({ store: memoryStore() })
 * await pdp.can('acme', user('alice'), 'viewer', 'invoice:42')
 * ```
 */
export function createPdp<M extends RelationModel = RelationModel>(options: PdpOptions): EmbeddedPdp<M>
export function createPdp(options: PdpOptions): EmbeddedPdp {
  const {
    store,
    app = null,
    entitlements: source = storeEntitlements(store),
    sharedCache: shared = noSharedCache(),
    tuplesPerCheckMax: tuplesMax = TUPLES_PER_CHECK_MAX,
    exists = () => Promise.resolve(true),
  } = options
  assertOptions(app, tuplesMax)
  const compile = createModelCompiler()
  const turns = new EventLoopTurns()
  const parts: Parts = {
    store,
    turns,
    evaluator: validated(isResident(store) ? residentEvaluator(store, turns) : new Freshness({ ...options, turns })),
    entitlements: new EntitlementCache({ source, shared }),
    compile,
    revision: createRevisionTexts(),
    tuplesMax,
    exists,
  }
  const past = createPast(store)
  /** The parts that answer the question: for now, or for `asOfMs`. */
  async function partsFor({ organization, asOfMs }: { organization: string; asOfMs?: number }): Promise<Parts> {
    if (asOfMs === undefined) return parts
    const then = await past.storeAt(organization, asOfMs)
    const cached = new EntitlementCache({ source: storeEntitlements(then), shared: noSharedCache() })
    return { ...parts, store: then, evaluator: validated(residentEvaluator(then, turns)), entitlements: cached }
  }
  const appOf = (request: DecideRequest): string | null => (request.app === undefined ? app : request.app)
  async function decidePast(request: DecideRequest): Promise<Decision> {
    // A question about the past, too, is about the token's present revocation.
    const isRevokedToken = await isRevokedNow(request)
    return decideAt(isRevokedToken ? parts : await partsFor(request), request, appOf(request))
  }
  const isRevokedNow = async (token: RevocationQuestion): Promise<boolean> =>
    (await parts.evaluator.ask({ organization: null, evaluate: (view) => isRevoked(view, token) })).value
  async function listed(question: ListQuestion): Promise<ListPage> {
    parseListRequest(question)
    const from = await partsFor(question)
    return withModels(() => listPage(from, question))
  }
  const supposed = createSupposedModels()
  async function compared<T>(
    { organization, model }: CompareAllRequest | CompareRequest,
    work: () => Promise<T>,
  ): Promise<T> {
    if (model?.text != null) await supposed.prepare(organization, model.text)
    return turns.inSnapshot(organization, () => withModels(work))
  }
  return {
    ...embeddedWrites({ store, entitlements: source, pdp: { held: (request) => held(parts, request) } }),
    decide(request) {
      try {
        assertRequest(request)
      } catch (err) {
        return Promise.reject(faultOf(err, DECIDE, [request]))
      }
      return request.asOfMs === undefined ? decideAt(parts, request, appOf(request)) : decidePast(request)
    },
    /** Returns no reasons and no revision, and allocates little, since applications call it for every request. */
    async can(organization, subject, relation, resource, options) {
      const check = { relation, resource }
      const context = options?.context
      try {
        assertCheck(organization, subject, check, context)
      } catch (err) {
        throw faultOf(err, CAN, [organization, subject, relation, resource, options])
      }
      const asked = { organization, subject: subjectName(subject), app, tuplesMax }
      const { currentView } = parts.evaluator
      // A store in this process answers synchronously. A context is rare, so such a question takes the general way.
      return currentView === undefined || context !== undefined
        ? allowedLater(parts, { asked, check, context })
        : allowedNow(currentView, parts, asked, check)
    },
    entitlement: asking(ENTITLEMENT, (organization, key) => entitlement(parts, organization, key)),
    isRevoked: asking(TOKEN, isRevokedNow),
    tokenKeys: asking(TOKEN_KEYS, async (token) => (store.tokenKeys === undefined ? [] : store.tokenKeys(token))),
    held: asking(HELD, (request) => held(parts, request)),
    claimsEntitlements: asking(OF_ORGANIZATION, (organization) => claimsEntitlements(parts, organization)),
    ancestors: asking(OF_ORGANIZATION, async (organization) => {
      const { value } = await parts.evaluator.ask({ organization, evaluate: (view) => ancestors(view, organization) })
      return value.length === 0 ? null : value
    }),
    ...declared(parts.evaluator, compile),
    listResources: asking(LIST_RESOURCES, (request) => listed({ app, ...request, kind: 'resources' })),
    listSubjects: asking(LIST_SUBJECTS, (request) => listed({ app, ...request, kind: 'subjects' })),
    compare: asking(COMPARE, (request) => compared(request, () => compare(parts, { app, ...request }))),
    compareAll: asking(COMPARE, (request) => compared(request, () => compareAll(parts, { app, ...request }))),
    async close() {
      shared.close()
      await store.close()
    },
  }
}

function assertOptions(app: string | null, tuplesMax: number): void {
  if (app !== null && !isId(app)) throw new TypeError(`app ${quote(app)} is not an id`)
  if (!Number.isInteger(tuplesMax) || tuplesMax < 1) throw new TypeError('tuplesPerCheckMax is not a positive integer')
}

/** Questions about the relations and types that models declare. */
const declared = (evaluator: SnapshotEvaluator, compile: ModelCompiler): Pick<Pdp, 'relations' | 'types'> => ({
  relations: asking(RELATIONS, async (organization, type) => {
    const evaluate = (view: View) => relationsOf(view, compile, type)
    return (await evaluator.ask({ organization, evaluate })).value
  }),
  types: asking(OF_ORGANIZATION, async (organization) => {
    const evaluate = (view: View) => typesOf(view, compile)
    return (await evaluator.ask({ organization, evaluate })).value
  }),
})

/** The relations of a type; undefined while the manifests are not loaded. */
function relationsOf(view: View, compile: ModelCompiler, type: string): readonly string[] | undefined {
  const manifests = view.manifests()
  if (manifests === undefined) return undefined
  const keys = ROLE_TYPES.has(type) ? manifests.flatMap(({ permissions }) => Object.keys(permissions)) : []
  return [...new Set([...(compile(manifests).get(type)?.keys() ?? []), ...keys])].sort()
}

/** The types with relations; undefined while the manifests are not loaded. */
function typesOf(view: View, compile: ModelCompiler): readonly string[] | undefined {
  const manifests = view.manifests()
  if (manifests === undefined) return undefined
  return [...compile(manifests)].flatMap(([type, relations]) => (relations.size === 0 ? [] : [type])).sort()
}

/** Refuses a malformed organization id before the question joins a statement with others. */
function validated(evaluator: SnapshotEvaluator): SnapshotEvaluator {
  return {
    ...(evaluator.currentView === undefined ? {} : { currentView: evaluator.currentView }),
    ask(question) {
      if (question.organization === null || isId(question.organization))
        return evaluator.ask(question).catch((err: unknown) => afterModel(err, () => evaluator.ask(question)))
      const message = `${quote(question.organization)} is not an id`
      return Promise.reject(invalidRequest([{ place: '/organization', message }]))
    },
  }
}

async function entitlement(parts: Parts, organization: string, key: string): Promise<EntitlementResult | null> {
  if (!isEntitlementKey(key))
    throw invalidRequest([{ place: '/key', message: `${quote(key)} is not an entitlement key` }])
  const { read } = await atOnePosition(parts, { organization, evaluate: () => true }, (position) =>
    entitlementResults(parts.entitlements, { organization, keys: [key], position }),
  )
  return read.get(key) ?? null
}

async function held({ evaluator }: Parts, request: { organization: string; subject: Subject; app: string | null }) {
  const { organization, subject, app } = request
  const { value } = await evaluator.ask({
    organization,
    evaluate: (view) => heldPermissions(view, { organization, subject: subjectName(subject), app }),
  })
  return { roles: value.roles, permissions: [...new Set(value.permissions.map((p) => p.key))].sort() }
}

async function claimsEntitlements(parts: Parts, organization: string) {
  const question = { organization, evaluate: (view: View) => ancestors(view, organization) }
  const { read } = await atOnePosition(parts, question, async (position, { value: path }) => {
    if (path.length === 0 || position === undefined) return null
    const values = await parts.entitlements.claims(organization, position)
    return values === undefined ? undefined : { version: position.entitlementVersion, values }
  })
  return read
}
