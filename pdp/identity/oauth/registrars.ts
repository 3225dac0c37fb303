/** The clients that can register others for the environment: without one it could never be managed again. */
import { PdpError } from '../../domain/errors.ts'
import type { Sql } from '../../store/directory.ts'

const REGISTRAR = `
  select 1 from client where organization_id is null and metadata -> 'grant_types' @> '"client_credentials"'
    and 'clients:write' = any(string_to_array(metadata ->> 'scope', ' ')) limit 1`

/** Run after a change, in its transaction, which then is undone. Throws PdpError `conflict` when none is left. */
export async function requireRegistrar(sql: Pick<Sql, 'query'>): Promise<void> {
  if ((await sql.query(REGISTRAR)).length > 0) return
  throw new PdpError('conflict', 'no client would be left that may register others for the environment')
}
