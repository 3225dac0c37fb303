/** The address by which limits before a sign-in count: an IPv4 address or a /64 of IPv6, taken from behind the trusted proxies. */
import type { IncomingMessage } from 'node:http'
import { clientOf, type Networks } from '../../shared/base/addresses.ts'
import { clientAddress } from '../../shared/base/client-address.ts'

export type ClientOf = (req: Pick<IncomingMessage, 'socket' | 'rawHeaders'>) => string

export const createClientOf =
  (trusted: Networks): ClientOf =>
  ({ socket, rawHeaders }) =>
    clientOf(clientAddress(rawHeaders, { remoteAddress: socket.remoteAddress ?? '', trusted }))
