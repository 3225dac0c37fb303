/** The official clients of MCP, unchanged, behind one interface: each lists tools and calls them on one connection. */
import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'
import { PROGRAM_ENV } from '../support/programs/environment.ts'
import type { Programs } from './programs.ts'
import type { Call } from './servers.ts'

/** `code`, `reason`: of an error of JSON-RPC. `failure`: anything else that went wrong. */
export type Outcome =
  | { readonly kind: 'result'; readonly isError: boolean }
  | { readonly kind: 'error'; readonly code: number; readonly reason: string | null }
  | { readonly kind: 'failure'; readonly failure: string }
export type Connection = {
  list(): Promise<readonly string[]>
  call(call: Call): Promise<Outcome>
  close(): Promise<void>
}
export type Client = { readonly name: string; connect(url: string, token: string): Promise<Connection> }

export function findClients(programs: Programs): readonly Client[] {
  const { npm, python1, python2, fastmcp } = programs
  return [
    ...(npm === null ? [] : typescriptClients(npm)),
    ...(python1 === null ? [] : [pythonClient('Python 1.30', python1, FIRST)]),
    ...(python2 === null ? [] : [pythonClient('Python 2.3', python2, SECOND)]),
    ...(fastmcp === null ? [] : [pythonClient('fastmcp 4.2', fastmcp, FASTMCP)]),
  ]
}

type SdkClient = {
  connect(transport: object): Promise<void>
  listTools(): Promise<{ tools: { name: string }[] }>
  callTool(call: { name: string; arguments: object }): Promise<{ isError?: boolean }>
  close(): Promise<void>
}
type ClientClass = new (info: object, options?: object) => SdkClient
type TransportClass = new (url: URL, options: object) => object

function typescriptClients(npm: string): readonly Client[] {
  const load = (file: string): Promise<object> => import(pathToFileURL(join(npm, '@modelcontextprotocol', file)).href)
  const open = async (
    { Client, Transport }: { readonly Client: ClientClass; readonly Transport: TransportClass },
    how: { readonly url: string; readonly token: string; readonly options?: object },
  ): Promise<Connection> => {
    const client = new Client({ name: 'portcullis', version: '1' }, how.options)
    const headers = { authorization: `Bearer ${how.token}` }
    await client.connect(new Transport(new URL(how.url), { requestInit: { headers } }))
    return {
      list: async () => (await client.listTools()).tools.map(({ name }) => name),
      call: ([name, args]) => outcomeOf(client.callTool({ name, arguments: args })),
      close: () => client.close(),
    }
  }
  const first: Client = {
    name: 'TypeScript 1.32',
    async connect(url, token) {
      const { Client } = (await load('sdk/dist/esm/client/index.js')) as { Client: ClientClass }
      const { StreamableHTTPClientTransport: Transport } = (await load('sdk/dist/esm/client/streamableHttp.js')) as {
        StreamableHTTPClientTransport: TransportClass
      }
      return open({ Client, Transport }, { url, token })
    },
  }
  const second = (['legacy', 'auto', { pin: '2026-07-28' }] as const).map((mode) => ({
    name: `TypeScript 2.4 ${typeof mode === 'string' ? mode : 'pinned'}`,
    async connect(url: string, token: string) {
      const { Client, StreamableHTTPClientTransport: Transport } = (await load('client/dist/index.mjs')) as {
        Client: ClientClass
        StreamableHTTPClientTransport: TransportClass
      }
      return open({ Client, Transport }, { url, token, options: { versionNegotiation: { mode } } })
    },
  }))
  return [first, ...second]
}

async function outcomeOf(calling: Promise<{ isError?: boolean }>): Promise<Outcome> {
  try {
    const { isError = false } = await calling
    return { kind: 'result', isError }
  } catch (err) {
    const { code, data, message } = err as { code?: unknown; data?: { code?: unknown }; message?: unknown }
    if (typeof code !== 'number') return { kind: 'failure', failure: String(message) }
    return { kind: 'error', code, reason: typeof data?.code === 'string' ? data.code : null }
  }
}

