/** The route file of an attack case: the fixture's routes, with what the case changes. */
import { type AttackCase, type Fixture, type FixtureRoute, Skip } from './cases.ts'
import type { Config } from './faults.ts'

/** Throws Skip for a setting that nobody here knows. */
export function routeFileText(fixture: Fixture, attack: AttackCase): string {
  const config = attack.setup.config ?? {}
  skipUnknown(config)
  const issuers = fixture.issuers.map(({ iss, alg }) => ({ issuer: iss, algorithms: alg }))
  const routes = config.config === 'empty' ? {} : routesOf(fixture.routes, { id: attack.id, config })
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
    ...Object.fromEntries(Object.entries(config).filter(([name]) => FILE_SETTINGS.includes(name))),
  }
  // JSON is YAML.
  return JSON.stringify(document, null, 2)
}

/** Settings of a case; the others are those of a route file, which stand in it as they are. */
const SETTINGS = new Set([
  ...['jwks', 'pdp', 'route', 'acr', 'max_age', 'scope', 'resource', 'alternative', 'public_origin', 'config', 'env'],
  ...['fault', 'route_checks', 'encodedSlash', 'issuers', 'nonce'],
])
const FILE_SETTINGS = ['mode', 'strip_headers', 'body_bytes_max', 'forward_token', 'hosts', 'dpop']
const WORDS: { readonly [setting: string]: readonly unknown[] } = {
  config: ['unknown key', 'empty', 'unlink'],
  fault: ['logger throws'],
  route_checks: ['all:[]'],
}

/** A setting that is passed over in silence would let a case pass that was never played. */
function skipUnknown(config: Config): void {
  for (const [name, value] of Object.entries(config)) {
    const known = WORDS[name]?.includes(value) ?? (SETTINGS.has(name) || FILE_SETTINGS.includes(name))
    if (!known) throw new Skip(`the setting ${name}: ${JSON.stringify(value)} is not known`)
  }
}

/** By what it says about proofs: where one names a nonce of a replica, nonces are in use. */
const needsNonce = ({ setup }: AttackCase): boolean =>
  setup.config?.nonce !== undefined || JSON.stringify(setup.proofs ?? {}).includes('{{nonce:')

function routesOf(routes: readonly FixtureRoute[], { id, config }: { id: string; config: Config }): object {
  const listed = routes.filter(
    ({ only_in: only }) => only === undefined || [only].flat().includes(id) || config.encodedSlash !== undefined,
  )
  return Object.fromEntries(
    listed.map((route) => {
      const path = route.p.replaceAll(/:(\w+)/g, '{$1}')
      const configured = config.route === route.p ? config : {}
      return [
        `${route.m} ${route.host ?? ''}${path}`,
        routeValue(route, { ...configured, route_checks: config.route_checks }),
      ]
    }),
  )
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
    ...(route.encodedSlash === 'keep' && { encoded_slash: 'keep' }),
    ...(route.upgrade !== undefined && { upgrade: route.upgrade }),
    ...(Object.keys(stepUp).length > 0 && { step_up: stepUp }),
  }
  return Object.keys(options).length === 0 ? check : { check, ...options }
}

/** Asked beside a route's own check in cases that need two questions. */
const ALTERNATIVE = 'alternative invoice:any'

function checksOf(route: FixtureRoute, config: Config): unknown {
  if (config.route_checks === 'all:[]') return { all: [] }
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
