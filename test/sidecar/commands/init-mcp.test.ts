/** `init --mcp`: a route file from the tools of a running server. The servers here answer as those on the SDKs do. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { runRouteTests } from '../../../sidecar/commands/route-report.ts'
import { runCli } from '../../support/peers/sidecar-cli.ts'
import { loadFile } from '../support/harness.ts'

type Message = { readonly method: string; readonly id?: number; readonly params?: { readonly cursor?: string } }
type Answering = (res: ServerResponse, message: Message, headers: IncomingHttpHeaders) => void

let answering: Answering
const server = createServer(async (req, res) => {
  let text = ''
  for await (const chunk of req) text += chunk
  answering(res, JSON.parse(text), req.headers)
})
let url = ''
let folder = ''
beforeAll(async () => {
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`
})
afterAll(() => {
  server.closeAllConnections()
  server.close()
})
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'portcullis-init-mcp-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const json = (res: ServerResponse, id: unknown, result: object, fields = {}): void =>
  void res
    .writeHead(200, { 'content-type': 'application/json', ...fields })
    .end(JSON.stringify({ jsonrpc: '2.0', id, result }))
const TOOLS = [
  {
    name: 'get-sum',
    description: 'Adds two numbers',
    inputSchema: { type: 'object', properties: { a: {}, b: {} } },
    annotations: { readOnlyHint: true },
  },
  { name: 'drop', annotations: { destructiveHint: true, readOnlyHint: false } },
]
const EVALUATION = { action: { name: 'read' }, resource: { type: 'object', id: '1' } }
const declaring = (name: string, mapping: unknown) => ({
  name,
  inputSchema: { type: 'object', 'x-authzen-mapping': mapping },
})
const listing =
  (tools: unknown): Answering =>
  (res, { id }) =>
    json(res, id, { tools })

async function init(words: readonly string[] = ['--mcp', url]) {
  const path = join(folder, 'routes.yaml')
  const ended = await runCli(['init', path, ...words])
  return { ...ended, path, text: ended.status === 0 ? readFileSync(path, 'utf8') : '' }
}

describe('init --mcp', () => {
  test('writes a rule for each tool, which allows nobody yet, with what the server says of it', async () => {
    answering = listing(TOOLS)
    const { text, path } = await init()
    expect(text).toContain(
      '# Adds two numbers. The server says: read-only. Arguments: a, b.\n      get-sum: caller mcp_tool:get-sum',
    )
    expect(text).toContain('# The server says: destructive.\n      drop: caller mcp_tool:drop')
    expect((await runCli(['check', path, '--strict'])).status).toBe(0)
    expect(await runRouteTests(loadFile(text), 'routes.yaml')).toMatchObject({ failed: 0, untested: [] })
    expect(loadFile(text).upstream.origin).toBe(new URL(url).origin)
    expect([...new Set(loadFile(text).routes.map(({ id }) => id))]).toEqual(['MCP /mcp'])
  })

  test('writes the check that a tool declares beside it, and never as its rule', async () => {
    const subject = { type: 'identity', id: '$token.sub' }
    const read = { action: { name: 'read' }, resource: { type: 'object', id: '$params.arguments.from' } }
    const write = { action: { name: 'write' }, resource: { type: 'object', id: '$params.arguments.to' } }
    const mappings = {
      one: { evaluation: { subject, ...read } },
      two: { evaluations: { subject, evaluations: [read, write] } },
      shared: {
        evaluations: { action: { name: 'read' }, evaluations: [{ resource: { type: 'box', id: '$token.org' } }] },
      },
    }
    answering = listing(Object.entries(mappings).map(([name, mapping]) => declaring(name, mapping)))
    const { text } = await init()
    for (const [name, check] of [
      ['one', 'read object:{arguments.from}'],
      ['two', 'read object:{arguments.from} and write object:{arguments.to}'],
      ['shared', 'read box:{claims.org}'],
    ])
      expect(text).toContain(`# It declares the check (COAZ-MCP): ${check}.\n      ${name}: caller mcp_tool:${name}`)
  })

  test.each([
    ['no object', 'read object:1'],
    ['no envelope', {}],
    ['two envelopes', { evaluation: EVALUATION, evaluations: { evaluations: [EVALUATION] } }],
    ['no action', { evaluation: { resource: EVALUATION.resource } }],
    ['no resource', { evaluation: { action: EVALUATION.action } }],
    ['another subject', { evaluation: { ...EVALUATION, subject: { id: '$params.arguments.user' } } }],
    ['a subject of its own', { evaluations: { evaluations: [{ ...EVALUATION, subject: { id: '$token.sub' } }] } }],
    ['an action of the caller', { evaluation: { ...EVALUATION, action: { name: '$params.arguments.a' } } }],
    ['an expression', { evaluation: { ...EVALUATION, resource: { type: 'a', id: "$params.a > 1 ? 'x' : 'y'" } } }],
    ['a type with a colon', { evaluation: { ...EVALUATION, resource: { type: 'a:b', id: '1' } } }],
    ['an id of two lines', { evaluation: { ...EVALUATION, resource: { type: 'a', id: '1\n      BAD: signed_in' } } }],
    ['a placeholder', { evaluation: { ...EVALUATION, resource: { type: 'a', id: '{claims.sub}' } } }],
    ['no evaluations', { evaluations: { evaluations: [] } }],
    ['too many', { evaluations: { evaluations: Array(9).fill(EVALUATION) } }],
  ])('says of a mapping with %s only that it is there', async (_, mapping) => {
    answering = listing([declaring('ok', mapping)])
    const { text } = await init()
    expect(text).toContain('# It declares a mapping (COAZ-MCP) that is no check here.\n      ok: caller mcp_tool:ok')
    expect(text).not.toContain('BAD')
  })

  test('asks servers of older revisions after a handshake, page by page, in their session', async () => {
    const seen: string[] = []
    answering = (res, { id, method, params }, headers) => {
      if (headers['mcp-protocol-version'] === '2026-07-28') return void res.writeHead(400).end('{}')
      seen.push(`${method} ${headers['mcp-session-id'] ?? ''} ${params?.cursor ?? ''}`.trim())
      if (id === undefined) return void res.writeHead(202).end()
      if (method === 'initialize') return json(res, id, { protocolVersion: '2025-06-18' }, { 'mcp-session-id': 's1' })
      const page = params?.cursor === undefined ? { tools: [TOOLS[0]], nextCursor: 'two' } : { tools: [TOOLS[1]] }
      // As a stream that goes on.
      res.writeHead(200, { 'content-type': 'text/event-stream' })
      const notice = { jsonrpc: '2.0', method: 'notifications/message' }
      for (const one of [notice, { jsonrpc: '2.0', id, result: page }])
        res.write(`id: 1\r\nevent: message\r\ndata: ${JSON.stringify(one)}\r\n\r\n`)
    }
    expect(Object.keys(loadFile((await init()).text).routes[0]?.mcp?.tools ?? {})).toEqual(['get-sum', 'drop'])
    expect(seen).toEqual(['initialize', 'notifications/initialized s1', 'tools/list s1', 'tools/list s1 two'])
  })

  test('leaves out a tool whose name no check can have, and says so', async () => {
    answering = listing([...TOOLS, { name: 'x y' }, { name: '{arguments.a}' }, { name: '' }])
    const { text, stdout } = await init()
    expect(Object.keys(loadFile(text).routes[0]?.mcp?.tools ?? {})).toEqual(['get-sum', 'drop'])
    expect(stdout).toContain('no rule for x y, because of its name')
  })

  test.each([
    ['a line', 'x\n      BAD: signed_in\n# '],
    ['a line of Unicode', 'x\u2028BAD: signed_in\u0085'],
    ['a terminal sequence', '\u001b[2J\u0000\ud800'],
    ['a long text', 'x'.repeat(100_000)],
  ])('makes no rule and no line of %s in the description of a tool', async (_, description) => {
    answering = listing([{ name: 'ok', description, inputSchema: { properties: { [description]: {} } } }])
    const { text } = await init()
    expect(Object.keys(loadFile(text).routes[0]?.mcp?.tools ?? {})).toEqual(['ok'])
    expect(text.length).toBeLessThan(2_000)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: it is about them
    expect(text).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u0085\u2028]/)
  })

  test.each<[string, Answering]>([
    ['status 401', (res) => void res.writeHead(401).end()],
    ['a redirection', (res) => void res.writeHead(302, { location: 'http://127.0.0.1:1/' }).end()],
    ['no JSON', (res) => void res.writeHead(200).end('<html>')],
    ['another id', (res) => json(res, 77, { tools: [] })],
    ['no list', (res, { id }) => json(res, id, { tools: 'ok' })],
    ['a tool without a name', (res, { id }) => json(res, id, { tools: [{}] })],
    ['pages without an end', (res, { id }) => json(res, id, { tools: Array(50).fill(TOOLS[0]), nextCursor: 'x' })],
    ['an endless answer', (res) => void endless(res)],
  ])('of a server that answers with %s writes nothing, and names the server', async (_, given) => {
    answering = given
    const { status, stderr } = await init()
    expect(status).not.toBe(0)
    expect(stderr).toMatch(/127\.0\.0\.1|more than 256 tools/)
  })

  test.each(['', 'mcp', 'ftp://127.0.0.1/mcp', 'http://user@127.0.0.1/mcp', 'http://127.0.0.1/mcp?x=1'])(
    'refuses %j as a URL',
    async (given) => {
      expect((await init(['--mcp', given])).stderr).toContain('is not the URL of an MCP server')
    },
  )

  test('takes either an OpenAPI document or an MCP server', async () => {
    expect((await init(['--mcp', url, '--openapi', 'x.json'])).stderr).toContain('either --openapi or --mcp')
  })
})

function endless(res: ServerResponse): void {
  res.writeHead(200, { 'content-type': 'application/json' })
  const more = (): void => {
    while (!res.destroyed && res.write(' '.repeat(65_536)));
    if (!res.destroyed) res.once('drain', more)
  }
  more()
}
