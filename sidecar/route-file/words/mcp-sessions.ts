/** `mcp_sessions` of a route file: the keys that bind sessions of older revisions of MCP to their subject. */
import type { Node } from 'yaml'
import { type Members, mapOf, optional, required, TEXT } from './schema.ts'
import type { YamlReader } from './yaml-reader.ts'

const MEMBERS = {
  keys_file: required(
    TEXT,
    'File with one key a line, each of 32 to 1024 visible ASCII characters, such as from openssl rand -base64 48. The first binds, all are accepted. Every replica needs the same file.',
  ),
} as const satisfies Members

export const MCP_SESSIONS = optional(
  mapOf(MEMBERS),
  'What binds sessions of older revisions of MCP to their subject. Default: a key of this process, so that sessions end when it restarts, and other replicas do not know them.',
)

/** The path of the file with the keys; null: there is none. Reports errors to the reader. */
export function readMcpSessions(reader: YamlReader, node: Node | null): string | null {
  const members = node === null ? null : reader.members(node, 'mcp_sessions', MEMBERS)
  const keysFile = members?.keys_file == null ? null : reader.text(members.keys_file, 'keys_file')
  if (keysFile === '') reader.report(node, 'keys_file must not be empty')
  return keysFile
}
