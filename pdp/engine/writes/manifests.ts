/** The rules for a manifest before it is stored, alone and together with stored ones, over HTTP and in process. */

import { PdpError, type ValidationIssue } from '../../shared/domain/errors.ts'
import { pointer, storageIssue } from '../../shared/domain/json.ts'
import type { Manifest, StoredManifest } from '../../shared/domain/manifest.ts'
import { formatTuple } from '../../shared/domain/names.ts'
import { boundIssues } from '../decide/language/model-bounds.ts'
import { placesIn } from '../decide/language/places.ts'
import { type Model, NO_MODEL } from '../decide/model.ts'
import { knownModel } from '../decide/models/known-models.ts'
import { reservedTypeIssues } from '../decide/restrictions.ts'
import type { Store } from '../store/contract.ts'
import { withModels } from '../worker/worker.ts'
import { nothingWritten } from './relationships.ts'
import { orphansOf } from './restrictions.ts'
import {
  type Declared,
  type Definitions,
  definitionsOf,
  readDeclared,
  sizeIssue,
  tokenIssue,
} from './role-definitions.ts'

export type PreparedManifest = { readonly manifest: Manifest; readonly compiled: Model }

/** Does the work that takes long before anything is locked. Throws PdpError `request_invalid` with all issues, also `found`. */
export async function prepareManifest(
  store: Pick<Store, 'rows'>,
  manifest: Manifest,
  found: readonly ValidationIssue[] = [],
): Promise<PreparedManifest> {
  const { manifests } = await readDeclared(store)
  return withModels(() => {
    // The models of other apps are needed in the transaction, where their compilation could not be awaited.
    for (const { model: other } of manifests) if (other !== null) knownModel(other)
    return { manifest, compiled: parseManifest(manifest, found) }
  })
}

/**
 * Decides whether it may replace the app's current manifest. The environment must be locked.
 * Throws PdpError `conflict` when tuples would lose their meaning, tokens grow too large, or names are another app's.
 */
export async function requireAcceptable(
  store: Pick<Store, 'manifest' | 'rows' | 'tupleShapes' | 'roleSets'>,
  { manifest, compiled }: PreparedManifest,
): Promise<{ readonly current: StoredManifest | null; readonly before: Definitions; readonly after: Definitions }> {
  const current = await store.manifest(manifest.app)
  const declared = await readDeclared(store)
  const wanted = withManifest(declared, manifest)
  // Tested first, because tuples of another app's type belong to that app's model.
  requireUnclaimed(declared, manifest, compiled)
  await requireHarmless(store, { manifest, compiled, current, before: declared, after: wanted })
  return { current, before: definitionsOf(declared), after: definitionsOf(wanted) }
}

function withManifest({ manifests, roles }: Declared, manifest: Manifest): Declared {
  return { roles, manifests: [...manifests.filter(({ app }) => app !== manifest.app), manifest] }
}

/** The compiled model. Throws PdpError `request_invalid` with every issue, `found` ones included. */
function parseManifest(manifest: Manifest, found: readonly ValidationIssue[]): Model {
  const issues = [...found, ...partIssues(manifest), ...roleIssues(manifest)]
  const { model, issues: ofModel } = parseModel(manifest.model)
  for (const { place, message } of ofModel)
    issues.push({ place: '/model', message: `line ${place.replace(':', ', column ')}: ${message}` })
  if (issues.length > 0) throw nothingWritten('request_invalid', issues)
  return model
}

/** Throws ModelPending. */
function parseModel(text: string | null): { model: Model; issues: readonly ValidationIssue[] } {
  const beyond = text === null ? [] : boundIssues(text)
  if (text === null || beyond.length > 0) return { model: NO_MODEL, issues: beyond }
  try {
    const model = knownModel(text)
    return { model, issues: reservedTypeIssues(model, placesIn(text)) }
  } catch (err) {
    if (!(err instanceof PdpError)) throw err
    return { model: NO_MODEL, issues: err.issues }
  }
}

function partIssues(manifest: Manifest): readonly ValidationIssue[] {
  const issues: ValidationIssue[] = []
  for (const [i, audience] of manifest.audiences.entries()) {
    const valid = URL.canParse(audience) && !audience.includes('#') && /^[\x21-\x7e]+$/.test(audience) // RFC 8707 section 2
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

/** Throws PdpError `conflict` when tuples would lose their meaning, or tokens grow too large. */
async function requireHarmless(
  store: Pick<Store, 'tupleShapes' | 'roleSets'>,
  change: { manifest: Manifest; compiled: Model; current: Manifest | null; before: Declared; after: Declared },
): Promise<void> {
  const { manifest, compiled, current } = change
  const issues: ValidationIssue[] = []
  const model = current?.model ?? null
  if (model !== manifest.model) {
    const models = { current: model === null ? NO_MODEL : knownModel(model), wanted: compiled }
    for (const { tuplesCount, example, ...shape } of await orphansOf(store, models)) {
      const what = `${shape.type}#${shape.relation}@${shape.subject}`
      const place = `${formatTuple(example.tuple)} of organization ${example.organization}`
      issues.push({
        place: '/model',
        message: `would leave ${tuplesCount} stored tuples ${what} without a meaning, such as ${place}; delete them first`,
      })
    }
  }
  const tooLarge = await tokenIssue(store, change)
  if (tooLarge !== null) issues.push({ place: '/roles', message: tooLarge })
  if (issues.length > 0) throw nothingWritten('conflict', issues)
}

/** Throws PdpError `conflict` for an audience or type that another app has now; the write itself finds former ones. */
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
  if (issues.length > 0) throw nothingWritten('conflict', issues)
}
