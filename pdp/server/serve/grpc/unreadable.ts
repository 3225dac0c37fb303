/** A message that is not what its method takes is the caller's mistake; the library says INTERNAL, which operators are woken for. */
import { type ServerInterceptingCall, type ServerInterceptor, status } from '@grpc/grpc-js'

/** The library's words for it. */
const UNREADABLE = 'Error deserializing request'

export const refuseUnreadable: ServerInterceptor = (_method, call) => {
  const sendStatus = call.sendStatus.bind(call)
  call.sendStatus = (given) => {
    const isUnreadable = given.code === status.INTERNAL && given.details?.startsWith(UNREADABLE) === true
    sendStatus(
      isUnreadable ? { code: status.INVALID_ARGUMENT, details: 'the message is not what this method takes' } : given,
    )
  }
  // One more call around it would take messages that nobody asked for. The types want it; the library uses what it is given.
  return call as ServerInterceptingCall
}
