/** Plays what happens beside the requests of an attack case: to the clock, the issuer, the PDP, the sidecar itself. */
import { exportJWK } from 'jose'
import { type AttackCase, type Fixture, Unknown } from './case-format.ts'
import type { Keyring } from './credentials.ts'
import type { Act, Look } from './step-reader.ts'
import type { World } from './world.ts'

export type Playing = {
  readonly attack: AttackCase
  readonly fixture: Fixture
  readonly world: World
  readonly keyring: Keyring
  readonly time: Time
}
/** `offsetMs`: how far the time of everybody has gone on; `skewMs`: how far the sidecar's clock is before it. */
export type Time = { offsetMs: number; skewMs: number }

const MAX_AGE_MS = 700_000

/** `sendOnce`: the case's own request, which some acts are about after it was seen once. */
export async function act(what: Act, playing: Playing, sendOnce: () => Promise<void>): Promise<void> {
  const { fixture, world, keyring, time } = playing
  const [issuer] = fixture.issuers
  const keys = issuer === undefined ? undefined : world.jwks.get(issuer.iss)
  switch (what.kind) {
    case 'rotate':
      keys?.keys.push({ ...(await exportJWK(keyring('rotated').publicKey)), kid: 'k2' })
      return
    case 'replace key':
      await sendOnce()
      keys?.keys.splice(0, 1, { ...(await exportJWK(keyring('rotated').publicKey)), kid: issuer?.kid })
      return
    case 'remove key':
      await sendOnce()
      keys?.keys.splice(0)
      return
    case 'keys down':
    case 'keys up':
      world.keysServed(what.kind === 'keys up')
      return
    case 'wait max age':
      time.offsetMs += MAX_AGE_MS
      return
    case 'pass':
      time.offsetMs += what.ms
      return
    case 'skew':
      time.skewMs += what.ms
      return
    case 'hang PDP':
      if (world.pdp === null) throw new TypeError('a PDP that hangs is a scripted one')
      world.pdp.script = () => null
      return
    case 'stop PDP':
      return world.stopPdp()
    case 'start PDP':
      return world.startPdp()
    case 'revoke':
      return world.change('delete', what.tuple)
    case 'grant':
      return world.change('write', what.tuple)
    case 'terminate':
      return world.terminate()
  }
}

/** What is wrong with it. `share`: how much of the load that the step names was played. */
export async function currentView(what: Look, { world }: Playing, share: number): Promise<string[]> {
  if (what.at === 'metrics') {
    if (world.registry === null) throw new Unknown('the metrics of a process of its own are not looked at')
    const { length } = await world.registry.metrics()
    const bytesMax = what.max * Math.max(share, METRICS_SHARE_MIN)
    return length > bytesMax ? [`/metrics has ${length} characters, not ${bytesMax} at most`] : []
  }
  const count = what.at === 'fetches' ? world.fetched.length : world.upstream.reached.length
  return count > what.max ? [`${what.at}: ${count}, not ${what.max} at most`] : []
}

/** What is there without any load. */
const METRICS_SHARE_MIN = 0.1

/** So that a request is still under way when something happens. */
export function slowDown({ upstream }: World): void {
  upstream.handle = (_req, res) => void setTimeout(() => res.end('late'), SLOW_ANSWER_MS)
}
const SLOW_ANSWER_MS = 1_500
