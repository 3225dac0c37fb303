/** The permissions of roles, current or proposed, and the size that they take in a token. */
import { ENVIRONMENT } from '../../shared/domain/journal.ts'
import type { Manifest } from '../../shared/domain/manifest.ts'
import { CLAIMS_BYTES_MAX, type OrganizationRole } from '../../shared/domain/role.ts'
import type { HeldRole, Reading, Store } from '../store/contract.ts'

/** The claims beside the roles (organization, its name, the tier) need at most this many bytes. */
const ORGANIZATION_BYTES = 600
const ROLES_BYTES_MAX = CLAIMS_BYTES_MAX - ORGANIZATION_BYTES

/** Permission keys of a role; undefined if the role is not declared. */
export type Definitions = (held: HeldRole) => readonly string[] | undefined
export type Declared = { readonly manifests: readonly Manifest[]; readonly roles: readonly OrganizationRole[] }

/** The keys of the rows with declarations, for callers that read them together with other rows. */
export const DECLARED = [
  { log: ENVIRONMENT, kind: 'manifests' },
  { log: ENVIRONMENT, kind: 'roles' },
] as const

export const readDeclared = async (store: Pick<Store, 'rows'>): Promise<Declared> =>
  declaredIn(await store.rows([ENVIRONMENT], DECLARED))

export const declaredIn = ({ rows }: Pick<Reading, 'rows'>): Declared => ({
  manifests: rows.flatMap((row) => ('manifests' in row ? row.manifests : [])),
  roles: rows.flatMap((row) => ('roles' in row ? row.roles : [])),
})

export function definitionsOf({ manifests, roles }: Declared): Definitions {
  const apps = new Map(manifests.map((manifest) => [manifest.app, new Map(Object.entries(manifest.roles))]))
  const wide = new Map(roles.map((role) => [role.key, role]))
  return ({ app, role }) => (app === null ? wide.get(role) : apps.get(app)?.get(role))?.permissions
}

/** The bytes of the claims `roles` and `permissions` for a subject with all of these roles. */
function claimBytes(held: readonly HeldRole[], definitions: Definitions): number {
  const roles = new Set<string>()
  const permissions = new Set<string>()
  for (const role of held) {
    const keys = definitions(role)
    if (keys === undefined) continue
    roles.add(role.role)
    for (const key of keys) permissions.add(key)
  }
  return Buffer.byteLength(JSON.stringify({ roles: [...roles], permissions: [...permissions] }))
}

/**
 * The reason why changed declarations would make tokens too large, or null. A token has roles of one app and organization-wide ones, so
 * each set that a subject holds is measured; nothing is read if all roles together fit.
 */
export async function tokenIssue(
  store: Pick<Store, 'roleSets'>,
  { before, after }: { readonly before: Declared; readonly after: Declared },
): Promise<string | null> {
  const [was, will] = [definitionsOf(before), definitionsOf(after)]
  const declared = rolesIn(after)
  const grown = declared.filter((role) => !isWithin(will(role), was(role)))
  const apps = grown.some(({ app }) => app === null) ? [null, ...after.manifests.map(({ app }) => app)] : null
  const concerned = [...new Set(apps ?? grown.map(({ app }) => app))]
  const exceeding = concerned.filter((app) => sizeIssue(carriedFor(app, declared), will) !== null)
  if (exceeding.length === 0) return null
  for (const held of await store.roleSets(grown)) {
    for (const app of exceeding) {
      const issue = sizeIssue(carriedFor(app, held), will)
      if (issue !== null) return issue
    }
  }
  return null
}

const rolesIn = ({ manifests, roles }: Declared): readonly HeldRole[] => [
  ...roles.map(({ key }) => ({ app: null, role: key })),
  ...manifests.flatMap(({ app, roles: own }) => Object.keys(own).map((role) => ({ app, role }))),
]

/** True if the role gives no more keys than before. Undefined: a role without declaration, which is in no token. */
function isWithin(after: readonly string[] | undefined, before: readonly string[] | undefined): boolean {
  const had = new Set(before)
  return before !== undefined && (after ?? []).every((key) => had.has(key))
}

const carriedFor = (app: string | null, held: readonly HeldRole[]): readonly HeldRole[] =>
  held.filter((one) => one.app === null || one.app === app)

/** Why the tokens of a subject that holds all of these would be too large, or null. */
export function sizeIssue(held: readonly HeldRole[], definitions: Definitions): string | null {
  const bytes = claimBytes(held, definitions)
  if (bytes <= ROLES_BYTES_MAX) return null
  const names = held.map(({ app, role }) => (app === null ? role : `${app}/${role}`)).join(', ')
  return `a token would carry ${bytes} bytes of roles and permissions, more than ${ROLES_BYTES_MAX}, for a subject that holds ${names}`
}
