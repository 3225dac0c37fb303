import type { ServerResponse } from 'node:http'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { field, type RawAnswer } from '../../support/peers/raw-http.ts'
import { tuples } from '../../support/peers/scripted-pdp.ts'
import { until } from '../../support/until.ts'
import { type Harness, startHarness } from '../support/harness.ts'
import { fieldOf } from '../support/upstream.ts'
import { ATTACKS } from './attacks.ts'

const ROUTES = `MCP /mcp:
  check: user mcp_server:crm
  tools:
    ok: viewer thing:{arguments.id}
    open: signed_in
    admin: owner mcp_server:crm
    pay: {all: [scope payments:write, scope payments:read, "approver account:{arguments.account}"]}
    safe: {check: signed_in, step_up: {max_age: 60}}
  prompts: {summary: signed_in, secret: owner mcp_server:crm}
  resources:
    "crm://customers/{id}": viewer customer:{id}
    crm://handbook: signed_in
    "crm://pages/{page}": signed_in
`
const GRANTS = [
  'alice user mcp_server:crm',
  'alice viewer thing:a',
  'alice viewer customer:1',
  'bob user mcp_server:crm',
]
const TOOLS = ['ok', 'open', 'admin', 'pay', 'safe', 'unnamed']
const RESULTS: { readonly [method: string]: object } = {
  'tools/list': { tools: TOOLS.map((name) => ({ name, inputSchema: {} })), nextCursor: 'x', cacheScope: 'public' },
  'prompts/list': { prompts: [{ name: 'summary' }, { name: 'secret' }] },
  'resources/list': {
    resources: ['crm://customers/1', 'crm://customers/2', 'crm://handbook', 'x:y'].map((uri) => ({ uri })),
  },
  'resources/templates/list': {
    resourceTemplates: [{ uriTemplate: 'crm://customers/{id}' }, { uriTemplate: 'a:{b}' }],
  },
}

let h: Harness
/** Tools that the server ran. */
const ran: string[] = []
let asEvents = false
beforeAll(async () => {
  h = await startHarness({ routes: ROUTES })
})
afterAll(() => h.close())
beforeEach(() => {
  h.pdp.script = tuples(GRANTS)
  h.upstream.reached.length = 0
  h.pdp.asked.length = 0
  ran.length = 0
  asEvents = false
  h.upstream.handle = (req, res, body) => answer(req.method ?? '', res, body)
})

/** As a server on an SDK answers: the body decides, the last of two keys wins. */
function answer(method: string, res: ServerResponse, body: Buffer): void {
  if (method !== 'POST') return void res.writeHead(method === 'DELETE' ? 200 : 405).end()
  const message = JSON.parse(body.toString())
  if (message.method === 'tools/call') ran.push(`${message.params.name} ${message.params.arguments?.id ?? ''}`)
  const result = RESULTS[message.method] ?? { content: [] }
  const text = JSON.stringify({ jsonrpc: '2.0', id: message.id, result })
  const session = { 'mcp-session-id': 's1' }
  if (!asEvents) return void res.writeHead(200, { 'content-type': 'application/json', ...session }).end(text)
  res.writeHead(200, { 'content-type': 'text/event-stream', ...session })
  res.end(`: hello\n\nid: 7\nevent: message\ndata: ${text}\n\n`)
}

const TYPE = 'Content-Type: application/json'
type Sending = { readonly fields?: readonly string[]; readonly token?: string; readonly body?: object }

function send(method: string, params: object = {}, { fields = [], body, ...more }: Sending = {}): Promise<RawAnswer> {
  const text = JSON.stringify(body ?? { jsonrpc: '2.0', id: 7, method, params })
  return h.send('POST /mcp', { body: text, fields: [TYPE, ...fields], ...more })
}
const call = (name: string, args: object = {}, sending: Sending = {}): Promise<RawAnswer> =>
  send('tools/call', { name, arguments: args }, sending)
const MODERN = ['MCP-Protocol-Version: 2026-07-28']

