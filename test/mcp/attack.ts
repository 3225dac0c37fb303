/** The attacks on the gate as raw bytes, with a real server behind it that writes down which tool ran. */
import { setTimeout as delay } from 'node:timers/promises'
import type { BenchPdp } from '../bench/sidecar/pdp.ts'
import { ATTACKS } from '../sidecar/mcp/attacks.ts'
import { sendRaw } from '../support/peers/raw-http.ts'
import { openGate, relate } from './gate.ts'
import type { Server } from './servers.ts'

/** Names the attacks after which a tool ran. */
export async function attackServer(
  server: Server,
  { pdp, token }: { readonly pdp: BenchPdp; readonly token: string },
): Promise<readonly string[]> {
  await relate(pdp, 'write', ['thing:a#viewer'])
  const gate = await openGate({ pdp, server }, { tools: { ok: 'viewer thing:{arguments.id}' } })
  const found: string[] = []
  try {
    for (const { name, body, fields = [], type = 'application/json', line = 'POST /mcp' } of ATTACKS) {
      const before = server.ran().length
      const bytes = typeof body === 'string' ? Buffer.from(body) : body
      const lines = [
        `${line} HTTP/1.1`,
        'Host: 127.0.0.1',
        `Authorization: Bearer ${token}`,
        'Accept: application/json, text/event-stream',
        `Content-Type: ${type}`,
        `Content-Length: ${bytes.length}`,
        ...fields,
      ]
      await sendRaw(gate.port, Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`), bytes]))
      if (server.ran().length > before) found.push(name)
    }
    // One that runs later than its answer.
    await delay(200)
    return server.ran().length > found.length ? [...found, `(${server.ran().join('; ')})`] : found
  } finally {
    await gate.stop()
  }
}
