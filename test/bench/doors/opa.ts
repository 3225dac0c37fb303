/** What others put in front of a service: Envoy that verifies the token (`jwt_authn`) and asks Open Policy Agent (`ext_authz`). */
import { type ChildProcess, spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort, isOpen } from '../../support/free-port.ts'
import { until } from '../../support/until.ts'
import { RESOURCE } from '../sidecar/pdp.ts'

type Place = {
  readonly opa: string
  readonly envoy: string
  readonly issuer: string
  readonly upstream: number
  /** Of its own, for its files. */
  readonly folder: string
}

/**
 * Envoy holds the issuer's keys and what it has verified; Open Policy Agent looks the relationship up in data that it holds:
 * nothing is asked elsewhere, so a revoked token or a changed relationship is not seen.
 */
const POLICY = `package envoy.authz

import rego.v1

default allow := false

allow if {
  input.attributes.request.http.method == "GET"
  ["invoices", id] = input.parsed_path
  claims := input.attributes.metadataContext.filterMetadata["envoy.filters.http.jwt_authn"].claims
  data.tuples[sprintf("invoice:%s#viewer@service:%s", [id, claims.sub])]
}
`

export async function startEnvoyWithOpa(place: Place): Promise<{ readonly port: number; stop(): Promise<void> }> {
  const { issuer, folder } = place
  const discovery = await fetch(`${issuer}/.well-known/openid-configuration`)
  const { jwks_uri: uri }: { jwks_uri?: string } = Object(await discovery.json())
  const keys = await (await fetch(uri ?? '')).text()
  const tuples = { 'invoice:1#viewer@service:bench': true }
  const [port, asked, http, diagnostics] = await Promise.all([freePort(), freePort(), freePort(), freePort()])
  const listeners = { ...place, port, asked, keys }
  for (const [name, content] of [
    ['data.json', JSON.stringify({ tuples })],
    ['policy.rego', POLICY],
    ['envoy.json', JSON.stringify(envoySettings(listeners))],
  ] as const)
    writeFileSync(join(folder, name), content)
  const settings = [`addr=127.0.0.1:${asked}`, 'path=envoy/authz/allow'].flatMap((setting) => [
    '--set',
    `plugins.envoy_ext_authz_grpc.${setting}`,
  ])
  const addresses = ['--addr', `127.0.0.1:${http}`, '--diagnostic-addr', `127.0.0.1:${diagnostics}`]
  const words = ['run', '--server', ...addresses, '--log-level', 'error', ...settings, 'policy.rego', 'data.json']
  const opa = await listening(place.opa, words, { folder, port: asked })
  const quiet = ['--use-dynamic-base-id', '--concurrency', '1', '--log-level', 'error']
  try {
    const envoy = await listening(place.envoy, ['-c', 'envoy.json', ...quiet], { folder, port })
    return {
      port,
      async stop() {
        await ended(envoy)
        await ended(opa)
      },
    }
  } catch (err) {
    await ended(opa)
    throw err
  }
}

const PROTOBUF = 'type.googleapis.com/envoy.extensions'
const FILTERS = `${PROTOBUF}.filters`

function envoySettings(of: Place & { readonly port: number; readonly asked: number; readonly keys: string }): object {
  const provider = {
    issuer: of.issuer,
    audiences: [RESOURCE],
    local_jwks: { inline_string: of.keys },
    payload_in_metadata: 'claims',
    // As the sidecar does, it verifies a token once.
    jwt_cache_config: { jwt_cache_size: 100 },
  }
  const verify = {
    '@type': `${FILTERS}.http.jwt_authn.v3.JwtAuthentication`,
    providers: { pdp: provider },
    rules: [{ match: { prefix: '/' }, requires: { provider_name: 'pdp' } }],
  }
  const ask = {
    '@type': `${FILTERS}.http.ext_authz.v3.ExtAuthz`,
    transport_api_version: 'V3',
    grpc_service: { envoy_grpc: { cluster_name: 'opa' }, timeout: '1s' },
    metadata_context_namespaces: ['envoy.filters.http.jwt_authn'],
  }
  const manager = {
    '@type': `${FILTERS}.network.http_connection_manager.v3.HttpConnectionManager`,
    stat_prefix: 'bench',
    route_config: {
      virtual_hosts: [
        { name: 'all', domains: ['*'], routes: [{ match: { prefix: '/' }, route: { cluster: 'service' } }] },
      ],
    },
    http_filters: [
      { name: 'envoy.filters.http.jwt_authn', typed_config: verify },
      { name: 'envoy.filters.http.ext_authz', typed_config: ask },
      { name: 'envoy.filters.http.router', typed_config: { '@type': `${FILTERS}.http.router.v3.Router` } },
    ],
  }
  const filter = { name: 'envoy.filters.network.http_connection_manager', typed_config: manager }
  return {
    static_resources: {
      listeners: [{ name: 'bench', address: addressOf(of.port), filter_chains: [{ filters: [filter] }] }],
      clusters: [clusterOf('service', of.upstream), { ...clusterOf('opa', of.asked), ...OVER_HTTP2 }],
    },
  }
}

const addressOf = (port: number) => ({ socket_address: { address: '127.0.0.1', port_value: port } })
const clusterOf = (name: string, port: number) => ({
  name,
  load_assignment: {
    cluster_name: name,
    endpoints: [{ lb_endpoints: [{ endpoint: { address: addressOf(port) } }] }],
  },
})
const OVER_HTTP2 = {
  typed_extension_protocol_options: {
    'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
      '@type': `${PROTOBUF}.upstreams.http.v3.HttpProtocolOptions`,
      explicit_http_config: { http2_protocol_options: {} },
    },
  },
}

async function listening(
  program: string,
  words: readonly string[],
  { folder, port }: { readonly folder: string; readonly port: number },
): Promise<ChildProcess> {
  const child = spawn(program, words, { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] })
  process.once('exit', () => child.kill('SIGKILL'))
  await until(async () => child.exitCode !== null || (await isOpen(port)))
  if (child.exitCode !== null) throw new Error(`${program} ended with ${child.exitCode}`)
  return child
}

function ended(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) return resolve()
    child.once('exit', () => resolve())
    child.kill('SIGKILL')
  })
}
