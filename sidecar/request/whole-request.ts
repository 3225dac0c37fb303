/** Changes a request so that the service sends a whole, uncompressed answer, which the sidecar can edit. */
import { type InboundRequest, withFields } from './inbound.ts'

/** Fields that ask for a part of an answer, for a compressed or otherwise changed one, or for none if it has not changed. */
const OF_OTHER_BYTES = [
  'accept-encoding',
  'range',
  'if-range',
  'if-none-match',
  'if-modified-since',
  'a-im',
  'te',
  'want-digest',
]

/** The request for an answer that can be read whole. `shadow`: it may still be any part of it. */
export function wholeRequest(request: InboundRequest, shadow: boolean): InboundRequest {
  const unwanted = shadow ? OF_OTHER_BYTES.slice(0, 1) : OF_OTHER_BYTES
  return withFields(request, (name) => !unwanted.includes(name) && !name.startsWith('want-'))
}
