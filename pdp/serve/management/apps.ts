/** App manifests: the audiences, permissions, roles and the relation model that an application declares. */
import type { FastifyInstance } from 'fastify'
import { knownModel } from '../../decide/known-models.ts'
import { boundIssues, MODEL_CHARACTERS_MAX } from '../../decide/language/model-bounds.ts'
import { type Model, NO_MODEL } from '../../decide/model.ts'
import { reservedTypeIssues } from '../../decide/restrictions.ts'
import { PdpError, type ValidationIssue } from '../../domain/errors.ts'
import { ENVIRONMENT } from '../../domain/log.ts'
import type { Manifest, StoredManifest } from '../../domain/manifest.ts'
import { formatTuple } from '../../domain/names.ts'
import { withModels } from '../../worker/worker.ts'
import { type PageQuery, readPage, sortedPage } from '../http/pagination.ts'
import {
  ID,
  type JsonSchema,
  LABEL,
  object,
  PERMISSION_KEY,
  PERMISSION_KEYS,
  pointer,
  storageIssue,
} from '../http/schemas.ts'
import { RequestProblem } from '../problems/status.ts'
import type { ManagementDeps } from './deps.ts'
import { requireGivingRoles } from './given-roles.ts'
import { grantEffects } from './grant-effects.ts'
import { orphansOf } from './model-restrictions.ts'
import { type Declared, definitionsOf, readDeclared, sizeIssue, tokenIssue } from './role-definitions.ts'
import { addManagementRoute, ok, put } from './route.ts'

type ManifestBody = Partial<Manifest>
type Wanted = { readonly manifest: Manifest; readonly compiled: Model }

const ITEMS_MAX = 1_000
const keyed = (value: object) => ({
  type: 'object',
  maxProperties: ITEMS_MAX,
  propertyNames: PERMISSION_KEY,
  additionalProperties: value,
})
const PARTS = {
  audiences: {
    type: 'array',
    maxItems: 100,
    uniqueItems: true,
    items: { type: 'string', maxLength: 2_048 },
    description:
      'RFC 8707 resources of this app; they become the audience of tokens. Each belongs to the app that first declared it.',
  },
  permissions: { ...keyed(LABEL), description: 'Permission keys, each with a description for people.' },
  roles: {
    ...keyed(object({ name: LABEL, permissions: PERMISSION_KEYS }, ['name', 'permissions'])),
    description: 'Role keys.',
  },
  model: {
    type: ['string', 'null'],
    maxLength: MODEL_CHARACTERS_MAX,
    description: 'A relation model in the OpenFGA language.',
  },
}
const VERSION = { type: 'integer', minimum: 1 }
const MANIFEST: JsonSchema = object({ app: ID, version: VERSION, ...PARTS }, ['app', 'version', ...Object.keys(PARTS)])
const EFFECTS = {
  type: 'array',
  items: object(
    { permission: PERMISSION_KEY, subject: { type: 'string' }, organization: { type: ['string', 'null'] } },
    ['permission', 'subject', 'organization'],
  ),
}
const DRY_RUN: JsonSchema = object(
  {
    dry_run: { const: true },
    version: { ...VERSION, description: 'The version that this manifest would get.' },
    gains: {
      ...EFFECTS,
      description: 'Who would gain a permission; organization null: in every organization.',
    },
    loses: EFFECTS,
    complete: { type: 'boolean', description: 'False: there are more effects than are listed.' },
  },
  ['dry_run', 'version', 'gains', 'loses', 'complete'],
)

const PATH = '/v1/apps/:app/manifest'
const COMMON = { tag: 'Apps', scope: 'manifest:write', organizationScope: 'environment' } as const

