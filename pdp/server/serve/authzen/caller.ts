/** The caller over AuthZEN: a service about any subject of its organization, or a person about themselves. */
import type { IncomingMessage } from 'node:http'
import type { FastifyRequest } from 'fastify'
import type { Directory } from '../../../engine/store/directory.ts'
import type { TokenState } from '../../../identity/issuer/tokens/token-state.ts'
import type { AskedSubject, Subject } from '../../../shared/domain/decision.ts'
import type { JsonValue } from '../../../shared/domain/json.ts'
import { isId, isObjectId, isType } from '../../../shared/domain/names.ts'
import { authenticateManagementClient } from '../authentication/authenticate.ts'
import {
  type ActiveToken,
  type CredentialDeps,
  invalidToken,
  presentedToken,
  provesKey,
} from '../authentication/credentials.ts'
import { type AskedFrom, type AskedFromDeps, askedFrom } from '../decisions/asked-from.ts'
import { RequestProblem } from '../http/status.ts'
import { type Entity, invalid } from './entities.ts'

export type CallerDeps = CredentialDeps & {
  readonly introspect: (token: string) => Promise<TokenState>
  readonly recognize: (token: string) => Promise<TokenState>
  readonly directory: Directory
}
/** A caller with its token. `isUnbound`, read once: true for a service that is bound to no organization. */
export type Asker = { readonly token: ActiveToken; isUnbound(): Promise<boolean> }
/** `provenKey`: the sender proved that it holds the key that the token is bound to. `from`: the request, for the decision log. */
export type Caller = Asker & { readonly provenKey: boolean; inactive(): RequestProblem; readonly from: AskedFrom }

/** Accepts the caller of an evaluation. A revocation of the token is found together with the answer. Throws RequestProblem. */
export async function recognizeCaller(deps: CallerDeps & AskedFromDeps, request: FastifyRequest): Promise<Caller> {
  const message = request.raw
  const presented = presentedToken(deps.issuer, message)
  const inactive = (): RequestProblem => invalidToken(deps.issuer, presented.scheme, 'the token is not active')
  const token = await deps.recognize(presented.token)
  if (!token.active) throw inactive()
  const provenKey = await provesKey(deps, message, { ...presented, state: token })
  return { ...askerOf(deps, token), provenKey, inactive, from: askedFrom(request, deps) }
}

/** Accepts the caller of a search: the token is not revoked, and a service has the scope `decisions:read`. Throws RequestProblem. */
export async function authenticateSearcher(deps: CallerDeps, message: IncomingMessage): Promise<Asker> {
  const presented = presentedToken(deps.issuer, message)
  const token = await deps.introspect(presented.token)
  if (!token.active) throw invalidToken(deps.issuer, presented.scheme, 'the token is not active')
  if (token.subject.type === 'service') {
    const request = { message, scope: 'decisions:read', provenBefore: false }
    return askerOf(deps, (await authenticateManagementClient(deps, request)).token)
  }
  await provesKey(deps, message, { ...presented, state: token })
  return askerOf(deps, token)
}

function askerOf({ directory }: CallerDeps, token: ActiveToken): Asker {
  let unbound: Promise<boolean> | null = null
  const read = async (): Promise<boolean> =>
    token.subject.type === 'service' && (await directory.client(token.clientId))?.organization === null
  return { token, isUnbound: () => (unbound ??= read()) }
}

/**
 * The question's organization: the token's own, or `context.organization` for an unbound service. Null: none, so everything is denied.
 * Throws RequestProblem.
 */
export async function organizationOf({ token, isUnbound }: Asker, named: JsonValue): Promise<string | null> {
  if (named === null) return token.organization
  if (typeof named !== 'string') throw invalid('/context/organization', 'must be a string')
  if (named === token.organization) return named
  if (token.organization !== null || !(await isUnbound()))
    throw new RequestProblem('permission_denied', 'the token is not for the organization that context names')
  return isId(named) ? named : null
}

/** True for a service that may ask about others. Only it sets the context: a person could claim any address or clearance. */
export const setsContext = (token: ActiveToken): boolean =>
  token.subject.type === 'service' && token.scopes.has('decisions:read')

/**
 * The subject of a question; null: no subject of this organization can have the name. The type `identity` means a user or service with that
 * id, first of all the token's bearer. Throws RequestProblem when a person asks about another one.
 */
export async function subjectOf(deps: CallerDeps, token: ActiveToken, entity: Entity): Promise<AskedSubject | null> {
  const subject = await find(deps, token, entity)
  if (token.subject.type === 'user' && !isSame(subject, token.subject))
    throw new RequestProblem('permission_denied', 'a person’s token may ask about that person only')
  return subject
}

async function find(deps: CallerDeps, token: ActiveToken, { type, id }: Entity): Promise<AskedSubject | null> {
  if (type === 'user' || type === 'service') return isId(id) ? { type, id } : null
  if (type !== 'identity') return isType(type) && isObjectId(id) ? { type, id } : null
  if (!isId(id)) return null
  if (token.subject.id === id) return token.subject
  const candidates: readonly Subject[] = [
    { type: 'user', id },
    { type: 'service', id },
  ]
  for (const subject of candidates) if (await deps.directory.exists(subject, token.organization ?? '')) return subject
  // The answer is that for any user who does not exist.
  return { type: 'user', id }
}

export const isSame = (a: AskedSubject | null, b: Subject): boolean => a !== null && a.type === b.type && a.id === b.id
