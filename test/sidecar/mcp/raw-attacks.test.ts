/** Attacks in bytes that no client library sends: framing, codings, escapes and fields that disagree with the body. */
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { field, sendRaw } from '../../support/peers/raw-http.ts'
import { tuples } from '../../support/peers/scripted-pdp.ts'
import { until } from '../../support/until.ts'
import { type Harness, startHarness } from '../support/harness.ts'
import { fieldOf } from '../support/upstream.ts'

const ROUTES = `MCP /mcp:
  tools: {ok: "viewer thing:{arguments.id}", run: "viewer thing:{arguments.id}"}
  prompts: {own: "viewer account:{arguments.account}", open: signed_in}
  resources: {"crm://accounts/{id}": "viewer account:{id}", "crm://pages/{id}": signed_in}
`
let h: Harness
let token: string
const ran: string[] = []
beforeAll(async () => {
  h = await startHarness({ routes: ROUTES })
  token = await h.issuer.token()
})
afterAll(() => h.close())
beforeEach(() => {
  ran.length = 0
  h.upstream.reached.length = 0
  h.pdp.script = tuples(['alice viewer thing:a', 'alice viewer account:1'])
  // As a server reads that decodes whatever it gets.
  h.upstream.handle = (req, res, body) => {
    ran.push(`${req.method} ${body.toString('latin1')}`)
    res.writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': 's1' })
    res.end('{"jsonrpc":"2.0","id":1,"result":{"content":[]}}')
  }
})

const call = (name: string, id: string): string =>
  `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"${name}","arguments":{"id":"${id}"}}}`
const GOOD = call('ok', 'a')
const BAD = call('BAD', 'a')

