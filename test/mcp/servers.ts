/** Servers of MCP as processes: those of the registries, unchanged, and small ones on each SDK that write down which tool ran. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort, isOpen } from '../support/free-port.ts'
import { PROGRAM_ENV } from '../support/programs/environment.ts'
import { until } from '../support/until.ts'
import type { Programs } from './programs.ts'

export type Server = {
  readonly name: string
  readonly play: Play
  readonly port: number
  readonly pid: number
  /** Tools that ran, as `name id`; only the small ones say so. */
  ran(): readonly string[]
  stop(): void
}
/** A call of a tool. */
export type Call = readonly [tool: string, args: { readonly [name: string]: unknown }]
export type Kind = Play & {
  readonly name: string
  /** Null: something that it needs cannot be had here. */
  launch(programs: Programs, on: { readonly port: number; readonly folder: string }): Launch | null
}
/** Rules of its tools, a call that they allow to everybody, and one that they allow and deny by its arguments. FOLDER is its own. */
type Play = {
  readonly rules: { readonly [tool: string]: string }
  readonly open: Call
  readonly allowed: Call
  readonly denied: Call
  /** The relation that allows. */
  readonly grant: string
}
type Launch = { readonly words: readonly string[]; readonly env?: { readonly [name: string]: string } }

const OK = { rules: { ok: 'viewer thing:{arguments.id}', wait: 'viewer thing:{arguments.id}', open: 'signed_in' } }
const SMALL = {
  ...OK,
  open: ['open', {}],
  allowed: ['ok', { id: 'a' }],
  denied: ['ok', { id: 'b' }],
  grant: 'thing:a#viewer',
} as const

