/** What is unsafe in the routers of Traefik, and in the middlewares that run before and after the question. */
import { AUTHORIZE_PATH, IDENTITY_FIELDS } from '../../../http/door-fields.ts'
import { type Entry, entriesOf, folded, get, isTrue, itemsOf, type Tree, textOf, textsOf } from '../../read/tree.ts'
import { setAfterDecision } from '../changed-fields.ts'
import { at, type Finding } from '../finding.ts'
import { isObjectOf, kindOfObject, nameOf, namespaceOf } from '../kubernetes/objects.ts'
import { isIngress } from '../kubernetes/others.ts'

const CHANGES_PATH = ['stripprefix', 'stripprefixregex', 'replacepath', 'replacepathregex', 'addprefix']
const HARMLESS =
  `buffering chain circuitbreaker compress contenttype encodedcharacters grpcweb inflightreq ipallowlist ipwhitelist
  passtlsclientcert ratelimit redirectregex redirectscheme retry`.split(/\s+/)
const KNOWN = new Set([...CHANGES_PATH, ...HARMLESS, 'basicauth', 'digestauth', 'errors', 'forwardauth', 'headers'])
const OF_ROUTER = 'entrypoints rule rulesyntax middlewares service priority tls observability'.split(' ')
const OF_ROUTE = 'match kind syntax services middlewares priority observability'.split(' ')

const OF_INGRESS = 'traefik.ingress.kubernetes.io/'
const ANNOTATIONS = /^router\.(entrypoints|middlewares|priority|pathmatcher|tls(\..+)?|observability\..+)$/

/** An Ingress that Traefik serves, as far as the object says so: its class decides, where it has one. */
export function isIngressOfTraefik(tree: Tree): boolean {
  if (!isIngress(tree)) return false
  const named = get(tree, 'spec', 'ingressClassName')
  const classes = [
    ...(named === null ? [] : [/traefik/.test(textOf(named) ?? '')]),
    ...entriesOf(get(tree, 'metadata', 'annotations'))
      .filter(({ key }) => key === 'kubernetes.io/ingress.class')
      .map(({ value }) => textOf(value) === 'traefik'),
  ]
  return classes.length > 0 ? classes.every(Boolean) : annotationsOf(tree).length > 0
}
const annotationsOf = (tree: Tree): readonly Entry[] =>
  entriesOf(get(tree, 'metadata', 'annotations')).filter(({ key }) => key.startsWith(OF_INGRESS))

function routerOf(ingress: Tree): Router {
  const named = (name: string): readonly string[] =>
    annotationsOf(ingress)
      .filter(({ key }) => key === `${OF_INGRESS}router.${name}`)
      .flatMap(({ value }) => (textOf(value) ?? '').split(','))
      .map((text) => text.trim())
      .filter((text) => text !== '')
  return {
    name: nameOf(ingress),
    place: ingress,
    uses: named('middlewares'),
    entryPoints: named('entrypoints'),
    idOf: idInCluster(namespaceOf(ingress)),
    others: annotationsOf(ingress).filter(({ key }) => !ANNOTATIONS.test(key.slice(OF_INGRESS.length))),
  }
}

export const isCrd = (tree: Tree): boolean => isObjectOf(tree, 'traefik.io') || isObjectOf(tree, 'traefik.containo.us')

/** `id`: with the provider, as in `auth@file`; of an object of Kubernetes `<namespace>-<name>@kubernetescrd`. */
export type Middleware = { readonly id: string; readonly name: string; readonly spec: Tree; readonly idOf: IdOf }
export type Router = {
  readonly name: string
  readonly place: Tree
  readonly uses: readonly string[]
  readonly entryPoints: readonly string[]
  readonly idOf: IdOf
  /** Keys that are not known. */
  readonly others: readonly Entry[]
}
/** Of a reference, which is a name, or an object with a name and a namespace. */
type IdOf = (reference: Tree) => string
type Facts = { readonly middlewares: readonly Middleware[]; readonly entryPoints: readonly Entry[] }

