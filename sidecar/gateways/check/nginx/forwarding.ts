/** What is unsafe in a location of nginx that forwards requests. */
import { IDENTITY_FIELDS } from '../../../http/door-fields.ts'
import { written } from '../../plan.ts'
import type { Directive } from '../../read/nginx.ts'
import { isIdentity, setAfterDecision } from '../changed-fields.ts'
import { at, type Finding } from '../finding.ts'
import { type Context, effective, own, withConditions } from './context.ts'

export function checkForwarding(context: Context, pass: Directive): readonly Finding[] {
  return [
    ...checkPass(context, pass),
    ...checkIdentity(context, pass),
    ...fieldsOf(context, pass).flatMap((field) => checkHost(context, field)),
    ...checkChanges(context),
  ]
}

function checkPass(context: Context, pass: Directive): readonly Finding[] {
  const { name } = pass
  const here = at(pass)
  if (name !== 'proxy_pass' && name !== 'grpc_pass')
    return [
      here(
        'other_bytes',
        `${name} sends the decoded and cleaned path`,
        'put the service behind HTTP, and use proxy_pass',
      ),
    ]
  const url = pass.args[0] ?? ''
  const found = /^(?:(?:https?|grpcs?):\/\/)?(unix:[^:$]*(?::|$)|\$\w+|[^/$]*)(.*)$/.exec(url)
  const [, host = '', rest = ''] = found ?? []
  if (host.startsWith('$') && !isLiteral(context, host))
    return [here('other_bytes', `which service gets the request is in ${host}`, 'name the service')]
  if (rest === '' || rest === '$request_uri') return []
  return [
    here(
      'other_bytes',
      'proxy_pass with a path sends the decoded and cleaned path, not the one that was checked',
      `write proxy_pass without ${rest}`,
    ),
  ]
}

/** The variable is set to a fixed service where the location can see it, and to nothing else under a condition. */
const isLiteral = (context: Context, variable: string): boolean => {
  const sets = changesIn(context).filter(
    ({ name, args }) => (name === 'set' || name === 'auth_request_set') && args[0] === variable,
  )
  const captured = new RegExp(`\\(\\?P?[<']${variable.slice(1)}[>']`)
  const captures = (one: Directive): boolean =>
    one.args.some((arg) => captured.test(arg)) || (one.block ?? []).some(captures)
  return (
    sets.length > 0 &&
    sets.every(({ args }) => SERVICE.test(args[1] ?? '')) &&
    !context.around.some((level) => level.some(captures))
  )
}
/** Without a path, which would take the place of the one that was judged. */
const SERVICE = /^(?:(?:https?|grpcs?):\/\/)?(?:unix:[^:$]+:?|[^/$]+)$/

/** Directives of the modules that change requests run at every level, and in every `if` whose condition holds. */
const changesIn = ({ around }: Context): readonly Directive[] => around.flatMap(withConditions)

const setterOf = ({ name }: Directive): string => (name === 'grpc_pass' ? 'grpc_set_header' : 'proxy_set_header')
const fieldsOf = (context: Context, pass: Directive): readonly Directive[] => effective(context, setterOf(pass))

/** Where the service reads the host. The door judges the field Host, which is not `$host` when the target is absolute. */
const HOSTS = ['host', 'x-forwarded-host']
/** What no client chooses. */
const OF_SERVICE = /^\$(proxy_host|proxy_port|server_name|server_port|server_addr|hostname)$/

function checkHost(context: Context, field: Directive): readonly Finding[] {
  const [name = '', value = ''] = field.args
  if (!HOSTS.includes(name.toLowerCase()) || value === '$http_host') return []
  const variables: readonly string[] = value.match(/\$\w+/g) ?? []
  if (variables.every((variable) => OF_SERVICE.test(variable) || isLiteral(context, variable))) return []
  const message = variables.includes('$host')
    ? 'where the target names a host, $host is that one, and the door judges the field Host'
    : `a client chooses the ${written(name.toLowerCase())} that the service gets`
  return [at(field)('other_bytes', message, `${field.name} ${name} $http_host`)]
}

