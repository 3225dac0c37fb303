/** People who call management through the console: what each may do comes from roles of the built-in app, read at each call. */
import { randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Store } from '../../../engine/store/contract.ts'
import { DECLARED, declaredIn, definitionsOf } from '../../../engine/writes/role-definitions.ts'
import { MANAGEMENT_APP, permissionOf, scopesIn } from '../../../identity/oauth/management-app.ts'
import { holdsScope, SERVICE_SCOPES } from '../../../identity/oauth/scopes.ts'
import { CONSOLE_CLIENT } from '../../../identity/people/sign-in/console-sessions.ts'
import type { Pdp } from '../../../shared/domain/decision.ts'
import { ENVIRONMENT } from '../../../shared/domain/journal.ts'
import { RequestProblem } from '../http/status.ts'
import type { ManagementClient } from './authenticate.ts'
import { type ActiveToken, tokenOfSubject } from './credentials.ts'

const SCHEME = 'Console '

export type Person = { readonly user: string; readonly requestId: string }
export type People = {
  /** The person for whom the console sends the request; null: another caller sends it. */
  of(message: Pick<IncomingMessage, 'headers'>): Person | null
  /** Runs `work` with a value for the header field Authorization, which identifies this person until `work` ends. */
  as<T>(person: Person, work: (authorization: string) => Promise<T>): Promise<T>
}

/** People by ticket: a random value that is known only in this process and is deleted at the end of its call. */
export function createPeople(): People {
  const tickets = new Map<string, Person>()
  return {
    of: ({ headers }) => tickets.get(headers.authorization ?? '') ?? null,
    async as(person, work) {
      const ticket = SCHEME + randomBytes(32).toString('base64url')
      tickets.set(ticket, person)
      try {
        return await work(ticket)
      } finally {
        tickets.delete(ticket)
      }
    },
  }
}

type At = { readonly store: Pick<Store, 'rows'>; readonly pdp: Pick<Pdp, 'held'> }

/** Management scopes that the person holds in every organization, by one statement. */
export async function scopesEverywhere({ store }: Pick<At, 'store'>, user: string): Promise<ReadonlySet<string>> {
  const [log, subject] = [ENVIRONMENT, `user:${user}`]
  const reading = await store.rows([log], [{ log, kind: 'grants', subject }, ...DECLARED])
  const held = reading.rows.flatMap((row) =>
    'grants' in row && row.key.subject === subject ? row.grants.filter(({ app }) => app === MANAGEMENT_APP) : [],
  )
  if (held.length === 0) return new Set()
  const definitions = definitionsOf(declaredIn(reading))
  return scopesIn(held.flatMap((grant) => definitions(grant) ?? []))
}

/** Management scopes that the person holds in an organization. */
export async function scopesWithin(
  { pdp }: Pick<At, 'pdp'>,
  user: string,
  organization: string,
): Promise<ReadonlySet<string>> {
  const held = await pdp.held({ organization, subject: { type: 'user', id: user }, app: MANAGEMENT_APP })
  return scopesIn(held.permissions)
}

/** The person as a caller, bound to the organization unless they hold the scope everywhere. Throws RequestProblem. */
export async function authorizePerson(
  at: At,
  person: Person,
  { scope, organization }: { readonly scope: string; readonly organization: string | null },
): Promise<ManagementClient> {
  const { user } = person
  const wide = await scopesEverywhere(at, user)
  if (holdsScope(wide, scope)) return { token: tokenOf(user, wide), organizationScope: [] }
  const here = organization === null ? new Set<string>() : await scopesWithin(at, user, organization)
  if (organization !== null && holdsScope(here, scope))
    return { token: tokenOf(user, here), organizationScope: [organization] }
  const where = organization === null ? 'in the whole environment' : `in organization ${organization}`
  throw new RequestProblem(
    'permission_denied',
    `this needs the permission ${permissionOf(scope)} ${where}, from a role of app ${MANAGEMENT_APP}`,
  )
}

const tokenOf = (user: string, scopes: ReadonlySet<string>): ActiveToken =>
  tokenOfSubject({ type: 'user', id: user }, { clientId: CONSOLE_CLIENT, scopes })

/** True for a caller who may do everything: then no permission needs to be compared, however many grants the caller has. */
export const managesAll = ({ organizationScope, token }: ManagementClient): boolean =>
  organizationScope.length === 0 && SERVICE_SCOPES.every((scope) => holdsScope(token.scopes, scope))

/** The given permissions that manage Portcullis itself and that the caller does not have as scopes. */
export function beyondCaller(caller: ManagementClient, permissions: readonly string[]): readonly string[] {
  const scopes = [...scopesIn(permissions)].filter((scope) => !holdsScope(caller.token.scopes, scope))
  return scopes.map(permissionOf)
}
