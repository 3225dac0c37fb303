/** Recognizes gRPC calls over HTTP/2 and builds their status. */

/** Excludes `application/grpc-web`, another protocol, whose clients read HTTP statuses. */
const MEDIA = /^application\/grpc(?:[+;]|$)/i

/** True if a message over HTTP/2 with these fields is gRPC. In `fields`, names and values alternate. */
export const isGrpc = (fields: readonly string[]): boolean =>
  fields.some((name, at) => at % 2 === 0 && name.toLowerCase() === 'content-type' && MEDIA.test(fields[at + 1] ?? ''))

/** The status fields of a call, sent as trailers, or in the header section of a response without a body. */
export const grpcEnd = (status: number, message: string): [string, string][] => [
  ['grpc-status', String(status)],
  ['grpc-message', encodeMessage(message)],
]

/** Percent-encodes UTF-8 as the gRPC protocol requires: all bytes except spaces and visible ASCII other than `%`. */
function encodeMessage(message: string): string {
  const bytes = Buffer.from(message)
  let text = ''
  for (const byte of bytes)
    text +=
      byte >= 0x20 && byte <= 0x7e && byte !== 0x25
        ? String.fromCharCode(byte)
        : `%${byte.toString(16).padStart(2, '0').toUpperCase()}`
  return text
}