const NAMES = ['ok', 'wait', 'open', 'BAD']
const TOOLS = `const tools = ${JSON.stringify(NAMES)}.map((name) => ({ name, description: name, inputSchema: { type: 'object', properties: { id: { type: 'string' } } } }))
const run = async (params, notify) => {
  console.log('ran ' + params.name + ' ' + (params.arguments?.id ?? ''))
  for (let at = 0; params.name === 'wait' && at < 3_600; at += 1) {
    await notify({ method: 'notifications/message', params: { level: 'info', data: 'tick ' + at } })
    await new Promise((done) => setTimeout(done, 500))
  }
  return { content: [{ type: 'text', text: params.name + ' ran' }] }
}
`
const FIRST = `import { createServer } from 'node:http'
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js'
${TOOLS}
createServer(async (req, res) => {
  const server = new Server({ name: 'first', version: '1' }, { capabilities: { tools: {}, logging: {} } })
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools }))
  server.setRequestHandler(CallToolRequestSchema, ({ params }, extra) => run(params, (one) => extra.sendNotification(one)))
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined })
  await server.connect(transport)
  await transport.handleRequest(req, res).catch(() => res.destroy())
}).listen(Number(process.env.PORT), '127.0.0.1')
`
/** Two pages of tools, and what the conformance suite asks a server for. */
const SECOND = `import { createServer } from 'node:http'
import { createMcpHandler, Server } from '@modelcontextprotocol/server'
import { toNodeHandler } from '@modelcontextprotocol/node'
${TOOLS}
const text = (text) => ({ type: 'text', text })
const image = { type: 'image', data: 'iVBORw0KGgo=', mimeType: 'image/png' }
const audio = { type: 'audio', data: 'UklGRg==', mimeType: 'audio/wav' }
const embedded = (uri) => ({ type: 'resource', resource: { uri, mimeType: 'text/plain', text: 'embedded' } })
const contents = {
  test_simple_text: [text('This is a simple text response for testing.')],
  test_image_content: [image],
  test_audio_content: [audio],
  test_embedded_resource: [embedded('test://embedded-resource')],
  test_multiple_content_types: [text('Multiple content types test:'), image, embedded('test://mixed-content-resource')],
  test_error_handling: [text('This tool intentionally returns an error for testing')],
}
const notified = {
  test_tool_with_logging: (at) => ({ method: 'notifications/message', params: { level: 'info', data: 'step ' + at } }),
  test_tool_with_progress: (at, progressToken) => ({ method: 'notifications/progress', params: { progressToken, progress: 50 * at, total: 100 } }),
}
const runLong = async ({ name, _meta }, notify) => {
  for (const at of [0, 1, 2]) {
    await notify(notified[name](at, _meta?.progressToken))
    await new Promise((done) => setTimeout(done, 50))
  }
  return { content: [text('done')] }
}
const more = [...Object.keys(contents), ...Object.keys(notified)].map((name) => ({ name, description: name, inputSchema: { type: 'object' } }))
const user = (content) => ({ role: 'user', content })
const prompts = {
  test_simple_prompt: () => [user(text('This is a simple prompt for testing.'))],
  test_prompt_with_arguments: ({ arg1, arg2 }) => [user(text("Prompt with arguments: arg1='" + arg1 + "', arg2='" + arg2 + "'"))],
  test_prompt_with_embedded_resource: ({ resourceUri }) => [user(embedded(resourceUri)), user(text('Please process it.'))],
  test_prompt_with_image: () => [user(image), user(text('Please analyze it.'))],
}
const handler = createMcpHandler(() => {
  const server = new Server({ name: 'second', version: '2' }, { capabilities: { tools: {}, logging: {}, prompts: {}, resources: { subscribe: true }, completions: {} } })
  server.setRequestHandler('tools/list', ({ params }) => (params?.cursor === 'two' ? { tools: more } : { tools, nextCursor: 'two' }))
  server.setRequestHandler('tools/call', ({ params }, ctx) =>
    params.name in notified ? runLong(params, (one) => ctx.mcpReq.notify(one)) : params.name in contents ? { content: contents[params.name], isError: params.name === 'test_error_handling' } : run(params, (one) => ctx.mcpReq.notify(one)))
  server.setRequestHandler('prompts/list', () => ({ prompts: Object.keys(prompts).map((name) => ({ name, description: name })) }))
  server.setRequestHandler('prompts/get', ({ params }) => ({ messages: prompts[params.name](params.arguments ?? {}) }))
  server.setRequestHandler('resources/list', () => ({ resources: ['test://static-text', 'test://static-binary', 'test://secret'].map((uri) => ({ uri, name: uri })) }))
  server.setRequestHandler('resources/templates/list', () => ({ resourceTemplates: [{ uriTemplate: 'test://template/{id}/data', name: 'data' }, { uriTemplate: 'test://secret/{id}', name: 'secret' }] }))
  server.setRequestHandler('resources/read', ({ params: { uri } }) => {
    const id = /^test:\\/\\/template\\/(.*)\\/data$/.exec(uri)?.[1]
    const body = uri === 'test://static-binary' ? { mimeType: 'image/png', blob: image.data } : { mimeType: 'text/plain', text: id === undefined ? 'This is the content of the static text resource.' : JSON.stringify({ id, templateTest: true, data: 'Data for ID: ' + id }) }
    return { contents: [{ uri, ...body }] }
  })
  server.setRequestHandler('completion/complete', () => ({ completion: { values: [], total: 0, hasMore: false } }))
  return server
})
createServer(toNodeHandler(handler)).listen(Number(process.env.PORT), '127.0.0.1')
`
const PYTHON = `import os
try:
    from mcp.server.fastmcp import FastMCP
    server, options = FastMCP('python', host='127.0.0.1', port=int(os.environ['PORT'])), {}
except ImportError:
    from mcp.server.mcpserver import MCPServer
    server, options = MCPServer('python'), {'host': '127.0.0.1', 'port': int(os.environ['PORT'])}
def tool(name):
    def run(id: str = '') -> str:
        print('ran', name, id, flush=True)
        return name + ' ran'
    server.add_tool(run, name=name)
for name in ${JSON.stringify(NAMES)}:
    tool(name)
server.run('streamable-http', **options)
`

const FILTER = ['--logLevel', 'none', '--outputTransport', 'streamableHttp', '--stateful', '--stdio']
/** Servers that speak over standard input and output, behind a bridge. */
function bridged(npm: string, port: number, command: string): readonly string[] {
  return [process.execPath, join(npm, 'supergateway/dist/index.js'), '--port', String(port), ...FILTER, command]
}
const official = (npm: string, name: string): string => join(npm, '@modelcontextprotocol', name, 'dist/index.js')

/** Written beside `node_modules`, where its imports are found. */
function scriptIn(npm: string, name: string, source: string): readonly string[] {
  const path = join(npm, '..', name)
  writeFileSync(path, source)
  return [process.execPath, path]
}

export const SMALL_SERVERS: readonly Kind[] = [
  {
    ...SMALL,
    name: 'SDK 1.32',
    launch: ({ npm }) => (npm === null ? null : { words: scriptIn(npm, 'first.mjs', FIRST) }),
  },
  {
    ...SMALL,
    name: 'SDK 2.4',
    launch: ({ npm }) => (npm === null ? null : { words: scriptIn(npm, 'second.mjs', SECOND) }),
  },
  ...(['python1', 'python2'] as const).map((name) => ({
    ...SMALL,
    name: name === 'python1' ? 'Python 1.30' : 'Python 2.3',
    launch(programs: Programs) {
      const path = programs[name]
      return path === null ? null : { words: ['python3', '-c', PYTHON], env: { PYTHONPATH: path } }
    },
  })),
]