async function raw(lines: readonly string[], body: string | Buffer, line = 'POST /mcp') {
  const head = [`${line} HTTP/1.1`, 'Host: app.test', `Authorization: Bearer ${token}`, ...lines]
  return sendRaw(h.port, Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`, 'latin1'), Buffer.from(body)]), {
    timeoutMs: 5_000,
  })
}
const JSON_TYPE = 'Content-Type: application/json'
const sized = (body: string | Buffer, ...lines: readonly string[]) =>
  raw([...lines, `Content-Length: ${Buffer.byteLength(body)}`], body)
const chunk = (text: string, more = ''): string => `${Buffer.byteLength(text).toString(16)}${more}\r\n${text}\r\n`

test('an allowed call passes, in one piece and in chunks', async () => {
  expect((await sized(GOOD, JSON_TYPE)).status).toBe(200)
  const half = GOOD.length >> 1
  const chunks = `${chunk(GOOD.slice(0, half))}${chunk(GOOD.slice(half), ';x=1')}0\r\n\r\n`
  expect((await raw([JSON_TYPE, 'Transfer-Encoding: chunked'], chunks)).status).toBe(200)
  expect(ran).toEqual([`POST ${GOOD}`, `POST ${GOOD}`])
})

const meta = '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}'
const modern = (args: string): string =>
  `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ok","arguments":${args},${meta}}}`
const NEW = 'MCP-Protocol-Version: 2026-07-28'
const deep = (levels: number): string => `${'['.repeat(levels)}${']'.repeat(levels)}`
const withMore = (more: string): string => GOOD.replace('"params":', `${more},"params":`)

type Raw = readonly [name: string, lines: readonly string[], body: string | Buffer]
const CODED: readonly Raw[] = [
  ['gzip of a call that is not allowed', [JSON_TYPE, 'Content-Encoding: gzip'], gzipSync(BAD)],
  ['gzip of an allowed call', [JSON_TYPE, 'Content-Encoding: gzip'], gzipSync(GOOD)],
  ['gzip without saying so', [JSON_TYPE], gzipSync(BAD)],
  ['brotli', [JSON_TYPE, 'Content-Encoding: br'], brotliCompressSync(BAD)],
  ['deflate', [JSON_TYPE, 'Content-Encoding: deflate'], deflateSync(BAD)],
  ['a coding after another', [JSON_TYPE, 'Content-Encoding: identity, gzip'], gzipSync(BAD)],
  ['a coding in a second field', [JSON_TYPE, 'Content-Encoding: identity', 'Content-Encoding: gzip'], gzipSync(BAD)],
  ['a coding with an underscore', [JSON_TYPE, 'Content_Encoding: gzip'], gzipSync(BAD)],
  ['an empty coding', [JSON_TYPE, 'Content-Encoding: '], BAD],
  ['charset UTF-7', ['Content-Type: application/json; charset=utf-7'], GOOD],
  ['charset Latin-1', ['Content-Type: application/json; charset=iso-8859-1'], GOOD],
  ['two charsets', ['Content-Type: application/json; charset=utf-8; charset=utf-16le'], GOOD],
  ['a charset and a boundary', ['Content-Type: application/json; charset=utf-8; boundary=x'], GOOD],
  ['two media types', ['Content-Type: application/json', 'Content-Type: text/plain'], GOOD],
  ['two media types in one field', ['Content-Type: application/json, application/xml'], GOOD],
  ['a media type with an underscore', ['Content_Type: application/json'], BAD],
  ['no media type', [], GOOD],
  ['a form in parts', ['Content-Type: multipart/form-data; boundary=x'], `--x\r\n\r\n${BAD}\r\n--x--`],
  ['XML', ['Content-Type: application/xml'], BAD],
  ['lines of JSON', ['Content-Type: application/x-ndjson'], `${GOOD}\n${BAD}`],
  ['a sequence of JSON', ['Content-Type: application/json-seq'], `\x1e${GOOD}\n\x1e${BAD}\n`],
]
const WRITTEN: readonly Raw[] = [
  ['a name in escapes', [JSON_TYPE], call('\\u0042AD', 'a')],
  ['a method in escapes', [JSON_TYPE], BAD.replace('tools/call', '\\u0074ools\\u002fcall')],
  ['a method with an escaped slash', [JSON_TYPE], BAD.replace('tools/call', 'tools\\/call')],
  ['a batch in a batch', [JSON_TYPE], `[[${BAD}]]`],
  ['a list in an object', [JSON_TYPE], `{"0":${BAD},"length":1}`],
  ['a list beside a call', [JSON_TYPE], withMore(`"batch":[${BAD}],"Params":{"name":"BAD"}`)],
  ['the prototype of params', [JSON_TYPE], call('ok', 'b').replace('"id":"b"', '"__proto__":{"id":"a"}')],
  ['a prototype with a name', [JSON_TYPE], BAD.replace('"name":"BAD"', '"__proto__":{"name":"ok"}')],
  ['129 levels', [JSON_TYPE], withMore(`"x":${deep(128)}`)],
  ['50,000 levels', [JSON_TYPE], withMore(`"x":${deep(25_000)}`)],
  ['levels that do not end', [JSON_TYPE], '['.repeat(60_000)],
  ['an id that is no integer', [JSON_TYPE], GOOD.replace('"id":1,', '"id":1.5,')],
  ['an id with an exponent', [JSON_TYPE], GOOD.replace('"id":1,', '"id":1e400,')],
  ['an id of 400 digits', [JSON_TYPE], GOOD.replace('"id":1,', `"id":${'9'.repeat(400)},`)],
  ['an id of true', [JSON_TYPE], GOOD.replace('"id":1,', '"id":true,')],
  ['an id of 300 characters', [JSON_TYPE], GOOD.replace('"id":1,', `"id":"${'x'.repeat(300)}",`)],
  ['an argument with an exponent', [JSON_TYPE], GOOD.replace('"id":"a"', '"id":1e0')],
  ['an argument that is no integer', [JSON_TYPE], GOOD.replace('"id":"a"', '"id":0.1')],
  ['a negative zero', [JSON_TYPE], GOOD.replace('"id":"a"', '"id":-0')],
  ['an argument of 30 digits', [JSON_TYPE], GOOD.replace('"id":"a"', `"id":${'9'.repeat(30)}`)],
  ['an argument with half a pair', [JSON_TYPE], call('ok', 'a\\ud800')],
  ['an argument with NUL', [JSON_TYPE], call('ok', 'a\\u0000')],
  ['an argument with a line break', [JSON_TYPE], call('ok', 'a\\nb')],
  ['an argument with a space after it', [JSON_TYPE], call('ok', 'a ')],
  ['an argument in full width', [JSON_TYPE], call('ok', 'ａ')],
  ['NaN', [JSON_TYPE], GOOD.replace('"id":"a"', '"id":NaN')],
  ['single quotes', [JSON_TYPE], GOOD.replaceAll('"', "'")],
  ['a comma at the end', [JSON_TYPE], GOOD.replace('}}}', '},}}')],
  ['a form feed before it', [JSON_TYPE], `\f${BAD}`],
  ['a separator of lines before it', [JSON_TYPE], `\u2028${BAD}`],
]
const FIELDS: readonly Raw[] = [
  [
    'a field of an argument with the value of another',
    [JSON_TYPE, NEW, 'Mcp-Param-Id: b'],
    modern('{"id":"a","note":"b"}'),
  ],
  ['a field of an argument in another spelling', [JSON_TYPE, NEW, 'MCP_PARAM_ID: b'], modern('{"id":"a","note":"b"}')],
  [
    'an encoded field of an argument',
    [JSON_TYPE, NEW, 'Mcp-Param-Id: =?base64?Yg==?='],
    modern('{"id":"a","note":"b"}'),
  ],
  ['a revision with an underscore', [JSON_TYPE, 'MCP_Protocol_Version: 2026-07-28'], modern('{"id":"a"}')],
  ['two revisions in one field', [JSON_TYPE, 'MCP-Protocol-Version: 2026-07-28, 2025-11-25'], modern('{"id":"a"}')],
  ['an empty revision', [JSON_TYPE, 'MCP-Protocol-Version: '], modern('{"id":"a"}')],
  ['a name with an underscore', [JSON_TYPE, NEW, 'Mcp_Name: BAD'], modern('{"id":"a"}')],
  ['a method with another in front', [JSON_TYPE, NEW, 'Mcp-Method: tools/list, tools/call'], modern('{"id":"a"}')],
  ['a session with an underscore', [JSON_TYPE, 'Mcp_Session_Id: s1'], GOOD],
  ['two sessions', [JSON_TYPE, 'Mcp-Session-Id: s1', 'Mcp-Session-Id: s2'], GOOD],
  ['an empty session', [JSON_TYPE, 'Mcp-Session-Id: '], GOOD],
  ['a session of 5,000 characters', [JSON_TYPE, `Mcp-Session-Id: ${'s'.repeat(5_000)}`], GOOD],
]

test.each([...CODED, ...WRITTEN, ...FIELDS])('%s runs nothing', async (_, lines, body) => {
  const answered = await sized(body, ...lines)
  expect(ran).toEqual([])
  expect(answered.status === 200 ? JSON.parse(answered.body).error : answered.status).toBeTruthy()
})

const FRAMED: readonly (readonly [name: string, lines: readonly string[], body: string])[] = [
  ['both framings', ['Transfer-Encoding: chunked', `Content-Length: ${GOOD.length}`], `${chunk(BAD)}0\r\n\r\n`],
  ['two lengths', [`Content-Length: ${GOOD.length}`, `Content-Length: ${BAD.length}`], GOOD],
  ['two lengths in one field', [`Content-Length: ${GOOD.length}, ${GOOD.length}`], GOOD],
  ['a length with a sign', [`Content-Length: +${GOOD.length}`], GOOD],
  ['another coding of transfer', ['Transfer-Encoding: gzip, chunked'], `${chunk(BAD)}0\r\n\r\n`],
  ['chunked twice', ['Transfer-Encoding: chunked, chunked'], `${chunk(BAD)}0\r\n\r\n`],
  ['chunked by another name', ['Transfer-Encoding: xchunked'], `${chunk(BAD)}0\r\n\r\n`],
  ['chunked after a tab', ['Transfer-Encoding:\tchunked, identity'], `${chunk(BAD)}0\r\n\r\n`],
  ['a chunk without its end', ['Transfer-Encoding: chunked'], `${chunk(GOOD)}0\r\n`],
  ['a chunk that is longer than it says', ['Transfer-Encoding: chunked'], `5\r\n${GOOD}\r\n0\r\n\r\n`],
  ['a size that is none', ['Transfer-Encoding: chunked'], `0x${chunk(GOOD)}0\r\n\r\n`],
  ['a batch in chunks', ['Transfer-Encoding: chunked'], `${chunk(`[${GOOD}`)}${chunk(`,${BAD}]`)}0\r\n\r\n`],
  ['two messages in chunks', ['Transfer-Encoding: chunked'], `${chunk(GOOD)}${chunk(BAD)}0\r\n\r\n`],
  ['a method in its place', [`Content-Length: ${BAD.length}`, 'X-HTTP-Method-Override: GET'], BAD],
]
test.each(FRAMED)('a body with %s runs nothing that is not allowed', async (_, lines, body) => {
  await raw([JSON_TYPE, ...lines, 'Connection: close'], body)
  expect(ran).toEqual([])
})

test('fields after the body change neither the message nor its session', async () => {
  const trailers = 'Mcp-Name: BAD\r\nMcp-Session-Id: s9\r\nContent-Encoding: gzip\r\n'
  await raw([JSON_TYPE, NEW, 'Transfer-Encoding: chunked'], `${chunk(modern('{"id":"a"}'))}0\r\n${trailers}\r\n`)
  for (const { rawHeaders } of h.upstream.reached)
    expect(rawHeaders.join().toLowerCase()).not.toMatch(/mcp-name|mcp-session|content-encoding/)
})

describe('a stream', () => {
  test.each([
    ['Last-Event-ID: 4'],
    ['last_event_id: 4'],
    ['LAST-EVENT-ID: 4', 'Last-Event-ID: 5'],
    ['Last.Event.ID: 4'],
  ])('is never taken up again with %s', async (...fields) => {
    await raw([JSON_TYPE, 'Accept: text/event-stream', ...fields], '', 'GET /mcp')
    for (const { rawHeaders } of h.upstream.reached) expect(rawHeaders.join()).not.toMatch(/last.event/i)
  })

  test('of somebody else’s session is not found, whichever event is asked for', async () => {
    const session = field(await sized(GOOD, JSON_TYPE), 'mcp-session-id') ?? ''
    const [own, bob] = [token, await h.issuer.token({ sub: 'bob' })]
    h.upstream.reached.length = 0
    token = bob
    try {
      for (const lines of [
        [`Mcp-Session-Id: ${session}`, 'Last-Event-ID: 0'],
        ['Mcp-Session-Id: s1', 'Last-Event-ID: 0'],
      ])
        expect((await raw(lines, '', 'GET /mcp')).status).toBe(404)
    } finally {
      token = own
    }
    expect(h.upstream.reached).toEqual([])
  })

  test('is not compressed, so that the error that ends it can be read', async () => {
    h.upstream.handle = (_req, res) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' })
      res.write('data: {"jsonrpc":"2.0","method":"notifications/progress","params":{}}\n\n')
    }
    const running = sized(call('run', 'a'), JSON_TYPE, 'Accept-Encoding: gzip, br')
    await until(() => h.pdp.watched() > 0)
    expect(fieldOf(h.upstream.reached[0], 'accept-encoding')).toBeNull()
    h.pdp.script = tuples([])
    h.pdp.changed()
    expect((await running).body).toContain('"id":1,"error":{"code":403')
  })
})

describe('a completion', () => {
  const complete = async (ref: object, more: object = {}) => {
    const params = { ref, argument: { name: 'account', value: '' }, ...more }
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'completion/complete', params })
    return JSON.parse((await sized(body, JSON_TYPE)).body).error?.code ?? null
  }

  test.each<[object, object, number | null]>([
    [{ type: 'ref/prompt', name: 'own' }, {}, -32_602],
    // It would list accounts of others to whoever names one of their own.
    [{ type: 'ref/prompt', name: 'own' }, { arguments: { account: '1' } }, -32_602],
    [{ type: 'ref/prompt', name: 'own' }, { context: { arguments: { account: '1' } } }, -32_602],
    [{ type: 'ref/prompt', name: 'open' }, {}, null],
    [{ type: 'ref/resource', uri: 'crm://accounts/{id}' }, {}, -32_602],
    [{ type: 'ref/resource', uri: 'crm://accounts/1' }, {}, -32_602],
    [{ type: 'ref/resource', uri: 'crm://pages/1' }, {}, -32_602],
    [{ type: 'ref/resource', uri: 'crm://pages/{id}' }, {}, null],
    [{ type: 'ref/resource', name: 'open', uri: 'crm://accounts/{id}' }, {}, -32_602],
    [{ type: 'ref/prompt', name: 'own', uri: 'crm://pages/{id}' }, { arguments: { account: '1' } }, -32_602],
  ])('of %j with %j tells nothing that its check is about', async (ref, more, code) => {
    expect(await complete(ref, more)).toBe(code)
    if (code !== null) expect(ran).toEqual([])
  })
})
