/** The built-in app `portcullis`: its permissions are the management scopes, and people get them by its roles. */
import type { Manifest } from '../../shared/domain/manifest.ts'
import { SERVICE_SCOPES } from './scopes.ts'

export const MANAGEMENT_APP = 'portcullis'
const PREFIX = `${MANAGEMENT_APP}:`

/** The permission by which a person may do what a client may do with this scope. */
export const permissionOf = (scope: string): string => PREFIX + scope

/** True for a permission of the management app. Customers' apps cannot declare one, and only the built-in app's roles may give it. */
export const isManagementKey = (key: string): boolean => key.startsWith(PREFIX)

/** The management scopes that these permissions stand for. */
export const scopesIn = (permissions: Iterable<string>): ReadonlySet<string> =>
  new Set([...permissions].filter(isManagementKey).map((key) => key.slice(PREFIX.length)))

const isReading = (scope: string): boolean => scope.endsWith(':read') || scope === 'ssf.read'
const EDITED: ReadonlySet<string> = new Set(['relationships:write', 'entitlements:write'])

/** The manifest of the built-in app; it changes only with a new version of Portcullis. */
export const MANAGEMENT_MANIFEST: Manifest = {
  app: MANAGEMENT_APP,
  audiences: [],
  permissions: Object.fromEntries(SERVICE_SCOPES.map((scope) => [permissionOf(scope), `Management scope ${scope}`])),
  roles: {
    auditor: { name: 'Reads everything', permissions: SERVICE_SCOPES.filter(isReading).map(permissionOf) },
    editor: {
      name: 'Reads everything, writes relationships and entitlements',
      permissions: SERVICE_SCOPES.filter((scope) => isReading(scope) || EDITED.has(scope)).map(permissionOf),
    },
    administrator: { name: 'Reads and writes everything', permissions: SERVICE_SCOPES.map(permissionOf) },
  },
  model: null,
}
