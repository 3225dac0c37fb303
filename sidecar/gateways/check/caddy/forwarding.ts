/** What is unsafe where a Caddyfile forwards a request, or changes its fields. */
import type { Segment } from '../../read/caddyfile.ts'
import { type ChangedField, removedAfterDecision, setAfterDecision } from '../changed-fields.ts'
import { at, type Finding } from '../finding.ts'
import { isEverybody } from '../networks.ts'
import { words } from './words.ts'

const HARMLESS =
  words(`buffer_requests buffer_responses copy_response_headers fail_duration flush_interval header_down lb_policy lb_retries
  lb_retry_match lb_try_duration lb_try_interval max_buffer_size max_fails replace_status request_buffers response_buffers stream_buffer_size
  stream_close_delay stream_timeout unhealthy_latency unhealthy_request_count unhealthy_status verbose_logs`)

/** Options of a reverse_proxy that is no question; of handle_response the caller judges the block. */
export function checkProxy(proxy: Segment): readonly Finding[] {
  return [
    ...chosenByClient(proxy, proxy.words.slice(1)),
    ...(proxy.block ?? []).flatMap((inner) => [...checkOption(inner), ...checkKnown(inner)]),
  ]
}

function checkOption(option: Segment): readonly Finding[] {
  const [name = '', first = ''] = option.words
  const here = at(option)
  if (name === 'rewrite' || name === 'method')
    return [here('other_bytes', `${name} changes the request after the decision`, `remove ${name}`)]
  if (name === 'transport' && first === 'fastcgi')
    return [here('other_bytes', 'FastCGI gets the decoded path', 'put the service behind HTTP')]
  if (name === 'transport' && first !== 'http')
    return [here('unseen', `the transport ${first} may change the request`, 'judge it by hand')]
  if (name === 'header_up') return checkField(option, option.words.slice(1))
  if (name === 'to') return chosenByClient(option, option.words.slice(1))
  if (name === 'dynamic' && !['a', 'srv', 'multi'].includes(first))
    return [here('unseen', `${first} may choose the service by the request`, 'judge it by hand')]
  if (name === 'trusted_proxies' && option.words.some(isEverybody))
    return [here('forgeable', 'Caddy believes X-Forwarded-* of everybody', 'name your proxies')]
  return []
}

/** Options that are common to a service and a question. */
export function checkKnown(option: Segment): readonly Finding[] {
  const [name = ''] = option.words
  const ofOwn = 'rewrite method transport header_up to dynamic trusted_proxies handle_response'.split(' ')
  if (ofOwn.includes(name) || HARMLESS.has(name) || name.startsWith('@') || name.startsWith('health_')) return []
  return [at(option)('unseen', `${name} is not known here: it may change what is forwarded`, 'judge it by hand')]
}

/** Has a placeholder that a client may fill. */
export const isOfClient = (word: string): boolean =>
  word.replaceAll(/\{(\$|env\.|file\.|system\.)[^}]*\}/g, '').includes('{')

function chosenByClient(place: Segment, addresses: readonly string[]): readonly Finding[] {
  const chosen = addresses.find(isOfClient)
  return chosen === undefined
    ? []
    : [at(place)('other_bytes', `${chosen} may let a client choose the service`, 'name the service')]
}

const HOSTS = /^\{((http\.request\.)?(host|hostport)|(http\.reverse_proxy\.upstream\.|upstream_)\w+)\}$/

/** Null for a Host of the operator's, of the request, or of the service. */
export const checkHost = (value: string): ChangedField | null =>
  HOSTS.test(value) || !isOfClient(value)
    ? null
    : ['other_bytes', 'a client chooses the Host that the service gets', 'remove it']

/** `args`: what follows request_header or header_up, of a request that was judged. */
export function checkField(place: Segment, args: readonly string[]): readonly Finding[] {
  // Of three, the second is what the third takes the place of.
  const [said = '', value, replacing] = args
  const here = at(place)
  const name = said.replace(/^[-+?>]+/, '')
  if (name.includes('{')) return [here('unseen', `the name ${name} is not in the file`, 'write the name')]
  const host = name.toLowerCase() === 'host' && value !== undefined ? checkHost(replacing ?? value) : null
  const changed =
    host ??
    (said.startsWith('-') ? removedAfterDecision(name) : setAfterDecision(name, replacing === undefined ? value : null))
  return changed === null ? [] : [here(...changed)]
}
