/**
 * `npm run bench -- doors [SECONDS]` (of a round): the service alone, behind the sidecar, behind each real gateway that asks a
 * door of one sidecar, and behind what others use instead, in one run. Needs nginx and wrk; the rest where it is present.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { request } from 'undici'
import type { RouteFile } from '../../../sidecar/route-file/route-file.ts'
import { parseRouteFile } from '../../../sidecar/route-file/route-file.ts'
import { findBinaries } from '../../doors/binaries.ts'
import { doorFor, GATEWAYS, type GatewayName, programOf, startGateway } from '../../doors/gateways.ts'
import { startProcess } from '../../sidecar/support/process.ts'
import { freePort } from '../../support/free-port.ts'
import { findPeer, type Peer, SOURCE } from '../peers/programs.ts'
import { spreadOf } from '../report/figures.ts'
import type { CpuByRole } from '../report/process-use.ts'
import { type Stale, staleness } from '../report/stale.ts'
import { atRate, fullSpeed, type Measured } from '../sidecar/load.ts'
import { startGate, startUpstream } from '../sidecar/nginx.ts'
import { type BenchPdp, PATH, RESOURCE, startBenchPdp } from '../sidecar/pdp.ts'
import { show } from '../suite/print.ts'
import { type Extent, type Group, medianCpu, type Row, USUAL, withCpu } from '../suite/rows.ts'
import { startEnvoyWithOpa } from './opa.ts'
import { startOathkeeper, startOauth2Proxy } from './proxies.ts'

const RATE = 300
/** Until what runs often is compiled. */
const WARM_UP_SECONDS = 3
const SIDECAR = 'Portcullis sidecar in front'
const NO_RELATION = 'relationships, revoked tokens, proofs'

type Place = { readonly name: string; readonly port: number; readonly ours: boolean; readonly unchecked: string }
type Closer = () => Promise<void> | void

export async function bench([seconds = '4']: readonly string[]): Promise<void> {
  const { group, missing } = await measureGateways({ ...USUAL, roundMs: Number(seconds) * 1_000 })
  show([{ name: 'sidecar and doors', groups: [group], missing }])
}

export async function measureGateways(extent: Extent): Promise<{ group: Group; missing: readonly string[] }> {
  const closers: Closer[] = []
  try {
    const folder = mkdtempSync(join(tmpdir(), 'portcullis-bench-doors-'))
    closers.unshift(() => rmSync(folder, { recursive: true, force: true }))
    const upstream = await startUpstream()
    closers.unshift(() => upstream.stop())
    const pdp = await startBenchPdp()
    closers.unshift(() => pdp.stop())
    const alone = { name: 'the service alone', port: upstream.port, ours: false, unchecked: 'everything' }
    const places = [alone, ...(await ownPlaces({ folder, upstream: upstream.port, pdp, closers }))]
    const { found, missing } = await peerPlaces({ folder, upstream: upstream.port, pdp, closers })
    const rows = await measure([...places, ...found], { extent, pdp })
    const title = `one route with a token and a relationship; requests/s with 32 connections, latency at ${RATE}/s`
    return { group: { title, unit: 'requests', reference: SIDECAR, rows }, missing }
  } finally {
    for (const close of closers) await close()
  }
}

type World = { readonly folder: string; readonly upstream: number; readonly pdp: BenchPdp; readonly closers: Closer[] }

/** A sidecar in front, and the gateways that ask its doors. */
async function ownPlaces({ folder, upstream, pdp, closers }: World): Promise<readonly Place[]> {
  const binaries = findBinaries(process.env, { make: false })
  const names = GATEWAYS.filter((name) => name !== 'istio' && binaries[programOf(name)] !== null)
  const { source, file } = await routeFileWithDoors(names, { folder, upstream, pdp })
  const sidecar = await startProcess({ routeFile: source })
  closers.unshift(() => sidecar.stop())
  const places: Place[] = [{ name: SIDECAR, port: sidecar.port, ours: true, unchecked: '' }]
  for (const name of names) {
    const gateway = await startGateway(name, file, binaries)
    closers.unshift(() => gateway.stop())
    places.push({ name: `${name} and our door`, port: gateway.port, ours: true, unchecked: 'what lasts is not ended' })
  }
  return places
}

async function routeFileWithDoors(
  names: readonly GatewayName[],
  { folder, upstream, pdp }: Omit<World, 'closers'>,
): Promise<{ source: string; file: RouteFile }> {
  const doors = await Promise.all(
    names.map(async (name) => doorFor(name, { folder: mkdtempSync(join(folder, name)), port: await freePort() })),
  )
  const source = JSON.stringify({
    portcullis: 'v1',
    resource: RESOURCE,
    issuers: [{ issuer: pdp.issuer }],
    upstream: `http://127.0.0.1:${upstream}`,
    pdp: { address: pdp.grpcAddress, insecure: true },
    doors: doors.map(({ profile, listen, tls, secretFile }) => ({
      profile,
      listen: 'path' in listen ? `unix:${listen.path}` : `${listen.host}:${listen.port}`,
      ...(secretFile !== null && { secret_file: secretFile }),
      ...(tls !== null && {
        tls: { cert_file: tls.certFile, key_file: tls.keyFile, client_ca_file: tls.clientCaFile },
      }),
    })),
    routes: { 'GET /invoices/{id}': 'viewer invoice:{id}' },
  })
  const { file, issues } = parseRouteFile(source)
  if (file === null) throw new Error(issues.map(({ message }) => message).join('\n'))
  return { source, file }
}

