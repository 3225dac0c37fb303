/** The route file of an attack case: the fixture's routes, with what the case changes. */
import { readFileSync } from 'node:fs'
import { type AttackCase, type Fixture, type FixtureRoute, Unknown } from './case-format.ts'
import { claimOf } from './credentials.ts'
import type { Config } from './faults.ts'

/** Throws Unknown for a setting that nobody here knows. */
export function routeFileText(fixture: Fixture, attack: AttackCase): string {
  const config = { ...stepUpOf(fixture, attack), ...attack.setup.config }
  refuseUnknown(config)
  const issuers = fixture.issuers.map(({ iss, alg }) => ({ issuer: iss, algorithms: alg }))
  const routes = config.config === 'empty' ? {} : routesOf(fixture.routes, { attack, config })
  const document = {
    portcullis: 'v1',
    resource: fixture.issuers[0]?.aud,
    public_url: config.public_origin ?? fixture.pep.public_origin,
    hosts: fixture.pep.hosts,
    issuers,
    upstream: 'http://127.0.0.1:1',
    pdp: { address: '127.0.0.1:1', insecure: true },
    routes,
    ...(config.config === 'unknown key' && { relaton: 'viewer' }),
    ...(needsNonce(attack) && { dpop: { nonce: 'required' } }),
    ...(config.shadow === true && { mode: 'shadow' }),
    ...Object.fromEntries(Object.entries(config).filter(([name]) => FILE_SETTINGS.has(name))),
  }
  // JSON is YAML.
  return JSON.stringify(document, null, 2)
}

type Schema = { readonly properties: object; readonly definitions: { readonly route: { readonly properties: object } } }
const SCHEMA: Schema = JSON.parse(
  readFileSync(new URL('../../sidecar/route-file/route-file.schema.json', import.meta.url), 'utf8'),
)
/** Members of a case's configuration that this runner reads itself; others are those of a route file or of a route. */
const OWN = new Set([
  ...['jwks', 'pdp', 'route', 'acr', 'max_age', 'scope', 'resource', 'alternative', 'public_origin', 'config', 'env'],
  ...['fault', 'route_checks', 'encodedSlash', 'issuers', 'nonce', 'shadow', 'upstream', 'clock', 'clock_skew'],
])
const FIXED = ['portcullis', 'routes', 'tests', 'tls', 'public_url']
const FILE_SETTINGS = new Set(Object.keys(SCHEMA.properties).filter((name) => !OWN.has(name) && !FIXED.includes(name)))
const ROUTE_SETTINGS = new Set(
  Object.keys(SCHEMA.definitions.route.properties).filter(
    (name) => name !== 'check' && !OWN.has(name) && !FILE_SETTINGS.has(name),
  ),
)
const WORDS: { readonly [setting: string]: readonly unknown[] } = {
  config: ['unknown key', 'empty', 'unlink'],
  fault: ['logger throws', 'SIGTERM'],
  route_checks: ['all:[]', 'any:[]'],
  encodedSlash: ['keep'],
  nonce: ['required', 'off', true, false],
  shadow: [true, false],
  alternative: [true, false],
}

/** A setting that is passed over in silence would let a case pass that was never played. */
function refuseUnknown(config: Config): void {
  for (const [name, value] of Object.entries(config)) {
    const known = WORDS[name]?.includes(value) ?? (OWN.has(name) || FILE_SETTINGS.has(name) || ROUTE_SETTINGS.has(name))
    if (!known) throw new Unknown(`the setting ${name}: ${JSON.stringify(value)} is not known`)
  }
}

/** Milliseconds by which the sidecar's clock is before everybody else's: `+300`, `-5m`. Throws Unknown. */
export function skewOf({ clock, clock_skew: skew = clock }: Config): number {
  const [, sign, n, unit = 's'] = /^([+-]?)(\d+) ?(s|m|min|h)?$/.exec(String(skew ?? '0')) ?? []
  if (n === undefined) throw new Unknown(`the clock ${JSON.stringify(skew)} is not known`)
  return (sign === '-' ? -1 : 1) * Number(n) * ({ s: 1_000, m: 60_000, min: 60_000, h: 3_600_000 }[unit] ?? 0)
}

/** By what it says about proofs: where one names a nonce of a replica, nonces are in use. */
function needsNonce({ setup }: AttackCase): boolean {
  const { nonce } = setup.config ?? {}
  if (nonce !== undefined) return nonce === 'required' || nonce === true
  return JSON.stringify(setup.proofs ?? {}).includes('{{nonce')
}

/**
 * A case that shows a token with a low `acr`, and wants it refused, is about a route that asks for more, even where the
 * fixture has no such route. Tokens without one are from a sign-in that was good enough.
 */
