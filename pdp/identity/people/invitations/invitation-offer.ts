/** An invitation in words for people: the organization, the roles, and the sender. */
import type { Store } from '../../../engine/store/contract.ts'
import type { Directory, Sql } from '../../../engine/store/directory.ts'
import { readDeclared } from '../../../engine/writes/role-definitions.ts'
import type { Invitation } from './invitations.ts'

export type Gift = {
  readonly organizationName: string
  readonly roles: readonly string[]
  /** The sender's name; null: the sender no longer exists. */
  readonly inviter: string | null
}
export type PendingInvitation = Omit<Gift, 'inviter'> & {
  readonly token: string
  readonly invitation: Invitation
  readonly inviter: string
  /** The account with this address and a way to sign in; null: there is none. */
  readonly account: string | null
  /** The account for a person without one: made before by a directory or the operator, or a new one. */
  readonly newAccount: string
}
type Deps = {
  readonly sql: Sql
  readonly store: Pick<Store, 'rows'>
  readonly directory: Pick<Directory, 'user' | 'client'>
}

/** The offer; null when the organization was deleted. */
export async function giftOf(deps: Deps, { organization, roles, by }: Invitation): Promise<Gift | null> {
  const [[place], declared, inviter] = await Promise.all([
    deps.sql.query<{ name: string }>('select name from organization where organization_id = $1', [organization]),
    readDeclared(deps.store),
    inviterOf(deps, by),
  ])
  if (place === undefined) return null
  const names = roles.map(({ app, role }) => {
    const manifest = declared.manifests.find((one) => one.app === app)
    const name = app === null ? declared.roles.find(({ key }) => key === role)?.name : manifest?.roles[role]?.name
    return app === null ? (name ?? role) : `${name ?? role} (${app})`
  })
  return { organizationName: place.name, roles: names, inviter }
}

async function inviterOf({ directory }: Deps, by: string): Promise<string | null> {
  const id = by.slice(by.indexOf(':') + 1)
  if (by.startsWith('user:')) {
    const user = await directory.user(id)
    return user === null ? null : (user.name ?? user.email ?? id)
  }
  const name = (await directory.client(id))?.metadata.client_name
  return typeof name === 'string' ? name : null
}
