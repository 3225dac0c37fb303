/** Answers a message that cannot be decoded with the caller's error. The library answers INTERNAL, which alarms operators. */
import { type ServerInterceptingCall, type ServerInterceptor, status } from '@grpc/grpc-js'

/** The text of the library's error. */
const UNREADABLE = 'Error deserializing request'

export const refuseUnreadable: ServerInterceptor = (_method, call) => {
  const sendStatus = call.sendStatus.bind(call)
  call.sendStatus = (given) => {
    const isUnreadable = given.code === status.INTERNAL && given.details?.startsWith(UNREADABLE) === true
    sendStatus(
      isUnreadable ? { code: status.INVALID_ARGUMENT, details: 'the message is not what this method takes' } : given,
    )
  }
  // A wrapper around the call would read messages that nobody asked for. Only the type needs the wrapper; the library accepts the
  // call itself.
  return call as ServerInterceptingCall
}
