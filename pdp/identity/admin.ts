/** Creates the first client, `admin`, which sets up everything else. */

import { type Directory, SYSTEM } from '../engine/store/directory.ts'
import { PdpError } from '../shared/domain/errors.ts'
import type { JsonObject } from '../shared/domain/json.ts'
import type { Log } from '../shared/process/log.ts'
import { SERVICE_SCOPES } from './oauth/scopes.ts'
import { hashSecret, verifySecret } from './people/passwords/password-hash.ts'

export const ADMIN = 'admin'
const CONTEXT = { actor: 'system', requestId: 'start' }
const METADATA: JsonObject = {
  client_name: 'Administration',
  grant_types: ['client_credentials'],
  response_types: [],
  token_endpoint_auth_method: 'client_secret_basic',
  scope: SERVICE_SCOPES.join(' '),
}

export function createAdmin(deps: { directory: Directory; log: Log }): (secret: string) => Promise<void> {
  const { directory, log } = deps
  return async (secret) => {
    const stored = await directory.client(ADMIN)
    const secretIsCurrent = stored?.secretHash != null && (await verifySecret(secret, stored.secretHash))
    // With a newer version, `admin` gets the new scopes if the client had all scopes of the version before.
    if (secretIsCurrent && stored?.metadata.scope === METADATA.scope) return
    try {
      await directory.putClient(
        {
          id: ADMIN,
          app: stored?.app ?? null,
          organization: stored?.organization ?? null,
          metadata: { ...stored?.metadata, ...METADATA },
          ...(secretIsCurrent ? {} : { secretHash: await hashSecret(secret), secretSetBy: SYSTEM }),
        },
        CONTEXT,
      )
    } catch (err) {
      if (!(err instanceof PdpError && err.code === 'conflict')) throw err
      log.warn({ event: 'admin_client_absent', reason: err.message })
    }
  }
}
