// An MCP server that knows nothing of permissions; portcullis.yaml says who may call which tool.
// Install: npm install @modelcontextprotocol/sdk zod
// Start: node server.mjs
import { createServer } from 'node:http'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { z } from 'zod'

const read = ({ id }) => ({ content: [{ type: 'text', text: `invoice ${id}` }] })

createServer(async (request, response) => {
  const server = new McpServer({ name: 'invoices', version: '1.0.0' })
  server.registerTool('read_invoice', { description: 'Reads an invoice', inputSchema: { id: z.string() } }, read)
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined })
  await server.connect(transport)
  await transport.handleRequest(request, response)
}).listen(3000, '127.0.0.1')
