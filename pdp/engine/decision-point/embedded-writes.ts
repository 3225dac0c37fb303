/** The writes of an embedded PDP: those of the management API without clients, scopes and people's accounts. */
import { randomUUID } from 'node:crypto'
import type { Change, WriteContext } from '../../shared/domain/change.ts'
import type { Pdp } from '../../shared/domain/decision.ts'
import { PdpError } from '../../shared/domain/errors.ts'
import { DIRECTORY, ENVIRONMENT, type JournalId } from '../../shared/domain/journal.ts'
import { storageIssue } from '../../shared/domain/json.ts'
import type { Organization } from '../../shared/domain/organization.ts'
import type { RoleGrant } from '../../shared/domain/role.ts'
import type { EntitlementSource, Store } from '../store/contract.ts'
import type { Lock } from '../store/journal-lock.ts'
import { withModels } from '../worker/worker.ts'
import { entitlementSizeIssue } from '../writes/entitlement-sizes.ts'
import { prepareManifest, requireAcceptable } from '../writes/manifests.ts'
import { nothingWritten, parseRelationships, relocate } from '../writes/relationships.ts'
import { createRestrictions } from '../writes/restrictions.ts'
import { definitionsOf, readDeclared } from '../writes/role-definitions.ts'
import { grantOf, requireFitting, requireRole, requireSubjectForm } from '../writes/role-grants.ts'
import type { Comparing } from './compare-shapes.ts'
import type { EmbeddedPdp, WriteBy, WriteOptions } from './embedded.ts'
import {
  DELETE_ENTITLEMENT,
  DELETE_MEMBER,
  DELETE_ORGANIZATION,
  MANIFEST,
  PUT_ENTITLEMENT,
  PUT_MEMBER,
  PUT_ORGANIZATION,
  ROLE_GRANT,
  WRITE,
} from './embedded-shapes.ts'
import { malformed, type Shapes, shapeIssues } from './shapes.ts'

type Deps = {
  readonly store: Store
  readonly entitlements: Pick<EntitlementSource, 'name'>
  readonly pdp: Pick<Pdp, 'held'>
}
type Writes = Omit<EmbeddedPdp, keyof (Pdp & Comparing) | 'tokenKeys'>
const ACTOR = 'embedded'

export function embeddedWrites(deps: Deps): Writes {
  const { store } = deps
  const restriction = createRestrictions()
  return {
    write: writing(WRITE, async (organization, changes, options = {}) => {
      const input = options.if === undefined ? changes : { ...changes, if: options.if }
      const parsed = parseRelationships(input, await restriction(store))
      const { position, changed } = await writeTuples(store, { organization, parsed, options }).catch((err) => {
        throw relocate(err, parsed.places)
      })
      return { revision: position.revision, changed }
    }),
    putManifest: writing(MANIFEST, async (app, input, by) => {
      const { audiences = [], permissions = {}, roles = {}, model = null, actors } = input
      const declared = { app, audiences, permissions, roles, model, ...(actors === 'both' && { actors }) }
      const prepared = await prepareManifest(store, declared)
      const { manifest } = prepared
      return locked(store, { logs: [ENVIRONMENT], lengthy: true }, async (at) => {
        await requireAcceptable(at, prepared)
        await at.write(ENVIRONMENT, [{ kind: 'manifest', manifest }], { context: contextOf(by) })
        const stored = await at.manifest(app)
        if (stored === null) throw new PdpError('store_unavailable', 'the manifest was written and cannot be read')
        return stored
      })
    }),
    ...organizationWrites(store),
    ...memberWrites(store),
    ...entitlementWrites(deps),
    ...roleWrites(deps),
  }
}

/** Writes tuples, within the application's transaction if it has given one. */
async function writeTuples(
  store: Store,
  of: { organization: string; parsed: ReturnType<typeof parseRelationships>; options: WriteOptions },
) {
  const { organization, options } = of
  const { changes, preconditions } = of.parsed
  const written = { context: contextOf(options), preconditions }
  const { client } = options
  if (client === undefined) return store.write(organization, changes, written)
  if (store.writeWithin === undefined)
    throw new PdpError('request_invalid', 'this store has no transactions: a client needs postgresStore')
  return store.writeWithin(client, organization, changes, written)
}

function organizationWrites(store: Store): Pick<Writes, 'putOrganization' | 'deleteOrganization'> {
  return {
    putOrganization: writing(PUT_ORGANIZATION, (id, { name, parent = null }, by) =>
      locked(store, { logs: [DIRECTORY, ENVIRONMENT] }, async (at) => {
        const organization = { id, name, parent }
        const existing = await organizationOf(at, id)
        // Moves are refused here: they must also end what clients of the former parent hold, which only the management API does.
        if (existing !== null && existing.parent !== parent)
          throw new PdpError('conflict', `organization ${id} has another parent: move it by the management API`)
        await at.write(ENVIRONMENT, [{ kind: 'organization', id, organization }], { context: contextOf(by) })
        return organization
      }),
    ),
    deleteOrganization: writing(DELETE_ORGANIZATION, (id, by) =>
      locked(store, { logs: [DIRECTORY, ENVIRONMENT], lengthy: true }, (at) =>
        changedBy(at, { log: ENVIRONMENT, change: { kind: 'organization', id, organization: null }, by }),
      ),
    ),
  }
}

