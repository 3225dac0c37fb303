/** Turns errors with which the gRPC library would answer into denials, since a gateway may be configured to let errors pass. */
import { randomUUID } from 'node:crypto'
import { ServerInterceptingCall, type ServerInterceptor, status } from '@grpc/grpc-js'
import type { CheckResponse } from '../../proto/gen/envoy/service/auth/v3/external_auth_pb.ts'
import { describeDenial } from '../enforce/denial-response.ts'
import type { GrpcProfile } from '../http/door-fields.ts'
import { denying } from './check-response.ts'
import { failure } from './held-request.ts'

/**
 * Turns the library's errors into denials: a message that is too large, badly compressed, missing or sent twice, and a malformed deadline.
 * The library reports them through `sendStatus` of the call that an interceptor gets.
 */
export function denyErrors(profile: GrpcProfile, log: { error(line: object): void }): ServerInterceptor {
  return (_method, call) => {
    const sendStatus = call.sendStatus.bind(call)
    const sendMessage = call.sendMessage.bind(call)
    let answered = false
    let refused = false
    call.sendMessage = (message, callback) => {
      if (refused) return
      answered = true
      sendMessage(message, callback)
    }
    call.sendStatus = (given) => {
      // The library calls this again for each frame that still comes.
      if (refused) return
      if (given.code === status.OK || answered) return sendStatus(given)
      refused = true
      log.error({ event: 'door_unfit', door: profile, reason: given.details ?? 'the question is malformed' })
      sendMessage(refusalOf(given.code), () => sendStatus({ code: status.OK, details: '' }))
    }
    return new ServerInterceptingCall(call)
  }
}

function refusalOf(code: status | undefined): CheckResponse {
  const requestId = randomUUID()
  if (code !== status.RESOURCE_EXHAUSTED) return denying(failure('internal', requestId))
  return denying(describeDenial('request_too_large', {}, { requestId, metadataUrl: null }))
}
