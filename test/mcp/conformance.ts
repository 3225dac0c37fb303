/** The official conformance suite, at a server directly and through the gate. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { BenchPdp } from '../bench/sidecar/pdp.ts'
import { PROGRAM_ENV } from '../support/programs/environment.ts'
import { endOf } from '../support/programs/run.ts'
import { openGate } from './gate.ts'
import type { Server } from './servers.ts'

/** By scenario: `passed/failed` checks, directly and through the gate. */
export type Compared = readonly { readonly scenario: string; readonly direct: string; readonly gated: string }[]

/** Fails directly, since its server does not look at Host, and passes through the gate, which does. */
const BETTER = 'dns-rebinding-protection'

export async function compareConformance(
  server: Server,
  { pdp, token, npm }: { readonly pdp: BenchPdp; readonly token: string; readonly npm: string },
): Promise<{ readonly compared: Compared; readonly differing: number }> {
  const direct = `http://127.0.0.1:${server.port}/mcp`
  const gate = await openGate({ pdp, server }, await everythingOf(direct))
  const forwarder = await startForwarder(gate.port, token)
  try {
    const before = await play(npm, direct)
    const after = await play(npm, `http://127.0.0.1:${forwarder.port}/mcp`)
    const names = [...new Set([...before.keys(), ...after.keys()])]
    const compared = names.map((scenario) => ({
      scenario,
      direct: before.get(scenario) ?? '-',
      gated: after.get(scenario) ?? '-',
    }))
    const differs = ({ scenario, direct, gated }: Compared[number]): boolean => direct !== gated && scenario !== BETTER
    return { compared, differing: compared.length === 0 ? 1 : compared.filter(differs).length }
  } finally {
    forwarder.close()
    await gate.stop()
  }
}

/** Rules that let everybody do everything, for whatever the server lists. Tools that it does not list are asked for, too. */
async function everythingOf(url: string) {
  const session = await ask(url, null, 'initialize', {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'portcullis', version: '1' },
  })
  const all = async (method: string, member: string, key: string): Promise<object> => {
    const rules: { [name: string]: string } = {}
    let cursor: string | undefined
    do {
      const { result } = await ask(url, session.id, method, cursor === undefined ? {} : { cursor })
      for (const item of result?.[member] ?? []) rules[item[key]] = 'signed_in'
      cursor = result?.nextCursor
    } while (cursor !== undefined)
    return rules
  }
  return {
    tools: {
      ...(await all('tools/list', 'tools', 'name')),
      test_simple_text: 'signed_in',
      test_error_handling: 'signed_in',
    },
    route: {
      prompts: await all('prompts/list', 'prompts', 'name'),
      resources: {
        ...(await all('resources/list', 'resources', 'uri')),
        'test://template/{id}/data': 'signed_in',
        'test://watched-resource': 'signed_in',
      },
    },
  }
}

// biome-ignore lint/suspicious/noExplicitAny: a test reads what the server answers
type Answered = { readonly id: string | null; readonly result: any }

async function ask(url: string, session: string | null, method: string, params: object): Promise<Answered> {
  const answer = await fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...(session !== null && { 'mcp-session-id': session }),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  })
  const text = await answer.text()
  const { result } = JSON.parse(/^data: (\{.*)$/m.exec(text)?.[1] ?? text)
  return { id: answer.headers.get('mcp-session-id'), result }
}

async function play(npm: string, url: string): Promise<ReadonlyMap<string, string>> {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-mcp-suite-'))
  const main = join(npm, '@modelcontextprotocol/conformance/dist/index.js')
  const words = [main, 'server', '--url', url]
  const child = spawn(process.execPath, words, { cwd: folder, env: PROGRAM_ENV, stdio: ['ignore', 'pipe', 'ignore'] })
  const { out } = await endOf(child)
  rmSync(folder, { recursive: true, force: true })
  const lines = [...out.matchAll(/^[✓✗] ([\w-]+): (\d+) passed, (\d+) failed/gm)]
  return new Map(lines.map(([, name = '', passed, failed]) => [name, `${passed}/${failed}`]))
}

/** The suite cannot send a token, so this adds it, and changes nothing else. */
async function startForwarder(port: number, token: string) {
  const server = createServer((req, res) => {
    const headers = { ...req.headers, authorization: `Bearer ${token}` }
    const out = request({ host: '127.0.0.1', port, path: req.url, method: req.method, headers, agent: false })
    out.on('response', (answer) => {
      res.writeHead(answer.statusCode ?? 500, answer.rawHeaders)
      answer.pipe(res)
    })
    out.on('error', () => res.destroy())
    res.on('close', () => out.destroy())
    req.pipe(out)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    close(): void {
      server.closeAllConnections()
      server.close()
    },
  }
}
