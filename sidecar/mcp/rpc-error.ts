/** Errors with which the sidecar answers an MCP message instead of the server (JSON-RPC 2.0 section 5.1). */
import type { ProblemCode } from '../../pdp/shared/base/problems.ts'
import { RequestError } from '../request/errors.ts'

/** The codes of JSON-RPC and of MCP. `denied`: ours, outside of all ranges that either of them reserves. */
export const RPC = {
  parse: -32_700,
  request: -32_600,
  method: -32_601,
  params: -32_602,
  internal: -32_603,
  headers: -32_020,
  revision: -32_022,
  denied: 403,
} as const

/** The form of a denial for an MCP client. */
export type RpcReply = {
  /** The id of the message as JSON text; null: it is absent or unknown. */
  readonly id: string | null
  /** The code of the error; null: the default for the problem code. */
  readonly code: number | null
  /** The status of the HTTP answer; null: 200 for a message with an id. */
  readonly status: number | null
  /** Replaces the title of the problem. */
  readonly message?: string
  /** Additional members of `data`. */
  readonly data?: { readonly [name: string]: unknown }
}

/** A refusal that the client gets as an error of the protocol. */
export class RpcError extends RequestError {
  readonly rpc: RpcReply
  constructor(problem: ProblemCode, message: string, rpc: RpcReply) {
    super(problem, message)
    this.rpc = rpc
  }
}

/** A JSON-RPC error. `id`: JSON text. */
export const rpcError = (
  id: string | null,
  { code, message, data }: { readonly code: number; readonly message: string; readonly data: object },
): string => `{"jsonrpc":"2.0","id":${id ?? 'null'},"error":${JSON.stringify({ code, message, data })}}`
