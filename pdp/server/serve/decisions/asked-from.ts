/** Describes the request behind a question for the decision log. */
import type { FastifyRequest } from 'fastify'
import { type Networks, NO_NETWORKS } from '../../../shared/base/addresses.ts'
import { clientAddress } from '../../../shared/base/client-address.ts'
import type { Question } from './answer.ts'

export type AskedFrom = Required<Pick<Question, 'requestId' | 'clientAddress'>>
/** `trustedProxies`: proxies whose report of the client's address is believed; absent: none. */
export type AskedFromDeps = { readonly trustedProxies?: Networks }

export function askedFrom({ id, raw }: FastifyRequest, { trustedProxies = NO_NETWORKS }: AskedFromDeps): AskedFrom {
  const remoteAddress = raw.socket.remoteAddress ?? ''
  return { requestId: id, clientAddress: clientAddress(raw.rawHeaders, { remoteAddress, trusted: trustedProxies }) }
}
