/** Moves an organization: its new ancestors' roles apply there, and its former ancestors' clients lose what they held there. */

import { type MovedClient, SYSTEM } from '../../../../engine/store/directory.ts'
import type { Change, WriteContext } from '../../../../shared/domain/change.ts'
import type { JournalId } from '../../../../shared/domain/journal.ts'
import type { Organization } from '../../../../shared/domain/organization.ts'
import type { ManagementClient } from '../../authentication/authenticate.ts'
import { RequestProblem } from '../../http/status.ts'
import type { Reach } from '../deps.ts'
import { requireGivenByMove } from '../roles/given-roles.ts'

const CLIENTS_MAX = 10_000

type Move = { readonly from: Organization; readonly to: Organization; readonly context: WriteContext }

/**
 * Call it before the move is written. Null if all former ancestors stay ancestors. Memberships, roles and relationships of
 * people stay, because they belong to the organization. Throws RequestProblem.
 */
export async function moveOrganization(
  at: Reach,
  caller: ManagementClient,
  { from, to, context }: Move,
): Promise<{
  /** Clients of former ancestors, whose tokens ended and which lost what they held in the organization. */
  readonly lost_access: readonly string[]
  /** Clients in the organization that need new secrets or keys: a client of `lost_access` or an unknown one had set them. */
  readonly lost_secrets: readonly string[]
} | null> {
  if (from.parent === to.parent) return null
  const [before, after] = [await chainAt(at, from.parent), await chainAt(at, to.parent)]
  await requireGivenByMove(at, caller, { log: to.id, above: after.filter((id) => !before.includes(id)) })
  const left = before.filter((id) => !after.includes(id))
  if (left.length === 0) return null
  const { moves } = at
  const inside = new Set(await moves.below(to.id))
  // Clients of its former siblings and their descendants lose their access as well.
  const outside = (await moves.below(left.at(-1) ?? '')).filter((id) => !inside.has(id))
  // The locks keep clients from writing into the organization by the rights of its former position.
  await moves.lock([...inside])
  const clients = await moves.clientsOf([...outside, ...inside], CLIENTS_MAX + 1)
  if (clients.length > CLIENTS_MAX) {
    throw new RequestProblem('evaluation_limit', `more than ${CLIENTS_MAX} clients would have to be read`)
  }
  const strangers = clients.filter(({ organization }) => !inside.has(organization))
  const lost_secrets = await exposedOf(at, {
    strangers,
    own: clients.filter(({ organization }) => inside.has(organization)),
  })
  for (const id of lost_secrets) await moves.dropSecret(id, context)
  // Clients of former ancestors may have tokens for the organization.
  const lost_access = strangers.filter(({ organization }) => left.includes(organization)).map(({ id }) => id)
  for (const id of lost_access) await moves.endTokens(id, context)
  for (const log of inside) await endHoldings(at, { log, clients: strangers.map(({ id }) => id), context })
  return { lost_access, lost_secrets }
}

async function chainAt({ pdp }: Reach, parent: string | null): Promise<readonly string[]> {
  return parent === null ? [] : ((await pdp.ancestors(parent)) ?? [])
}

/** Clients that a former ancestor could act as: its people know the secrets they set, by which they may have set others. */
async function exposedOf(
  { directory }: Reach,
  { strangers, own }: { readonly strangers: readonly MovedClient[]; readonly own: readonly MovedClient[] },
): Promise<readonly string[]> {
  const setters = new Set(own.flatMap(({ secretSetBy }) => (secretSetBy === null ? [] : [secretSetBy])))
  const known = new Set(strangers.map(({ id }) => id))
  // A deleted setter counts as exposed, because its own secret may have been known to anybody.
  for (const id of setters) if (id !== SYSTEM && (await directory.client(id)) === null) known.add(id)
  const exposed = new Set<string>()
  for (let before = -1; before < exposed.size; ) {
    before = exposed.size
    for (const { id, authenticates, secretSetBy } of own) {
      if (!authenticates || (secretSetBy !== null && !known.has(secretSetBy))) continue
      exposed.add(id)
      known.add(id)
    }
  }
  return [...exposed]
}

async function endHoldings(
  { store, moves }: Reach,
  { log, clients, context }: { log: JournalId; clients: readonly string[]; context: WriteContext },
): Promise<void> {
  const { grants, tuples } = await moves.heldBy(log, clients)
  const changes: readonly Change[] = [
    ...grants.map((grant) => ({ kind: 'role_grant', op: 'delete', grant }) as const),
    ...tuples.map((tuple) => ({ kind: 'tuple', op: 'delete', tuple }) as const),
  ]
  if (changes.length > 0) await store.write(log, changes, { context })
}