describe('a call of a tool', () => {
  test('that is allowed asks for the server and the arguments, and passes unchanged', async () => {
    expect((await call('ok', { id: 'a' })).status).toBe(200)
    expect(ran).toEqual(['ok a'])
    expect(h.pdp.asked[0]?.permissions).toEqual(['user mcp_server:crm', 'viewer thing:a'])
  })

  test('that is denied is 200 with an error of JSON-RPC that has its id, the code and the request', async () => {
    const denied = await call('ok', { id: 'b' }, { fields: ['X-Request-Id: abc-1'] })
    expect(denied.status).toBe(200)
    expect(JSON.parse(denied.body)).toEqual({
      jsonrpc: '2.0',
      id: 7,
      error: {
        code: 403,
        message: 'The subject does not have this permission',
        data: { code: 'permission_denied', request_id: 'abc-1' },
      },
    })
    expect(ran).toEqual([])
  })

  test('that may not be seen is answered as one that does not exist', async () => {
    const [hidden, none] = [await call('admin'), await call('nothing')]
    expect(JSON.parse(hidden.body).error).toMatchObject({ code: -32_602, message: 'Unknown tool: admin' })
    expect(JSON.parse(none.body).error).toMatchObject({ code: -32_602, message: 'Unknown tool: nothing' })
    expect(ran).toEqual([])
  })

  test('without a scope is 403 with every scope of the operation', async () => {
    const denied = await call('pay', { account: '1' })
    expect(denied.status).toBe(403)
    expect(field(denied, 'www-authenticate')).toContain('scope="payments:write payments:read"')
  })

  test('that needs a recent sign-in is 401 for that tool alone', async () => {
    const denied = await call('safe')
    expect(denied.status).toBe(401)
    expect(field(denied, 'www-authenticate')).toContain('max_age="60"')
    expect((await call('open')).status).toBe(200)
  })

  test('without an argument that its check reads is an error of its parameters', async () => {
    expect(JSON.parse((await call('ok')).body)).toMatchObject({ id: 7, error: { code: -32_602 } })
  })

  test('without a PDP is an internal error, never an allow', async () => {
    h.pdp.script = () => 'store_unavailable'
    const denied = await call('open')
    expect(denied.status).toBe(200)
    expect(JSON.parse(denied.body)).toMatchObject({ error: { code: -32_603, data: { code: 'pdp_unavailable' } } })
    expect(ran).toEqual([])
  })

  test('of somebody who may not use the server is denied whatever the tool', async () => {
    h.pdp.script = tuples(['alice viewer thing:a'])
    for (const name of ['ok', 'open', 'nothing'])
      expect(JSON.parse((await call(name, { id: 'a' })).body)).toMatchObject({ error: { code: 403 } })
  })

  test('that its service does not answer is an internal error with its id', async () => {
    h.upstream.handle = (_req, res) => void res.destroy()
    expect(JSON.parse((await call('open')).body)).toMatchObject({ id: 7, error: { code: -32_603 } })
  })

  test('without a token is 401', async () => {
    const denied = await h.send('POST /mcp', { body: '{}', fields: [TYPE], token: null })
    expect(denied.status).toBe(401)
    expect(field(denied, 'www-authenticate')).toContain('resource_metadata=')
  })

  test.each([[[]], [MODERN]])(
    'as a task is refused, since nobody could end it when its permission ends (fields: %j)',
    async (fields) => {
      const body = { jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: 'open', task: { ttl: 1 } } }
      expect(JSON.parse((await send('', {}, { body, fields })).body)).toMatchObject({ id: 7, error: { code: -32_602 } })
      expect(ran).toEqual([])
    },
  )

  test('as a notification is judged like one with an id', async () => {
    const body = { jsonrpc: '2.0', method: 'tools/call', params: { name: 'ok', arguments: { id: 'b' } } }
    expect((await send('', {}, { body })).status).toBe(403)
    expect(ran).toEqual([])
  })

  test.each([
    ['ok', 'MCP-Protocol-Version: 2025-11-25'],
    ['ok', 'Accept: */*'],
  ])('of an older revision loses the fields that repeat the body', async (name, version) => {
    await call(
      name,
      { id: 'a' },
      { fields: [version, 'Mcp-Method: x', 'Mcp-Name: y', 'Mcp-Param-Z: z', 'Last-Event-ID: 4'] },
    )
    expect(h.upstream.reached[0]?.rawHeaders.filter((text) => /^(mcp-(?!protocol)|last-event)/i.test(text))).toEqual([])
  })

  test('of the new revision keeps the fields that agree with the body', async () => {
    await call(
      'ok',
      { id: 'a' },
      { fields: [...MODERN, 'Mcp-Method: tools/call', 'Mcp-Name: =?base64?b2s=?=', 'Mcp-Param-Id: a'] },
    )
    expect(ran).toEqual(['ok a'])
    expect(fieldOf(h.upstream.reached[0], 'mcp-param-id')).toBe('a')
  })

  test('whose fields differ from its body is 400 with the code of the protocol', async () => {
    const refused = await call('ok', { id: 'a' }, { fields: [...MODERN, 'Mcp-Name: open'] })
    expect([refused.status, JSON.parse(refused.body).error.code]).toEqual([400, -32_020])
  })
})

