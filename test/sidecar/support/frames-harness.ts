/** The sidecar that raw frames are sent to: public routes, a guarded one, one that reads a field, and low limits. */

import { tuples } from '../../support/peers/scripted-pdp.ts'
import { type Harness, startHarness } from './harness.ts'

export const startFramesHarness = (): Promise<Harness> =>
  startHarness({
    routes: `GET /public/**: public
POST /public/**: public
"* /any/**": public
GET /invoices/{id}: viewer invoice:{id}
GET /mine: viewer invoice:{header.x-invoice}`,
    script: tuples(['alice viewer invoice:1']),
    limits: { http2StreamsMax: 5, connectionsMax: 20, http2EmptyFramesMax: 100 },
  })
