/** `open_paths`: paths of the service that some peers read without a token, under every host, such as the metrics for Prometheus. */
import type { Node } from 'yaml'
import { parseNetwork } from '../../../pdp/shared/base/addresses.ts'
import type { MovedPaths } from '../../http/upstream-entry.ts'
import { beginsWith, type Pattern, parsePattern } from '../../routes/patterns.ts'
import type { OpenPath, Route } from '../../routes/route.ts'
import { OPEN_PATH } from '../format.ts'
import { readNetwork } from '../limits.ts'
import { plainOptions, strippedIssue } from '../options.ts'
import type { YamlReader } from './yaml-reader.ts'

/** Reads open paths and reports errors, also that of a file with doors: a door does not know which peer asks the gateway. */
export function readOpenPaths(
  reader: YamlReader,
  node: Node | null,
  { doors, moved }: { readonly doors: Node | null; readonly moved: MovedPaths },
): readonly OpenPath[] {
  if (node === null) return []
  if (doors !== null)
    reader.report(node, 'open_paths cannot be used with doors: let the gateway answer these peers without asking')
  return (reader.entries(node, 'open_paths') ?? []).flatMap(({ key: path, keyNode, value }) => {
    const pattern = parsePattern(path)
    const peers = reader.list(value, path, readNetwork) ?? []
    if (value === null) reader.report(keyNode, `${path} needs the peers that it is open to, such as [10.0.0.0/8]`)
    if (typeof pattern === 'string' || !isOpenPath(path)) {
      reader.report(keyNode, `${JSON.stringify(path)} is not a path such as /metrics, without query and parameters`)
      return []
    }
    if (!beginsWith(pattern, moved.stripPath)) reader.report(keyNode, strippedIssue(path, moved.stripPath))
    return [{ path, peers, route: routeOf(path, pattern, moved) }]
  })
}

const isOpenPath = (path: string): boolean => OPEN_PATH.test(path) && !/(^|\/)\.{1,2}(\/|$)/.test(path)

const NONE = { forwardToken: false, shadow: false, origins: new Set<string>(), cors: null, guestOrganization: null }
const routeOf = (path: string, pattern: Pattern, moved: MovedPaths): Route => ({
  ...plainOptions({ ...NONE, ...moved }),
  id: `open_paths ${path}`,
  host: null,
  hostParameter: null,
  method: 'GET',
  pattern,
  check: null,
  withIdentity: false,
  mcp: null,
})

/** Reads `path=peers` from the command line; the path is the one that the service sees. Null: the text has another form. */
export function parseOpened(text: string): OpenPath | null {
  const [path = '', peers = '', ...rest] = text.split('=')
  const pattern = parsePattern(path)
  if (rest.length > 0 || typeof pattern === 'string' || !isOpenPath(path)) return null
  try {
    return {
      path,
      peers: peers.split(',').map(parseNetwork),
      route: routeOf(path, pattern, { stripPath: null, addPath: null }),
    }
  } catch {
    return null
  }
}
