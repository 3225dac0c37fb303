/** What is unsafe in Traefik's static and dynamic configuration, and in its objects in Kubernetes. */
import { IDENTITY_FIELDS } from '../../../http/door-fields.ts'
import {
  type Entry,
  entriesOf,
  folded,
  get,
  isFalse,
  isOn,
  itemsOf,
  type Tree,
  textOf,
  textsOf,
} from '../../read/tree.ts'
import { isIdentity } from '../changed-fields.ts'
import { at, type Finding } from '../finding.ts'
import { kindOfObject } from '../kubernetes/objects.ts'
import { isEverybody } from '../networks.ts'
import { unknownMembers } from '../unknown-members.ts'
import { checkRouter, isCrd, isDoor, isIngressOfTraefik, middlewaresOf, routersOf } from './routers.ts'

export const isTraefik = (tree: Tree): boolean =>
  isCrd(tree) ||
  isIngressOfTraefik(tree) ||
  get(tree, 'entryPoints') !== null ||
  ['http', 'tcp'].some((part) => ['routers', 'middlewares'].some((key) => get(tree, part, key) !== null))

export function checkTraefik(trees: readonly Tree[]): readonly Finding[] {
  const entryPoints = trees.flatMap((tree) => entriesOf(get(tree, 'entryPoints')))
  const middlewares = trees.flatMap(middlewaresOf)
  const routers = trees.flatMap(routersOf)
  const facts = { middlewares, entryPoints }
  const [first] = trees
  return [
    ...entryPoints.flatMap(checkEntryPoint),
    ...middlewares.flatMap(({ spec }) => {
      const auth = get(spec, 'forwardAuth')
      return isDoor(auth) ? checkForwardAuth(auth, entryPoints) : []
    }),
    ...routers.flatMap((router) => checkRouter(router, facts)),
    ...trees.flatMap(pastHttp),
    ...trees.flatMap((tree) => checkSources(tree, trees)),
    ...(routers.length === 0 && middlewares.length === 0 && first !== undefined
      ? [
          at(first)(
            'unseen',
            'there are neither routers nor middlewares in the files',
            'check the dynamic configuration, too',
          ),
        ]
      : []),
  ]
}

/** Who may say of a request that it came from somebody else. */
const BELIEVED = [
  ['forwardedHeaders', 'X-Forwarded-*'],
  ['proxyProtocol', 'the PROXY protocol'],
] as const

function checkEntryPoint({ key, value }: Entry): readonly Finding[] {
  const sanitize = get(value, 'http', 'sanitizePath')
  const believed = BELIEVED.flatMap(([part, what]) => {
    const insecure = get(value, part, 'insecure')
    const networks = itemsOf(get(value, part, 'trustedIPs')).filter((item) => isEverybody(textOf(item) ?? ''))
    return [
      ...(isOn(insecure)
        ? [at(insecure)('forgeable', `the entry point ${key} believes ${what} of clients`, 'set insecure: false')]
        : []),
      ...networks.map((item) =>
        at(item)('forgeable', `the entry point ${key} believes ${what} of everybody`, 'name your proxies'),
      ),
    ]
  })
  const removable = itemsOf(get(value, 'forwardedHeaders', 'connection')).filter((item) =>
    isIdentity(textOf(item) ?? ''),
  )
  return [
    ...believed,
    ...removable.map((item) =>
      at(item)('other_bytes', `with Connection a client may have ${textOf(item)} removed on the way`, 'remove it here'),
    ),
    ...(isFalse(sanitize) && sanitize !== null
      ? [
          at(sanitize)(
            'other_bytes',
            'Traefik chooses the router by another path than the door judges',
            'remove sanitizePath: false',
          ),
        ]
      : []),
  ]
}

/** What is checked, and what changes neither the question nor what follows from a permit. */
const OF_ASKING =
  `address tls trustForwardHeader authRequestHeaders authResponseHeaders authResponseHeadersRegex addAuthCookiesToResponse
  headerField forwardBody maxBodySize maxResponseBodySize preserveLocationHeader preserveRequestMethod authSigninURL`
    .split(/\s+/)
    .map(folded)

function checkForwardAuth(auth: Tree, entryPoints: readonly Entry[]): readonly Finding[] {
  const trust = get(auth, 'trustForwardHeader')
  const sent = get(auth, 'authRequestHeaders')
  const unverified = get(auth, 'tls', 'insecureSkipVerify')
  const isTls = /^https:/i.test(textOf(get(auth, 'address')) ?? '')
  const proves = isTls && ['cert', 'certSecret'].some((key) => get(auth, 'tls', key) !== null)
  return [
    ...(isFalse(trust)
      ? []
      : [
          at(trust ?? auth)(
            'forgeable',
            'a client can name another target and method with X-Forwarded-Uri and X-Forwarded-Method',
            'set trustForwardHeader: false',
          ),
        ]),
    ...(sent !== null && itemsOf(sent).length > 0
      ? [
          at(sent)(
            'other_bytes',
            'the door sees some fields only, and cannot refuse the others',
            'remove authRequestHeaders',
          ),
        ]
      : []),
    ...(isOn(unverified)
      ? [
          at(unverified)(
            'forgeable',
            'the certificate of the door is not verified',
            'remove insecureSkipVerify, and set ca',
          ),
        ]
      : []),
    ...(proves
      ? []
      : [
          at(get(auth, 'address') ?? auth)(
            'forgeable',
            'Traefik does not say who it is to the door, which then answers nobody, or everybody',
            'ask over https, and give the middleware a certificate: tls: {ca, cert, key}',
          ),
        ]),
    ...checkCopied(auth, entryPoints),
    ...unknownMembers(auth, 'forwardAuth', ({ key }) => OF_ASKING.includes(folded(key))),
  ]
}

