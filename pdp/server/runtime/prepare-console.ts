/** Prepares the console: its OAuth client, and the built-in app with people's roles. */

import type { Store } from '../../engine/store/contract.ts'
import { prepareManifest, requireAcceptable } from '../../engine/writes/manifests.ts'
import { isManagementKey, MANAGEMENT_APP, MANAGEMENT_MANIFEST } from '../../identity/oauth/management-app.ts'
import type { ConsoleIdentity } from '../../identity/people/sign-in/console-sessions.ts'
import { PdpError } from '../../shared/domain/errors.ts'
import { ENVIRONMENT } from '../../shared/domain/journal.ts'
import type { Manifest } from '../../shared/domain/manifest.ts'
import type { Log } from '../../shared/process/log.ts'

const CONTEXT = { actor: 'system', requestId: 'start' }

/** Prepares both; false: another object has a name that the console needs, which is logged. */
export async function prepareConsole(deps: {
  readonly store: Store
  readonly identity: Pick<ConsoleIdentity, 'ensureClient'>
  readonly log: Log
}): Promise<boolean> {
  return (await ensureApp(deps)) && (await deps.identity.ensureClient())
}

/** Writes the built-in app if it is missing, or older than this version. */
async function ensureApp({ store, log }: { readonly store: Store; readonly log: Log }): Promise<boolean> {
  const stored = await store.manifest(MANAGEMENT_APP)
  if (stored !== null && isSame(stored, MANAGEMENT_MANIFEST)) return true
  if (stored !== null && !isBuiltIn(stored)) {
    log.error({ event: 'console_app_taken', app: MANAGEMENT_APP, version: stored.version })
    return false
  }
  try {
    await requireAcceptable(store, await prepareManifest(store, MANAGEMENT_MANIFEST))
    await store.write(ENVIRONMENT, [{ kind: 'manifest', manifest: MANAGEMENT_MANIFEST }], { context: CONTEXT })
    return true
  } catch (err) {
    if (!(err instanceof PdpError && err.code === 'conflict')) throw err
    log.error({ event: 'console_app_refused', reason: err.issues.map(({ message }) => message).join('; ') })
    return false
  }
}

const isBuiltIn = ({ audiences, model, permissions }: Manifest): boolean =>
  audiences.length === 0 && model === null && Object.keys(permissions).every(isManagementKey)

/** Stored objects may have their members in another order. */
const isSame = (stored: Manifest, wanted: Manifest): boolean => textOf(stored) === textOf(wanted)
const textOf = ({ audiences, permissions, roles, model }: Manifest): string =>
  JSON.stringify([audiences, Object.entries(permissions).sort(), model, rolesOf(roles)])
const rolesOf = (roles: Manifest['roles']): unknown =>
  Object.entries(roles)
    .map(([key, { name, permissions }]) => [key, name, permissions.toSorted()])
    .sort()