export function addApps(app: FastifyInstance, deps: ManagementDeps): void {
  addManagementRoute<{ params: 'app'; body: ManifestBody; query: { dry_run?: 'true' | 'false' }; prepared: Wanted }>(
    app,
    deps,
    {
      ...COMMON,
      method: 'PUT',
      path: PATH,
      operation: 'putManifest',
      summary:
        'Declares the manifest of an app. With dry_run, only shows what would change. Each change is a new version.',
      query: { dry_run: { type: 'string', enum: ['true', 'false'] } },
      bodies: ['json', 'yaml'],
      body: object({ app: ID, ...PARTS }),
      answer: { anyOf: [MANIFEST, DRY_RUN] },
      locks: () => [ENVIRONMENT],
      lengthy: true,
      async prepare({ params, body }) {
        const { app: named = params.app, audiences = [], permissions = {}, roles = {}, model = null } = body
        const manifest: Manifest = { app: params.app, audiences, permissions, roles, model }
        const issues = named === params.app ? [] : [{ place: '/app', message: 'is not the app of the path' }]
        const { manifests } = await readDeclared(deps.store)
        return withModels(() => {
          // The models of other apps are needed too. They are compiled here, because the transaction must not wait for them.
          for (const { model: other } of manifests) if (other !== null) knownModel(other)
          return { manifest, compiled: parseManifest(manifest, issues) }
        })
      },
      state: ({ at, params }) => at.store.manifest(params.app),
      async handle({ at, caller, params, query, context }, { manifest, compiled }) {
        const current = await at.store.manifest(params.app)
        const declared = await readDeclared(at.store)
        const wanted = withManifest(declared, manifest)
        await requireHarmless(at, { manifest, compiled, declared: wanted, current })
        requireUnclaimed(declared, manifest, compiled)
        const [before, after] = [definitionsOf(declared), definitionsOf(wanted)]
        if (query.dry_run !== 'true') {
          await requireGivingRoles(at, caller, { app: params.app, before, after: manifest.roles })
          await at.store.write(ENVIRONMENT, [{ kind: 'manifest', manifest }], { context })
          return put(current !== null, await findManifest(at, params.app))
        }
        const effects = await grantEffects(at, { app: params.app, before, after })
        return ok({ dry_run: true, version: (current?.version ?? 0) + 1, ...effects })
      },
    },
  )
  addReads(app, deps)
}

function addReads(app: FastifyInstance, deps: ManagementDeps): void {
  addManagementRoute<{ params: 'app' }>(app, deps, {
    ...COMMON,
    method: 'GET',
    path: PATH,
    operation: 'getManifest',
    summary: 'The current manifest of an app.',
    answer: MANIFEST,
    state: ({ at, params }) => at.store.manifest(params.app),
    handle: async ({ at, params }) => ok(await findManifest(at, params.app)),
  })
  addManagementRoute<{ params: never; query: PageQuery }>(app, deps, {
    ...COMMON,
    method: 'GET',
    path: '/v1/apps',
    operation: 'listManifests',
    summary: 'The current manifests, by app.',
    answer: MANIFEST,
    list: true,
    handle: async ({ query }) =>
      ok(
        await readPage(deps.store, query, {
          list: ['apps'],
          log: ENVIRONMENT,
          read: async (page) => sortedPage((await readDeclared(deps.store)).manifests, ({ app }) => app, page),
          key: (manifest) => manifest.app,
        }),
      ),
  })
}

async function findManifest(deps: ManagementDeps, app: string): Promise<StoredManifest> {
  const manifest = await deps.store.manifest(app)
  if (manifest === null) throw new RequestProblem('not_found', `app ${app} has no manifest`)
  return manifest
}

function withManifest({ manifests, roles }: Declared, manifest: Manifest): Declared {
  return { roles, manifests: [...manifests.filter(({ app }) => app !== manifest.app), manifest] }
}

/** The compiled model. Throws RequestProblem `request_invalid` with every issue, `found` ones included. */
function parseManifest(manifest: Manifest, found: readonly ValidationIssue[]): Model {
  const issues = [...found, ...partIssues(manifest), ...roleIssues(manifest)]
  const { model, issues: ofModel } = parseModel(manifest.model)
  for (const { place, message } of ofModel)
    issues.push({ place: '/model', message: `line ${place.replace(':', ', column ')}: ${message}` })
  if (issues.length > 0) throw new RequestProblem('request_invalid', 'nothing was written', { issues })
  return model
}

