/** OAuth clients: registered, changed and removed by clients that hold what they give. */
import type { FastifyInstance } from 'fastify'
import { requireRegistrar } from '../identity/registrars.ts'
import { generateSecret, hashGeneratedSecret, hashSecret } from '../identity/secrets.ts'
import { DIRECTORY } from '../store/contracts.ts'
import type { Client } from '../store/directory.ts'
import type { Manager } from './authenticate.ts'
import { requireCharge } from './client-charge.ts'
import {
  CLIENT,
  CLIENT_BODY,
  type ClientBody,
  hasKey,
  isPublic,
  metadataOf,
  registrationMistakes,
} from './client-registration.ts'
import { addManagementRoute, EMPTY, type ManagementDeps, ok, put } from './management-route.ts'
import { type PageQuery, readPage } from './pages.ts'
import { Refusal } from './status.ts'

const PATH = '/v1/clients/:client_id'
const COMMON = { tag: 'Clients', scope: 'clients:write', bounds: 'call' } as const

export function addClients(app: FastifyInstance, deps: ManagementDeps): void {
  const { directory } = deps
  addManagementRoute<{ params: 'client_id'; body: ClientBody }>(app, deps, {
    ...COMMON,
    method: 'PUT',
    path: PATH,
    operation: 'putClient',
    summary: 'Registers a client, or replaces its registration. A generated secret is returned this once.',
    body: CLIENT_BODY,
    answer: CLIENT,
    async handle({ manager, params, body, context }) {
      const client: Client = {
        id: params.client_id,
        app: body.app ?? null,
        organization: body.organization ?? null,
        metadata: metadataOf(body),
      }
      const existing = await directory.client(client.id)
      if (existing !== null) await requireCharge(deps, manager, existing)
      await requireCharge(deps, manager, client)
      const mistakes = registrationMistakes(body)
      if (mistakes.length > 0) throw new Refusal('request_invalid', 'nothing was written', { mistakes })
      const secret = await chooseSecret(body, existing?.secretHash ?? null)
      const registered = { ...client, secretHash: secret.hash }
      await deps.validateClient(registered)
      await directory.putClient(registered, context, requireRegistrar)
      return put(existing !== null, { ...present(client), ...secret.shown })
    },
  })
  addManagementRoute<{ params: 'client_id' }>(app, deps, {
    ...COMMON,
    method: 'DELETE',
    path: PATH,
    operation: 'deleteClient',
    summary: 'Deletes a client, with its tokens. Its id is never given out again.',
    answer: null,
    async handle({ manager, params, context }) {
      const client = await findClient(deps, manager, params.client_id)
      await requireCharge(deps, manager, client)
      if (!(await directory.deleteClient(client.id, context, requireRegistrar))) throw unknownClient(client.id)
      return EMPTY
    },
  })
  addClientReads(app, deps)
}

function addClientReads(app: FastifyInstance, deps: ManagementDeps): void {
  const { directory } = deps
  addManagementRoute<{ params: 'client_id' }>(app, deps, {
    ...COMMON,
    method: 'GET',
    path: PATH,
    operation: 'getClient',
    summary: 'One client, without its secret.',
    answer: CLIENT,
    handle: async ({ manager, params }) => ok(present(await findClient(deps, manager, params.client_id))),
  })
  addManagementRoute<{ params: never; query: PageQuery }>(app, deps, {
    ...COMMON,
    method: 'GET',
    path: '/v1/clients',
    operation: 'listClients',
    summary: 'Clients by id; for a bound client those of the organizations that it manages.',
    answer: CLIENT,
    list: true,
    async handle({ manager, query }) {
      const page = await readPage(deps.store, query, {
        log: DIRECTORY,
        read: (range) => directory.clients(range),
        key: ({ id }) => id,
        visible: (client) => isVisible(deps, manager, client),
      })
      return ok({ ...page, items: page.items.map(present) })
    },
  })
}

async function isVisible(deps: ManagementDeps, manager: Manager, { organization }: Client): Promise<boolean> {
  if (manager.bounds.length === 0) return true
  const lineage = organization === null ? null : await deps.pdp.lineage(organization)
  return manager.bounds.every((bound) => lineage?.includes(bound) === true)
}

async function findClient(deps: ManagementDeps, manager: Manager, id: string): Promise<Client> {
  const client = await deps.directory.client(id)
  if (client === null || !(await isVisible(deps, manager, client))) throw unknownClient(id)
  return client
}

function unknownClient(id: string): Refusal {
  return new Refusal('not_found', `there is no client ${id}`)
}

async function chooseSecret(
  body: ClientBody,
  existing: string | null,
): Promise<{ hash: string | null; shown: { client_secret?: string } }> {
  if (isPublic(body) || hasKey(body)) return { hash: null, shown: {} }
  if (body.client_secret !== undefined) return { hash: await hashSecret(body.client_secret), shown: {} }
  if (existing !== null) return { hash: existing, shown: {} }
  const secret = generateSecret()
  return { hash: hashGeneratedSecret(secret), shown: { client_secret: secret } }
}

function present(client: Client): object {
  return { client_id: client.id, app: client.app, organization: client.organization, ...client.metadata }
}
