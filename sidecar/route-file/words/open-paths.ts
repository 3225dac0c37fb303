/** `open_paths`: paths of the service that some peers read without a token, under every host, such as the metrics for Prometheus. */
import type { Node } from 'yaml'
import { parsePattern } from '../../routes/patterns.ts'
import type { OpenPath } from '../../routes/route.ts'
import { OPEN_PATH } from '../format.ts'
import { readNetwork } from '../limits.ts'
import { plainOptions } from '../options.ts'
import type { YamlReader } from './yaml-reader.ts'

/** Reports errors to the reader. A door cannot know the peer of a gateway. */
export function readOpenPaths(reader: YamlReader, node: Node | null, doors: Node | null): readonly OpenPath[] {
  if (node === null) return []
  if (doors !== null)
    reader.report(node, 'open_paths cannot be used with doors: let the gateway answer these peers without asking')
  const options = plainOptions({
    forwardToken: false,
    shadow: false,
    origins: new Set(),
    cors: null,
    guestOrganization: null,
  })
  return (reader.entries(node, 'open_paths') ?? []).flatMap(({ key: path, keyNode, value }) => {
    const pattern = parsePattern(path)
    const peers = reader.list(value, path, readNetwork) ?? []
    if (value === null) reader.report(keyNode, `${path} needs the peers that it is open to, such as [10.0.0.0/8]`)
    if (typeof pattern === 'string' || !OPEN_PATH.test(path) || /(^|\/)\.{1,2}(\/|$)/.test(path)) {
      reader.report(keyNode, `${JSON.stringify(path)} is not a path such as /metrics, without query and parameters`)
      return []
    }
    const route = {
      ...options,
      id: `open_paths ${path}`,
      host: null,
      hostParameter: null,
      method: 'GET',
      pattern,
      check: null,
      withIdentity: false,
      mcp: null,
    }
    return [{ path, peers, route }]
  })
}
