/** How a gRPC call is told, and the status that it ends with; gRPC is a way to use HTTP/2, and only that is meant here. */

/** `application/grpc-web` is another protocol, whose clients read HTTP statuses. */
const MEDIA = /^application\/grpc(?:[+;]|$)/i

/** `fields`: names and values in turn, of a request or an answer over HTTP/2. */
export const isGrpc = (fields: readonly string[]): boolean =>
  fields.some((name, at) => at % 2 === 0 && name.toLowerCase() === 'content-type' && MEDIA.test(fields[at + 1] ?? ''))

/** What ends a call: as trailers, or with the header section when there is nothing else. */
export const grpcEnd = (status: number, message: string): [string, string][] => [
  ['grpc-status', String(status)],
  ['grpc-message', encodeMessage(message)],
]

/** Of the protocol's text: percent-encoded UTF-8, except visible ASCII other than the percent sign, and spaces. */
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
