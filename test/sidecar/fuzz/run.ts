/** `npm run fuzz [-- TARGETS [SEED]]`: looks for bypasses with many targets, and checks that planted laxity is found. */
import { fuzz, gateOf, WITH_REST, WITH_SLASHES, WITHOUT_REST } from './differential.ts'
import { hasNginx } from './frameworks.ts'
import { openHttp2Gate } from './over-http2.ts'

const count = Number(process.argv[2] ?? 120_000)
const seed = Number(process.argv[3] ?? Date.now() % 100_000)
if (!hasNginx()) console.log('nginx is not installed (Debian: nginx-light), so it is left out')
/** A whole sidecar is slower than its parser and its table. */
const OVER_HTTP2_PART = 20
let found = 0
for (const [name, paths] of Object.entries({
  'with **': WITH_REST,
  'without **': WITHOUT_REST,
  'with slashes': WITH_SLASHES,
})) {
  const { targets, forwarded, sent, bypasses } = await fuzz({ paths, gate: gateOf(paths), count: count / 3, seed })
  for (const bypass of bypasses.slice(0, 20)) console.log(`bypass: ${bypass}`)
  found += bypasses.length
  console.log(`routes ${name}: ${targets} targets, ${forwarded} forwarded, ${sent} sent, ${bypasses.length} bypasses`)
  const over2 = await openHttp2Gate(paths)
  const asked = await fuzz({ paths, gate: over2.gate, count: count / OVER_HTTP2_PART, seed: seed + 1 })
  await over2.close()
  for (const bypass of asked.bypasses.slice(0, 20)) console.log(`bypass over HTTP/2: ${bypass}`)
  found += asked.bypasses.length
  console.log(
    `  over HTTP/2: ${asked.targets} targets, ${asked.forwarded} forwarded, ${asked.sent} sent, ${asked.bypasses.length} bypasses`,
  )
}
const lower = (segments: readonly string[]): readonly string[] => segments.map((text) => text.toLowerCase())
const planted = await fuzz({ paths: WITH_REST, gate: gateOf(WITH_REST, lower), count: 4_000, seed })
console.log(`planted laxity (case folded before matching): ${planted.bypasses.length} bypasses found`)
console.log(`seed ${seed}: ${found} bypasses`)
if (found > 0 || planted.bypasses.length === 0) process.exitCode = 1
