/** What is unsafe in Traefik's static and dynamic configuration, and in its objects in Kubernetes. */
import { IDENTITY_FIELDS } from '../../http/door-fields.ts'
import { type Entry, entriesOf, get, isFalse, isOn, itemsOf, type Tree, textOf, textsOf } from '../read/tree.ts'
import { at, type Finding } from './finding.ts'
import { isObjectOf, kindOfObject, nameOf } from './kubernetes.ts'

const CHANGES_PATH = ['stripprefix', 'stripprefixregex', 'replacepath', 'replacepathregex', 'addprefix']
const EVERYBODY = /^(0\.0\.0\.0|::)\/0$/
const isCrd = (tree: Tree): boolean => isObjectOf(tree, 'traefik.io') || isObjectOf(tree, 'traefik.containo.us')

export const isTraefik = (tree: Tree): boolean =>
  isCrd(tree) ||
  get(tree, 'entryPoints') !== null ||
  ['http', 'tcp'].some((part) => ['routers', 'middlewares'].some((key) => get(tree, part, key) !== null))

type Middleware = { readonly name: string; readonly place: Tree; readonly spec: Tree }
type Router = { readonly name: string; readonly place: Tree; readonly uses: readonly string[] }
type Facts = { readonly middlewares: readonly Middleware[]; readonly entryPoints: readonly Entry[] }

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
      return auth === null ? [] : checkForwardAuth(auth, entryPoints)
    }),
    ...routers.flatMap((router) => checkRouter(router, facts)),
    ...trees.flatMap(pastHttp),
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

function middlewaresOf(tree: Tree): readonly Middleware[] {
  if (isCrd(tree)) {
    const spec = get(tree, 'spec')
    return kindOfObject(tree) === 'Middleware' && spec !== null ? [{ name: nameOf(tree), place: tree, spec }] : []
  }
  return entriesOf(get(tree, 'http', 'middlewares')).map(({ key, value }) => ({ name: key, place: value, spec: value }))
}

function routersOf(tree: Tree): readonly Router[] {
  if (kindOfObject(tree) === 'IngressRoute' && isCrd(tree))
    return itemsOf(get(tree, 'spec', 'routes')).map((route, i) => ({
      name: `${nameOf(tree)}, route ${i + 1}`,
      place: route,
      uses: itemsOf(get(route, 'middlewares')).map((ref) => textOf(get(ref, 'name')) ?? ''),
    }))
  return entriesOf(get(tree, 'http', 'routers'))
    .filter(({ value }) => !(textOf(get(value, 'service')) ?? '').endsWith('@internal'))
    .map(({ key, value }) => ({ name: key, place: value, uses: textsOf(get(value, 'middlewares')).map(bare) }))
}

/** Without the provider, as in `auth@file`. */
const bare = (name: string): string => name.split('@')[0] ?? name

function checkEntryPoint({ key, value }: Entry): readonly Finding[] {
  const insecure = get(value, 'forwardedHeaders', 'insecure')
  const trusted = itemsOf(get(value, 'forwardedHeaders', 'trustedIPs')).filter((item) =>
    EVERYBODY.test(textOf(item) ?? ''),
  )
  const sanitize = get(value, 'http', 'sanitizePath')
  return [
    ...(isOn(insecure)
      ? [at(insecure)('forgeable', `the entry point ${key} believes X-Forwarded-* of clients`, 'set insecure: false')]
      : []),
    ...trusted.map((item) =>
      at(item)('forgeable', `the entry point ${key} believes X-Forwarded-* of everybody`, 'name your proxies'),
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

function checkForwardAuth(auth: Tree, entryPoints: readonly Entry[]): readonly Finding[] {
  const trust = get(auth, 'trustForwardHeader')
  const sent = get(auth, 'authRequestHeaders')
  const unverified = get(auth, 'tls', 'insecureSkipVerify')
  const proves = ['cert', 'certSecret'].some((key) => get(auth, 'tls', key) !== null)
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
            'give the middleware a certificate: tls: {ca, cert, key}',
          ),
        ]),
    ...checkCopied(auth, entryPoints),
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

function checkRouter({ name, place, uses }: Router, { middlewares, entryPoints }: Facts): readonly Finding[] {
  const ofPoints = entryPoints.flatMap(({ value }) => textsOf(get(value, 'http', 'middlewares')).map(bare))
  const chain = [...ofPoints, ...uses].flatMap((used) => expanded(used, middlewares, 0))
  const asking = chain.findIndex(({ found }) => get(found?.spec ?? null, 'forwardAuth') !== null)
  const unknown = chain.filter(({ found }) => found === null)
  if (asking < 0 && unknown.length === 0)
    return [
      at(place)('skips_question', `nobody is asked about the router ${name}`, 'add the forwardAuth middleware to it'),
    ]
  return [
    ...unknown.map(({ used }) =>
      at(place)(
        'unseen',
        `the middleware ${used} of the router ${name} is not in the files`,
        'check the file that has it',
      ),
    ),
    ...(asking < 0 ? [] : chain.slice(asking + 1).flatMap(({ found }) => changedAfter(found, place))),
  ]
}

const CHAIN_DEPTH_MAX = 10

function expanded(
  used: string,
  middlewares: readonly Middleware[],
  depth: number,
): readonly { readonly used: string; readonly found: Middleware | null }[] {
  const found = middlewares.find(({ name }) => name === used) ?? null
  const chain = get(found?.spec ?? null, 'chain', 'middlewares')
  if (chain === null || depth >= CHAIN_DEPTH_MAX) return [{ used, found }]
  const names = itemsOf(chain).map((item) => bare(textOf(item) ?? textOf(get(item, 'name')) ?? ''))
  return names.flatMap((name) => expanded(name, middlewares, depth + 1))
}

function changedAfter(found: Middleware | null, router: Tree): readonly Finding[] {
  return entriesOf(found?.spec ?? null).flatMap(({ key, value }) => {
    const kind = key.toLowerCase()
    if (CHANGES_PATH.includes(kind))
      return [
        at(router)(
          'other_bytes',
          `${found?.name} changes the path after the decision`,
          'put it before forwardAuth, or remove it',
        ),
      ]
    if (kind === 'plugin')
      return [at(router)('unseen', `the plugin ${found?.name} may change what was judged`, 'put it before forwardAuth')]
    if (kind !== 'headers') return []
    return entriesOf(get(value, 'customRequestHeaders'))
      .filter((field) => IDENTITY_FIELDS.includes(field.key.toLowerCase()))
      .map((field) =>
        at(field)('forgeable', `${field.key} is set after the decision`, 'leave identity fields to the door'),
      )
  })
}

function pastHttp(tree: Tree): readonly Finding[] {
  const message = 'connections are passed on unread: nobody is asked'
  const fix = 'use a router of http'
  const routers = entriesOf(get(tree, 'tcp', 'routers')).map(({ value }) => at(value)('skips_question', message, fix))
  return kindOfObject(tree) === 'IngressRouteTCP' ? [at(tree)('skips_question', message, fix)] : routers
}
