/** Registrars: clients that may register clients for the environment. Without any, the environment could not be managed. */

import type { Queries } from '../../engine/store/directory.ts'
import { PdpError } from '../../shared/domain/errors.ts'

const REGISTRAR = `
  select 1 from client where organization_id is null and metadata -> 'grant_types' @> '"client_credentials"'
    and 'clients:write' = any(string_to_array(metadata ->> 'scope', ' ')) limit 1`

/** Called inside the transaction of a change. Throws PdpError `conflict`, which rolls it back, if no registrar is left. */
export async function requireRegistrar(sql: Queries): Promise<void> {
  if ((await sql.query(REGISTRAR)).length > 0) return
  throw new PdpError('conflict', 'no client would be left that may register others for the environment')
}