const idInFile: IdOf = (reference) => qualified(textOf(reference) ?? textOf(get(reference, 'name')) ?? '', 'file')
const idInCluster =
  (namespace: string): IdOf =>
  (reference) => {
    const name = textOf(get(reference, 'name'))
    // The middlewares of an entry point are names: they have their namespace in them.
    if (name === null || name.includes('@')) return qualified(name ?? textOf(reference) ?? '', 'kubernetescrd')
    return `${textOf(get(reference, 'namespace')) ?? namespace}-${name}@kubernetescrd`
  }
const qualified = (name: string, provider: string): string => (name.includes('@') ? name : `${name}@${provider}`)

export function middlewaresOf(tree: Tree): readonly Middleware[] {
  if (!isCrd(tree))
    return entriesOf(get(tree, 'http', 'middlewares')).map(({ key, value }) => ({
      id: qualified(key, 'file'),
      name: key,
      spec: value,
      idOf: idInFile,
    }))
  const spec = get(tree, 'spec')
  if (kindOfObject(tree) !== 'Middleware' || spec === null) return []
  const [name, namespace] = [nameOf(tree), namespaceOf(tree)]
  return [{ id: `${namespace}-${name}@kubernetescrd`, name, spec, idOf: idInCluster(namespace) }]
}

export function routersOf(tree: Tree): readonly Router[] {
  if (isIngressOfTraefik(tree)) return [routerOf(tree)]
  if (isCrd(tree)) return kindOfObject(tree) === 'IngressRoute' ? routesOf(tree) : []
  return entriesOf(get(tree, 'http', 'routers'))
    .filter(({ value }) => !(textOf(get(value, 'service')) ?? '').endsWith('@internal'))
    .map(({ key, value }) => ({
      name: key,
      place: value,
      uses: itemsOf(get(value, 'middlewares')).map(idInFile),
      entryPoints: textsOf(get(value, 'entryPoints')),
      idOf: idInFile,
      others: entriesOf(value).filter((entry) => !OF_ROUTER.includes(folded(entry.key))),
    }))
}

function routesOf(object: Tree): readonly Router[] {
  const idOf = idInCluster(namespaceOf(object))
  const parents = entriesOf(get(object, 'spec')).filter(({ key }) => folded(key) === 'parentrefs')
  return itemsOf(get(object, 'spec', 'routes')).map((route, i) => ({
    name: `${nameOf(object)}, route ${i + 1}`,
    place: route,
    uses: itemsOf(get(route, 'middlewares')).map(idOf),
    entryPoints: textsOf(get(object, 'spec', 'entryPoints')),
    idOf,
    others: [...parents, ...entriesOf(route).filter((entry) => !OF_ROUTE.includes(folded(entry.key)))],
  }))
}

/** Other services may be asked, too; only the door answers there. */
export const isDoor = (auth: Tree | null): auth is Tree =>
  auth !== null && new RegExp(`^https?://[^/?#]+${AUTHORIZE_PATH}$`, 'i').test(textOf(get(auth, 'address')) ?? '')

export function checkRouter(router: Router, { middlewares, entryPoints }: Facts): readonly Finding[] {
  const unknown = router.others.map((entry) =>
    at(entry)(
      'unseen',
      `${entry.key} of the router ${router.name} is not known here: it may route`,
      'judge it by hand',
    ),
  )
  const chains = pointsOf(router, entryPoints).map((point) =>
    [...itemsOf(get(point, 'http', 'middlewares')).map(router.idOf), ...router.uses].flatMap((id) =>
      expanded(id, middlewares, 0),
    ),
  )
  return [...unknown, ...chains.flatMap((chain) => checkChain(router, chain))]
}

/** Null for a point that is not in the files. A router without points has those that are default, or all. */
function pointsOf({ entryPoints: own }: Router, entryPoints: readonly Entry[]): readonly (Tree | null)[] {
  if (own.length > 0) return own.map((name) => entryPoints.find(({ key }) => key === name)?.value ?? null)
  const standard = entryPoints.filter(({ value }) => isTrue(get(value, 'asDefault')))
  const points = (standard.length > 0 ? standard : entryPoints).map(({ value }) => value)
  return points.length > 0 ? points : [null]
}