describe('a list', () => {
  const names = (answered: RawAnswer): string[] => {
    const text = /^data: (.*)$/m.exec(answered.body)?.[1] ?? answered.body
    const { tools, prompts, resources, resourceTemplates } = JSON.parse(text).result
    return (tools ?? prompts ?? resources ?? resourceTemplates).map(
      (item: { [key: string]: string }) => item.name ?? item.uri ?? item.uriTemplate,
    )
  }

  test.each([false, true])(
    'has the tools that the subject may call, for some arguments at least (events: %s)',
    async (events) => {
      asEvents = events
      const listed = await send('tools/list')
      expect(names(listed)).toEqual(['ok', 'open', 'safe'])
      expect(field(listed, 'cache-control')).toBe('private, no-store')
      expect(h.pdp.asked).toHaveLength(1)
    },
  )

  test('of the new revision is private and not to be kept', async () => {
    const listed = await send('tools/list', {}, { fields: MODERN })
    expect(JSON.parse(listed.body).result).toMatchObject({ cacheScope: 'private', ttlMs: 0, nextCursor: 'x' })
  })

  test('has the prompts that the subject may get', async () => {
    expect(names(await send('prompts/list'))).toEqual(['summary'])
  })

  test('of resources has those that the subject may read, in one question', async () => {
    expect(names(await send('resources/list'))).toEqual(['crm://customers/1', 'crm://handbook'])
    expect(h.pdp.asked).toHaveLength(2)
  })

  test('of templates has those that the file names', async () => {
    expect(names(await send('resources/templates/list'))).toEqual(['crm://customers/{id}'])
  })

  test.each([
    ['another media type', (res: ServerResponse) => res.writeHead(200, { 'content-type': 'text/html' }).end('<tools>')],
    [
      'a coding',
      (res: ServerResponse) =>
        res.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' }).end('{}'),
    ],
    [
      'two lists',
      (res: ServerResponse) =>
        res
          .writeHead(200, { 'content-type': 'application/json' })
          .end('{"result":{"tools":[],"tools":[{"name":"admin"}]}}'),
    ],
    [
      'a tool without a name',
      (res: ServerResponse) =>
        res.writeHead(200, { 'content-type': 'application/json' }).end('{"result":{"tools":[{"title":"admin"}]}}'),
    ],
    [
      'a batch',
      (res: ServerResponse) =>
        res.writeHead(200, { 'content-type': 'application/json' }).end('[{"result":{"tools":[{"name":"admin"}]}}]'),
    ],
    ['no media type', (res: ServerResponse) => res.writeHead(202, { 'content-length': '15' }).end('{"tools":admin}')],
    [
      'no JSON',
      (res: ServerResponse) =>
        res.writeHead(200, { 'content-type': 'application/json' }).end('{"result":{"tools":[{"name":"admin"'),
    ],
  ])('that cannot be read, by %s, is an error and never passes', async (_, respond) => {
    h.upstream.handle = (_req, res) => void respond(res)
    const listed = await send('tools/list')
    expect(JSON.parse(listed.body)).toMatchObject({
      id: 7,
      error: { code: -32_603, data: { code: 'upstream_unavailable' } },
    })
    expect(listed.body).not.toContain('admin')
  })
})

