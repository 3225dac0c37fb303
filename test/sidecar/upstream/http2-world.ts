/** A sidecar in front of a service that speaks HTTP/2, and a session of a client, anew for each test. */
import type { ClientHttp2Session } from 'node:http2'
import { afterEach, beforeEach } from 'vitest'
import { tuples } from '../../support/peers/scripted-pdp.ts'
import { type Harness, startHarness } from '../support/harness.ts'
import { openSession } from '../support/http2-client.ts'
import { type Http2Upstream, startHttp2Upstream } from '../support/http2-upstream.ts'

export const ROUTES = `GET /public/**: public
POST /public/**: public
GET /invoices/{id}: viewer invoice:{id}`

class Http2World {
  h!: Harness
  up!: Http2Upstream
  session!: ClientHttp2Session
  readonly closers: (() => unknown)[] = []

  /** Another service, from now on. */
  use(url: string): void {
    this.h.upstream.origin = `{url: "${url}", http2: true}`
    this.h.apply(ROUTES)
  }
}

export function openHttp2World(): Http2World {
  const world = new Http2World()
  beforeEach(async () => {
    world.h = await startHarness({
      routes: ROUTES,
      script: tuples(['alice viewer invoice:1']),
      limits: { upstreamHeadersMs: 2_000, upstreamConnectMs: 2_000 },
    })
    world.up = await startHttp2Upstream()
    world.use(`http://127.0.0.1:${world.up.port}`)
    world.session = openSession(world.h.port)
    // A test may put others in their places.
    world.closers.push(
      () => world.session.destroy(),
      () => world.h.close(),
      () => world.up.close(),
    )
  })
  afterEach(async () => {
    for (const close of world.closers.splice(0)) await close()
  })
  return world
}
