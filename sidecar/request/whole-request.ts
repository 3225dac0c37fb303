/** A request for an answer that is edited. */
import { type InboundRequest, withFields } from './inbound.ts'

/** They ask for a part of an answer, for other bytes than its text, or for none because it has not changed. */
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
