/** Real gateways with the configuration that `gateway-config` prints for a route file. */
import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gatewayConfig } from '../../sidecar/gateways/gateway-config.ts'
import type { DoorProfile } from '../../sidecar/http/door-fields.ts'
import type { DoorEntry } from '../../sidecar/route-file/doors.ts'
import type { RouteFile } from '../../sidecar/route-file/route-file.ts'
import { freePort, isOpen } from '../support/free-port.ts'
import { until } from '../support/until.ts'
import type { Binaries, Program } from './binaries.ts'

export type Gateway = { readonly port: number; stop(): Promise<void> }

/** Istio is Envoy that joins the fields of one name; Gateway API has no gateway of its own. */
export const GATEWAYS = ['envoy', 'istio', 'nginx', 'traefik', 'caddy'] as const
export type GatewayName = (typeof GATEWAYS)[number] & DoorProfile

export const programOf = (name: GatewayName): Program => (name === 'istio' ? 'envoy' : name)

const PEMS = fileURLToPath(new URL('../support/certificates', import.meta.url))
const pem = (name: string): string => join(PEMS, name)
export const SECRET = 'a-secret-of-the-gateways-that-is-long-enough'

/** Each gateway proves itself in the way that suits it: a secret, a unix socket or a certificate. */
export function doorFor(name: GatewayName, { folder, port }: { folder: string; port: number }): DoorEntry {
  const plain = { profile: name, listen: { host: '127.0.0.1', port }, tls: null, secretFile: null, body: false }
  const secretFile = join(folder, 'secret')
  writeFileSync(secretFile, SECRET)
  if (name === 'nginx') return { ...plain, listen: { path: join(folder, 'door.sock') } }
  if (name === 'caddy') return { ...plain, secretFile }
  if (name !== 'traefik') return { ...plain, secretFile, body: true }
  const tls = { certFile: pem('server-1.pem'), keyFile: pem('server-1.key'), clientCaFile: pem('ca.pem') }
  return { ...plain, tls }
}

/** Changes a printed file. */
export type Edit = (name: GatewayName, text: string) => string

/** `file`: with the door and the service that are there already. `at`: its port; default: any. Returns when it listens. */
export async function startGateway(
  name: GatewayName,
  file: RouteFile,
  binaries: Binaries,
  { at = null, edit = (_name, text) => text }: { readonly at?: number | null; readonly edit?: Edit } = {},
): Promise<Gateway> {
  const folder = mkdtempSync(join(tmpdir(), `portcullis-${name}-`))
  const port = at ?? (await freePort())
  const listen = { host: '127.0.0.1', port }
  const places = { listen, door: null, ca: pem('ca.pem'), cert: pem('client.pem'), key: pem('client.key') }
  // The profile differs, the configuration is Envoy's.
  const asEnvoy = { ...file, doors: file.doors.map((door) => ({ ...door, profile: 'envoy' as const })) }
  const printed = name === 'istio' ? gatewayConfig('envoy', asEnvoy, places) : gatewayConfig(name, file, places)
  for (const one of printed) {
    const joined =
      name === 'istio' ? one.text.replace('encode_raw_headers: true', 'encode_raw_headers: false') : one.text
    writeFileSync(join(folder, one.name), edit(name, joined))
  }
  if (name === 'nginx') writeFileSync(join(folder, 'nginx.conf'), nginxMain(folder))
  const log = openSync(join(folder, 'log'), 'w')
  const child = spawn(binaries[programOf(name)] ?? '', argumentsOf(name, folder), {
    cwd: folder,
    env: {
      PATH: process.env.PATH,
      HOME: folder,
      XDG_DATA_HOME: folder,
      XDG_CONFIG_HOME: folder,
      PORTCULLIS_CALLER_SECRET: SECRET,
    },
    stdio: ['ignore', log, log],
  })
  closeSync(log)
  await until(async () => child.exitCode !== null || (await isOpen(port)))
  if (child.exitCode !== null)
    throw new Error(`${name} ended: ${readFileSync(join(folder, 'log'), 'utf8').slice(-2_000)}`)
  return { port, stop: () => stop(name, child, folder) }
}

function argumentsOf(name: GatewayName, folder: string): string[] {
  if (name === 'nginx') return ['-e', 'stderr', '-p', folder, '-c', join(folder, 'nginx.conf')]
  if (name === 'traefik') return ['--configFile=traefik.yaml']
  if (name === 'caddy') return ['run', '--config', 'Caddyfile', '--adapter', 'caddyfile']
  return ['-c', 'envoy.yaml', '--use-dynamic-base-id', '--concurrency', '1', '--log-level', 'error']
}

function nginxMain(folder: string): string {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((kind) => `${kind}_temp_path ${folder};`)
  return `daemon off; worker_processes 1; pid ${folder}/pid; error_log stderr crit; user root;
events { worker_connections 1024; }
http { access_log off; keepalive_requests 1000000000; ${temporary.join(' ')} include ${folder}/portcullis.conf; }`
}

/** A killed master of nginx would leave its workers; SIGTERM ends them at once. The others would drain on SIGTERM. */
function stop(name: GatewayName, child: ChildProcess, folder: string): Promise<void> {
  return new Promise((resolve) => {
    child.once('exit', () => {
      rmSync(folder, { recursive: true, force: true })
      resolve()
    })
    child.kill(name === 'nginx' ? 'SIGTERM' : 'SIGKILL')
  })
}
