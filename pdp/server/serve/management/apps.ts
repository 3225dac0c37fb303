/** App manifests: the audiences, permissions, roles and the relation model that an application declares. */
import type { FastifyInstance } from 'fastify'
import { MODEL_CHARACTERS_MAX } from '../../../engine/decide/language/model-bounds.ts'
import { type PreparedManifest, prepareManifest, requireAcceptable } from '../../../engine/writes/manifests.ts'
import { readDeclared } from '../../../engine/writes/role-definitions.ts'
import { MANAGEMENT_APP } from '../../../identity/oauth/management-app.ts'
import { ENVIRONMENT } from '../../../shared/domain/journal.ts'
import type { Manifest, StoredManifest } from '../../../shared/domain/manifest.ts'
import { type PageQuery, sortedPage } from '../http/pagination.ts'
import { ID, type JsonSchema, LABEL, object, PERMISSION_KEY, PERMISSION_KEYS, whole } from '../http/schemas.ts'
import { RequestProblem } from '../http/status.ts'
import type { ManagementDeps } from './deps.ts'
import { requireGivingRoles } from './roles/given-roles.ts'
import { grantEffects } from './roles/grant-effects.ts'
import { addManagementRoute, found, ok, okPage, put } from './route.ts'

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
    ...keyed(whole({ name: LABEL, permissions: PERMISSION_KEYS })),
    description: 'Role keys.',
  },
  model: {
    type: ['string', 'null'],
    maxLength: MODEL_CHARACTERS_MAX,
    description: 'A relation model in the OpenFGA language.',
  },
}
const ACTORS = {
  type: 'string',
  enum: ['subject', 'both'],
  description:
    'both: what a client does for a person, by a token that it exchanged (RFC 8693), is allowed where the person may, the client may, and the person lets it act (a delegation). Default: subject, what the person may.',
}
const VERSION = { type: 'integer', minimum: 1 }
const MANIFEST: JsonSchema = object({ app: ID, version: VERSION, ...PARTS, actors: ACTORS }, [
  'app',
  'version',
  ...Object.keys(PARTS),
])
const EFFECTS = {
  type: 'array',
  items: whole({ permission: PERMISSION_KEY, subject: { type: 'string' }, organization: { type: ['string', 'null'] } }),
}
const DRY_RUN: JsonSchema = whole({
  dry_run: { const: true },
  version: { ...VERSION, description: 'The version that this manifest would get.' },
  gains: {
    ...EFFECTS,
    description: 'Who would gain a permission; organization null: in every organization.',
  },
  loses: EFFECTS,
  complete: { type: 'boolean', description: 'False: there are more effects than are listed.' },
})

const PATH = '/v1/apps/:app/manifest'
const COMMON = { tag: 'Apps', scope: 'manifest:write', organizationScope: 'environment' } as const

export function addApps(app: FastifyInstance, deps: ManagementDeps): void {
  addManagementRoute<{
    params: 'app'
    body: Partial<Manifest>
    query: { dry_run?: 'true' | 'false' }
    prepared: PreparedManifest
  }>(app, deps, {
    ...COMMON,
    method: 'PUT',
    path: PATH,
    operation: 'putManifest',
    summary:
      'Declares the manifest of an app. With dry_run, only shows what would change. Each change is a new version.',
    query: { dry_run: { type: 'string', enum: ['true', 'false'] } },
    bodies: ['json', 'yaml'],
    body: object({ app: ID, ...PARTS, actors: ACTORS }),
    answer: { anyOf: [MANIFEST, DRY_RUN] },
    locks: () => [ENVIRONMENT],
    lengthy: true,
    async prepare({ params, body }) {
      if (params.app === MANAGEMENT_APP)
        throw new RequestProblem('conflict', `app ${MANAGEMENT_APP} is built in: its manifest cannot be written`)
      const { app: named = params.app, audiences = [], permissions = {}, roles = {}, model = null } = body
      const actors = body.actors === 'both' ? { actors: body.actors } : {}
      const manifest: Manifest = { app: params.app, audiences, permissions, roles, model, ...actors }
      const issues = named === params.app ? [] : [{ place: '/app', message: 'is not the app of the path' }]
      return prepareManifest(deps.store, manifest, issues)
    },
    state: ({ at, params }) => at.store.manifest(params.app),
    async handle({ at, caller, params, query, context }, prepared) {
      const { manifest } = prepared
      const { current, before, after } = await requireAcceptable(at.store, prepared)
      if (query.dry_run !== 'true') {
        await requireGivingRoles(at, caller, { app: params.app, before, after: manifest.roles })
        await at.store.write(ENVIRONMENT, [{ kind: 'manifest', manifest }], { context })
        return put(current !== null, ofApp(await at.store.manifest(params.app), params.app))
      }
      const roles = [...new Set([...Object.keys(current?.roles ?? {}), ...Object.keys(manifest.roles)])]
      const effects = await grantEffects(at.store, { app: params.app, roles, before, after })
      return ok({ dry_run: true, version: (current?.version ?? 0) + 1, ...effects })
    },
  })
  addReads(app, deps)
}

function addReads(app: FastifyInstance, deps: ManagementDeps): void {
  addManagementRoute<{ params: 'app'; stored: StoredManifest }>(app, deps, {
    ...COMMON,
    method: 'GET',
    path: PATH,
    operation: 'getManifest',
    summary: 'The current manifest of an app.',
    answer: MANIFEST,
    state: ({ at, params }) => at.store.manifest(params.app),
    handle: async ({ params, stored }) => ok(ofApp(stored, params.app)),
  })
  addManagementRoute<{ params: never; query: PageQuery }>(app, deps, {
    ...COMMON,
    method: 'GET',
    path: '/v1/apps',
    operation: 'listManifests',
    summary: 'The current manifests, by app.',
    answer: MANIFEST,
    list: true,
    handle: ({ query }) =>
      okPage(deps, query, {
        list: ['apps'],
        log: ENVIRONMENT,
        read: async (page) => sortedPage((await readDeclared(deps.store)).manifests, ({ app }) => app, page),
        key: (manifest) => manifest.app,
      }),
  })
}

const ofApp = (manifest: StoredManifest | null, app: string): StoredManifest =>
  found(manifest, `app ${app} has no manifest`)
