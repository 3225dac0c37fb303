/** What is unsafe in a Caddyfile that asks by forward_auth. */
import type { Segment } from '../../read/caddyfile.ts'
import { at, type Finding, type FindingCode } from '../finding.ts'
import { checkAsking } from './asking.ts'
import { checkField, checkProxy } from './forwarding.ts'
import { checkOptions } from './options.ts'
import { ORDER } from './order.ts'
import { argumentsOf, matcherOf, words } from './words.ts'

/** Directives that answer, or that leave a request as it is. Others may be plugins. */
const HARMLESS =
  words(`abort acme_server basic_auth basicauth bind copy_response copy_response_headers encode error fs header log log_append
  log_name log_skip map metrics push redir respond root skip_log templates tls tracing vars`)
const REWRITES = words('rewrite uri try_files method')

/** What holds for a directive, from what runs before it. */
type Scope = {
  /** Somebody was asked. */
  readonly asked: boolean
  /** Fields with underscores were removed. */
  readonly cleared: boolean
  /** The path is one that the file names, and no client. */
  readonly fixed: boolean
  /** What it means when something is forwarded without a question. */
  readonly code: FindingCode
}
type Ran = { readonly findings: readonly Finding[]; readonly scope: Scope }

const START: Scope = { asked: false, cleared: false, fixed: false, code: 'skips_question' }
const REFUSED: Scope = { ...START, code: 'fails_open' }

export function checkCaddyfile(segments: readonly Segment[]): readonly Finding[] {
  const global = segments.filter(({ words: said, block }) => said.length === 0 && block !== null)
  const sites = segments.filter(({ words: said, block }) => said.length > 0 && block !== null)
  const [first] = segments
  return [
    ...global.flatMap(({ block }) => checkOptions(block ?? [])),
    ...segments
      .filter(({ block }) => block === null)
      .map((one) => at(one)('unseen', 'this is neither a site nor inside one', 'put it into a site')),
    ...sites
      .filter(({ words: said }) => !said[0]?.startsWith('&('))
      .flatMap(({ block }) => runBlock(block ?? [], START).findings),
    ...(sites.length === 0 && first !== undefined
      ? [at(first)('unseen', 'there is no site here', 'check the file that has it')]
      : []),
  ]
}

const placeOf = ({ words: [name = ''] }: Segment): number => ORDER.indexOf(name)

/** Caddy runs the directives of a block in an order of its own; of one name, those with a matcher run first. */
const runBlock = (block: readonly Segment[], scope: Scope): Ran =>
  run(
    block.toSorted((a, b) => placeOf(a) - placeOf(b) || Number(matcherOf(a) === null) - Number(matcherOf(b) === null)),
    scope,
  )

/** In a route they run as they are written. */
function run(block: readonly Segment[], scope: Scope): Ran {
  const findings: Finding[] = []
  let now = scope
  for (const segment of block) {
    const ran = runDirective(segment, now)
    findings.push(...ran.findings)
    now = ran.scope
  }
  return { findings, scope: now }
}

function runDirective(segment: Segment, scope: Scope): Ran {
  const [name = ''] = segment.words
  const stays = (...findings: readonly Finding[]): Ran => ({ findings, scope })
  if (name.startsWith('@') || HARMLESS.has(name)) return stays()
  if (name === 'forward_auth') return { findings: checkAsking(segment), scope: { ...scope, asked: true } }
  if (REWRITES.has(name)) return runRewrite(segment, scope)
  if (name === 'request_header') return runField(segment, scope)
  if (name === 'request_body')
    return stays(
      ...(segment.block ?? [])
        .filter(({ words: [option] }) => option === 'set')
        .map((one) => at(one)('other_bytes', 'the body is replaced', 'remove set')),
    )
  if (name === 'handle_errors') return stays(...runBlock(segment.block ?? [], REFUSED).findings)
  if (name === 'intercept') return stays(...responses(segment, REFUSED))
  if (CONTAINERS.has(name)) return runContainer(segment, scope)
  if (FORWARDS.has(name)) return stays(...checkForwarding(segment, scope))
  return stays(
    at(segment)('unseen', `${name} may answer, or change the request, in a way of its own`, 'judge it by hand'),
  )
}

const CONTAINERS = words('route handle handle_path')
const FORWARDS = words('reverse_proxy php_fastcgi file_server')

/** What follows a route that every request enters has what the route did. */
function runContainer(segment: Segment, scope: Scope): Ran {
  const [name = ''] = segment.words
  const inner = name === 'route' ? run(segment.block ?? [], scope) : runBlock(segment.block ?? [], scope)
  const strips =
    name === 'handle_path' && scope.asked
      ? [
          at(segment)(
            'other_bytes',
            'handle_path takes the prefix away after the decision',
            'use handle, or ask inside it',
          ),
        ]
      : []
  const everything = name === 'route' && argumentsOf(segment).length === 0 && matcherOf(segment) === null
  return { findings: [...strips, ...inner.findings], scope: everything ? inner.scope : scope }
}

function runRewrite(segment: Segment, scope: Scope): Ran {
  const [name = ''] = segment.words
  const target = argumentsOf(segment)
    .join(' ')
    .replaceAll(/\{(http\.error|err)\.status_code\}/g, '')
  if (scope.asked)
    return {
      findings: [
        at(segment)(
          'other_bytes',
          `${name} changes the request after the decision`,
          'put it before forward_auth, or remove it',
        ),
      ],
      scope,
    }
  const fixed = name === 'rewrite' && matcherOf(segment) === null && !target.includes('{')
  return { findings: [], scope: { ...scope, fixed: scope.fixed || fixed } }
}

function runField(segment: Segment, scope: Scope): Ran {
  const fields = segment.block === null ? [argumentsOf(segment)] : segment.block.map(({ words: said }) => said)
  const clears = matcherOf(segment) === null && fields.some(([field]) => field === '-*_*')
  return {
    findings: scope.asked ? fields.flatMap((args) => checkField(segment, args)) : [],
    scope: { ...scope, cleared: scope.cleared || clears },
  }
}

/** What is done with answers of another status: it may forward a request that was refused. */
const responses = ({ block }: Segment, scope: Scope): readonly Finding[] =>
  (block ?? [])
    .filter(({ words: [option] }) => option === 'handle_response')
    .flatMap((option) => runBlock(option.block ?? [], scope).findings)

function checkForwarding(segment: Segment, scope: Scope): readonly Finding[] {
  const [name = ''] = segment.words
  const { asked, cleared, code, fixed } = scope
  const here = at(segment)
  const isErrorPage = name === 'file_server' && code === 'fails_open' && fixed
  return [
    ...(asked || isErrorPage
      ? []
      : [
          here(
            code,
            code === 'fails_open'
              ? `${name} answers when the door refuses, or does not answer`
              : `nobody is asked about the requests of this ${name}`,
            'ask by forward_auth before it, and say public in the route file',
          ),
        ]),
    ...(asked && !cleared && name !== 'file_server'
      ? [
          here(
            'forgeable',
            'fields with underscores pass, which many services read as X-Auth-Subject and its like',
            'put request_header -*_* before it, without a matcher',
          ),
        ]
      : []),
    ...(name === 'php_fastcgi'
      ? [here('other_bytes', 'php_fastcgi chooses a file by the path', 'put the service behind HTTP')]
      : []),
    ...(name === 'reverse_proxy' ? [...checkProxy(segment), ...responses(segment, { ...scope, cleared: true })] : []),
  ]
}
