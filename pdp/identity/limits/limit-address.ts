/** The client address to which limits apply before a person has signed in: an IPv4 address or an IPv6 /64. Trusted proxies are skipped. */
import type { IncomingMessage } from 'node:http'
import { clientOf, type Networks } from '../../shared/base/addresses.ts'
import { clientAddress } from '../../shared/base/client-address.ts'

export type ClientOf = (req: Pick<IncomingMessage, 'socket' | 'rawHeaders'>) => string

export const createClientOf =
  (trusted: Networks): ClientOf =>
  ({ socket, rawHeaders }) =>
    clientOf(clientAddress(rawHeaders, { remoteAddress: socket.remoteAddress ?? '', trusted }))
