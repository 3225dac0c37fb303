/** Random targets through every gateway: what reaches the service leads to the route by which it was judged. */
import { parseRouteFile } from '../../sidecar/route-file/route-file.ts'
import { type Gate, gateOf, routesOf, WITH_OVERLAPS, WITH_REST, WITH_SLASHES } from '../sidecar/fuzz/differential.ts'
import { randomTarget, seeded } from '../sidecar/fuzz/targets.ts'
import { routeFile } from '../sidecar/support/harness.ts'
import { createIssuer, issuerFetch } from '../support/peers/issuer.ts'
import { sendRaw } from '../support/peers/raw-http.ts'
import { tuples } from '../support/peers/scripted-pdp.ts'
import type { Binaries } from './binaries.ts'
import { allowedIn, type Compared, surely } from './compare.ts'
import type { Tally } from './tally.ts'
import { openWorld, type Way } from './world.ts'

const ANSWER_MS = 3_000

export async function fuzzRouting(
  tally: Tally,
  binaries: Binaries,
  { count, seed }: { count: number; seed: number },
): Promise<void> {
  for (const [rows, paths] of Object.entries({
    'routing, with **': WITH_REST,
    'routing, with slashes': WITH_SLASHES,
    'routing, with overlaps': WITH_OVERLAPS,
  })) {
    const issuer = await createIssuer({ issuer: 'https://as.test', audience: 'https://app.test', clock: Date.now })
    const scope = paths.map((_, at) => `own${at}`).join(' ')
    const source = routeFile(routesOf(paths), { extra: 'hosts: [app.test]' })
    const { file } = parseRouteFile(source.replace('UPSTREAM', 'http://127.0.0.1:1').replace('PDP', '127.0.0.1:1'))
    if (file === null) throw new Error('the routes are no route file')
    const world = await openWorld(file, { script: tuples([]), fetch: issuerFetch([issuer]), binaries })
    try {
      const token = await issuer.token({ scope })
      const gate = gateOf(paths)
      await Promise.all(
        world.ways.map(async (way) => {
          const random = seeded(seed)
          for (let left = count; left > 0; left -= 1) {
            const target = randomTarget(random)
            const found = await surely(() => attempt(way, target, { gate, token }))
            tally.add(rows, way.name, found, JSON.stringify(target))
          }
        }),
      )
    } finally {
      await world.close()
    }
  }
}

async function attempt(way: Way, target: string, { gate, token }: { gate: Gate; token: string }): Promise<Compared> {
  way.upstream.reached.length = 0
  way.log.length = 0
  const lines = [`GET ${target} HTTP/1.1`, 'Host: app.test', 'Connection: close', `Authorization: Bearer ${token}`]
  const { status } = await sendRaw(way.port, Buffer.from(`${lines.join('\r\n')}\r\n\r\n`), { timeoutMs: ANSWER_MS })
  const inline = await gate(target)
  const [reached] = way.upstream.reached
  if (reached === undefined) return { agreement: inline === null ? 'same' : 'stricter', why: `${status}` }
  const route = allowedIn(way.log).at(-1)?.route ?? null
  // What the service will read, by the sidecar's own rules.
  const read = await gate(reached.target)
  if (read === null || `GET ${read.path}` !== route)
    return { agreement: 'looser', why: `judged as ${route}, but ${reached.target} reached the service` }
  if (inline === null || inline.path !== read.path)
    return { agreement: 'cleaned', why: `the gateway made ${reached.target} of it before it asked` }
  return { agreement: 'same', why: '' }
}