type Link = { readonly id: string; readonly found: Middleware | null }
const CHAIN_DEPTH_MAX = 10

function expanded(id: string, middlewares: readonly Middleware[], depth: number): readonly Link[] {
  const found = middlewares.find((one) => one.id === id) ?? null
  const chain = get(found?.spec ?? null, 'chain', 'middlewares')
  if (found === null || chain === null || depth >= CHAIN_DEPTH_MAX) return [{ id, found }]
  return itemsOf(chain).flatMap((item) => expanded(found.idOf(item), middlewares, depth + 1))
}

function checkChain({ name, place }: Router, chain: readonly Link[]): readonly Finding[] {
  const asking = chain.findIndex(({ found }) => isDoor(get(found?.spec ?? null, 'forwardAuth')))
  const missing = chain.filter(({ found }) => found === null)
  if (asking < 0 && missing.length === 0)
    return [
      at(place)(
        'skips_question',
        `nobody is asked about the router ${name}`,
        `add the forwardAuth middleware to it, with ${AUTHORIZE_PATH} of the door as its address`,
      ),
    ]
  const specs = chain.map(({ found }) => found).filter((found) => found !== null)
  return [
    ...missing.map(({ id }) =>
      at(place)(
        'unseen',
        `the middleware ${id} of the router ${name} is not in the files`,
        'check the file that has it',
      ),
    ),
    ...specs.flatMap((found) => foreign(found, place)),
    ...chain.slice(0, Math.max(asking, 0)).flatMap(({ found }) => before(found, place)),
    ...(asking < 0 ? [] : chain.slice(asking + 1).flatMap(({ found }) => changedAfter(found, place))),
  ]
}

const foreign = ({ name, spec }: Middleware, router: Tree): readonly Finding[] =>
  entriesOf(spec)
    .filter(({ key }) => !KNOWN.has(folded(key)))
    .map(({ key }) =>
      at(router)('unseen', `${key} of ${name} is not known here: it may answer or change requests`, 'judge it by hand'),
    )

/** A refusal becomes a request to a service, with what the client says about itself. */
function before(found: Middleware | null, router: Tree): readonly Finding[] {
  if (get(found?.spec ?? null, 'errors') === null) return []
  return [
    at(router)(
      'fails_open',
      `${found?.name} sends a request to a service when the door refuses`,
      'put it after forwardAuth',
    ),
  ]
}

function changedAfter(found: Middleware | null, router: Tree): readonly Finding[] {
  return entriesOf(found?.spec ?? null).flatMap(({ key, value }) => {
    if (CHANGES_PATH.includes(folded(key)))
      return [
        at(router)(
          'other_bytes',
          `${found?.name} changes the path after the decision`,
          'put it before forwardAuth, or remove it',
        ),
      ]
    return fieldsSetBy(folded(key), value).flatMap(({ name, place, text }) => {
      const changed = setAfterDecision(name, text)
      return changed === null ? [] : [at(place)(...changed)]
    })
  })
}

type FieldSet = { readonly name: string; readonly place: Tree | Entry; readonly text: string | null }

function fieldsSetBy(kind: string, value: Tree): readonly FieldSet[] {
  const named = (tree: Tree | null): readonly FieldSet[] =>
    itemsOf(tree).map((place) => ({ name: textOf(place) ?? '', place, text: null }))
  if (kind === 'headers')
    return entriesOf(get(value, 'customRequestHeaders')).map((place) => ({
      name: place.key,
      place,
      text: textOf(place.value) ?? '',
    }))
  if (kind === 'basicauth' || kind === 'digestauth') return named(get(value, 'headerField'))
  if (kind !== 'forwardauth' || isDoor(value)) return []
  const pattern = get(value, 'authResponseHeadersRegex')
  return [
    ...named(get(value, 'authResponseHeaders')),
    ...(pattern === null ? [] : [{ name: IDENTITY_FIELDS[0] ?? '', place: pattern, text: null }]),
  ]
}
