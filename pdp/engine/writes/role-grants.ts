/** The rules for a role grant, by itself and together with what is stored: over HTTP and in process alike. */
import { createHash } from 'node:crypto'
import { didYouMean } from '../../shared/base/nearest.ts'
import type { Pdp } from '../../shared/domain/decision.ts'
import { ENVIRONMENT, type JournalId } from '../../shared/domain/journal.ts'
import { isId, typeOf } from '../../shared/domain/names.ts'
import type { RoleGrant } from '../../shared/domain/role.ts'
import type { HeldRole, Store } from '../store/contract.ts'
import { nothingWritten } from './relationships.ts'
import { type Declared, type Definitions, definitionsOf, sizeIssue } from './role-definitions.ts'

/** How many grants to one subject are read to compute the size of its tokens. */
const OWN_GRANTS_MAX = 1_000

/** The grant, with an id derived from its content: a repeated request, even a concurrent one, writes the same grant. */
export function grantOf({ app, role, subject }: Omit<RoleGrant, 'id'>): RoleGrant {
  const digest = createHash('sha256')
    .update(JSON.stringify([app, role, subject]))
    .digest('base64url')
  return { id: digest.slice(0, 22), app, role, subject }
}

/** Throws PdpError `request_invalid`. */
export function requireSubjectForm(log: JournalId, subject: string): void {
  const types = log === ENVIRONMENT ? ['user', 'service'] : ['user', 'service', 'group']
  const [type, id] = [typeOf(subject), subject.slice(subject.indexOf(':') + 1)]
  if (types.includes(type) && isId(id)) return
  const message = `is not ${types.map((name) => `${name}:<id>`).join(' or ')}`
  throw nothingWritten('request_invalid', [{ place: '/subject', message }])
}

/** The permissions of a role. Throws PdpError `request_invalid` for one that nobody declares. */
export function requireRole(declared: Declared, { app, role }: HeldRole): readonly string[] {
  const permissions = definitionsOf(declared)({ app, role })
  if (permissions !== undefined) return permissions
  const { manifests, roles } = declared
  const manifest = manifests.find((one) => one.app === app)
  if (app !== null && manifest === undefined) {
    const hint = didYouMean(
      app,
      manifests.map((one) => one.app),
    )
    throw nothingWritten('request_invalid', [{ place: '/app', message: `the app ${app} declares no roles${hint}` }])
  }
  const names = manifest === undefined ? roles.map(({ key }) => key) : Object.keys(manifest.roles)
  const message = app === null ? 'is not an organization-wide role' : `is not a role of app ${app}`
  throw nothingWritten('request_invalid', [{ place: '/role', message: `${message}${didYouMean(role, names)}` }])
}

/** Throws PdpError `conflict` when the subject's tokens would become too large with all its grants and those of its groups here. */
export async function requireFitting(
  deps: { readonly store: Pick<Store, 'roleGrants'>; readonly pdp: Pick<Pdp, 'held'> },
  wanted: { log: JournalId; subject: string; role: HeldRole; definitions: Definitions },
): Promise<void> {
  const { log, subject, role, definitions } = wanted
  const own = await deps.store.roleGrants({ subject }, { after: null, countMax: OWN_GRANTS_MAX })
  const apps = role.app === null ? [null, ...own.map((grant) => grant.app)] : [role.app]
  for (const app of new Set(apps)) {
    const counting = own.filter((grant) => grant.app === null || grant.app === app)
    const groups = await rolesOfGroups(deps, { log, subject, app })
    const held = [...counting, ...groups, role].map((grant): HeldRole => ({ app: grant.app, role: grant.role }))
    const distinct = [...new Map(held.map((one) => [JSON.stringify(one), one])).values()]
    const message = sizeIssue(distinct, definitions)
    if (message !== null) throw nothingWritten('conflict', [{ place: '/role', message }])
  }
}

/** All roles that the subject holds in the organization. Only their names are known, so each may be the app's or organization-wide. */
async function rolesOfGroups(
  { pdp }: { readonly pdp: Pick<Pdp, 'held'> },
  { log, subject, app }: { log: JournalId; subject: string; app: string | null },
): Promise<readonly HeldRole[]> {
  const type = typeOf(subject)
  if (log === ENVIRONMENT || (type !== 'user' && type !== 'service')) return []
  const id = subject.slice(type.length + 1)
  const { roles } = await pdp.held({ organization: log, subject: { type, id }, app })
  return roles.flatMap((name) => [{ app: null, role: name }, ...(app === null ? [] : [{ app, role: name }])])
}
