/** What is unsafe in Caddy's JSON, where forward_auth is a reverse_proxy with handle_response. */
import { entriesOf, folded, get, isOn, itemsOf, type Tree, textOf, textsOf } from '../../read/tree.ts'
import { at, type Finding, type FindingCode } from '../finding.ts'
import { isEverybody } from '../networks.ts'
import { checkAsking, isAsking } from './json-asking.ts'
import { checkChanges, checkProxy } from './json-forwarding.ts'
import { ADMIN, ADMIN_FIX, isOwn } from './options.ts'
import { words } from './words.ts'

export const isCaddy = (tree: Tree): boolean => get(tree, 'apps', 'http', 'servers') !== null

const HARMLESS = words(
  'static_response encode vars map error log_append metrics tracing templates copy_response copy_response_headers authentication acme_server push',
)
const APPS = words('http tls pki events')
const OF_SERVER =
  words(`listen routes errors trustedproxies trustedproxiesunix trustedproxiesstrict clientipheaders automatichttps logs metrics protocols
  readtimeout readheadertimeout writetimeout idletimeout keepaliveinterval keepaliveidle keepalivecount maxheaderbytes enablefullduplex strictsnihost
  tlsconnectionpolicies namedroutes listenerwrappers allow0rtt`)
const WRAPPERS = words('tls http_redirect proxy_protocol')

type Scope = { readonly asked: boolean; readonly cleared: boolean; readonly fixed: boolean; readonly code: FindingCode }
type Ran = { readonly findings: readonly Finding[]; readonly scope: Scope }
const START: Scope = { asked: false, cleared: false, fixed: false, code: 'skips_question' }
const REFUSED: Scope = { ...START, code: 'fails_open' }

export function checkCaddyJson(tree: Tree): readonly Finding[] {
  const listen = get(tree, 'admin', 'listen')
  const loaded = ['remote', 'config'].map((key) => get(tree, 'admin', key)).filter((value) => value !== null)
  return [
    ...(isOwn(textOf(listen) ?? '') || listen === null ? [] : [at(listen)('forgeable', ADMIN, ADMIN_FIX)]),
    ...loaded
      .filter((value) => get(value, 'load') !== null || get(value, 'access_control') !== null)
      .map((value) => at(value)('unseen', 'the configuration may come from elsewhere', 'write it into the file')),
    ...entriesOf(get(tree, 'apps'))
      .filter(({ key }) => !APPS.has(key))
      .map((entry) =>
        at(entry)('unseen', `the app ${entry.key} is not known here: it may pass connections on`, 'judge it by hand'),
      ),
    ...entriesOf(get(tree, 'apps', 'http', 'servers')).flatMap(({ value }) => checkServer(value)),
  ]
}

function checkServer(server: Tree): readonly Finding[] {
  const proxies = get(server, 'trusted_proxies')
  const source = textOf(get(proxies, 'source'))
  const wrappers = itemsOf(get(server, 'listener_wrappers')).filter(
    (one) => !WRAPPERS.has(textOf(get(one, 'wrapper')) ?? ''),
  )
  return [
    ...run(get(server, 'routes'), START).findings,
    ...run(get(server, 'errors', 'routes'), REFUSED).findings,
    ...textsOf(get(proxies, 'ranges'))
      .filter(isEverybody)
      .slice(0, 1)
      .map(() =>
        at(get(proxies, 'ranges') ?? server)(
          'forgeable',
          'Caddy believes X-Forwarded-* of everybody',
          'name your proxies',
        ),
      ),
    ...(proxies === null || source === 'static'
      ? []
      : [at(proxies)('unseen', 'whom Caddy believes is not in the file', 'name your proxies')]),
    ...wrappers.map((one) => at(one)('unseen', 'this may pass connections on', 'judge it by hand')),
    ...entriesOf(server)
      .filter(({ key }) => !OF_SERVER.has(folded(key)))
      .map((entry) =>
        at(entry)('unseen', `${entry.key} of a server is not known here: it may route`, 'judge it by hand'),
      ),
  ]
}

