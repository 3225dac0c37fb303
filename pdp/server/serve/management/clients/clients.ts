/** OAuth clients: registered, changed and deleted by clients that hold at least the same rights. */
import type { FastifyInstance } from 'fastify'
import type { Client } from '../../../../engine/store/directory.ts'
import { mayActIn } from '../../../../identity/issuer/tokens/bindings.ts'
import { requireRegistrar } from '../../../../identity/oauth/registrars.ts'
import { generateSecret, hashGeneratedSecret, hashSecret } from '../../../../identity/people/passwords/password-hash.ts'
import type { ValidationIssue } from '../../../../shared/domain/errors.ts'
import { DIRECTORY, ENVIRONMENT, TOKENS } from '../../../../shared/domain/journal.ts'
import { pointer } from '../../../../shared/domain/json.ts'
import { isWithin, type ManagementClient, reachOf } from '../../authentication/authenticate.ts'
import type { PageQuery } from '../../http/pagination.ts'
import { RequestProblem } from '../../http/status.ts'
import type { ManagementDeps } from '../deps.ts'
import { requireOwnName } from '../own-names.ts'
import { addPutAndPatch, type PutRoute } from '../patch.ts'
import { addManagementRoute, done, found, ok, okPage, put } from '../route.ts'
import { holderOf, isMethodChanged, mayKeepSecret, requireAuthorityOver } from './client-authority.ts'
import {
  CLIENT,
  CLIENT_BODY,
  type ClientBody,
  hasKey,
  isPublic,
  metadataOf,
  registrationIssues,
} from './client-registration.ts'

const PATH = '/v1/clients/:client_id'
const COMMON = { tag: 'Clients', scope: 'clients:write', organizationScope: 'call' } as const

export function addClients(app: FastifyInstance, deps: ManagementDeps): void {
  const route: PutRoute<{ params: 'client_id'; body: ClientBody; prepared: Secret | null; stored: Client }> = {
    ...COMMON,
    method: 'PUT',
    path: PATH,
    operation: 'putClient',
    summary:
      'Registers a client, or replaces its registration. A generated secret is returned only in this answer. The stored secret is replaced if the client gets rights that the client that set the secret may not give.',
    body: CLIENT_BODY,
    answer: CLIENT,
    // The locks keep the client's position in the tree and the meaning of its roles.
    locks: () => [DIRECTORY, ENVIRONMENT, TOKENS],
    async prepare({ at, caller, params, body }) {
      await requireRegistration(at, caller, wantedClient(params, body))
      const issues = [...registrationIssues(body), ...(await exchangeIssues(at, params.client_id, body))]
      if (issues.length > 0) throw new RequestProblem('request_invalid', 'nothing was written', { issues })
      return body.client_secret === undefined ? null : { hash: await hashSecret(body.client_secret), shown: {} }
    },
    state: ({ at, caller, params }) => stateOf(at, caller, params.client_id),
    async handle({ at, caller, params, body, context }, chosen) {
      const client = wantedClient(params, body)
      const existing = await requireRegistration(at, caller, client)
      const mayStay = existing === null || (await mayKeepSecret(at, { before: existing, after: client }))
      const secret = chosen ?? secretFor(body, mayStay ? existing : null)
      const registered = { ...client, secretHash: secret.hash }
      await at.validateClient(registered)
      const isSet = hasKey(body) || (secret.hash !== null && secret.hash !== existing?.secretHash)
      const secretSetBy = isSet ? caller.token.clientId : (existing?.secretSetBy ?? null)
      const endTokens = !mayStay || (existing !== null && isMethodChanged(existing, client))
      await at.directory.putClient({ ...registered, secretSetBy, endTokens }, context, requireRegistrar)
      return put(existing !== null, { ...present(client), ...secret.shown })
    },
  }
  addPutAndPatch(app, deps, route, {
    summary: 'Changes the registration of a client. `"organization": null` lets it act in the whole environment.',
    shown: present,
  })
  addManagementRoute<{ params: 'client_id'; stored: Client }>(app, deps, {
    ...COMMON,
    method: 'DELETE',
    path: PATH,
    operation: 'deleteClient',
    summary: 'Deletes a client, with its tokens. The id of a deleted client cannot be used again.',
    answer: null,
    locks: () => [DIRECTORY, ENVIRONMENT, TOKENS],
    state: ({ at, caller, params }) => stateOf(at, caller, params.client_id),
    async handle({ at, caller, params: { client_id: id }, stored, context }) {
      await requireAuthorityOver(at, holderOf(caller), found(stored, `there is no client ${id}`))
      return done(await at.directory.deleteClient(id, context, requireRegistrar), `there is no client ${id}`)
    },
  })
  addClientReads(app, deps)
}

