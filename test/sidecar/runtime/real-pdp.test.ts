import { afterEach, expect, test } from 'vitest'
import { NO_CERTIFICATES } from '../../../sidecar/config/certificates.ts'
import { type RealPdp, startRealPdp } from '../../attacks/real-pdp.ts'
import { tuples } from '../../support/peers/scripted-pdp.ts'
import { until } from '../../support/until.ts'
import { type Harness, PROMPT_MS, startHarness } from '../support/harness.ts'

let h: Harness | null = null
let pdp: RealPdp | null = null
afterEach(async () => {
  await h?.close()
  await pdp?.stop()
})

test('with the real PDP, a revoked relation ends a stream at once, and the next request is 403', async () => {
  const real = await startRealPdp(['alice viewer feed:1', 'alice viewer feed:2'], 'acme')
  pdp = real
  const harness = await startHarness({
    routes: 'GET /events/{id}: viewer feed:{id}',
    script: tuples([]),
    limits: { drainMs: 100 },
  })
  h = harness
  const file = harness.file()
  const moved = { ...file, pdp: { ...file.pdp, addresses: [real.address] } }
  harness.sidecar.apply({ file: moved, certificates: NO_CERTIFICATES, hash: 'real' })
  harness.upstream.handle = (_req, res) => {
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    res.write('data: 1\n\n')
  }
  await until(async () => (await harness.send('GET /events/3')).status === 403)
  const ended: string[] = []
  const [first, second] = [harness.send('GET /events/1'), harness.send('GET /events/2')]
  void second.then(() => ended.push('second'))
  // Past the moment at which the watched question is asked.
  await new Promise((resolve) => setTimeout(resolve, 800))
  const revokedMs = performance.now()
  await real.change('delete', ['alice viewer feed:1'])
  expect((await first).text).toContain('portcullis-problem: permission_denied')
  expect(performance.now() - revokedMs).toBeLessThan(PROMPT_MS)
  expect(ended).toEqual([])
  expect((await harness.send('GET /events/1')).status).toBe(403)
})