/** Routes run one after the other; what a route does that matches everything holds for those after it. */
function run(routes: Tree | null, scope: Scope): Ran {
  let outer = scope
  const groups = itemsOf(routes).map((route) => textOf(get(route, 'group')))
  const findings = itemsOf(routes).flatMap((route) => {
    let inner = outer
    const found = itemsOf(get(route, 'handle')).flatMap((handler) => {
      const ran = runHandler(handler, inner)
      inner = ran.scope
      return ran.findings
    })
    // Of several routes of a group one runs.
    const group = textOf(get(route, 'group'))
    const alone = group === null || groups.filter((one) => one === group).length === 1
    if (get(route, 'match') === null && alone) outer = inner
    return found
  })
  return { findings, scope: outer }
}

function runHandler(handler: Tree, scope: Scope): Ran {
  const kind = textOf(get(handler, 'handler')) ?? ''
  const stays = (...findings: readonly Finding[]): Ran => ({ findings, scope })
  if (HARMLESS.has(kind)) return stays()
  if (kind === 'subroute') {
    const inner = run(get(handler, 'routes'), scope)
    return { ...inner, findings: [...inner.findings, ...run(get(handler, 'errors', 'routes'), REFUSED).findings] }
  }
  if (isAsking(handler)) return { findings: checkAsking(handler), scope: { ...scope, asked: true } }
  if (kind === 'headers') {
    const clears = textsOf(get(handler, 'request', 'delete')).includes('*_*')
    return {
      findings: scope.asked ? checkChanges(get(handler, 'request')) : [],
      scope: { ...scope, cleared: scope.cleared || clears },
    }
  }
  if (kind === 'rewrite') return runRewrite(handler, scope)
  if (kind === 'request_body') {
    const body = get(handler, 'set')
    return stays(...(body === null ? [] : [at(body)('other_bytes', 'the body is replaced', 'remove set')]))
  }
  if (kind === 'intercept') return stays(...responses(handler, REFUSED))
  if (kind === 'reverse_proxy' || kind === 'file_server') return stays(...checkForwarding(handler, kind, scope))
  return stays(
    at(handler)('unseen', `${kind} may answer, or change the request, in a way of its own`, 'judge it by hand'),
  )
}

function runRewrite(handler: Tree, scope: Scope): Ran {
  if (scope.asked)
    return {
      findings: [
        at(handler)(
          'other_bytes',
          'the request is rewritten after the decision',
          'put it before the question, or remove it',
        ),
      ],
      scope,
    }
  const target = textOf(get(handler, 'uri'))?.replaceAll('{http.error.status_code}', '') ?? '{}'
  return { findings: [], scope: { ...scope, fixed: scope.fixed || !target.includes('{') } }
}

const responses = (handler: Tree, scope: Scope): readonly Finding[] =>
  itemsOf(get(handler, 'handle_response')).flatMap((one) => run(get(one, 'routes'), scope).findings)

function checkForwarding(handler: Tree, kind: string, scope: Scope): readonly Finding[] {
  const { asked, cleared, code, fixed } = scope
  const here = at(handler)
  const isErrorPage = kind === 'file_server' && code === 'fails_open' && fixed
  const rewrite = get(handler, 'rewrite')
  return [
    ...(asked || isErrorPage
      ? []
      : [here(code, `nobody is asked about the requests of this ${kind}`, 'ask before it, as forward_auth does')]),
    ...(asked && !cleared && kind !== 'file_server'
      ? [
          here(
            'forgeable',
            'fields with underscores pass, which many services read as X-Auth-Subject and its like',
            'delete *_* of the request before it, in a route that matches everything',
          ),
        ]
      : []),
    ...(isOn(rewrite)
      ? [at(rewrite)('other_bytes', 'the request is rewritten after the decision', 'remove rewrite')]
      : []),
    ...(kind === 'reverse_proxy' ? [...checkProxy(handler), ...responses(handler, { ...scope, cleared: true })] : []),
  ]
}
