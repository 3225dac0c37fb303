/** `explain --token`: judges a request with a real token as the sidecar would, and says what comes out and why. */
import type { LoadedConfig } from '../config/config.ts'
import { NO_ADMISSION } from '../enforce/admission.ts'
import { denialStatus } from '../enforce/denial-response.ts'
import { enforce } from '../enforce/enforce.ts'
import { type ClientRequest, syntheticRequest } from '../http/client.ts'
import { originOf } from '../request/origin.ts'
import { createClockSkew } from '../runtime/clock-skew.ts'
import { createRuntime, createRuntimeParts, type EngineDeps } from '../runtime/runtime.ts'

export type AskedRequest = {
  readonly method: string
  readonly url: string
  readonly token: string
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: string | null
}
export type Asked = { readonly allowed: boolean; readonly verdict: string; readonly reason: string }

/** Longer than a request would wait: there is no connection to the PDP yet. */
const ASK_MS = 3_000

/** Asks the issuer for its keys and the PDP for its answer; nothing reaches the upstream. Never throws for a refusal. */
export async function askAbout(
  config: LoadedConfig,
  request: AskedRequest,
  deps: Omit<EngineDeps, 'limits' | 'parts' | 'skew'>,
): Promise<Asked> {
  const skew = createClockSkew({ clock: deps.clock, onMeasured: () => undefined })
  const engine = createRuntime(config, { ...deps, limits: { pdpTimeoutMs: ASK_MS }, parts: createRuntimeParts(), skew })
  try {
    const { body } = request
    const client = toRequest(request, config)
    const arrival = {
      client,
      origin: originOf(client, null),
      admission: NO_ADMISSION,
      readBody: async () => Buffer.from(body ?? ''),
      upgrade: false,
    }
    const judged = await enforce(arrival, engine.enforcing)
    if (judged.kind === 'permit' && judged.shadowed === null)
      return { allowed: true, verdict: 'allowed', reason: 'every check holds' }
    const denial = judged.kind === 'denial' ? judged : judged.kind === 'permit' ? judged.shadowed : null
    if (denial === null) return { allowed: true, verdict: 'answered by the sidecar itself', reason: judged.kind }
    const shadow = judged.kind === 'permit' ? ', but only logged: the route is in shadow mode' : ''
    return { allowed: false, verdict: `${denialStatus(denial.code)} ${denial.code}${shadow}`, reason: denial.reason }
  } finally {
    engine.retire()
  }
}

function toRequest({ method, url, token, headers, body }: AskedRequest, { file }: LoadedConfig): ClientRequest {
  const absolute = /^https?:\/\/([^/?#]+)/i.exec(url)?.[1]
  const fields = [['Host', absolute ?? file.hosts[0] ?? ''], ['Authorization', `Bearer ${token}`], ...headers]
  if (body !== null)
    fields.push(['Content-Length', String(Buffer.byteLength(body))], ['Content-Type', 'application/json'])
  return syntheticRequest({ method, target: url, raw: fields.flat() })
}
