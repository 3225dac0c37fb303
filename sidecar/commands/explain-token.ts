/** `explain --token`: evaluates a request with a real token as the sidecar would, and gives the outcome and its reason. */
import type { LoadedConfig } from '../config/config.ts'
import { NO_ADMISSION } from '../enforce/admission.ts'
import { denialStatus } from '../enforce/denial-response.ts'
import { enforce } from '../enforce/enforce.ts'
import { toClientRequest } from '../enforce/explain.ts'
import { originOf } from '../request/origin.ts'
import { createRouting } from '../routes/route-request.ts'
import { createRuntime, type RuntimeDeps } from '../runtime/runtime.ts'

export type AskedRequest = {
  readonly method: string
  readonly url: string
  readonly token: string
  /** The address of the client; null: unknown. */
  readonly from: string | null
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: string | null
}
export type TokenDecision = { readonly allowed: boolean; readonly verdict: string; readonly reason: string }

/** Asks the issuer for keys and the PDP for a decision, but sends nothing to the service. A denial is a result, not an error. */
export async function askAbout(config: LoadedConfig, request: AskedRequest, deps: RuntimeDeps): Promise<TokenDecision> {
  const runtime = createRuntime(config, deps, createRouting(config.file))
  try {
    const { method, url: target, token, from, body } = request
    const headers = [['Authorization', `Bearer ${token}`] as const, ...request.headers]
    const client = toClientRequest({ method, target, headers, body }, config.file.hosts)
    const arrival = {
      client,
      requestId: '',
      origin: { ...originOf(client, null), address: from ?? '' },
      admission: NO_ADMISSION,
      readBody: async () => Buffer.from(body ?? ''),
      keptBody: async () => null,
      upgrade: false,
      browser: null,
      former: null,
      span: null,
      lateMs: null,
    }
    const outcome = await enforce(arrival, runtime.enforcing)
    if (outcome.kind === 'permit' && outcome.shadowed === null)
      return { allowed: true, verdict: 'allowed', reason: 'every check holds' }
    const denial = outcome.kind === 'denial' ? outcome : outcome.kind === 'permit' ? outcome.shadowed : null
    if (denial === null) return { allowed: true, verdict: 'answered by the sidecar itself', reason: outcome.kind }
    const shadow = outcome.kind === 'permit' ? ', but only logged: the route is in shadow mode' : ''
    return { allowed: false, verdict: `${denialStatus(denial.code)} ${denial.code}${shadow}`, reason: denial.reason }
  } finally {
    runtime.retire()
  }
}
