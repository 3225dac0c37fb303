/** The methods of MCP that pass, by revision of the protocol, and the member of a message that decides. Other methods are refused. */

/** Revisions with a handshake, and perhaps sessions. */
export const HANDSHAKE_REVISIONS = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25']
/** Revisions without handshake: each message describes itself. */
export const STATELESS_REVISIONS = ['2026-07-28']
/** The revision of messages that name no revision, as the protocol says. */
export const UNNAMED_REVISION = '2025-03-26'

export type McpMethod = {
  /**
   * `open`: everybody who may use the server. `tool`, `prompt`, `resource`: the rule of the name decides. `completion`: the rule of its
   * reference decides. `resources`: the rules of all names in it decide. `list`: the rule of each item decides.
   */
  readonly rule: 'open' | 'tool' | 'prompt' | 'resource' | 'completion' | 'resources' | 'list'
  /** The member of `params` that names the thing, which Mcp-Name repeats. */
  readonly name?: 'name' | 'uri'
  /** The result's member with the items, and the item's member with its name. */
  readonly list?: {
    readonly of: 'tools' | 'prompts' | 'resources' | 'templates'
    readonly member: string
    readonly key: string
  }
}
const OPEN: McpMethod = { rule: 'open' }

const SHARED: { readonly [method: string]: McpMethod } = {
  'tools/list': { rule: 'list', list: { of: 'tools', member: 'tools', key: 'name' } },
  'tools/call': { rule: 'tool', name: 'name' },
  'prompts/list': { rule: 'list', list: { of: 'prompts', member: 'prompts', key: 'name' } },
  'prompts/get': { rule: 'prompt', name: 'name' },
  'resources/list': { rule: 'list', list: { of: 'resources', member: 'resources', key: 'uri' } },
  'resources/templates/list': {
    rule: 'list',
    list: { of: 'templates', member: 'resourceTemplates', key: 'uriTemplate' },
  },
  'resources/read': { rule: 'resource', name: 'uri' },
  'completion/complete': { rule: 'completion' },
  'notifications/cancelled': OPEN,
  'notifications/progress': OPEN,
}
const HANDSHAKE: { readonly [method: string]: McpMethod } = {
  ...SHARED,
  initialize: OPEN,
  ping: OPEN,
  'logging/setLevel': OPEN,
  'resources/subscribe': { rule: 'resource', name: 'uri' },
  'resources/unsubscribe': { rule: 'resource', name: 'uri' },
  'notifications/initialized': OPEN,
  'notifications/roots/list_changed': OPEN,
}
const STATELESS: { readonly [method: string]: McpMethod } = {
  ...SHARED,
  'server/discover': OPEN,
  'subscriptions/listen': { rule: 'resources' },
}

/** The method. Null: the revision lacks it, or it is about tasks, whose results the sidecar cannot assign to a subject. */
export function methodOf(revision: string, method: string): McpMethod | null {
  const table = STATELESS_REVISIONS.includes(revision) ? STATELESS : HANDSHAKE
  return Object.hasOwn(table, method) ? (table[method] ?? null) : null
}
