/** Requests that try to run a tool which the route file does not allow, as data. `BAD` is such a tool, `ok` an allowed one. */

export type Attack = {
  readonly name: string
  readonly body: string | Buffer
  readonly fields?: readonly string[]
  /** In place of the usual Content-Type. */
  readonly type?: string
  readonly line?: string
}

const call = (more: string): string => `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${more}}`
const GOOD = '{"name":"ok","arguments":{"id":"a"}}'
const BAD = '{"name":"BAD","arguments":{}}'
const MODERN = ['MCP-Protocol-Version: 2026-07-28']
const META = '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}'
const modern = (name: string, more = ''): string =>
  `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"${name}","arguments":{"id":"a"},${META}}${more}}`

/** Spellings of `name` that a lenient reader takes for it. */
const NAMES = [
  'Name',
  'NAME',
  'nAme',
  'ｎame',
  'name[]',
  '[name]',
  'name.x',
  '_name',
  '$name',
  'na\\u006De',
  'name\\u0000',
  'name\\ud800',
  ' name',
]
const METHODS = ['Method', 'METHOD', '_method', 'method[]', 'meth\\u006Fd', 'method\\u0000', 'ｍethod']
const PARAMS = ['Params', 'params[name]', 'params.name', 'param\\u0073', 'PARAMS', 'paramſ']
const WRONG_TOOLS = [
  'BAD',
  'ok ',
  ' ok',
  'OK',
  'ok\\u0000',
  'ok/../BAD',
  'ＢＡＤ',
  '__proto__',
  'constructor',
  'toString',
  '',
  'ok\\n',
]