const wantedClient = ({ client_id: id }: { readonly client_id: string }, body: ClientBody): Client => ({
  id,
  app: body.app ?? null,
  organization: body.organization ?? null,
  metadata: metadataOf(body),
})

/** Issues of names of other organizations' clients, whose tokens this client could not exchange (`requireExchange`). */
async function exchangeIssues(
  { directory, pdp }: ManagementDeps,
  id: string,
  { organization, exchange_clients = [] }: ClientBody,
): Promise<readonly ValidationIssue[]> {
  if (organization === undefined) return []
  const issues: ValidationIssue[] = []
  for (const [i, name] of exchange_clients.entries()) {
    const other = name === id ? { organization } : await directory.client(name)
    if (other !== null && (await mayActIn(pdp, organization, other.organization))) continue
    const message = `is not a client of ${organization} or of an organization below it`
    issues.push({ place: pointer('', 'exchange_clients', i), message })
  }
  return issues
}

/** Returns the stored client. Throws RequestProblem unless the caller has authority over both the stored and the new client. */
async function requireRegistration(at: ManagementDeps, caller: ManagementClient, client: Client) {
  const existing = await at.directory.client(client.id)
  if (existing !== null) await requireAuthorityOver(at, holderOf(caller), existing)
  await requireAuthorityOver(at, holderOf(caller), client)
  if (existing === null) await requireOwnName(at, caller, client.id)
  return existing
}

function addClientReads(app: FastifyInstance, deps: ManagementDeps): void {
  addManagementRoute<{ params: 'client_id'; stored: Client }>(app, deps, {
    ...COMMON,
    method: 'GET',
    path: PATH,
    operation: 'getClient',
    summary: 'One client, without its secret.',
    answer: CLIENT,
    state: ({ at, caller, params }) => stateOf(at, caller, params.client_id),
    handle: async ({ params, stored }) => ok(present(found(stored, `there is no client ${params.client_id}`))),
  })
  addManagementRoute<{ params: never; query: PageQuery }>(app, deps, {
    ...COMMON,
    method: 'GET',
    path: '/v1/clients',
    operation: 'listClients',
    summary: 'Clients by id. A bound client sees only those of the organizations that it manages.',
    answer: CLIENT,
    list: true,
    handle: ({ caller, query }) =>
      okPage(deps, query, {
        list: ['clients'],
        log: DIRECTORY,
        async read(range) {
          const reach = await reachOf(caller, deps.pdp)
          return reach === null ? [] : deps.directory.clients(reach, range)
        },
        key: ({ id }) => id,
        shown: present,
      }),
  })
}

/** The stored client; null: it is missing or hidden from the caller. The entity tag covers registration and secret. */
async function stateOf(at: ManagementDeps, caller: ManagementClient, id: string): Promise<Client | null> {
  const client = await at.directory.client(id)
  return client !== null && (await isWithin(caller, client.organization, at.pdp)) ? client : null
}

type Secret = { readonly hash: string | null; readonly shown: { readonly client_secret?: string } }

function secretFor(body: ClientBody, kept: { readonly secretHash: string | null } | null): Secret {
  if (isPublic(body) || hasKey(body)) return { hash: null, shown: {} }
  if (kept?.secretHash != null) return { hash: kept.secretHash, shown: {} }
  const secret = generateSecret()
  return { hash: hashGeneratedSecret(secret), shown: { client_secret: secret } }
}

function present(client: Client): object {
  return { client_id: client.id, app: client.app, organization: client.organization, ...client.metadata }
}
