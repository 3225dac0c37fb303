/**
 * `npm run mcp [-- PART… | --short]`: real servers and clients of MCP around the gate: what each client does with lists, denials
 * and the next call, attacks on each server, the conformance suite, calls that run while their permission ends, and the cost
 * of a call. Installs what it needs from npm and PyPI once; says what it cannot have, and passes without it.
 */
import { latencyOf } from '../bench/report/figures.ts'
import { machine, table } from '../bench/report/page.ts'
import { startBenchPdp } from '../bench/sidecar/pdp.ts'
import { ATTACKS } from '../sidecar/mcp/attacks.ts'
import { readArguments, requireNames } from '../support/programs/arguments.ts'
import { attackServer } from './attack.ts'
import { findClients } from './clients.ts'
import { compareConformance } from './conformance.ts'
import { measureCost } from './cost.ts'
import { playForms, playMatrix, type World } from './denials.ts'
import { playLists } from './lists.ts'
import { findPrograms } from './programs.ts'
import { measureRunning } from './running.ts'
import { type Kind, OFFICIAL_SERVERS, type Server, SMALL_SERVERS, startServer } from './servers.ts'

const USAGE = 'npm run mcp [-- clients | denials | lists | attacks | conformance | running | cost] [--short]'
const { values, positionals } = readArguments(
  { allowPositionals: true, options: { short: { type: 'boolean', default: false } } },
  USAGE,
)
const { short } = values
/** Within a minute. */
const SHORT: readonly string[] = ['clients', 'lists', 'attacks', 'conformance', 'running']
const [FIRST_SDK, SECOND_SDK] = ['SDK 1.32', 'SDK 2.4']
/** Beyond it, the promise of the books is broken, or the machine is too busy to say. */
const [LAST_BYTE_MS, COST_RATIO] = [200, 1.3]

const programs = findPrograms()
const kinds = [...SMALL_SERVERS, ...OFFICIAL_SERVERS]

async function withServer(kind: Kind | undefined, work: (server: Server) => Promise<void>): Promise<void> {
  const server = kind === undefined ? null : await startServer(kind, programs)
  if (server === null) return console.log(`left out: ${kind?.name}`)
  try {
    await work(server)
  } finally {
    server.stop()
  }
}
const named = (name: string | undefined): Kind | undefined => kinds.find((kind) => kind.name === name)

/** Each prints its table, and returns how much is not as promised. */
const PARTS = {
  async clients(world: World) {
    let wrong = 0
    const rows: string[][] = []
    const played = short ? [named(FIRST_SDK), named(SECOND_SDK)] : kinds
    for (const kind of played)
      await withServer(kind, async (server) => {
        const cells = await playMatrix(server, world)
        wrong += cells.filter((cell) => cell !== 'ok' && cell !== '-').length
        rows.push([server.name, ...cells])
      })
    print('Lists, a denied call, and the next call', table(['', ...world.clients.map(({ name }) => name)], rows))
    return wrong
  },
  async denials(world: World) {
    let wrong = 0
    await withServer(named(SECOND_SDK), async (server) => {
      const played = await playForms(server, world)
      wrong += played.wrong
      print('A denial, then a call', table(['', ...world.clients.map(({ name }) => name)], played.rows))
    })
    return wrong
  },
  async lists(world: World) {
    let wrong = 0
    for (const name of short ? [FIRST_SDK] : [FIRST_SDK, SECOND_SDK])
      await withServer(named(name), async (server) => {
        const clients = world.clients.filter((client) => name === SECOND_SDK || !client.name.endsWith('pinned'))
        const played = await playLists(server, { ...world, clients: short ? clients.slice(0, 2) : clients })
        wrong += played.wrong
        const head = ['', 'nothing is held', 'one is held', 'a call of another', 'nothing is held any more']
        print(`A tool with listed: some, on ${server.name}`, table(head, played.rows))
      })
    return wrong
  },
  async attacks({ pdp, token }: World) {
    let wrong = 0
    for (const kind of short ? [named(SECOND_SDK)] : SMALL_SERVERS)
      await withServer(kind, async (server) => {
        const ran = await attackServer(server, { pdp, token })
        wrong += ran.length
        console.log(`${server.name}: ${ATTACKS.length} attacks, ${ran.length} ran a tool ${ran.join(', ')}`)
      })
    return wrong
  },
  async conformance({ pdp, token }: World) {
    const { npm } = programs
    let wrong = 0
    if (npm !== null)
      for (const name of short ? [SECOND_SDK] : ['everything', SECOND_SDK])
        await withServer(named(name), async (server) => {
          const { compared, differing } = await compareConformance(server, { pdp, token, npm })
          wrong += differing
          const rows = compared.map(({ scenario, direct, gated }) => [scenario, direct, gated])
          print(`Conformance of ${name}, passed/failed`, table(['', 'directly', 'gated'], rows))
        })
    return wrong
  },
  async running({ pdp, token }: World) {
    let wrong = 0
    await withServer(named(FIRST_SDK), async (server) => {
      const rows = (await measureRunning(server, { pdp, token, count: short ? 20 : 1_000 })).flatMap((one) => {
        const [last, end] = [latencyOf(one.lastByteMs), latencyOf(one.endMs)]
        wrong += one.silent + (last.p99 > LAST_BYTE_MS && !short ? 1 : 0)
        const cells = ([what, { p50, p99, max }]: readonly [string, typeof last]) =>
          [
            `${one.name}: ${what}`,
            one.count,
            one.silent,
            ...[p50, p99, max].map((ms) => `${ms.toFixed(0)} ms`),
          ] as const
        return [cells(['last byte', last]), cells(['end', end])]
      })
      print('Running calls', table(['', 'calls', 'without an error', 'p50', 'p99', 'longest'], rows))
    })
    return wrong
  },
  async cost({ pdp, token }: World) {
    const { plainUs, callUs } = await measureCost(pdp, token, short ? 100 : 1_000)
    const ratio = callUs / plainUs
    const rows = [
      ['plain route with a value of the body', plainUs.toFixed(0), '1'],
      ['tools/call', callUs.toFixed(0), ratio.toFixed(2)],
    ]
    print('CPU time of the sidecar for one request', table(['', 'µs', 'ratio'], rows))
    return ratio > COST_RATIO && !short ? 1 : 0
  },
}

const print = (title: string, text: string): void => console.log(`\n${title}\n\n${text}`)

requireNames(positionals, Object.keys(PARTS), USAGE)
console.log(machine())
const names = short && positionals.length === 0 ? SHORT : positionals
const pdp = await startBenchPdp()
let wrong = 0
try {
  const world: World = { pdp, token: await pdp.token(), clients: findClients(programs) }
  for (const [name, part] of Object.entries(PARTS))
    if (names.length === 0 || names.includes(name)) wrong += await part(world)
} finally {
  await pdp.stop()
}
console.log(`\n${wrong} not as promised`)
process.exit(wrong > 0 ? 1 : 0)
