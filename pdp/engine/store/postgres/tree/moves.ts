/** Statements for the move of an organization: its subtree, clients, and the roles and tuples that clients hold in it. */
import { DIRECTORY } from '../../../../shared/domain/journal.ts'
import type { RoleGrant } from '../../../../shared/domain/role.ts'
import type { Tuple } from '../../../../shared/domain/tuple.ts'
import type { MovedClient, Moves, Queries } from '../../directory.ts'
import { endGrantsOf, endTokensOf } from '../client-tokens.ts'
import { appendJournal } from '../journal.ts'
import { lockJournals } from '../unit-of-work.ts'
import { placesBelow } from './tree.ts'

const BELOW = `${placesBelow('$1')} select organization_id as id from place order by organization_id`
const CLIENTS = `
  select client_id as id, organization_id as organization, secret_set_by as "secretSetBy",
    secret_hash is not null or metadata ?| array['jwks', 'jwks_uri'] as authenticates
  from client where organization_id = any($1) order by client_id limit $2`
const GRANTS = `
  select grant_id as id, app, role, subject from role_grant where organization_id = $1 and subject = any($2)`
const TUPLES = `
  select object, relation, subject, (extract(epoch from expires_at) * 1000)::float8 as "expiresAtMs"
  from stored_relationship where organization_id = $1 and subject = any($2)`

export function postgresMoves(sql: Queries): Moves {
  return {
    async below(organization) {
      const rows = await sql.query<{ id: string }>(BELOW, [organization])
      return rows.map(({ id }) => id)
    },
    lock: (organizations) => lockJournals(sql, organizations),
    clientsOf: (organizations, countMax) => sql.query<MovedClient>(CLIENTS, [organizations, countMax]),
    async dropSecret(client, context) {
      await appendJournal(sql, DIRECTORY, [{ kind: 'client', id: client, op: 'write' }], context)
      await endTokensOf(sql, client, context)
      await sql.query(
        `update client set secret_hash = null, secret_set_by = null, metadata = metadata - 'jwks' - 'jwks_uri' where client_id = $1`,
        [client],
      )
      await endGrantsOf(sql, client)
    },
    endTokens: (client, context) => endTokensOf(sql, client, context),
    async heldBy(organization, clients) {
      const subjects = clients.map((id) => `service:${id}`)
      const grants = await sql.query<RoleGrant>(GRANTS, [organization, subjects])
      const tuples = await sql.query<Tuple>(TUPLES, [organization, subjects])
      return { grants, tuples }
    },
  }
}
