/** What is unsafe in a reverse_proxy of Caddy's JSON, and in changes of fields. */
import { type Entry, entriesOf, folded, get, itemsOf, type Tree, textOf, textsOf } from '../../read/tree.ts'
import { removedAfterDecision, setAfterDecision } from '../changed-fields.ts'
import { at, type Finding } from '../finding.ts'
import { isEverybody } from '../networks.ts'
import { checkHost, isOfClient } from './forwarding.ts'
import { words } from './words.ts'

const KNOWN =
  words(`handler upstreams dynamicupstreams transport headers handleresponse rewrite trustedproxies loadbalancing healthchecks circuitbreaker
  flushinterval requestbuffers responsebuffers streamtimeout streamclosedelay streambuffersize verboselogs bufferrequests bufferresponses maxbuffersize`)

export function checkProxy(handler: Tree): readonly Finding[] {
  const transport = get(handler, 'transport', 'protocol')
  const protocol = textOf(transport) ?? 'http'
  const source = get(handler, 'dynamic_upstreams', 'source')
  const dials = itemsOf(get(handler, 'upstreams')).map((one) => get(one, 'dial'))
  return [
    ...unknownKeys(handler),
    ...checkChanges(get(handler, 'headers', 'request')),
    ...(transport === null || protocol === 'http'
      ? []
      : [
          protocol === 'fastcgi'
            ? at(transport)('other_bytes', 'FastCGI gets the decoded path', 'put the service behind HTTP')
            : at(transport)('unseen', `the transport ${protocol} may change the request`, 'judge it by hand'),
        ]),
    ...dials
      .filter((dial) => dial !== null && isOfClient(textOf(dial) ?? ''))
      .map((dial) =>
        at(dial ?? handler)('other_bytes', `${textOf(dial)} may let a client choose the service`, 'name the service'),
      ),
    ...(source === null || ['a', 'srv', 'multi'].includes(textOf(source) ?? '')
      ? []
      : [at(source)('unseen', `${textOf(source)} may choose the service by the request`, 'judge it by hand')]),
    ...believed(handler),
  ]
}

export const unknownKeys = (handler: Tree): readonly Finding[] =>
  entriesOf(handler)
    .filter(({ key }) => !KNOWN.has(folded(key)))
    .map((entry) =>
      at(entry)('unseen', `${entry.key} is not known here: it may change what is forwarded`, 'judge it by hand'),
    )

export const believed = (handler: Tree): readonly Finding[] =>
  itemsOf(get(handler, 'trusted_proxies'))
    .filter((item) => isEverybody(textOf(item) ?? ''))
    .map((item) => at(item)('forgeable', 'Caddy believes X-Forwarded-* of everybody', 'name your proxies'))

/** `change`: add, set, replace and delete, of a request that was judged. */
export function checkChanges(change: Tree | null): readonly Finding[] {
  const removed = itemsOf(get(change, 'delete'))
  return [
    ...writtenBy(change).flatMap(checkWritten),
    ...removed.flatMap((item) => {
      const changed = removedAfterDecision(textOf(item) ?? '')
      return changed === null ? [] : [at(item)(...changed)]
    }),
  ]
}

export const writtenBy = (change: Tree | null): readonly Entry[] =>
  ['add', 'set', 'replace'].flatMap((verb) => entriesOf(get(change, verb)))

export function checkWritten(entry: Entry): readonly Finding[] {
  const { key, value } = entry
  const here = at(entry)
  if (key.includes('{')) return [here('unseen', `the name ${key} is not in the file`, 'write the name')]
  // What a replacement makes of a field depends on what the client sent.
  const replaced = itemsOf(value).filter((item) => item.kind === 'map')
  const text = [...textsOf(value), ...replaced.map((item) => textOf(get(item, 'replace')) ?? '')].join('')
  const host = folded(key) === 'host' ? checkHost(text) : null
  const changed = host ?? setAfterDecision(key, replaced.length > 0 ? null : text)
  return changed === null ? [] : [here(...changed)]
}
