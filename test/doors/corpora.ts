/** Plays the attack files through every gateway. Cases about time, other parties or several steps are those of the data port. */
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseRouteFile, type RouteFile } from '../../sidecar/route-file/route-file.ts'
import { type AttackCase, type Fixture, readFixture } from '../attacks/case-format.ts'
import { readCases } from '../attacks/case-reader.ts'
import { createKeyring, type Keyring } from '../attacks/credentials.ts'
import { fetchFor, keySets } from '../attacks/faults.ts'
import { acrOfOthers, grantsOf, routeFileText } from '../attacks/route-text.ts'
import { prepare, type Sent } from '../attacks/wire.ts'
import { tuples } from '../support/peers/scripted-pdp.ts'
import type { Binaries } from './binaries.ts'
import { compare, look, type Seen, surely } from './compare.ts'
import type { Tally } from './tally.ts'
import { openWorld, type World } from './world.ts'

const FOLDERS = ['../../../shared/attacks', '../attacks/data'].map((path) =>
  fileURLToPath(new URL(path, import.meta.url)),
)
/** A gateway may wait for the rest of a message that never comes. */
const ANSWER_MS = 3_000
/** What the table calls the files. */
const ROWS: { readonly [name: string]: string } = { 'cases.jsonl': 'attacks', 'own-cases.jsonl': 'attacks of our own' }
const SLOW = /\{\{(?:drip|stream)/

/** `share`: every how manieth case. Returns how many were played. */
export async function playCorpora(tally: Tally, binaries: Binaries, share: number): Promise<number> {
  let played = 0
  for (const folder of FOLDERS.filter((path) => existsSync(path))) {
    const fixture = readFixture(join(folder, 'fixture.json'))
    const files = readdirSync(folder).filter((name) => name.endsWith('.jsonl'))
    for (const name of files) {
      const attacks = readCases(join(folder, name)).flatMap((read) => (read.kind === 'case' ? [read.attack] : []))
      const plain = attacks.filter(isPlain).filter((_, at) => at % share === 0)
      played += await playFile(ROWS[name] ?? name, plain, { fixture, tally, binaries })
    }
  }
  return played
}

/** One request over HTTP, by the clock, with parties that behave. */
function isPlain({ request, setup }: AttackCase): boolean {
  const { config = {} } = setup
  const text = `${request.raw ?? ''}${typeof request.body === 'string' ? request.body : ''}`
  return (
    request.steps === undefined &&
    !SLOW.test(text) &&
    !/upstream|103 forwarded/.test(setup.note ?? '') &&
    !Object.keys(config).some((name) => ELSEWHERE.has(name))
  )
}
const ELSEWHERE = new Set([
  'env',
  'config',
  'fault',
  'pdp',
  'upstream',
  'jwks',
  'clock',
  'clock_skew',
  'issuers',
  'route_checks',
])

type Around = { readonly fixture: Fixture; readonly tally: Tally; readonly binaries: Binaries }

async function playFile(name: string, attacks: readonly AttackCase[], around: Around): Promise<number> {
  const { fixture, tally, binaries } = around
  const keyring = createKeyring()
  const [first] = attacks
  if (first === undefined) return 0
  const jwks = await keySets(fixture, keyring, {})
  const grants = attacks.flatMap(({ id }) => grantsOf(fixture, id))
  const file = fileOf(fixture, first)
  if (file === null) throw new Error('the fixture is no route file')
  // Gateways let %2F pass to the door, where the route decides.
  const routes = file.routes.map((route) => ({ ...route, encodedSlash: true }))
  const world = await openWorld(
    { ...file, routes },
    {
      script: tuples([...fixture.tuples, ...grants]),
      fetch: fetchFor({}, { jwks, fetched: [], issuing: { served: true } }),
      binaries,
    },
  )
  let played = 0
  try {
    let applied = ''
    for (const attack of attacks) {
      const own = fileOf(fixture, attack)
      if (own === null) continue
      const text = routeFileText(fixture, attack)
      if (text !== applied) world.apply(own)
      applied = text
      await playCase(attack, { world, keyring, fixture, tally, rows: name })
      played += 1
    }
  } finally {
    await world.close()
  }
  return played
}

/** Null: the case wants the file refused. */
function fileOf(fixture: Fixture, attack: AttackCase): RouteFile | null {
  const { file } = parseRouteFile(routeFileText(fixture, attack))
  return file
}

type Playing = {
  readonly world: World
  readonly keyring: Keyring
  readonly fixture: Fixture
  readonly tally: Tally
  readonly rows: string
}

async function playCase(attack: AttackCase, { world, keyring, fixture, tally, rows }: Playing): Promise<void> {
  const options = {
    attack,
    fixture,
    keyring,
    nowMs: Date.now,
    bornMs: Date.now(),
    nonce: world.nonce,
    timeoutMs: ANSWER_MS,
  }
  // Each gets tokens and proofs of its own, which nobody has used before.
  const sender = (): Promise<(port: number) => Promise<Sent>> =>
    prepare({ ...options, acr: acrOfOthers(fixture, attack) })
  const again =
    (settleMs: number) =>
    async (way: World['inline']): Promise<Seen> =>
      look(way, await sender(), settleMs)
  const about = { sent: attack.request.headers, routeOf: world.routeOf }
  const [inline, ...seen] = await Promise.all([world.inline, ...world.ways].map(again(0)))
  for (const [at, way] of world.ways.entries()) {
    const own = seen[at]
    if (inline === undefined || own === undefined) continue
    const found = await surely(async (settleMs) =>
      settleMs === 0
        ? compare(inline, own, about)
        : compare(await again(settleMs)(world.inline), await again(settleMs)(way), about),
    )
    tally.add(rows, way.name, found, `${attack.id} ${attack.request.method} ${attack.request.target}`)
  }
}