async function peerPlaces(world: World): Promise<{ found: readonly Place[]; missing: readonly string[] }> {
  const { pdp, upstream, folder, closers } = world
  const gate = await startGate(upstream, pdp.issuer)
  closers.unshift(() => gate.stop())
  const unchecked = 'everything but the status: a denial that is 200 is let through'
  const found: Place[] = [{ name: 'nginx auth_request and the PDP', port: gate.port, ours: false, unchecked }]
  const starts = [
    ['oauth2-proxy', startOauth2Proxy],
    ['oathkeeper', startOathkeeper],
  ] as const
  for (const [name, start] of starts) {
    const program = findPeer(name)
    if (program === null) continue
    const proxy = await start({ program, issuer: pdp.issuer, upstream, folder })
    closers.unshift(() => proxy.stop())
    found.push({ name, port: proxy.port, ours: false, unchecked: NO_RELATION })
  }
  const [opa, envoy] = [findPeer('opa-envoy'), findPeer('envoy')]
  if (opa !== null && envoy !== null) {
    const own = mkdtempSync(join(folder, 'opa'))
    const both = await startEnvoyWithOpa({ opa, envoy, issuer: pdp.issuer, upstream, folder: own })
    closers.unshift(() => both.stop())
    const unseen = 'revoked tokens, proofs; relationships only as they were pushed to it'
    found.push({ name: 'Envoy (jwt_authn) and OPA', port: both.port, ours: false, unchecked: unseen })
  }
  const wanted: readonly Peer[] = ['envoy', 'opa-envoy', 'oauth2-proxy', 'oathkeeper']
  return {
    found,
    missing: wanted.filter((name) => findPeer(name) === null).map((name) => `${name} (${SOURCE[name]})`),
  }
}

async function measure(
  places: readonly Place[],
  { extent, pdp }: { readonly extent: Extent; readonly pdp: BenchPdp },
): Promise<readonly Row[]> {
  const seconds = Math.max(1, Math.round(extent.roundMs / 1_000))
  const token = await pdp.token()
  const fields = { Host: 'app.test', Authorization: `Bearer ${token}` }
  const found = places.map((place) => ({
    place,
    full: [] as Measured[],
    slow: [] as Measured[],
    cpu: [] as CpuByRole[],
  }))
  for (const { port } of places) await fullSpeed({ port, path: PATH, fields }, Math.min(WARM_UP_SECONDS, seconds))
  for (let round = 0; round < extent.rounds; round += 1) {
    for (const { place, full, cpu } of found) {
      const measured = await withCpu(
        () => fullSpeed({ port: place.port, path: PATH, fields }, seconds),
        ({ perSecond }) => perSecond * seconds,
      )
      full.push(measured.found)
      cpu.push(measured.cpuUs)
    }
    for (const { place, slow } of found)
      slow.push(await atRate({ port: place.port, path: PATH, fields }, RATE, seconds))
  }
  const rows: Row[] = []
  for (const [at, { place, full, slow, cpu }] of found.entries())
    rows.push({
      ...place,
      perSecond: full.map(({ perSecond }) => perSecond),
      p50Ms: spreadOf(slow.map(({ p50Ms }) => p50Ms)).median,
      p99Ms: spreadOf(slow.map(({ p99Ms }) => p99Ms)).median,
      p999Ms: spreadOf(slow.map(({ p999Ms }) => p999Ms)).median,
      cpuUs: medianCpu(cpu),
      stale: at === 0 ? null : await revocations(at, { port: place.port, token, pdp, extent }),
    })
  return rows
}

function revocations(
  at: number,
  { port, token, pdp, extent }: { port: number; token: string; pdp: BenchPdp; extent: Extent },
): Promise<Stale> {
  const change = (kind: 'write' | 'delete') => (i: number) =>
    pdp.manage('POST', '/v1/organizations/acme/relationships', { [kind]: [`invoice:s${at}-${i}#viewer@service:bench`] })
  return staleness(
    {
      grant: change('write'),
      revoke: change('delete'),
      async allowed(i) {
        const headers = { host: 'app.test', authorization: `Bearer ${token}` }
        const { statusCode, body } = await request(`http://127.0.0.1:${port}/invoices/s${at}-${i}`, { headers })
        await body.dump()
        return statusCode === 200
      },
    },
    { count: extent.revocations, waitMs: extent.waitMs },
  )
}
