/** Calls of MCP through enforce(), without a socket. */
import { NO_ADMISSION } from '../../../sidecar/enforce/admission.ts'
import { type EnforceDeps, enforce, type Outcome } from '../../../sidecar/enforce/enforce.ts'
import { syntheticRequest } from '../../../sidecar/http/client-request.ts'

export function send(deps: EnforceDeps, method: string, params: object): Promise<Outcome> {
  const raw = ['Host', 'app.test', 'Authorization', 'Bearer t', 'Content-Type', 'application/json']
  return enforce(
    {
      client: syntheticRequest({ method: 'POST', target: '/mcp', raw }),
      requestId: 'request-1',
      origin: { address: '192.0.2.1', scheme: 'https', host: null, fault: null },
      admission: NO_ADMISSION,
      readBody: async () => Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })),
      upgrade: false,
      browser: null,
      span: null,
      lateMs: null,
      former: null,
      keptBody: async () => null,
    },
    deps,
  )
}

/** The tools of a server's list that are left in it. */
export async function listed(deps: EnforceDeps, tools: readonly string[]): Promise<readonly string[]> {
  const outcome = await send(deps, 'tools/list', {})
  if (outcome.kind !== 'permit') return []
  const text = JSON.stringify({ jsonrpc: '2.0', id: 1, result: { tools: tools.map((name) => ({ name })) } })
  const { result } = JSON.parse((await outcome.mcp?.filter?.edit(text)) ?? '')
  return result.tools.map(({ name }: { name: string }) => name)
}
