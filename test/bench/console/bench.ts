/** How long each screen of the console takes at 100,000 relationships, and decisions per second with and without tails open. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startEmbeddedPostgres } from '../../../pdp/engine/store/embedded-postgres/embedded-postgres.ts'
import { SCREENS } from '../../console/screens.ts'
import { MODEL, startWorld, type World } from '../../console/world.ts'
import { signedInTo } from '../../pdp/server/console/visitor.ts'
import type { Browser } from '../../support/browser.ts'
import { median } from '../engine/data.ts'

const RELATIONSHIPS = 100_000
const PER_WRITE = 1_000
const LOOKS = 60
const TAILS = 5
const CALLERS = 8
const ROUND_MS = 2_000
const ROUNDS = 4

export async function bench(): Promise<void> {
  const dataDirectory = await mkdtemp(join(tmpdir(), 'portcullis-bench-'))
  const postgres = await startEmbeddedPostgres({ dataDirectory })
  const world = await startWorld(postgres.connectionString)
  try {
    await fill(world)
    const browser = await signedInTo(world, 'root')
    console.log(`${RELATIONSHIPS} relationships, ${LOOKS} looks at each screen`)
    for (const [name, path] of Object.entries(SCREENS)) await look(browser, name, path)
    await decideWithTails(world, browser)
  } finally {
    await world.close()
    await postgres.stop()
    await rm(dataDirectory, { recursive: true, force: true })
  }
}

async function fill({ manage }: World): Promise<void> {
  for (let from = 0; from < RELATIONSHIPS; from += PER_WRITE) {
    const write = Array.from({ length: PER_WRITE }, (_, i) => `doc:n${from + i}#viewer@user:u${(from + i) % 1_000}`)
    await manage('POST', '/v1/organizations/acme/relationships', { write })
  }
  // So that there is an earlier version to compare with.
  const model = MODEL.replace(') but not banned', ')')
  await manage('PUT', '/v1/apps/docs/manifest', {
    audiences: ['https://docs.example'],
    permissions: {},
    roles: {},
    model,
  })
}

async function look(browser: Browser, name: string, path: string): Promise<void> {
  const times: number[] = []
  let bytes = 0
  for (let i = 0; i < LOOKS; i++) {
    const startedMs = performance.now()
    const response = await browser.send(path)
    bytes = (await response.arrayBuffer()).byteLength
    if (!response.ok) throw new Error(`${path}: ${response.status}`)
    times.push(performance.now() - startedMs)
  }
  times.sort((a, b) => a - b)
  const p95 = times[Math.floor(0.95 * (times.length - 1))] ?? 0
  console.log(
    `${name.padEnd(14)} p50 ${median(times).toFixed(1).padStart(6)} ms  p95 ${p95.toFixed(1).padStart(6)} ms  ${bytes} bytes`,
  )
}

/** In turn, so that a slow moment of the machine meets both. */
async function decideWithTails(world: World, browser: Browser): Promise<void> {
  const rates: { readonly without: number[]; readonly with: number[] } = { without: [], with: [] }
  await round(world) // warm
  for (let i = 0; i < ROUNDS; i++) {
    rates.without.push(await round(world))
    const tails = await Promise.all(Array.from({ length: TAILS }, () => openTail(browser)))
    rates.with.push(await round(world))
    await Promise.all(tails.map((close) => close()))
  }
  const [alone, watched] = [median(rates.without), median(rates.with)]
  console.log(
    `decisions/s over HTTP: ${alone.toFixed(0)} alone, ${watched.toFixed(0)} with ${TAILS} tails open (${(watched / alone).toFixed(2)})`,
  )
}

async function openTail(browser: Browser): Promise<() => Promise<void>> {
  const response = await browser.send('/console/decisions/tail?org=acme')
  const reader = response.body?.getReader()
  const reading = (async () => {
    while ((await reader?.read())?.done === false);
  })()
  return async () => {
    await reader?.cancel()
    await reading
  }
}

async function round({ ask }: World): Promise<number> {
  const endMs = performance.now() + ROUND_MS
  let count = 0
  const caller = async (): Promise<void> => {
    while (performance.now() < endMs) {
      const response = await ask({ requestId: `bench-request-${count}`, relation: 'viewer', resource: 'doc:2' })
      await response.arrayBuffer()
      count += 1
    }
  }
  await Promise.all(Array.from({ length: CALLERS }, caller))
  return count / (ROUND_MS / 1_000)
}