/** Only fields that are copied from the answer are removed from the client's request. */
function checkCopied(auth: Tree, entryPoints: readonly Entry[]): readonly Finding[] {
  const copied = textsOf(get(auth, 'authResponseHeaders')).map((name) => name.toLowerCase())
  const pattern = get(auth, 'authResponseHeadersRegex')
  const expression = goExpression(textOf(pattern))
  const covers = (name: string): boolean => copied.includes(name.toLowerCase()) || expression?.test(name) === true
  const missing = IDENTITY_FIELDS.filter((name) => !covers(name))
  const strategies = entryPoints.map(({ value }) => textOf(get(value, 'http', 'aliasHeadersStrategy')) ?? '')
  const guarded = strategies.length > 0 && strategies.every((strategy) => /^(reject|delete)$/i.test(strategy))
  return [
    ...(missing.length === 0
      ? []
      : [
          at(get(auth, 'authResponseHeaders') ?? pattern ?? auth)(
            'forgeable',
            `a client's own ${missing.join(', ')} would reach the service`,
            'name every identity field in authResponseHeaders',
          ),
        ]),
    ...(covers('Upgrade')
      ? []
      : [
          at(pattern ?? auth)(
            'skips_question',
            'a client may upgrade its connection, such as to h2c, and nobody is asked about what it then sends',
            'set authResponseHeadersRegex as gateway-config traefik prints it, which removes Upgrade',
          ),
        ]),
    ...(guarded || ['X_Auth_Subject', 'X.Auth.Subject'].every(covers)
      ? []
      : [
          at(pattern ?? auth)(
            'forgeable',
            'names such as X_Auth_Subject pass, which many services read as X-Auth-Subject',
            'set authResponseHeadersRegex as gateway-config traefik prints it, or aliasHeadersStrategy: reject',
          ),
        ]),
  ]
}

/** Null for an expression that JavaScript reads in another way, or not at all. */
function goExpression(text: string | null): RegExp | null {
  const found = /^(\(\?i\))?(.*)$/s.exec(text ?? '')
  if (text === null || found === null) return null
  try {
    // Go matches names as `X-Auth-Subject`.
    return new RegExp(found[2] ?? '', found[1] === undefined ? '' : 'i')
  } catch {
    return null
  }
}

function pastHttp(tree: Tree): readonly Finding[] {
  const message = 'connections are passed on unread: nobody is asked'
  const fix = 'use a router of http'
  if (isCrd(tree) && /^IngressRoute(TCP|UDP)$/.test(kindOfObject(tree)))
    return [at(tree)('skips_question', message, fix)]
  return ['tcp', 'udp'].flatMap((part) =>
    entriesOf(get(tree, part, 'routers')).map(({ value }) => at(value)('skips_question', message, fix)),
  )
}

const KINDS = /^(IngressRoute(TCP|UDP)?|Middleware(TCP)?|TraefikService|ServersTransport(TCP)?|TLSOption|TLSStore)$/
const OF_HTTP = ['routers', 'services', 'middlewares', 'serverstransports']
const OF_FILES = ['file', 'providersthrottleduration', 'precedence']

/** Where else routers come from. `trees`: all, with which objects of Kubernetes may be in the files. */
function checkSources(tree: Tree, trees: readonly Tree[]): readonly Finding[] {
  if (isIngressOfTraefik(tree)) return []
  const here = [
    ...(trees.some(isCrd) ? ['kubernetescrd'] : []),
    ...(trees.some(isIngressOfTraefik) ? ['kubernetesingress'] : []),
  ]
  if (isCrd(tree))
    return KINDS.test(kindOfObject(tree))
      ? []
      : [at(tree)('unseen', `the kind ${kindOfObject(tree)} is not known here: it may route`, 'judge it by hand')]
  const providers = entriesOf(get(tree, 'providers')).filter(({ key, value }) => {
    const name = folded(key)
    return isOn(value) && !OF_FILES.includes(name) && !here.includes(name)
  })
  const parts = entriesOf(get(tree, 'http')).filter(({ key }) => !OF_HTTP.includes(folded(key)))
  return [
    ...providers.map((entry) =>
      at(entry)('unseen', `the provider ${entry.key} may have routers that ask nobody`, 'check what it provides, too'),
    ),
    ...parts.map((entry) =>
      at(entry)('unseen', `${entry.key} of http is not known here: it may route`, 'judge it by hand'),
    ),
  ]
}