describe('a resource', () => {
  test.each([
    ['crm://customers/1', 200, null],
    ['crm://customers/2', 200, -32_602],
    ['crm://customers/%31', 200, -32_602],
    ['crm://customers/..', 200, -32_602],
    ['crm://customers/1/2', 200, -32_602],
    ['CRM://customers/1', 200, -32_602],
    ['crm://handbook', 200, null],
  ])('%s is judged by its URI', async (uri, status, code) => {
    const read = await send('resources/read', { uri })
    expect([read.status, JSON.parse(read.body).error?.code ?? null]).toEqual([status, code])
  })
})

describe('a completion', () => {
  const complete = async (ref: object) => {
    const answered = await send('completion/complete', { ref, argument: { name: 'id', value: '' } })
    return JSON.parse(answered.body).error?.code ?? null
  }

  test('of a parameter that its check reads is refused, since its values are what others may see', async () => {
    expect(await complete({ type: 'ref/resource', uri: 'crm://customers/{id}' })).toBe(-32_602)
    expect(h.upstream.reached).toEqual([])
  })

  test.each([
    [{ type: 'ref/resource', uri: 'crm://pages/{page}' }, null],
    [{ type: 'ref/prompt', name: 'summary' }, null],
    [{ type: 'ref/prompt', name: 'secret' }, -32_602],
    [{ type: 'ref/resource', uri: 'crm://other/{id}' }, -32_602],
    [{ type: 'ref/tool', name: 'open' }, -32_602],
    [{}, -32_602],
  ])('of %j is judged by the rule that it names', async (ref, code) => {
    expect(await complete(ref)).toBe(code)
  })
})

describe('a session of an older revision', () => {
  test('belongs to its subject, and leaves no trace at the service', async () => {
    const session = field(await call('open'), 'mcp-session-id') ?? ''
    expect(session).toMatch(/^s1\../)
    const fields = [`Mcp-Session-Id: ${session}`]
    expect((await call('open', {}, { fields })).status).toBe(200)
    expect(fieldOf(h.upstream.reached.at(-1), 'mcp-session-id')).toBe('s1')
    const bob = await h.issuer.token({ sub: 'bob' })
    expect((await call('open', {}, { fields, token: bob })).status).toBe(404)
    expect((await h.send('DELETE /mcp', { fields, token: bob })).status).toBe(404)
    expect((await h.send('GET /mcp', { fields, token: bob })).status).toBe(404)
    expect((await h.send('DELETE /mcp', { fields })).status).toBe(200)
  })
})

describe('a running call', () => {
  test('whose permission ends gets an error with its id as the last event of its stream', async () => {
    h.upstream.handle = (_req, res) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' })
      res.write('data: {"jsonrpc":"2.0","method":"notifications/progress","params":{}}\n\ndata: {"half')
    }
    const running = call('ok', { id: 'a' })
    await until(() => h.pdp.watched() > 0)
    h.pdp.script = tuples([])
    h.pdp.changed()
    const events = (await running).body
    expect(events).toContain('"id":7,"error":{"code":403')
    expect(events).toMatch(/\n\nevent: message\ndata: .*"permission_denied".*\n\n/)
  })
})

test('an attack runs no tool that is not allowed, and none that it makes unclear', async () => {
  expect(ATTACKS.length).toBeGreaterThanOrEqual(80)
  for (const { name, body, fields = [], type = 'application/json', line = 'POST /mcp' } of ATTACKS) {
    const lines = [`Content-Type: ${type}`, ...fields]
    const sent = typeof body === 'string' ? body : body.toString('latin1')
    const answered = await h.send(line, { body: sent, fields: lines })
    expect(ran, name).toEqual([])
    expect(answered.status === 200 ? JSON.parse(answered.body).error : answered.status, name).toBeTruthy()
  }
})