export const OFFICIAL_SERVERS: readonly Kind[] = [
  {
    name: 'everything',
    launch: ({ npm }) =>
      npm === null ? null : { words: [process.execPath, official(npm, 'server-everything'), 'streamableHttp'] },
    rules: {
      echo: 'signed_in',
      'get-sum': 'viewer sum:{arguments.a}',
      'trigger-long-running-operation': 'viewer steps:{arguments.steps}',
    },
    open: ['echo', { message: 'hello' }],
    allowed: ['get-sum', { a: 1, b: 1 }],
    denied: ['get-sum', { a: 2, b: 1 }],
    grant: 'sum:1#viewer',
  },
  {
    name: 'filesystem',
    launch({ npm }, { port, folder }) {
      if (npm === null) return null
      for (const name of ['a', 'b']) writeFileSync(join(folder, name), name)
      return { words: bridged(npm, port, `${process.execPath} ${official(npm, 'server-filesystem')} ${folder}`) }
    },
    rules: { list_allowed_directories: 'signed_in', read_text_file: 'viewer file:{arguments.path}' },
    open: ['list_allowed_directories', {}],
    allowed: ['read_text_file', { path: 'FOLDER/a' }],
    denied: ['read_text_file', { path: 'FOLDER/b' }],
    grant: 'file:FOLDER/a#viewer',
  },
  {
    name: 'memory',
    launch: ({ npm }, { port, folder }) =>
      npm === null
        ? null
        : {
            words: bridged(npm, port, `${process.execPath} ${official(npm, 'server-memory')}`),
            env: { MEMORY_FILE_PATH: join(folder, 'memory.jsonl') },
          },
    rules: { read_graph: 'signed_in', search_nodes: 'viewer query:{arguments.query}' },
    open: ['read_graph', {}],
    allowed: ['search_nodes', { query: 'a' }],
    denied: ['search_nodes', { query: 'b' }],
    grant: 'query:a#viewer',
  },
  {
    name: 'git',
    launch({ npm, git }, { port, folder }) {
      if (npm === null || git === null) return null
      return {
        words: bridged(npm, port, `sh -c 'git init -q ${folder}; exec python3 -m mcp_server_git -r ${folder}'`),
        env: { PYTHONPATH: git },
      }
    },
    rules: { git_status: 'signed_in', git_branch: 'viewer branches:{arguments.branch_type}' },
    open: ['git_status', { repo_path: 'FOLDER' }],
    allowed: ['git_branch', { repo_path: 'FOLDER', branch_type: 'local' }],
    denied: ['git_branch', { repo_path: 'FOLDER', branch_type: 'remote' }],
    grant: 'branches:local#viewer',
  },
]

/** Null: it cannot be had here. */
export async function startServer(kind: Kind, programs: Programs): Promise<Server | null> {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-mcp-'))
  const port = await freePort()
  const launch = kind.launch(programs, { port, folder })
  const clean = (): void => rmSync(folder, { recursive: true, force: true })
  if (launch === null) {
    clean()
    return null
  }
  const [program = '', ...words] = launch.words
  const logFile = join(folder, 'log')
  const log = openSync(logFile, 'w')
  const env = { ...PROGRAM_ENV, HOME: folder, PORT: String(port), PYTHONDONTWRITEBYTECODE: '1', ...launch.env }
  const child: ChildProcess = spawn(program, words, { cwd: folder, env, stdio: ['ignore', log, log] })
  const said = (): string => readFileSync(logFile, 'utf8')
  await until(async () => child.exitCode !== null || (await isOpen(port)))
  if (child.exitCode !== null) throw new Error(`the server ${kind.name} ended with ${child.exitCode}:\n${said()}`)
  return {
    name: kind.name,
    play: placed(kind, folder),
    port,
    pid: child.pid ?? 0,
    ran: () => [...said().matchAll(/^ran (.*)$/gm)].map(([, what = '']) => what.trim()),
    stop() {
      child.kill('SIGTERM')
      clean()
    },
  }
}

function placed({ rules, open, allowed, denied, grant }: Play, folder: string): Play {
  const text = JSON.stringify({ rules, open, allowed, denied, grant })
  const play: Play = JSON.parse(text.replaceAll('FOLDER', folder))
  return play
}