async function organizationOf(store: Store, id: string): Promise<Organization | null> {
  const { rows } = await store.rows([ENVIRONMENT], [{ log: ENVIRONMENT, kind: 'organization', id }])
  const row = rows.find(({ key }) => key.kind === 'organization' && key.id === id)
  return row !== undefined && 'organization' in row ? row.organization : null
}

function memberWrites(store: Store): Pick<Writes, 'putMember' | 'deleteMember'> {
  return {
    putMember: writing(PUT_MEMBER, async (organization, user, { role, status = 'active' }, by) => {
      const change: Change = { kind: 'membership', user, membership: { role, status } }
      // The person first, as every other writer: the row of an active member's account is locked too.
      await locked(store, { logs: [{ person: user }, organization] }, (at) =>
        changedBy(at, { log: organization, change, by }),
      )
    }),
    deleteMember: writing(DELETE_MEMBER, async (organization, user, by) => {
      const change: Change = { kind: 'membership', user, membership: null }
      const options = { context: contextOf(by), keepsSuspension: true }
      return (await store.write(organization, [change], options)).changed
    }),
  }
}

function entitlementWrites({ store, entitlements }: Deps): Pick<Writes, 'putEntitlement' | 'deleteEntitlement'> {
  const requireOwn = (): void => {
    if (entitlements.name !== 'store') throw new PdpError('conflict', 'an external source owns the entitlements')
  }
  return {
    putEntitlement: writing(PUT_ENTITLEMENT, async (organization, key, given, options = {}) => {
      const { enforcement = 'DecisionApi', ...by } = options
      requireOwn()
      const value = typeof given === 'boolean' ? { enabled: given } : given
      const issue = storageIssue(value)
      if (issue !== null) throw nothingWritten('request_invalid', [{ place: '/value', message: issue }])
      const change: Change = { kind: 'entitlement', key, entitlement: { value, enforcement } }
      await locked(store, { logs: [organization] }, async (at) => {
        const tooLarge = await entitlementSizeIssue(at, organization, { key, value })
        if (tooLarge !== null) throw nothingWritten('request_invalid', [{ place: '/value', message: tooLarge }])
        await changedBy(at, { log: organization, change, by })
      })
    }),
    deleteEntitlement: writing(DELETE_ENTITLEMENT, async (organization, key, by) => {
      requireOwn()
      return changedBy(store, { log: organization, change: { kind: 'entitlement', key, entitlement: null }, by })
    }),
  }
}

function roleWrites({ store, pdp }: Deps): Pick<Writes, 'grantRole' | 'revokeRole'> {
  return {
    // The lock keeps the role's meaning while it is granted.
    grantRole: writing(ROLE_GRANT, (organization, { app = null, role, subject }, by) =>
      locked(store, { logs: [{ beside: ENVIRONMENT }, organization] }, async (at) => {
        requireSubjectForm(organization, subject)
        const declared = await readDeclared(at)
        const definitions = definitionsOf(declared)
        requireRole(declared, { app, role })
        await requireFitting({ store: at, pdp }, { log: organization, subject, role: { app, role }, definitions })
        const grant = grantOf({ app, role, subject })
        await changedBy(at, { log: organization, change: { kind: 'role_grant', op: 'write', grant }, by })
        return (await storedGrant(at, organization, grant)) ?? grant
      }),
    ),
    revokeRole: writing(ROLE_GRANT, (organization, { app = null, role, subject }, by) =>
      locked(store, { logs: [organization] }, async (at) => {
        const grant = await storedGrant(at, organization, { app, role, subject })
        if (grant === undefined) return false
        return changedBy(at, { log: organization, change: { kind: 'role_grant', op: 'delete', grant }, by })
      }),
    ),
  }
}

async function storedGrant(
  store: Store,
  log: JournalId,
  { app, role, subject }: Omit<RoleGrant, 'id'>,
): Promise<RoleGrant | undefined> {
  const [found] = await store.roleGrants({ log, apps: [app], role, subject }, { after: null, countMax: 1 })
  return found === undefined ? undefined : { id: found.id, app, role, subject }
}

/** Runs `work` under locks. If it needs a model that is not compiled, it is rolled back, and runs again after the compilation. */
function locked<T>(
  store: Store,
  locks: { readonly logs: readonly Lock[]; readonly lengthy?: boolean },
  work: (at: Store) => Promise<T>,
): Promise<T> {
  return withModels(() => (store.atomically === undefined ? work(store) : store.atomically(locks, work)))
}

async function changedBy(
  store: Store,
  { log, change, by }: { readonly log: JournalId; readonly change: Change; readonly by: WriteBy | undefined },
): Promise<boolean> {
  return (await store.write(log, [change], { context: contextOf(by) })).changed
}

const contextOf = ({ actor = ACTOR, requestId = randomUUID() }: WriteBy = {}): WriteContext => ({ actor, requestId })

const NOTHING_WRITTEN = 'nothing was written: '

/** A write that validates its arguments first. */
function writing<Args extends unknown[], Result>(
  shapes: Shapes,
  write: (...args: Args) => Promise<Result>,
): (...args: Args) => Promise<Result> {
  return async (...args) => {
    const issues = shapeIssues(shapes, args)
    if (issues.length > 0) throw malformed('request_invalid', issues, { before: NOTHING_WRITTEN })
    try {
      return await write(...args)
    } catch (err) {
      if (!(err instanceof PdpError) || err.issues.length === 0) throw err
      throw malformed(err.code, err.issues, { before: NOTHING_WRITTEN, cause: err })
    }
  }
}
