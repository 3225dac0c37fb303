/** `listed: some` before a real server: each client sees a tool while one resource would let it call it, on one connection. */
import type { Client } from './clients.ts'
import { textOf, type World } from './denials.ts'
import { openGate, relate } from './gate.ts'
import type { Call, Server } from './servers.ts'

const OPENS = ['shelf:a#viewer']
const OWN: Call = ['ok', { id: 'a' }]
const OTHER: Call = ['ok', { id: 'b' }]

/** What each client saw before, while and after it held one; `wrong`: how many saw another thing. */
export async function playLists(server: Server, { pdp, token, clients }: World) {
  const rule = { check: 'viewer shelf:{arguments.id}', listed: 'some' }
  const gate = await openGate({ pdp, server }, { tools: { ok: rule, open: 'signed_in' } })
  const play = async (client: Client): Promise<readonly string[]> => {
    const connection = await client.connect(gate.url, token)
    const look = async (call: Call): Promise<string> =>
      `${(await connection.list()).toSorted().join(' ')}; ${textOf(await connection.call(call))}`
    try {
      const before = await look(OWN)
      await relate(pdp, 'write', OPENS)
      const [own, other] = [await look(OWN), await look(OTHER)]
      await relate(pdp, 'delete', OPENS)
      return [before, own, other, await look(OWN)]
    } finally {
      await relate(pdp, 'delete', OPENS)
      await connection.close()
    }
  }
  const rows: (readonly string[])[] = []
  let wrong = 0
  try {
    for (const client of clients) {
      const seen = await play(client).catch((err) => [String(err)])
      if (seen.join() !== RIGHT.join()) wrong += 1
      rows.push([client.name, ...seen])
    }
  } finally {
    await gate.stop()
  }
  return { rows, wrong }
}

const RIGHT = [
  'open; -32602 permission_denied',
  'ok open; result',
  'ok open; 403 permission_denied',
  'open; -32602 permission_denied',
]