/** Each line is a command in JSON, and each gets one line. `call` and `names` come from the script of the SDK. */
const SHELL = `import asyncio, json, sys
def say(value):
    print(json.dumps(value), flush=True)
async def serve(names, call):
    say('ready')
    while True:
        line = await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
        if line.strip() in ('', 'close'):
            return
        command = json.loads(line)
        try:
            if command == 'list':
                say({'names': await asyncio.wait_for(names(), 60)})
            else:
                is_error = await asyncio.wait_for(call(*command), 60)
                say({'kind': 'result', 'isError': bool(is_error)})
        except BaseException as err:
            error = getattr(err, 'error', None)
            if error is None:
                say({'kind': 'failure', 'failure': type(err).__name__ + ' ' + str(err)})
            else:
                data = error.data if isinstance(error.data, dict) else {}
                say({'kind': 'error', 'code': error.code, 'reason': data.get('code')})
url, token = sys.argv[1], sys.argv[2]
headers = {'Authorization': 'Bearer ' + token}
`
const FIRST = `${SHELL}
from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client
async def main():
    async with streamablehttp_client(url, headers=headers) as (read, write, _):
        async with ClientSession(read, write) as session:
            await session.initialize()
            async def names():
                return [tool.name for tool in (await session.list_tools()).tools]
            async def call(name, args):
                return (await session.call_tool(name, args)).isError
            await serve(names, call)
asyncio.run(main())
`
const SECOND = `${SHELL}
import httpx2
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
async def main():
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        async with Client(streamable_http_client(url, http_client=http)) as client:
            async def names():
                return [tool.name for tool in (await client.list_tools()).tools]
            async def call(name, args):
                return (await client.call_tool(name, args)).is_error
            await serve(names, call)
asyncio.run(main())
`
const FASTMCP = `${SHELL}
from fastmcp import Client
async def main():
    async with Client(url, auth=token) as client:
        async def names():
            return [tool.name for tool in await client.list_tools()]
        async def call(name, args):
            return (await client.call_tool(name, args, raise_on_error=False)).is_error
        await serve(names, call)
asyncio.run(main())
`

const pythonClient = (name: string, path: string, script: string): Client => ({
  name,
  async connect(url, token) {
    const env = { ...PROGRAM_ENV, PYTHONPATH: path, PYTHONDONTWRITEBYTECODE: '1' }
    const child = spawn('python3', ['-c', script, url, token], { env, stdio: ['pipe', 'pipe', 'pipe'] })
    const answer = linesOf(child)
    const first = await answer()
    if (first !== 'ready') throw new Error(`${name} ended before it was connected: ${JSON.stringify(first)}`)
    const ask = async (command: unknown): Promise<unknown> => {
      child.stdin.write(`${JSON.stringify(command)}\n`)
      return answer()
    }
    return {
      list: async () => ((await ask('list')) as { names: string[] }).names,
      call: async (call) => (await ask(call)) as Outcome,
      async close() {
        const ended = new Promise((done) => child.once('exit', done))
        child.stdin.end('close\n')
        setTimeout(() => child.kill('SIGKILL'), 3_000).unref()
        await ended
      },
    }
  },
})

/** The next line of the client; rejects with what it complained of when it ends. */
function linesOf(child: ChildProcess): () => Promise<unknown> {
  if (child.stdout === null || child.stderr === null) throw new TypeError('the client has no output')
  let complaint = ''
  child.stderr.on('data', (text) => {
    complaint += text
  })
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  return async () => {
    const { done, value } = await lines.next()
    // Python says at each level of a group of errors what it is, and only within it why.
    if (done === true)
      return {
        kind: 'failure',
        failure: complaint.match(/^[ |+-]*[\w.]+(?:Error|Exception|Timeout)\b.*$/gm)?.join('; ') ?? complaint.trim(),
      }
    const answer: unknown = JSON.parse(value)
    return answer
  }
}
