/** Shared by the guards of several frameworks: Node's requests and answers, and the caller that a guard has admitted. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { DenialAnswer } from './denial.ts'
import type { Caller, GuardRequest } from './guard.ts'

/** Each field as often as it was sent: Node itself would drop a second Authorization. */
export function requestOf(
  { method = '', headersDistinct }: IncomingMessage,
  { target, parameters }: { readonly target: string; readonly parameters: unknown },
): GuardRequest {
  const { authorization = [], dpop: proofs = [] } = headersDistinct
  const query = target.indexOf('?')
  return { method, path: query < 0 ? target : target.slice(0, query), authorization, proofs, parameters }
}

export function answer(res: ServerResponse, { status, headers, body }: DenialAnswer): void {
  res.writeHead(status, { ...headers })
  res.end(body)
}

export function requireCaller(caller: Caller | undefined): Caller {
  if (caller === undefined) throw new TypeError('no guard allowed this request')
  return caller
}
