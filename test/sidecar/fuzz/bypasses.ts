/** `npm run fuzz -- --parser bypass`: looks for bypasses with many targets, and checks that planted laxity is found. */
import {
  fuzz,
  gateBehindPrefix,
  gateOf,
  WITH_OVERLAPS,
  WITH_PARTS,
  WITH_REST,
  WITH_SLASHES,
  WITHOUT_REST,
} from './differential.ts'
import { hasNginx } from './frameworks.ts'
import { openHttp2Gate } from './over-http2.ts'

const TARGETS_PER_ROUND = 6_000
/** A whole sidecar is slower than its parser and its table. */
const OVER_HTTP2_PART = 20
const PREFIX_PART = 2
const BELOW = '/base'

/** Round by round until the time is over. @returns true when nothing was found but what was planted. */
export async function playBypasses({
  seconds,
  seed,
}: {
  readonly seconds: number
  readonly seed: number
}): Promise<boolean> {
  if (!hasNginx()) console.log('nginx is not installed (Debian: nginx-light), so it is left out')
  const endMs = performance.now() + seconds * 1_000
  let found = 0
  for (let round = 0; round === 0 || performance.now() < endMs; round++) found += await playRound(seed + 2 * round)
  const lower = (segments: readonly string[]): readonly string[] => segments.map((text) => text.toLowerCase())
  const planted = await fuzz({ paths: WITH_REST, gate: gateOf(WITH_REST, lower), count: 4_000, seed })
  console.log(`planted laxity (case folded before matching): ${planted.bypasses.length} bypasses found`)
  return found === 0 && planted.bypasses.length > 0
}

async function playRound(seed: number): Promise<number> {
  let found = 0
  for (const [name, paths] of Object.entries({
    'with **': WITH_REST,
    'without **': WITHOUT_REST,
    'with slashes': WITH_SLASHES,
    'with overlaps': WITH_OVERLAPS,
    'with parts of segments': WITH_PARTS,
  })) {
    const plain = await fuzz({ paths, gate: gateOf(paths), count: TARGETS_PER_ROUND, seed })
    const behind = await fuzz({ paths, gate: gateBehindPrefix(paths), count: TARGETS_PER_ROUND / PREFIX_PART, seed })
    const lower = await fuzz({
      ...{ paths, gate: gateBehindPrefix(paths, BELOW), below: BELOW },
      ...{ count: TARGETS_PER_ROUND / PREFIX_PART, seed: seed + 1 },
    })
    const http2 = await openHttp2Gate(paths)
    const over2 = await fuzz({ paths, gate: http2.gate, count: TARGETS_PER_ROUND / OVER_HTTP2_PART, seed: seed + 1 })
    await http2.close()
    for (const [how, { targets, forwarded, sent, bypasses }] of Object.entries({
      '': plain,
      ' behind strip_path': behind,
      ' below add_path': lower,
      ' over HTTP/2': over2,
    })) {
      for (const bypass of bypasses.slice(0, 20)) console.log(`bypass${how}: ${bypass}`)
      found += bypasses.length
      console.log(
        `routes ${name}${how}, seed ${seed}: ${targets} targets, ${forwarded} forwarded, ${sent} sent, ${bypasses.length} bypasses`,
      )
    }
  }
  return found
}