function checkIdentity(context: Context, pass: Directive): readonly Finding[] {
  const directive = setterOf(pass)
  if (pass.name !== 'proxy_pass' && pass.name !== 'grpc_pass') return []
  const fields = effective(context, directive)
  const sources = new Map(effective(context, 'auth_request_set').map(({ args }) => [args[0] ?? '', args[1] ?? '']))
  const obeyed = fields.flatMap((field) => {
    const [name = '', ...values] = field.args
    const changed = isIdentity(name) ? null : setAfterDecision(name, values.join(' '))
    return changed === null ? [] : [at(field)(...changed)]
  })
  const identity = IDENTITY_FIELDS.flatMap((name) => {
    const answer = `$upstream_http_${name.replaceAll('-', '_')}`
    const fix = `auth_request_set $v ${answer}; ${directive} ${written(name)} $v`
    // Each of them is sent, not the last one only. Many services read `X_Auth_Subject` as the same.
    const alike = fields.filter(({ args }) => args[0]?.toLowerCase().replaceAll('_', '-') === name)
    const said = alike.filter(({ args }) => args[0]?.toLowerCase() === name)
    const wrong = alike.filter(({ args: [, value = ''] }) => value !== '' && sources.get(value) !== answer)
    if (said.length === 0) return [at(pass)('forgeable', `a client's own ${written(name)} reaches the service`, fix)]
    return wrong.map((field) => at(field)('forgeable', `${written(name)} is not what the door answered`, fix))
  })
  return [...identity, ...obeyed]
}

/** An error that becomes a request of another path: the door is asked about the one that came. */
function checkErrorPages(context: Context): readonly Finding[] {
  return effective(context, 'error_page').flatMap((page) => {
    const target = page.args.at(-1) ?? ''
    if (/^(@|https?:|\$scheme)/.test(target) || !isForwarded(context, target)) return []
    return [
      at(page)(
        'other_bytes',
        `the service gets ${target} for a request of another path`,
        'name a location that does not forward, and is internal',
      ),
    ]
  })
}

/** The location of the target, as far as it is no expression. */
function isForwarded({ around }: Context, target: string): boolean {
  if (target.includes('$')) return true
  const path = target.replace(/\?.*/s, '')
  const places = around.flat().filter(({ name, args: [first = ''] }) => name === 'location' && !/^[~@]/.test(first))
  const exact = places.find(({ args }) => args[0] === '=' && args[1] === path)
  const [longest] = places
    .filter(({ args }) => args[0] !== '=' && path.startsWith(args.at(-1) ?? ''))
    .sort((a, b) => (b.args.at(-1)?.length ?? 0) - (a.args.at(-1)?.length ?? 0))
  const names = ((exact ?? longest)?.block ?? []).map(({ name }) => name)
  return names.some((name) => name.endsWith('_pass')) && !names.includes('internal')
}

function checkChanges(context: Context): readonly Finding[] {
  const rewrites = changesIn(context).filter(
    ({ name, args }) =>
      name === 'rewrite' && !/^(redirect|permanent)$/.test(args[2] ?? '') && !/^(https?:|\$scheme)/.test(args[1] ?? ''),
  )
  const tried = own(context, ['try_files'])
  const last = tried?.args.at(-1) ?? ''
  const changes = ['proxy_method', 'proxy_set_body', 'grpc_set_body'].flatMap((name) => effective(context, name))
  const upgrade = effective(context, 'proxy_set_header').find(
    ({ args }) => args[0]?.toLowerCase() === 'upgrade' && args[1] !== '',
  )
  const listed = effective(context, 'proxy_set_header').filter(
    ({ args }) => args[0]?.toLowerCase() === 'connection' && args[1]?.includes('$http_connection') === true,
  )
  return [
    ...rewrites.map((one) => at(one)('other_bytes', 'the path is rewritten after it came', 'remove rewrite')),
    ...(tried !== null && /^\//.test(last)
      ? [at(tried)('other_bytes', `the service gets ${last} for a request of another path`, 'remove try_files')]
      : []),
    ...checkErrorPages(context),
    ...changes.map((one) => at(one)('other_bytes', `${one.name} changes what was checked`, `remove ${one.name}`)),
    ...listed.map((one) =>
      at(one)(
        'other_bytes',
        'with Connection a client may have fields removed on the way to the service, such as X-Auth-Subject',
        'proxy_set_header Connection ""',
      ),
    ),
    ...(upgrade === undefined
      ? []
      : [
          at(upgrade)(
            'skips_question',
            'an upgraded connection lasts when its permission has ended, and nobody is asked again',
            'remove it; serve such routes by a sidecar in front of the service',
          ),
        ]),
  ]
}
