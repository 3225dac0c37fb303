/** What is unsafe in a forward_auth of a Caddyfile. */
import { AUTHORIZE_PATH, CALLER_FIELD, DOOR_FIELDS, IDENTITY_FIELDS } from '../../../http/door-fields.ts'
import { written } from '../../plan.ts'
import type { Segment } from '../../read/caddyfile.ts'
import { isIdentity } from '../changed-fields.ts'
import { at, type Finding } from '../finding.ts'
import { isEverybody } from '../networks.ts'
import { checkKnown } from './forwarding.ts'
import { argumentsOf, isReplaced, matcherOf } from './words.ts'

const FIELDS = DOOR_FIELDS.caddy
const OF_REQUEST: readonly string[] = [FIELDS.method, FIELDS.target, FIELDS.host, FIELDS.scheme, FIELDS.client]

export function checkAsking(auth: Segment): readonly Finding[] {
  const here = at(auth)
  const block = auth.block ?? []
  const named = (name: string): readonly Segment[] => block.filter(({ words }) => words[0] === name)
  const matcher = matcherOf(auth)
  const uris = named('uri')
  const others = uris.filter(({ words }) => words.length !== 2 || words[1] !== AUTHORIZE_PATH)
  const upstream = [...argumentsOf(auth), ...named('to').flatMap(argumentsOf)]
  const replaced = [auth, ...block].filter(({ words }) => words.some(isReplaced))
  return [
    ...(matcher === null
      ? []
      : [
          here(
            'skips_question',
            `only the requests that ${matcher} matches, as Caddy reads them, are asked about`,
            'remove the matcher, and say public in the route file',
          ),
        ]),
    ...(uris.length > 0 ? others : [auth]).map((one) =>
      at(one)('forgeable', `the door answers at ${AUTHORIZE_PATH} only`, `set uri ${AUTHORIZE_PATH}`),
    ),
    ...replaced.map((one) =>
      at(one)('unseen', 'a part of the question is not in the file', 'write it, or use {env.NAME}, which is one word'),
    ),
    ...checkCaller(auth, { upstream, block }),
    ...checkCopied(auth, block),
    ...block.flatMap((option) => [
      ...checkOption(option),
      ...(OF_ASKING.includes(option.words[0] ?? '') ? [] : checkKnown(option)),
    ]),
  ]
}

const OF_ASKING = ['uri', 'copy_headers', 'handle_response', 'replace_status']

function checkCaller(
  auth: Segment,
  { upstream, block }: { readonly upstream: readonly string[]; readonly block: readonly Segment[] },
): readonly Finding[] {
  const inner = block.flatMap((segment) => [segment, ...(segment.block ?? [])])
  const has = (name: string): boolean => inner.some(({ words }) => words[0] === name)
  const secret = block.some(isCaller)
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

const isCaller = ({ words: [name, field, value] }: Segment): boolean =>
  name === 'header_up' && field?.toLowerCase() === CALLER_FIELD && value !== undefined

/** Only fields that are copied from the answer are removed from the client's request. A renamed one is not. */
function checkCopied(auth: Segment, block: readonly Segment[]): readonly Finding[] {
  const copies = block.filter(({ words }) => words[0] === 'copy_headers')
  const names = copies.flatMap(({ words, block: inner }) => [
    ...words.slice(1),
    ...(inner ?? []).flatMap((one) => one.words),
  ])
  const copied = names.map((name) => name.toLowerCase())
  const missing = IDENTITY_FIELDS.filter((name) => !copied.includes(name))
  const renamed = names.filter((name) => /^.+>(.+)$/.test(name) && isIdentity(name.replace(/^.*>/, '')))
  const here = at(copies[0] ?? auth)
  return [
    ...(missing.length === 0
      ? []
      : [
          here(
            'forgeable',
            `a client's own ${missing.map(written).join(', ')} would reach the service`,
            'name every identity field in copy_headers, without renaming it',
          ),
        ]),
    ...renamed.map((name) => here('forgeable', `${name} writes over what the door said`, 'rename no field')),
  ]
}

function checkOption(option: Segment): readonly Finding[] {
  const [name = '', field = ''] = option.words
  const here = at(option)
  if (name === 'handle_response' || name === 'replace_status')
    return [here('fails_open', 'an answer of the door is turned into another', `remove ${name}`)]
  if (name === 'rewrite' || name === 'method')
    return [here('other_bytes', 'the question is not the one that Caddy would ask', `remove ${name}`)]
  if (name === 'header_up' && !isCaller(option))
    return OF_REQUEST.includes(field.replace(/^[-+?>]+/, '').toLowerCase())
      ? [here('forgeable', `${field} is not what the client sent`, 'leave it to Caddy')]
      : [here('other_bytes', `the door gets another ${field} than the service`, 'change it before forward_auth')]
  if (name === 'transport' && field !== 'http')
    return [here('unseen', `the transport ${field} may change the question`, 'use http')]
  if (name === 'trusted_proxies' && option.words.some(isEverybody))
    return [here('forgeable', 'Caddy believes X-Forwarded-* of everybody', 'name your proxies')]
  return []
}
