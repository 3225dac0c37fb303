/** What is unsafe in a Caddyfile that asks by forward_auth. */
import { IDENTITY_FIELDS } from '../../http/door-fields.ts'
import { written } from '../plan.ts'
import type { Segment } from '../read/caddyfile.ts'
import { checkAsking, isWhole } from './caddyfile-asking.ts'
import { at, type Finding, type FindingCode } from './finding.ts'

/** Directives that answer, or that leave a request as it is. Others may be plugins. */
const HARMLESS = new Set(
  'abort acme_server basic_auth basicauth bind copy_response_headers encode error fs header intercept log log_append log_name log_skip map metrics push redir request_body respond root skip_log templates tls tracing vars'.split(
    ' ',
  ),
)
const REWRITES = ['rewrite', 'uri', 'try_files', 'method']
const CONTAINERS = ['route', 'handle', 'handle_path']
type Scope = {
  /** Whether a question came before, in this block or around it. */
  readonly asked: boolean
  /** What it means when something is forwarded without one. */
  readonly code: FindingCode
}

export function checkCaddyfile(segments: readonly Segment[]): readonly Finding[] {
  const global = segments.filter(({ words, block }) => words.length === 0 && block !== null)
  const sites = segments.filter(({ words, block }) => words.length > 0 && block !== null)
  const [first] = segments
  return [
    ...global.flatMap(({ block }) => checkOptions(block ?? [])),
    ...sites.filter(({ words }) => !words[0]?.startsWith('&(')).flatMap(checkSite),
    ...(sites.length === 0 && first !== undefined
      ? [at(first)('unseen', 'there is no site here', 'check the file that has it')]
      : []),
  ]
}

const all = (segment: Segment): readonly Segment[] => [segment, ...(segment.block ?? []).flatMap(all)]

function checkSite(site: Segment): readonly Finding[] {
  const block = site.block ?? []
  const everything = block.flatMap(all)
  const auths = everything.filter(({ words }) => words[0] === 'forward_auth')
  const clears = everything.some(({ words }) => words[0] === 'request_header' && words.includes('-*_*'))
  return [
    ...checkBlock(block, { asked: false, code: 'skips_question' }),
    ...auths.flatMap(checkAsking),
    ...auths
      .filter((auth) => auth === auths[0] && !clears)
      .map((auth) =>
        at(auth)(
          'forgeable',
          'fields with underscores pass, which many services read as X-Auth-Subject and its like',
          'put request_header -*_* before it',
        ),
      ),
  ]
}

/** Caddy runs the directives of a block in an order of its own: rewriting, then forward_auth, then what answers. */
function checkBlock(block: readonly Segment[], scope: Scope): readonly Finding[] {
  const asks = block.some(({ words }) => words[0] === 'forward_auth')
  const before = { ...scope }
  return block.flatMap((segment) => {
    const isRewrite = REWRITES.includes(segment.words[0] ?? '')
    return checkDirective(segment, isRewrite ? before : { ...scope, asked: scope.asked || asks })
  })
}

/** In a route they run as they are written. */
function checkRoute(block: readonly Segment[], scope: Scope): readonly Finding[] {
  let asked = scope.asked
  return block.flatMap((segment) => {
    const findings = checkDirective(segment, { ...scope, asked })
    asked ||= segment.words[0] === 'forward_auth'
    return findings
  })
}

function checkDirective(segment: Segment, scope: Scope): readonly Finding[] {
  const [name = ''] = segment.words
  const block = segment.block ?? []
  const here = at(segment)
  if (name === 'forward_auth' || HARMLESS.has(name) || name.startsWith('@')) return []
  if (name === 'handle_errors') return checkBlock(block, { asked: false, code: 'fails_open' })
  if (CONTAINERS.includes(name)) {
    const strips =
      name === 'handle_path' && scope.asked
        ? [here('other_bytes', 'handle_path takes the prefix away after the decision', 'use handle, or ask inside it')]
        : []
    return [...strips, ...(name === 'route' ? checkRoute(block, scope) : checkBlock(block, scope))]
  }
  if (REWRITES.includes(name))
    return scope.asked
      ? [
          here(
            'other_bytes',
            `${name} changes the request after the decision`,
            'put it before forward_auth, or remove it',
          ),
        ]
      : []
  if (name === 'request_header') return checkField(segment, scope)
  if (name === 'reverse_proxy') return [...forwarded(segment, scope), ...checkProxy(segment, scope)]
  if (name === 'php_fastcgi')
    return [
      ...forwarded(segment, scope),
      here('other_bytes', 'php_fastcgi chooses a file by the path', 'put the service behind HTTP'),
    ]
  if (name === 'file_server') return forwarded(segment, scope)
  return [here('unseen', `${name} may answer, or change the request, in a way of its own`, 'judge it by hand')]
}

const forwarded = (segment: Segment, { asked, code }: Scope): readonly Finding[] =>
  asked
    ? []
    : [
        at(segment)(
          code,
          code === 'fails_open'
            ? `${segment.words[0]} answers when the door refuses, or does not answer`
            : `nobody is asked about the requests of this ${segment.words[0]}`,
          'ask by forward_auth before it, and say public in the route file',
        ),
      ]

function checkField(segment: Segment, { asked }: Scope): readonly Finding[] {
  const name = segment.words.slice(1).find((word) => !/^[@/*]/.test(word)) ?? ''
  const bare = name.replace(/^[+?>]/, '').toLowerCase()
  return asked && IDENTITY_FIELDS.includes(bare)
    ? [at(segment)('forgeable', `${written(bare)} is set after the decision`, 'leave identity fields to the door')]
    : []
}

function checkProxy(segment: Segment, scope: Scope): readonly Finding[] {
  return (segment.block ?? []).flatMap((inner) => {
    const [name = '', field = ''] = inner.words
    const here = at(inner)
    if (name === 'rewrite' || name === 'method')
      return [here('other_bytes', `${name} changes the request after the decision`, `remove ${name}`)]
    if (name === 'transport' && field === 'fastcgi')
      return [here('other_bytes', 'FastCGI gets the decoded path', 'put the service behind HTTP')]
    if (name === 'header_up' && IDENTITY_FIELDS.includes(field.replace(/^\+/, '').toLowerCase()))
      return [here('forgeable', `${field} is set after the decision`, 'leave identity fields to the door')]
    if (name === 'handle_response') return checkRoute(inner.block ?? [], scope)
    return []
  })
}

function checkOptions(options: readonly Segment[]): readonly Finding[] {
  return options.flatMap(all).flatMap((option) => {
    const { words } = option
    if (words[0] === 'order' && words.includes('forward_auth'))
      return [at(option)('skips_question', 'the order of forward_auth is changed', 'remove the option, or use route')]
    if (words[0] === 'trusted_proxies' && !isWhole(words))
      return [at(option)('forgeable', 'Caddy believes X-Forwarded-* of everybody', 'name your proxies')]
    return []
  })
}
