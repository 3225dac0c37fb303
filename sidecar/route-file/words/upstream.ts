/** Reads the services behind the sidecar: the file's own, and those that single routes name instead. */
import { isMap, type Node } from 'yaml'
import { foldText } from '../../http/folding.ts'
import type { UpstreamEntry } from '../../http/upstream-entry.ts'
import { SCRIPT_FOLDER } from '../../routes/script-paths.ts'
import { readPeerFiles } from '../peers.ts'
import { CONNECTIONS, HOST_FIELD, SERVER_NAME, SOCKET_PATH, STRIP_PATH, UPSTREAM } from './peer-format.ts'
import type { YamlReader } from './yaml-reader.ts'

/** How many services routes may name. Each has connections of its own. */
export const UPSTREAMS_MAX = 64

/** Returns the reader of `upstream` in routes. Equal ones become one object; null: it is the file's, or has errors. */
export function createUpstreamReader(
  reader: YamlReader,
  file: UpstreamEntry | null,
): (node: Node) => UpstreamEntry | null {
  const known = new Map<string, UpstreamEntry>()
  const own = JSON.stringify(file)
  return (node) => {
    const entry = readUpstream(reader, node)
    const key = JSON.stringify(entry)
    if (entry === null || key === own) return null
    const found = known.get(key)
    if (found !== undefined) return found
    const other = [file, ...known.values()].find((one) => one !== null && isSamePlace(one, entry))
    if (other != null && (other.stripPath !== entry.stripPath || other.addPath !== entry.addPath))
      reader.report(node, twoNames(entry))
    if (known.size === UPSTREAMS_MAX) reader.report(node, `routes name more than ${UPSTREAMS_MAX} services`)
    known.set(key, entry)
    return entry
  }
}

/** True for one service, whatever the Host field, which many services ignore. */
const isSamePlace = (a: UpstreamEntry, b: UpstreamEntry): boolean =>
  a.socketPath === b.socketPath && (a.socketPath !== null || a.origin === b.origin)

const twoNames = ({ socketPath, origin }: UpstreamEntry): string =>
  `${socketPath ?? origin} is reached with another strip_path or add_path, or none, elsewhere: each of its paths would have two names, with two checks`

/** Reads an origin, or a map with `url` and options. */
export function readUpstream(reader: YamlReader, node: Node | null): UpstreamEntry | null {
  if (node === null) return null
  if (!isMap(reader.resolve(node))) {
    const origin = readOrigin(reader, node)
    const plain = {
      http2: false,
      perClient: false,
      reuseAfterBody: false,
      socketPath: null,
      serverName: null,
      host: null,
      stripPath: null,
      addPath: null,
      assertionAudience: null,
    }
    return origin === null ? null : { origin, ...plain, caFile: null, certFile: null, keyFile: null }
  }
  const members = reader.members(node, 'upstream', UPSTREAM)
  if (members === null || members.url === null) return null
  const origin = readOrigin(reader, members.url)
  const files = readPeerFiles(reader, members)
  if (origin?.startsWith('http:') && Object.values(files).some((path) => path !== null))
    reader.report(node, 'certificates can be used only with an https URL')
  const http2 = members.http2 !== null && reader.boolean(members.http2, 'http2') === true
  for (const name of ['connections', 'reuse_after_body'] as const)
    if (http2 && members[name] !== null) reader.report(members[name], `${name} cannot be combined with http2`)
  const perClient =
    members.connections !== null && reader.choice(members.connections, 'connections', CONNECTIONS) === 'per_client'
  const reuseAfterBody =
    members.reuse_after_body !== null && reader.boolean(members.reuse_after_body, 'reuse_after_body') === true
  if (members.server_name !== null && origin?.startsWith('http:'))
    reader.report(members.server_name, 'server_name can be used only with an https URL')
  const matching = (
    name: 'socket' | 'server_name' | 'host' | 'strip_path' | 'add_path' | 'assertion_audience',
    form: RegExp,
    says: string,
  ): string | null => {
    const text = members[name] === null ? null : reader.text(members[name], name)
    if (text === null || form.test(text)) return text
    reader.report(members[name], `${name} must be ${says}`)
    return null
  }
  const socketPath = matching('socket', SOCKET_PATH, 'the absolute path of a unix socket')
  const serverName = matching('server_name', SERVER_NAME, 'a host name')
  const host = matching('host', HOST_FIELD, 'a host name, with a port if the service needs one')
  const path = 'a path such as /auth, without a slash at its end and parameters'
  const stripPath = matching('strip_path', STRIP_PATH, path)
  const addPath = matching('add_path', STRIP_PATH, path)
  if (addPath !== null && SCRIPT_FOLDER.test(foldText(addPath.slice(addPath.lastIndexOf('/') + 1))))
    reader.report(members.add_path, 'add_path cannot end in a folder of scripts: let the client send that path')
  const assertionAudience = matching('assertion_audience', /./, 'the name by which the service is meant')
  const place = { origin: origin ?? '', socketPath, serverName, host, stripPath, addPath, assertionAudience }
  return origin === null ? null : { ...place, http2, perClient, reuseAfterBody, ...files }
}

function readOrigin(reader: YamlReader, node: Node): string | null {
  const text = reader.text(node, 'upstream')
  if (text === null) return null
  const url = URL.parse(text)
  const isOrigin = url !== null && /^https?:$/.test(url.protocol) && url.pathname === '/' && url.username === ''
  if (isOrigin && url.search === '' && url.hash === '') return url.origin
  const isSocket = /^(unix:)?\//.test(text)
  const hasPath =
    url !== null &&
    /^https?:$/.test(url.protocol) &&
    STRIP_PATH.test(url.pathname) &&
    url.href === url.origin + url.pathname
  const way = isSocket
    ? '; for a unix socket: upstream: {url: http://localhost, socket: /path}'
    : hasPath
      ? `; the service gets paths below it with upstream: {url: ${url.origin}, add_path: ${url.pathname}}`
      : ''
  reader.report(node, `upstream must be an http or https URL without a path${way}`)
  return null
}
