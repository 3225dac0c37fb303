/** One sidecar that forwards, one behind each real gateway, and an upstream of its own for each: what reaches it got past. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Registry } from 'prom-client'
import { createNonces } from '../../pdp/shared/token/nonces.ts'
import type { Fetch } from '../../pdp/shared/token/remote-keys.ts'
import { processReplayMemory } from '../../pdp/shared/token/replay.ts'
import { readCertificates } from '../../sidecar/config/certificates.ts'
import { syntheticRequest } from '../../sidecar/http/client-request.ts'
import { readInbound } from '../../sidecar/request/inbound.ts'
import type { DoorEntry } from '../../sidecar/route-file/doors.ts'
import type { RouteFile } from '../../sidecar/route-file/route-file.ts'
import { usesBody } from '../../sidecar/routes/checks.ts'
import { createRouting, type RoutingDeps, routeRequest } from '../../sidecar/routes/route-request.ts'
import { createMetrics } from '../../sidecar/runtime/metrics.ts'
import { createSidecar, type Sidecar } from '../../sidecar/runtime/sidecar.ts'
import { processMemory } from '../../sidecar/sign-in/memory.ts'
import { shareSessions } from '../../sidecar/sign-in/refresh.ts'
import { PATIENT } from '../sidecar/support/harness.ts'
import { type Reached, startUpstream, type Upstream } from '../sidecar/support/upstream.ts'
import { freePort } from '../support/free-port.ts'
import { type Script, type ScriptedPdp, startScriptedPdp } from '../support/peers/scripted-pdp.ts'
import { until } from '../support/until.ts'
import type { Binaries } from './binaries.ts'
import { doorFor, type Edit, GATEWAYS, type Gateway, type GatewayName, programOf, startGateway } from './gateways.ts'

export type Way = {
  readonly name: 'inline' | GatewayName
  /** Where clients send. */
  readonly port: number
  readonly upstream: Upstream
  readonly sidecar: Sidecar
  /** Lines of the decision log. */
  readonly log: object[]
}
export type World = {
  readonly inline: Way
  readonly ways: readonly Way[]
  readonly pdp: ScriptedPdp
  readonly nonce: (which: 'current' | 'old') => string
  /** The route of a request by the rules in force; null: it is refused before its route is known. */
  routeOf(reached: Reached): string | null
  /** Puts another route file into force everywhere. */
  apply(file: RouteFile): void
  close(): Promise<void>
}

const NONCE_SECRET = Buffer.alloc(32, 'n')
const OLD_MS = 3_600_000

/** What a door of this kind can hold. */
const heldBy = (door: DoorEntry, file: RouteFile): RouteFile => ({
  ...file,
  routes: file.routes.filter(
    ({ websocket, check, context }) => !websocket && (door.body || check === null || !usesBody({ check, context })),
  ),
})

/** `file`: upstream, PDP and doors are put in its place. Gateways whose program is missing are left out. */
export async function openWorld(
  file: RouteFile,
  {
    script,
    fetch,
    binaries,
    edit = (_name, text) => text,
  }: {
    readonly script: Script
    readonly fetch: Fetch
    readonly binaries: Binaries
    /** Changes what `gateway-config` prints. */
    readonly edit?: Edit
  },
): Promise<World> {
  const pdp = await startScriptedPdp(script)
  const closers: (() => Promise<void> | void)[] = [() => pdp.stop()]
  const nonces = createNonces({ secret: NONCE_SECRET, clock: Date.now })
  const appliers: ((next: RouteFile) => void)[] = []
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-doors-'))
  closers.push(() => rmSync(folder, { recursive: true, force: true }))

  async function openWay(name: Way['name'], door: DoorEntry | null): Promise<Way> {
    const upstream = await startUpstream()
    const placed = (next: RouteFile): RouteFile => ({
      ...(door === null ? next : heldBy(door, next)),
      upstream: { ...next.upstream, origin: upstream.origin },
      pdp: { ...next.pdp, addresses: [pdp.address], insecure: true },
      doors: door === null ? [] : [door],
    })
    const own = placed(file)
    const log: object[] = []
    const write = (line: object): void => void log.push(line)
    const sidecar = createSidecar({
      config: { file: own, certificates: readCertificates(own), hash: name },
      log: { info: write, warn: write, error: write },
      metrics: createMetrics(new Registry()),
      fetch,
      clock: Date.now,
      random: () => 0.5,
      replay: processReplayMemory({ clock: Date.now, entriesMax: 10_000 }),
      nonces,
      readToken: () => '',
      sessions: shareSessions(processMemory({ clock: Date.now }), { clock: Date.now, log: { warn: write } }),
      limits: { ...PATIENT, bodyIdleMs: 2_000, keyCooldownMs: 0 },
    })
    const { port } = await sidecar.listen({ host: '127.0.0.1', port: 0 })
    await sidecar.openDoors()
    await until(() => sidecar.notReady() === null)
    appliers.push((next) => {
      const placedNext = placed(next)
      sidecar.apply({ file: placedNext, certificates: readCertificates(placedNext), hash: `${name} next` })
    })
    let gateway: Gateway | null = null
    if (name !== 'inline') gateway = await startGateway(name, own, binaries, { edit })
    closers.unshift(async () => {
      await gateway?.stop()
      await sidecar.close()
      await upstream.close()
    })
    return { name, port: gateway?.port ?? port, upstream, sidecar, log }
  }

  let routing = createRouting(file)
  const inline = await openWay('inline', null)
  const ways: Way[] = []
  for (const name of GATEWAYS) {
    if (binaries[programOf(name)] === null) continue
    ways.push(await openWay(name, doorFor(name, { folder, port: await freePort() })))
  }
  const old = createNonces({ secret: NONCE_SECRET, clock: () => Date.now() - OLD_MS })
  return {
    inline,
    ways,
    pdp,
    nonce: (which) => (which === 'old' ? old : nonces).current(),
    routeOf: (reached) => routeIn(routing, reached),
    apply(next) {
      routing = createRouting(next)
      for (const applyTo of appliers) applyTo(next)
    },
    async close() {
      for (const close of closers) await close()
    },
  }
}

function routeIn(routing: RoutingDeps, { method, target, rawHeaders }: Reached): string | null {
  try {
    const request = readInbound(syntheticRequest({ method, target, raw: rawHeaders }), {
      origin: { address: '127.0.0.1', host: null, fault: null },
      targetCharsMax: 8_192,
    })
    const match = routeRequest(routing, request)
    return match.kind === 'route' ? match.route.id : null
  } catch {
    return null
  }
}
