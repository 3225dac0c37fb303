/** What real clients make of lists and denials: each client on each server, and each form of a denial on one. */
import { setTimeout as delay } from 'node:timers/promises'
import type { BenchPdp } from '../bench/sidecar/pdp.ts'
import type { Client, Connection, Outcome } from './clients.ts'
import { type Gate, openGate, relate } from './gate.ts'
import type { Call, Server } from './servers.ts'

export type World = { readonly pdp: BenchPdp; readonly token: string; readonly clients: readonly Client[] }

const isResult = (outcome: Outcome): boolean => outcome.kind === 'result' && !outcome.isError
const isDenied = (outcome: Outcome): boolean =>
  outcome.kind === 'error' && outcome.code === 403 && outcome.reason === 'permission_denied'

export const textOf = (outcome: Outcome): string =>
  outcome.kind === 'result'
    ? outcome.isError
      ? 'result with isError'
      : 'result'
    : outcome.kind === 'error'
      ? [outcome.code, outcome.reason].filter((one) => one !== null).join(' ')
      : outcome.failure.split('\n', 1).join('').slice(0, 60)

/** Names what each client did with the server; `ok`: the list is filtered, a denied call shows its code, and the next call works. */
export async function playMatrix(server: Server, { pdp, token, clients }: World): Promise<readonly string[]> {
  const { rules, open, allowed, denied, grant } = server.play
  await relate(pdp, 'write', [grant])
  const gate = await openGate({ pdp, server }, { tools: rules })
  const play = async (client: Client): Promise<string> => {
    let connection: Connection
    try {
      connection = await client.connect(gate.url, token)
    } catch (err) {
      // A server on an older SDK has nothing for a client that is pinned to the new revision.
      return String(err).includes('did not offer pinned') ? '-' : `does not connect: ${err}`
    }
    try {
      const listed = (await connection.list()).toSorted().join()
      if (listed !== Object.keys(rules).toSorted().join()) return `lists ${listed}`
      for (const [call, isRight] of [
        [open, isResult],
        [allowed, isResult],
        [denied, isDenied],
        [allowed, isResult],
      ] as const) {
        const outcome = await connection.call(call)
        if (!isRight(outcome)) return `${call[0]}: ${textOf(outcome)}`
      }
      return 'ok'
    } finally {
      await connection.close()
    }
  }
  try {
    return await Promise.all(clients.map(play))
  } finally {
    await gate.stop()
  }
}

type Form = {
  readonly name: string
  readonly call: Call
  /** Takes the permission away while the call runs. */
  readonly cuts?: boolean
  /** Clients must show a code of JSON-RPC and live on; else they do what they do. */
  readonly isHeld: boolean
}
const FORMS: readonly Form[] = [
  { name: 'denied by a relationship', call: ['ok', { id: 'b' }], isHeld: true },
  { name: 'not for this client at all', call: ['BAD', {}], isHeld: true },
  { name: 'without an argument', call: ['ok', {}], isHeld: true },
  { name: 'cut while it runs', call: ['wait', { id: 'running' }], cuts: true, isHeld: true },
  { name: 'without a scope', call: ['scoped', {}], isHeld: false },
]

/** Rows of the outcome and of the next call, for each form and client; `wrong`: how many are not as promised. */
export async function playForms(server: Server, { pdp, token, clients }: World) {
  const tools = { ...server.play.rules, scoped: 'scope payments:write' }
  await relate(pdp, 'write', [server.play.grant])
  const gate = await openGate({ pdp, server }, { tools })
  const rows: string[][] = []
  let wrong = 0
  try {
    for (const form of FORMS) {
      const cells: string[] = []
      const play = form.cuts === true ? inTurn : together
      for (const { outcome, next } of await play(clients, (client) => playForm(form, { client, gate, pdp, token }))) {
        if (form.isHeld && (outcome.kind !== 'error' || !isResult(next))) wrong += 1
        cells.push(`${textOf(outcome)}; then ${textOf(next)}`)
      }
      rows.push([form.name, ...cells])
    }
  } finally {
    await gate.stop()
  }
  return { rows, wrong }
}

type Played = { readonly outcome: Outcome; readonly next: Outcome }
type OnGate = { readonly client: Client; readonly gate: Gate; readonly pdp: BenchPdp; readonly token: string }
const RUNS_MS = 700

async function playForm({ call, cuts }: Form, { client, gate, pdp, token }: OnGate): Promise<Played> {
  const grant = ['thing:running#viewer']
  if (cuts === true) await relate(pdp, 'write', grant)
  const connection = await client.connect(gate.url, token)
  try {
    const calling = connection.call(call)
    if (cuts === true) {
      await delay(RUNS_MS)
      await relate(pdp, 'delete', grant)
    }
    return { outcome: await calling, next: await connection.call(['open', {}]) }
  } finally {
    await connection.close()
  }
}

const together = <R>(clients: readonly Client[], work: (client: Client) => Promise<R>): Promise<R[]> =>
  Promise.all(clients.map(work))

async function inTurn<R>(clients: readonly Client[], work: (client: Client) => Promise<R>): Promise<R[]> {
  const results: R[] = []
  for (const client of clients) results.push(await work(client))
  return results
}
