/** CPU time of the sidecar for one `tools/call`, beside a plain route that reads a value of the same body, in one run. */
import { once } from 'node:events'
import { Agent, createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { cpuMs } from '../bench/report/process-use.ts'
import type { BenchPdp } from '../bench/sidecar/pdp.ts'
import { openGate, relate } from './gate.ts'

export type Cost = { readonly plainUs: number; readonly callUs: number }

const ROUNDS = 10
const AT_A_TIME = 8
const ANSWER = JSON.stringify({ jsonrpc: '2.0', id: 1, result: { content: [{ type: 'text', text: 'done' }] } })

/** `count`: requests of each kind in each round. */
export async function measureCost(pdp: BenchPdp, token: string, count: number): Promise<Cost> {
  const service = createServer((req, res) => {
    req.resume().once('end', () => res.writeHead(200, { 'content-type': 'application/json' }).end(ANSWER))
  })
  service.listen(0, '127.0.0.1')
  await once(service, 'listening')
  await relate(pdp, 'write', ['thing:cost#viewer'])
  const gate = await openGate(
    { pdp, server: service.address() as AddressInfo },
    {
      tools: { ok: 'viewer thing:{arguments.id}' },
      routes: { 'POST /plain': 'viewer thing:{body.params.arguments.id}' },
    },
  )
  const agent = new Agent({ keepAlive: true, maxSockets: AT_A_TIME })
  const sums = { '/plain': 0, '/mcp': 0 }
  try {
    for (let round = -1; round < ROUNDS; round += 1) {
      for (const path of ['/plain', '/mcp'] as const) {
        const beforeMs = cpuMs(gate.pid)
        const left = Array(count).keys()
        const worker = async (): Promise<void> => {
          for (const _ of left) await send({ agent, port: gate.port, path, token })
        }
        await Promise.all(Array.from({ length: AT_A_TIME }, worker))
        if (round >= 0) sums[path] += cpuMs(gate.pid) - beforeMs
      }
    }
    const of = (path: keyof typeof sums): number => (1_000 * sums[path]) / (ROUNDS * count)
    return { plainUs: of('/plain'), callUs: of('/mcp') }
  } finally {
    agent.destroy()
    await gate.stop()
    service.close()
  }
}

const BODY = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: {
    name: 'ok',
    arguments: { id: 'cost' },
    _meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' },
  },
})

type Sending = { readonly agent: Agent; readonly port: number; readonly path: string; readonly token: string }
async function send({ agent, port, path, token }: Sending): Promise<void> {
  const headers = {
    host: '127.0.0.1',
    authorization: `Bearer ${token}`,
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(BODY),
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': 'tools/call',
    'mcp-name': 'ok',
  }
  const out = request({ agent, host: '127.0.0.1', port, path, method: 'POST', headers })
  out.end(BODY)
  const [answer] = await once(out, 'response')
  if (answer.statusCode !== 200) throw new Error(`${path} answered with ${answer.statusCode}`)
  answer.resume()
  await once(answer, 'end')
}
