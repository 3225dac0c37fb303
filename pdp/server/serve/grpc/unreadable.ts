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
  // The library accepts the call itself, and only the type wants a wrapper: a wrapper would read messages ahead of their use.
  return call as ServerInterceptingCall
}
