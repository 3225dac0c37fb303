/**
 * `npm run bench -- doors [SECONDS]` (of a round): the service alone, behind the sidecar, and behind each real gateway that asks a
 * door of one sidecar, and behind Envoy that asks Open Policy Agent, in one run. Needs nginx and wrk, and the programs that
 * `npm run test:doors` makes.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseRouteFile } from '../../../sidecar/route-file/route-file.ts'
import { findBinaries, findOpa } from '../../doors/binaries.ts'
import { doorFor, GATEWAYS, type Gateway, programOf, startGateway } from '../../doors/gateways.ts'
import { startProcess } from '../../sidecar/support/process.ts'
import { freePort } from '../../support/free-port.ts'
import { atRate, fullSpeed, type Load, type Measured, medians, ROUNDS } from '../sidecar-load.ts'
import { startUpstream } from '../sidecar-nginx.ts'
import { PATH, RESOURCE, startBenchPdp } from '../sidecar-pdp.ts'
import { type Opa, startOpa } from './opa.ts'

const RATE = 300
/** Until what runs often is compiled. */
const WARM_UP_SECONDS = 3

export async function bench([words = '4']: readonly string[]): Promise<void> {
  const seconds = Number(words)
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-bench-doors-'))
  const binaries = findBinaries(process.env, { make: false })
  const names = GATEWAYS.filter((name) => name !== 'istio' && binaries[programOf(name)] !== null)
  const upstream = await startUpstream()
  const pdp = await startBenchPdp()
  const doors = await Promise.all(
    names.map(async (name) => {
      const own = mkdtempSync(join(folder, name))
      return doorFor(name, { folder: own, port: await freePort() })
    }),
  )
  const source = JSON.stringify({
    portcullis: 'v1',
    resource: RESOURCE,
    issuers: [{ issuer: pdp.issuer }],
    upstream: `http://127.0.0.1:${upstream.port}`,
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
  const sidecar = await startProcess({ routeFile: source })
  const gateways: Gateway[] = []
  let opa: Opa | null = null
  try {
    for (const name of names) gateways.push(await startGateway(name, file, binaries))
    const program = binaries.envoy === null ? null : findOpa(process.env)
    if (program !== null) {
      opa = await startOpa(program, { issuer: pdp.issuer, folder: mkdtempSync(join(folder, 'opa')) })
      const at = { host: '127.0.0.1', port: opa.port }
      // OPA reads joined fields, as the profile of Istio does.
      const asked = doorFor('istio', { folder, port: opa.port })
      gateways.push(await startGateway('istio', { ...file, doors: [{ ...asked, listen: at }] }, binaries))
    }
    const fields = { Host: 'app.test', Authorization: `Bearer ${await pdp.token()}` }
    const load = (port: number): Load => ({ port, path: PATH, fields })
    const ports = [upstream.port, sidecar.port, ...gateways.map(({ port }) => port)]
    const loads = ports.map(load)
    for (const one of loads) await fullSpeed(one, WARM_UP_SECONDS)
    const full = await medians(loads, (one) => fullSpeed(one, seconds))
    const slow = await medians(loads, (one) => atRate(one, RATE, seconds))
    const measured = names.map((name) => `${name} and its door`)
    report(['service alone', 'sidecar in front', ...measured, ...(opa === null ? [] : ['envoy and OPA'])], {
      full,
      slow,
    })
  } finally {
    for (const gateway of gateways) await gateway.stop()
    await opa?.stop()
    await sidecar.stop()
    await pdp.stop()
    await upstream.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

function report(
  names: readonly string[],
  { full, slow }: { full: readonly Measured[]; slow: readonly Measured[] },
): void {
  const [alone] = slow
  const own = full[1]?.perSecond ?? 0
  say(`medians of ${ROUNDS} rounds in turn; requests/s with 32 connections; added latency at ${RATE}/s`)
  for (const [at, name] of names.entries()) {
    const perSecond = full[at]?.perSecond ?? 0
    const added = (figure: 'p50Ms' | 'p99Ms'): string => ((slow[at]?.[figure] ?? 0) - (alone?.[figure] ?? 0)).toFixed(2)
    const share = at < 2 ? '' : `, ${(perSecond / own).toFixed(2)} of the sidecar in front`
    say(
      `  ${name.padEnd(22)} ${perSecond.toFixed(0).padStart(6)}/s  p50 +${added('p50Ms')} ms  p99 +${added('p99Ms')} ms${share}`,
    )
  }
}

const say = (line: string): void => void process.stdout.write(`${line}\n`)