const spelled: readonly Attack[] = [
  ...NAMES.flatMap((key) => [
    { name: `a second name as ${key}`, body: call(`{"name":"ok","${key}":"BAD","arguments":{"id":"a"}}`) },
    { name: `a first name as ${key}`, body: call(`{"${key}":"BAD","name":"ok","arguments":{"id":"a"}}`) },
  ]),
  ...METHODS.map((key) => ({
    name: `a second method as ${key}`,
    body: `{"jsonrpc":"2.0","id":1,"method":"ping","${key}":"tools/call","params":${BAD}}`,
  })),
  ...PARAMS.map((key) => ({
    name: `second parameters as ${key}`,
    body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${GOOD},"${key}":${BAD}}`,
  })),
  ...WRONG_TOOLS.map((tool) => ({
    name: `the tool ${JSON.stringify(tool)}`,
    body: call(`{"name":"${tool}","arguments":{"id":"a"}}`),
  })),
]

const shapes: readonly Attack[] = [
  { name: 'a batch', body: `[${call(BAD)}]` },
  { name: 'a batch that begins with an allowed call', body: `[${call(GOOD)},${call(BAD)}]` },
  { name: 'an empty batch', body: '[]' },
  { name: 'a batch behind blanks', body: ` \n[${call(BAD)}]` },
  { name: 'a name twice', body: call('{"name":"BAD","name":"ok","arguments":{"id":"a"}}') },
  { name: 'a name twice, the other way', body: call('{"name":"ok","name":"BAD","arguments":{"id":"a"}}') },
  { name: 'params twice', body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${GOOD},"params":${BAD}}` },
  { name: 'a method twice', body: `{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call","params":${BAD}}` },
  { name: 'an argument twice', body: call('{"name":"ok","arguments":{"id":"a","id":"secret"}}') },
  { name: 'arguments twice', body: call('{"name":"ok","arguments":{"id":"a"},"arguments":{"id":"secret"}}') },
  { name: 'an argument in another case', body: call('{"name":"ok","arguments":{"id":"a","ID":"secret"}}') },
  { name: 'an argument of somebody else', body: call('{"name":"ok","arguments":{"id":"secret"}}') },
  { name: 'a list as argument', body: call('{"name":"ok","arguments":{"id":["a","secret"]}}') },
  { name: 'an object as argument', body: call('{"name":"ok","arguments":{"id":{"a":"secret"}}}') },
  { name: 'null as argument', body: call('{"name":"ok","arguments":{"id":null}}') },
  { name: 'no arguments', body: call('{"name":"ok"}') },
  { name: 'arguments as a list', body: call('{"name":"ok","arguments":["a"]}') },
  { name: 'arguments as text', body: call('{"name":"ok","arguments":"a"}') },
  { name: 'params as a list', body: call('["BAD"]') },
  { name: 'params as text', body: call('"BAD"') },
  { name: 'params as null', body: call('null') },
  { name: 'a name that is a list', body: call('{"name":["BAD"],"arguments":{}}') },
  { name: 'a name that is an object', body: call('{"name":{"x":"BAD"},"arguments":{}}') },
  { name: 'no name', body: call('{"arguments":{}}') },
  { name: 'a notification', body: `{"jsonrpc":"2.0","method":"tools/call","params":${BAD}}` },
  { name: 'an id of null', body: `{"jsonrpc":"2.0","id":null,"method":"tools/call","params":${BAD}}` },
  { name: 'an id of an object', body: `{"jsonrpc":"2.0","id":{},"method":"tools/call","params":${BAD}}` },
  { name: 'JSON-RPC 1.0', body: `{"id":1,"method":"tools/call","params":${GOOD}}` },
  { name: 'a method in another case', body: `{"jsonrpc":"2.0","id":1,"method":"Tools/Call","params":${BAD}}` },
  { name: 'a method with NUL', body: `{"jsonrpc":"2.0","id":1,"method":"tools/call\\u0000","params":${BAD}}` },
  { name: 'an unknown method', body: `{"jsonrpc":"2.0","id":1,"method":"tools/run","params":${BAD}}` },
  { name: 'a method of tasks', body: '{"jsonrpc":"2.0","id":1,"method":"tasks/result","params":{"taskId":"1"}}' },
  {
    name: 'a method of another revision',
    body: '{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{}}',
  },
  {
    name: 'an answer that is also a call',
    body: `{"jsonrpc":"2.0","id":1,"result":{},"Method":"tools/call","params":${BAD}}`,
  },
  { name: 'two messages', body: `${call(GOOD)}${call(BAD)}` },
  { name: 'two lines', body: `${call(GOOD)}\n${call(BAD)}` },
  { name: 'nothing', body: '' },
  { name: 'text', body: 'BAD' },
  { name: 'a byte order mark', body: `\ufeff${call(BAD)}` },
  { name: 'UTF-16', body: Buffer.from(call(BAD), 'utf16le') },
  {
    name: 'bytes that are not UTF-8',
    body: Buffer.concat([Buffer.from(call(BAD).slice(0, -1)), Buffer.from([0xff, 0x7d])]),
  },
  {
    name: 'a hundred levels and more',
    body: call(`{"name":"ok","arguments":{"id":"a","x":${'['.repeat(200)}${']'.repeat(200)}}}`),
  },
  { name: 'a comment', body: `/* */${call(BAD)}` },
]

const fields: readonly Attack[] = [
  { name: 'gzip', body: call(BAD), fields: ['Content-Encoding: gzip'] },
  { name: 'gzip of an allowed call', body: call(GOOD), fields: ['Content-Encoding: gzip'] },
  { name: 'a form', body: call(BAD), type: 'application/x-www-form-urlencoded' },
  { name: 'text', body: call(BAD), type: 'text/plain' },
  { name: 'another charset', body: call(BAD), type: 'application/json; charset=utf-16' },
  { name: 'an unknown revision', body: call(GOOD), fields: ['MCP-Protocol-Version: 2031-01-01'] },
  { name: 'two revisions', body: call(GOOD), fields: ['MCP-Protocol-Version: 2025-11-25', ...MODERN] },
  {
    name: 'a revision in the field that is not the body’s',
    body: modern('ok'),
    fields: ['MCP-Protocol-Version: 2025-11-25'],
  },
  { name: 'a batch of the new revision', body: `[${modern('BAD')}]`, fields: MODERN },
  { name: 'an answer in the new revision', body: '{"jsonrpc":"2.0","id":1,"result":{}}', fields: MODERN },
  { name: 'another name in the field', body: modern('ok'), fields: [...MODERN, 'Mcp-Name: BAD'] },
  {
    name: 'an allowed name in the field',
    body: modern('BAD'),
    fields: [...MODERN, 'Mcp-Method: tools/call', 'Mcp-Name: ok'],
  },
  { name: 'another method in the field', body: modern('ok'), fields: [...MODERN, 'Mcp-Method: tools/list'] },
  { name: 'two names in fields', body: modern('ok'), fields: [...MODERN, 'Mcp-Name: ok', 'Mcp-Name: BAD'] },
  { name: 'a joined name in the field', body: modern('ok'), fields: [...MODERN, 'Mcp-Name: ok, BAD'] },
  { name: 'an encoded other name', body: modern('ok'), fields: [...MODERN, 'Mcp-Name: =?base64?QkFE?='] },
  { name: 'a broken encoding', body: modern('ok'), fields: [...MODERN, 'Mcp-Name: =?base64?***?='] },
  { name: 'an encoding without its end', body: modern('ok'), fields: [...MODERN, 'Mcp-Name: =?base64?b2s='] },
  { name: 'a parameter that is no argument', body: modern('ok'), fields: [...MODERN, 'Mcp-Param-Id: secret'] },
  { name: 'two parameters', body: modern('ok'), fields: [...MODERN, 'Mcp-Param-Id: a', 'Mcp-Param-Id: a'] },
  {
    name: 'a name that Connection takes away',
    body: modern('ok'),
    fields: [...MODERN, 'Mcp-Name: ok', 'Connection: mcp-name'],
  },
  { name: 'a session that nobody has', body: call(GOOD), fields: ['Mcp-Session-Id: made-up'] },
  { name: 'a session with a wrong MAC', body: call(GOOD), fields: ['Mcp-Session-Id: s1.AAAA'] },
  { name: 'a body in GET', body: call(BAD), line: 'GET /mcp' },
  { name: 'a body in DELETE', body: call(BAD), line: 'DELETE /mcp' },
  { name: 'PUT', body: call(BAD), line: 'PUT /mcp' },
  { name: 'a method of the server’s own path', body: call(BAD), line: 'POST /mcp/' },
]

export const ATTACKS: readonly Attack[] = [...spelled, ...shapes, ...fields]
