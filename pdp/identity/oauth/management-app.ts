/** The built-in app: its permissions are the management scopes, and its roles give them to people. */
import type { Manifest } from '../../shared/domain/manifest.ts'
import { SERVICE_SCOPES } from './scopes.ts'

export const MANAGEMENT_APP = 'portcullis'
const PREFIX = `${MANAGEMENT_APP}:`

/** The permission that gives a person what a client has by this scope. */
export const permissionOf = (scope: string): string => PREFIX + scope

/** No app of a customer has such a key, and no role but the built-in app's may give it. */
export const isManagementKey = (key: string): boolean => key.startsWith(PREFIX)

/** The scopes among permissions. */
export const scopesIn = (permissions: Iterable<string>): ReadonlySet<string> =>
  new Set([...permissions].filter(isManagementKey).map((key) => key.slice(PREFIX.length)))

const isReading = (scope: string): boolean => scope.endsWith(':read') || scope === 'ssf.read'
const EDITED: ReadonlySet<string> = new Set(['relationships:write', 'entitlements:write'])

/** Only a new version of Portcullis changes it. */
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
