/** Shared by the guards of several frameworks: Node's requests and answers, and the caller that a guard has admitted. */
import type { IncomingMessage } from 'node:http'
import type { DenialAnswer } from './denial.ts'
import type { Caller, GuardRequest } from './guard.ts'

/** The members that requests of `node:http` and of `node:http2` have in common. */
export type NodeRequest = Pick<IncomingMessage, 'method' | 'rawHeaders'>
/** The used part of an answer of either. */
export type NodeAnswer = {
  writeHead(status: number, headers: { [name: string]: string }): unknown
  end(body: string): unknown
}

/** Reads every field that was sent from rawHeaders, since `headers` of Node drops a second Authorization. */
export function requestOf(
  { method = '', rawHeaders }: NodeRequest,
  { target, parameters }: { readonly target: string; readonly parameters: unknown },
): GuardRequest {
  const valuesOf = (name: string): readonly string[] =>
    rawHeaders.filter((_, at) => at % 2 === 1 && rawHeaders[at - 1]?.toLowerCase() === name)
  const query = target.indexOf('?')
  const path = query < 0 ? target : target.slice(0, query)
  return { method, path, authorization: valuesOf('authorization'), proofs: valuesOf('dpop'), parameters }
}

export function answer(res: NodeAnswer, { status, headers, body }: DenialAnswer): void {
  res.writeHead(status, { ...headers })
  res.end(body)
}

export function requireCaller(caller: Caller | undefined): Caller {
  if (caller === undefined) throw new TypeError('no guard allowed this request')
  return caller
}