/** Throws ModelPending. */
function parseModel(text: string | null): { model: Model; issues: readonly ValidationIssue[] } {
  const beyond = text === null ? [] : boundIssues(text)
  if (text === null || beyond.length > 0) return { model: NO_MODEL, issues: beyond }
  try {
    const model = knownModel(text)
    return { model, issues: reservedTypeIssues(model, text) }
  } catch (err) {
    if (!(err instanceof PdpError)) throw err
    return { model: NO_MODEL, issues: err.issues }
  }
}

function partIssues(manifest: Manifest): readonly ValidationIssue[] {
  const issues: ValidationIssue[] = []
  for (const [i, audience] of manifest.audiences.entries()) {
    const valid = URL.parse(audience) !== null && !audience.includes('#') && /^[\x21-\x7e]+$/.test(audience) // RFC 8707 section 2
    if (!valid)
      issues.push({ place: pointer('', 'audiences', i), message: 'is not an absolute URI without a fragment' })
  }
  for (const member of ['permissions', 'roles', 'model'] as const) {
    const message = storageIssue(manifest[member])
    if (message !== null) issues.push({ place: pointer('', member), message })
  }
  return issues
}

function roleIssues(manifest: Manifest): readonly ValidationIssue[] {
  const issues: ValidationIssue[] = []
  for (const [key, role] of Object.entries(manifest.roles)) {
    for (const [i, permission] of role.permissions.entries()) {
      if (Object.hasOwn(manifest.permissions, permission)) continue
      issues.push({
        place: pointer('', 'roles', key, 'permissions', i),
        message: 'is not one of the permissions declared here',
      })
    }
    const message = sizeIssue([{ app: manifest.app, role: key }], () => role.permissions)
    if (message !== null) issues.push({ place: pointer('', 'roles', key), message })
  }
  return issues
}

/** Throws RequestProblem `conflict` if stored tuples would lose their meaning, or tokens would become too large. */
async function requireHarmless(
  deps: ManagementDeps,
  change: { manifest: Manifest; compiled: Model; declared: Declared; current: Manifest | null },
): Promise<void> {
  const { manifest, compiled, declared, current } = change
  const issues: ValidationIssue[] = []
  const before = current?.model ?? null
  if (before !== manifest.model) {
    const models = { current: before === null ? NO_MODEL : knownModel(before), wanted: compiled }
    for (const { tuplesCount, example, ...shape } of await orphansOf(deps.store, models)) {
      const what = `${shape.type}#${shape.relation}@${shape.subject}`
      const place = `${formatTuple(example.tuple)} of organization ${example.organization}`
      issues.push({
        place: '/model',
        message: `would leave ${tuplesCount} stored tuples ${what} without a meaning, such as ${place}; delete them first`,
      })
    }
  }
  const tooLarge = await tokenIssue(deps.store, manifest.app, definitionsOf(declared))
  if (tooLarge !== null) issues.push({ place: '/roles', message: tooLarge })
  if (issues.length > 0) throw new RequestProblem('conflict', 'nothing was written', { issues })
}

/** An audience or type that another app declares, or once declared. Throws RequestProblem `conflict`. */
function requireUnclaimed({ manifests }: Declared, manifest: Manifest, compiled: Model): void {
  const issues: ValidationIssue[] = []
  for (const other of manifests) {
    if (other.app === manifest.app) continue
    for (const [i, audience] of manifest.audiences.entries()) {
      if (other.audiences.includes(audience))
        issues.push({ place: pointer('', 'audiences', i), message: `belongs to app ${other.app}` })
    }
    const types = other.model === null ? NO_MODEL : knownModel(other.model)
    for (const [type, relations] of compiled) {
      if (relations.size > 0 && types.has(type) && types.get(type)?.size !== 0)
        issues.push({ place: '/model', message: `declares type ${type}, which belongs to app ${other.app}` })
    }
  }
  if (issues.length > 0) throw new RequestProblem('conflict', 'nothing was written', { issues })
}
