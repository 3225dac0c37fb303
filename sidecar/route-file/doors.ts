/** Reads the doors of a route file: the listeners where gateways ask, the profile of each, and how the gateways authenticate. */

import { isSeq, type Node } from 'yaml'
import { messageOf } from '../../pdp/shared/base/error-message.ts'
import type { KeyPairFiles } from '../../pdp/shared/process/key-pair-files.ts'
import { isLoopback, type ListenAddress, parseListenAddress } from '../../pdp/shared/process/listen.ts'
import { DOOR_PROFILES, type DoorProfile, isHttpProfile } from '../http/door-fields.ts'
import type { MovedPaths } from '../http/upstream-entry.ts'
import { usesBody } from '../routes/checks.ts'
import type { Route } from '../routes/route.ts'
import { readPath, readTls } from './peers.ts'
import { DOOR } from './words/peer-format.ts'
import type { YamlReader } from './words/yaml-reader.ts'

export type DoorAddress = ListenAddress | { readonly path: string }
export type DoorEntry = {
  readonly profile: DoorProfile
  readonly listen: DoorAddress
  /** The certificate and key of the door; null: plain text. */
  readonly tls: KeyPairFiles | null
  /** The file of the gateway's secret; null: the gateway sends none. */
  readonly secretFile: string | null
  /** True: the gateway sends the bodies of requests. */
  readonly body: boolean
}

/** Reads the doors. Reports to the reader also routes that a door cannot enforce. */
export function readDoors(
  reader: YamlReader,
  node: Node | null,
  { routes, signsIn }: { readonly routes: readonly Route[]; readonly signsIn: boolean },
): readonly DoorEntry[] {
  if (node === null) return []
  const places = new Set<string>()
  const read = (_: YamlReader, item: Node | null): DoorEntry | null => {
    const door = readDoor(reader, item)
    if (door === null) return null
    for (const reason of unheldRoutes(door, routes)) reader.report(item, reason)
    if (signsIn && door.profile !== 'envoy') reader.report(item, NO_SIGN_IN)
    const place = JSON.stringify(door.listen)
    if (places.has(place)) reader.report(item, 'two doors listen on the same address')
    places.add(place)
    return door
  }
  const list = reader.resolve(node)
  if (isSeq(list) && list.items.length > DOORS_MAX) reader.report(node, `doors has more than ${DOORS_MAX} entries`)
  return reader.list(node, 'doors', read) ?? []
}

const DOORS_MAX = 16
// Another gateway forwards the Cookie field as it came, sends no new cookies to the client, or joins fields by commas.
const NO_SIGN_IN =
  'sign_in works behind a door of the profile envoy only: this gateway would send the cookie of the session to the service. Serve browsers by a sidecar in front of the service'

function readDoor(reader: YamlReader, node: Node | null): DoorEntry | null {
  const members = reader.members(node, 'a door', DOOR)
  if (members === null || members.profile === null || members.listen === null) return null
  const profile = reader.choice(members.profile, 'profile', DOOR_PROFILES)
  const listen = readAddress(reader, members.listen)
  const tls = readTls(reader, members.tls)
  const secretFile = readPath(reader, members.secret_file, 'secret_file')
  const body = members.body !== null && reader.boolean(members.body, 'body') === true
  if (profile === null || listen === null || (members.tls !== null && tls === null)) return null
  if (body && isHttpProfile(profile))
    reader.report(members.body, `body is for ext_authz: ${profile} sends no body to a door`)
  const isLocal = 'path' in listen || isLoopback(listen.host)
  if (!('path' in listen) && tls?.clientCaFile == null && secretFile === null) reader.report(node, UNAUTHENTICATED)
  else if (secretFile !== null && tls === null && !isLocal)
    reader.report(members.secret_file, 'secret_file needs tls on an address that is not loopback')
  return { profile, listen, tls, secretFile, body }
}

const UNAUTHENTICATED =
  'anybody could ask at this door about any request: it needs tls with client_ca_file, secret_file, or unix:/path as listen'

function readAddress(reader: YamlReader, node: Node): DoorAddress | null {
  const text = reader.text(node, 'listen')
  if (text === null) return null
  const path = /^unix:(\/.+)$/.exec(text)?.[1]
  if (path !== undefined) return { path }
  try {
    return parseListenAddress(text)
  } catch (err) {
    reader.report(node, `listen ${messageOf(err)}, or unix:/path`)
    return null
  }
}

/** One sentence for each reason why the door cannot enforce a route. */
function unheldRoutes({ profile, body }: DoorEntry, routes: readonly Route[]): string[] {
  const sockets = routes
    .filter(({ websocket }) => websocket)
    .map(({ id }) => `the route ${id} accepts WebSocket: a door cannot end its connections when the permission ends`)
  const cookies = routes
    .filter(({ tokenFrom }) => isHttpProfile(profile) && (tokenFrom?.cookie != null || tokenFrom?.header.length))
    .map(({ id }) => `the route ${id} has token_from: ${profile} would pass the token on to the service`)
  const reading = routes.filter(
    ({ check, context, mcp, method }) =>
      check !== null && (usesBody({ check, context }) || (mcp !== null && method === 'POST')),
  )
  const why = isHttpProfile(profile)
    ? `${profile} sends no body to a door`
    : 'this door gets none: set body: true here and with_request_body in the gateway'
  const bodies = body ? [] : reading.map(({ id }) => `the check of the route ${id} reads the body, but ${why}`)
  const filters = routes.flatMap(({ id, answer }) =>
    answer === null ? [] : [`the route ${id} filters its answers, which a gateway cannot`],
  )
  const elsewhere = routes.flatMap(({ id, upstream }) =>
    upstream === null ? [] : [`the route ${id} has upstream, but the gateway chooses the service`],
  )
  const has = (name: keyof MovedPaths): boolean => routes.some((one) => one.upstream === null && one[name] !== null)
  const words = [...(has('stripPath') ? ['strip_path'] : []), ...(has('addPath') ? ['add_path'] : [])]
  const moved = words.map((word) => `upstream has ${word}, but the gateway sends paths to the service as they came`)
  return [...new Set(elsewhere), ...moved, ...sockets, ...cookies, ...filters, ...bodies].map(
    (reason) => `${reason}. Serve the route by a sidecar in front of the service`,
  )
}
