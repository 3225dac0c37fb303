/**
 * PHP puts cookies over the query in `$_REQUEST` unless its `request_order` says otherwise, which it does not without a
 * php.ini. So a cookie must not have the name of a value that a check reads in the query.
 */

import { malformed } from '../request/errors.ts'
import type { InboundRequest } from '../request/inbound.ts'
import { decodeQuery, isReadAs } from './query.ts'
import { describeSource, type Source } from './template.ts'

/** Throws RequestError. */
export function refuseCookieTwin({ raw, names }: InboundRequest, source: Extract<Source, { from: 'query' }>): void {
  for (const [at, name] of names.entries()) {
    if (name !== 'cookie') continue
    for (const pair of (raw[2 * at + 1] ?? '').split(/[;,]/))
      if (isReadAs(nameOf(pair), source.parts))
        throw malformed(`A cookie has a name that some servers read as ${describeSource(source)}`)
  }
}

/** Decoded, as some servers do; isReadAs decodes it again. */
function nameOf(pair: string): string {
  const equals = pair.indexOf('=')
  const name = (equals < 0 ? pair : pair.slice(0, equals)).trim()
  return /%(?![0-9A-Fa-f]{2})/.test(name) ? name : decodeQuery(name)
}
