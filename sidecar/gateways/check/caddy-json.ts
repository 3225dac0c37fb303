/** What is unsafe in Caddy's JSON, where forward_auth is a reverse_proxy with handle_response. */
import { AUTHORIZE_PATH, CALLER_FIELD, IDENTITY_FIELDS } from '../../http/door-fields.ts'
import { written } from '../plan.ts'
import { entriesOf, get, isOn, itemsOf, type Tree, textOf, textsOf, walk } from '../read/tree.ts'
import { at, type Finding, type FindingCode } from './finding.ts'

export const isCaddy = (tree: Tree): boolean => get(tree, 'apps', 'http', 'servers') !== null

const HARMLESS = new Set(
  'static_response headers encode vars map error log_append metrics tracing templates copy_response copy_response_headers request_body authentication acme_server intercept push'.split(
    ' ',
  ),
)

export function checkCaddyJson(tree: Tree): readonly Finding[] {
  return entriesOf(get(tree, 'apps', 'http', 'servers')).flatMap(({ value: server }) => {
    const auths = [...walk(server)].filter(isAsking)
    const clears = [...walk(server)].some((node) => textsOf(get(node, 'request', 'delete')).includes('*_*'))
    return [
      ...checkRoutes(get(server, 'routes'), { asked: false, code: 'skips_question' }).findings,
      ...checkRoutes(get(server, 'errors', 'routes'), { asked: false, code: 'fails_open' }).findings,
      ...auths.flatMap(checkAsking),
      ...auths
        .slice(0, clears ? 0 : 1)
        .map((auth) =>
          at(auth)(
            'forgeable',
            'fields with underscores pass, which many services read as X-Auth-Subject and its like',
            'delete *_* of the request before it',
          ),
        ),
      ...[...walk(server)].flatMap((node) => {
        const everybody = itemsOf(get(node, 'trusted_proxies', 'ranges') ?? get(node, 'trusted_proxies')).filter(
          (item) => /^(0\.0\.0\.0|::)\/0$/.test(textOf(item) ?? ''),
        )
        return everybody.map((item) =>
          at(item)('forgeable', 'Caddy believes X-Forwarded-* of everybody', 'name your proxies'),
        )
      }),
    ]
  })
}

/** It asks: the method and target of the question are its own, and it handles the answer. */
const isAsking = (handler: Tree): boolean =>
  textOf(get(handler, 'handler')) === 'reverse_proxy' &&
  get(handler, 'handle_response') !== null &&
  get(handler, 'rewrite', 'uri') !== null

type Scope = { readonly asked: boolean; readonly code: FindingCode }
type Checked = { readonly findings: readonly Finding[]; readonly asked: boolean }

/** Routes run one after the other; a question in a route that matches everything counts for those after it. */
function checkRoutes(routes: Tree | null, scope: Scope): Checked {
  let { asked } = scope
  const findings = itemsOf(routes).flatMap((route) => {
    let inside = asked
    const found = itemsOf(get(route, 'handle')).flatMap((handler) => {
      const checked = checkHandler(handler, { ...scope, asked: inside })
      inside = checked.asked
      return checked.findings
    })
    if (get(route, 'match') === null) asked = inside
    return found
  })
  return { findings, asked }
}

function checkHandler(handler: Tree, scope: Scope): Checked {
  const { asked, code } = scope
  const kind = textOf(get(handler, 'handler')) ?? ''
  const here = at(handler)
  const said = (...findings: readonly Finding[]): Checked => ({ findings, asked })
  if (kind === 'subroute') return checkRoutes(get(handler, 'routes'), scope)
  if (isAsking(handler)) return { findings: [], asked: true }
  if (HARMLESS.has(kind)) return said()
  if (kind === 'rewrite')
    return asked
      ? said(
          here(
            'other_bytes',
            'the request is rewritten after the decision',
            'put it before the question, or remove it',
          ),
        )
      : said()
  if (kind !== 'reverse_proxy' && kind !== 'file_server')
    return said(here('unseen', `${kind} may answer, or change the request, in a way of its own`, 'judge it by hand'))
  const rewrite = get(handler, 'rewrite')
  return said(
    ...(asked
      ? []
      : [here(code, `nobody is asked about the requests of this ${kind}`, 'ask before it, as forward_auth does')]),
    ...(rewrite === null
      ? []
      : [at(rewrite)('other_bytes', 'the request is rewritten after the decision', 'remove rewrite')]),
  )
}

function checkAsking(auth: Tree): readonly Finding[] {
  const responses = itemsOf(get(auth, 'handle_response'))
  const odd = responses.filter((one) => textsOf(get(one, 'match', 'status_code')).join() !== '2')
  const copied = [...walk(get(auth, 'handle_response') ?? auth)].flatMap((node) =>
    textsOf(get(node, 'request', 'delete')).map((name) => name.toLowerCase()),
  )
  const missing = IDENTITY_FIELDS.filter((name) => !copied.includes(name))
  const fields = entriesOf(get(auth, 'headers', 'request', 'set'))
  const isSocket = itemsOf(get(auth, 'upstreams')).every(
    (one) => textOf(get(one, 'dial'))?.startsWith('unix/') === true,
  )
  const tls = get(auth, 'transport', 'tls')
  const proves = ['client_certificate_file', 'client_certificate_automate'].some((key) => get(tls, key) !== null)
  const uri = get(auth, 'rewrite', 'uri')
  const unverified = get(tls, 'insecure_skip_verify')
  return [
    ...odd.map((one) =>
      at(one)('fails_open', 'an answer other than 2xx lets requests pass', 'match status_code [2] only'),
    ),
    ...(missing.length === 0
      ? []
      : [
          at(auth)(
            'forgeable',
            `a client's own ${missing.map(written).join(', ')} would reach the service`,
            'delete every identity field of the request, and set it from the answer',
          ),
        ]),
    ...(isSocket || proves || fields.some(({ key }) => key.toLowerCase() === CALLER_FIELD)
      ? []
      : [
          at(auth)(
            'forgeable',
            'Caddy does not say who it is to the door, which then answers nobody, or everybody',
            'use a unix socket, a client certificate, or X-Portcullis-Caller',
          ),
        ]),
    ...(textOf(uri) === AUTHORIZE_PATH
      ? []
      : [at(uri ?? auth)('forgeable', `the door answers at ${AUTHORIZE_PATH} only`, `set uri to ${AUTHORIZE_PATH}`)]),
    ...(isOn(unverified) ? [at(unverified)('forgeable', 'the certificate of the door is not verified', 'set ca')] : []),
    ...['X-Forwarded-Method', 'X-Forwarded-Uri'].flatMap((name) => {
      const field = fields.find(({ key }) => key.toLowerCase() === name.toLowerCase())
      const wanted = name.endsWith('Uri') ? '{http.request.uri}' : '{http.request.method}'
      return textsOf(field?.value ?? null).join() === wanted
        ? []
        : [at(field ?? auth)('forgeable', `${name} is not what the client sent`, `set it to ${wanted}`)]
    }),
  ]
}
