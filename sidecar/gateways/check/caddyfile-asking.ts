/** What is unsafe in a forward_auth of a Caddyfile. */
import { AUTHORIZE_PATH, CALLER_FIELD, DOOR_FIELDS, IDENTITY_FIELDS } from '../../http/door-fields.ts'
import { written } from '../plan.ts'
import type { Segment } from '../read/caddyfile.ts'
import { at, type Finding } from './finding.ts'

const FIELDS = DOOR_FIELDS.caddy
const OF_REQUEST: readonly string[] = [FIELDS.method, FIELDS.target, FIELDS.host, FIELDS.scheme, FIELDS.client]

/** The words name no network that holds every address. */
export const isWhole = (words: readonly string[]): boolean => !words.some((word) => /^(0\.0\.0\.0|::)\/0$/.test(word))

export function checkAsking(auth: Segment): readonly Finding[] {
  const here = at(auth)
  const block = auth.block ?? []
  const named = (name: string): readonly Segment[] => block.filter(({ words }) => words[0] === name)
  const matcher = /^[/@]/.test(auth.words[1] ?? '') ? auth.words[1] : null
  const upstream = auth.words.slice(matcher === null && auth.words[1] !== '*' ? 1 : 2)
  const uri = named('uri')[0]
  const isFixed = uri?.words[1] === AUTHORIZE_PATH
  return [
    ...(matcher === null
      ? []
      : [
          here(
            'skips_question',
            `only the requests that ${matcher} matches are asked about, read by Caddy’s eyes`,
            'remove the matcher, and say public in the route file',
          ),
        ]),
    ...(isFixed
      ? []
      : [at(uri ?? auth)('forgeable', `the door answers at ${AUTHORIZE_PATH} only`, `set uri ${AUTHORIZE_PATH}`)]),
    ...checkCaller(auth, { upstream, block }),
    ...checkCopied(auth, block),
    ...block.flatMap(checkOption),
  ]
}

function checkCaller(
  auth: Segment,
  { upstream, block }: { readonly upstream: readonly string[]; readonly block: readonly Segment[] },
): readonly Finding[] {
  const inner = block.flatMap((segment) => [segment, ...(segment.block ?? [])])
  const has = (name: string): boolean => inner.some(({ words }) => words[0] === name)
  const secret = block.some(({ words }) => words[0] === 'header_up' && words[1]?.toLowerCase() === CALLER_FIELD)
  const unverified = inner.find(({ words }) => words[0] === 'tls_insecure_skip_verify')
  const isSocket = upstream.length > 0 && upstream.every((address) => address.startsWith('unix/'))
  return [
    ...(isSocket || secret || has('tls_client_auth')
      ? []
      : [
          at(auth)(
            'forgeable',
            'Caddy does not say who it is to the door, which then answers nobody, or everybody',
            'use a unix socket, tls_client_auth, or header_up X-Portcullis-Caller',
          ),
        ]),
    ...(unverified === undefined
      ? []
      : [at(unverified)('forgeable', 'the certificate of the door is not verified', 'set tls_trust_pool')]),
  ]
}

/** Only fields that are copied from the answer are removed from the client's request. A renamed one is not. */
function checkCopied(auth: Segment, block: readonly Segment[]): readonly Finding[] {
  const copies = block.filter(({ words }) => words[0] === 'copy_headers')
  const names = copies.flatMap(({ words, block: inner }) => [
    ...words.slice(1),
    ...(inner ?? []).flatMap((one) => one.words),
  ])
  const copied = names.map((name) => name.toLowerCase())
  const missing = IDENTITY_FIELDS.filter((name) => !copied.includes(name))
  return missing.length === 0
    ? []
    : [
        at(copies[0] ?? auth)(
          'forgeable',
          `a client's own ${missing.map(written).join(', ')} would reach the service`,
          'name every identity field in copy_headers, without renaming it',
        ),
      ]
}

function checkOption(option: Segment): readonly Finding[] {
  const [name = '', field = ''] = option.words
  const here = at(option)
  if (name === 'handle_response' || name === 'replace_status')
    return [here('fails_open', 'an answer of the door is turned into another', `remove ${name}`)]
  if (name === 'rewrite' || name === 'method')
    return [here('other_bytes', 'the question is not the one that Caddy would ask', `remove ${name}`)]
  if (name === 'header_up' && OF_REQUEST.includes(field.replace(/^[+-]/, '').toLowerCase()))
    return [here('forgeable', `${field} is not what the client sent`, 'leave it to Caddy')]
  if (name === 'trusted_proxies' && !isWhole(option.words))
    return [here('forgeable', 'Caddy believes X-Forwarded-* of everybody', 'name your proxies')]
  return []
}