function stepUpOf(fixture: Fixture, { request, setup, expect }: AttackCase): Config {
  const bases = { definitions: { ...fixture.tokens, ...setup.tokens }, given: fixture.tokens }
  const name = request.headers
    .map(([, value]) => /\{\{tok:(\w+)\}\}/.exec(value)?.[1])
    .find((found) => found !== undefined)
  const delta = name === undefined ? undefined : bases.definitions[name]
  const isLow = delta !== undefined && claimOf(delta, bases, 'acr') === LOW_ACR
  return isLow && setup.config?.acr === undefined && !(expect.status ?? []).includes(200) ? { acr: ENOUGH_ACR } : {}
}
const LOW_ACR = 'urn:pwd'
const ENOUGH_ACR = 'urn:mfa'

/** Null: tokens stay as they are. */
export const acrOfOthers = (fixture: Fixture, attack: AttackCase): string | null =>
  'acr' in stepUpOf(fixture, attack) ? ENOUGH_ACR : null

function routesOf(routes: readonly FixtureRoute[], { attack, config }: { attack: AttackCase; config: Config }): object {
  const listed = routes.filter(
    ({ only_in: only }) => only === undefined || [only].flat().includes(attack.id) || config.encodedSlash !== undefined,
  )
  // Without a name, the settings are those of the route that the request is for.
  const { route: named = listed.find(({ m, p }) => m === attack.request.method && fits(p, attack.request.target))?.p } =
    config
  const about = Object.keys(config).filter((name) => PER_ROUTE.has(name) || ROUTE_SETTINGS.has(name))
  if ((about.length > 0 || config.route !== undefined) && !listed.some(({ p }) => p === named))
    throw new Unknown(`the route ${JSON.stringify(named)} of ${about.join(', ')} is not one of the fixture`)
  return Object.fromEntries(
    listed.map((route) => {
      const path = route.p.replaceAll(/:(\w+)/g, '{$1}')
      const { route_checks } = config
      const value = routeValue(
        route,
        route.p === named ? config : { ...(route_checks !== undefined && { route_checks }) },
      )
      return [`${route.m} ${route.host ?? ''}${path}`, value]
    }),
  )
}
const PER_ROUTE = new Set(['acr', 'max_age', 'scope', 'resource', 'alternative', 'encodedSlash'])

const fits = (pattern: string, target: string): boolean => {
  const source = pattern
    .split('/')
    .map((part) => (part === '**' ? '.+' : part.startsWith(':') ? '[^/]+' : part.replaceAll(/[^\w-]/g, '\\$&')))
    .join('/')
  return new RegExp(`^${source}$`).test(target.split('?')[0] ?? '')
}

function routeValue(route: FixtureRoute, config: Config): unknown {
  if (route.public === true) return 'public'
  const required = /^header\.([\w-]+) == '(.*)'$/.exec(route.require ?? '')
  const check = required === null ? checksOf(route, config) : { equals: { [`header.${required[1]}`]: required[2] } }
  const { acr, max_age: maxAge } = config
  const stepUp = {
    ...(acr !== undefined && { acr_values: [acr].flat() }),
    ...(maxAge !== undefined && { max_age: maxAge }),
  }
  const options = {
    ...((route.encodedSlash === 'keep' || config.encodedSlash === 'keep') && { encoded_slash: 'keep' }),
    ...(route.upgrade !== undefined && { upgrade: route.upgrade }),
    ...(Object.keys(stepUp).length > 0 && { step_up: stepUp }),
    ...Object.fromEntries(Object.entries(config).filter(([name]) => ROUTE_SETTINGS.has(name))),
  }
  return Object.keys(options).length === 0 ? check : { check, ...options }
}

/** Asked beside a route's own check in cases that need two questions. */
const ALTERNATIVE = 'alternative invoice:any'

function checksOf(route: FixtureRoute, config: Config): unknown {
  if (config.route_checks !== undefined) return config.route_checks === 'any:[]' ? { any: [] } : { all: [] }
  const check = route.check ?? ''
  const all = [...(route.all ?? [check])]
  if (typeof config.resource === 'string') all.splice(0, 1, `${check.split(' ')[0]} ${config.resource}`)
  if (typeof config.scope === 'string') all.push(`scope ${config.scope}`)
  if (config.alternative === true) return { any: [...all, ALTERNATIVE] }
  return all.length === 1 ? all[0] : { all }
}

/** Routes that are there for one case are a control of it; the fixture has no tuples for them. */
export function grantsOf({ routes }: Fixture, id: string): string[] {
  const target = routes.find(({ only_in: only }) => only !== undefined && [only].flat().includes(id))?.check
  return target === undefined ? [] : [`alice ${target.replace(/\{\w+\}/, '@scope/pkg')}`]
}
